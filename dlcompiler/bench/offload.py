"""An int8 ResNet-18 on a CPU, and with its convolutions on VTA: ``offload``.

Figure 21 of the TVM paper compares a CPU with a CPU and an accelerator, layer by layer. Here the
times of the accelerator are simulated, and those of the CPU are measured on this machine: they are
shown beside each other, and not divided. The results of both models are compared bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dlcompiler.bench.accelerator_totals import PUBLISHED
from dlcompiler.graph import DeviceModel, Module, build
from dlcompiler.graph.builders import resnet_int8
from dlcompiler.graph.execution.kernels import ModelKernel
from dlcompiler.graph.passes import offload
from dlcompiler.pipeline.accelerator_kernel import AcceleratorKernel
from dlcompiler.target.accelerators.vta import VtaConfig, vta

SCHEMA_VERSION = 1
IMAGE = 224
PUBLISHED_CYCLES = {"A": PUBLISHED["before"], "B": PUBLISHED["after"]}
"""Cycles of ResNet-18 version 1 on VTA's RTL, before and after its GEMM was pipelined."""


@dataclass(frozen=True)
class Layer:
    """A kernel of the model."""

    name: str
    runs_on: str
    cpu_s: float | None
    """Time of the same calls in the model for the CPU, measured on this machine [s]; None if that
    model has no such kernel."""
    seconds: float
    """Time in the model with the accelerator [s]."""
    kind: str
    """``"simulated"`` or ``"measured"``: what `seconds` is."""

    def __str__(self) -> str:
        own = f"{self.name:<18} {self.runs_on:<10} {1e3 * self.seconds:8.3f} ms {self.kind:<9}"
        if self.cpu_s is None:
            return f"{own}   on the CPU a part of another kernel"
        return f"{own}   on the CPU {1e3 * self.cpu_s:8.3f} ms measured"


def run_suite(say: Callable[[str], None], image: int = IMAGE) -> dict[str, Any]:
    """Build the model for the CPU, and for the CPU and VTA; return the document.

    Parameters
    ----------
    say
        Called with each row.
    image
        Height and width of the image; [1].
    """
    model = resnet_int8(image=image).bound
    data = np.random.default_rng(0).integers(-128, 128, (1, 3, image, image), dtype="int8")
    cpu = build(model)
    expected = cpu(data)
    of_cpu = {_first(row.name): row.seconds for row in cpu.profile(data)}
    divided, cycles = offload(model), {}
    for profile in PUBLISHED_CYCLES:  # the RTL of 2019 has faults that change values
        both = _divided(divided, profile)
        cycles[profile] = sum(map(_cycles, (both.kernels[step.kernel] for step in both.steps)))
    both = _divided(divided, "B")
    equal = bool(np.array_equal(both(data), expected))
    layers = [_layer(row, of_cpu) for row in both.profile(data, repeats=1)]
    for layer in layers:
        say(str(layer))
    for profile, published in PUBLISHED_CYCLES.items():
        say(f"convolutions after the first in profile {profile}: {cycles[profile]:,} cycles "
            f"simulated; published for the whole network: {published:,}")  # fmt: skip
    say(f"values equal those of the CPU: {'yes' if equal else 'NO'}")
    return {
        "version": SCHEMA_VERSION, "image": image, "values equal": equal, "cycles": cycles,
        "published cycles": PUBLISHED_CYCLES, "offload": [asdict(layer) for layer in layers],
        "failed": {},
    }  # fmt: skip


def _divided(model: Module, profile: str) -> DeviceModel:
    """Return a model with its int8 layers on VTA."""
    machine = vta("vta-pynq", VtaConfig(profile=profile)).target
    built = build(model, {"cpu": "cpu", "vta": machine})
    assert isinstance(built, DeviceModel)
    return built


def _cycles(kernel: ModelKernel) -> int:
    """Return the simulated cycles of a kernel; 0 if the CPU runs it."""
    built = kernel.built
    return built.report().cycles if isinstance(built, AcceleratorKernel) else 0


def _first(name: str) -> str:
    """Return the name of a kernel's first call."""
    return name.partition("+")[0]


def _layer(row: Any, of_cpu: dict[str, float]) -> Layer:
    kind = row.times.kind
    where = "vta" if kind == "simulated" else "cpu"
    name = _first(row.name)
    return Layer(name, where, of_cpu.get(name), row.seconds, kind)
