"""Cycles of ResNet-18's convolutions on VTA, with latency hidden or not: ``accelerator``.

For each of C2 to C12 of the TVM paper, the suite builds one tiling three times: without virtual
threads and double buffers, with two virtual threads, and as the default config says. All numbers
are simulated. The utilisation of the GEMM core is the products of blocks per cycle; its bound is
what the engine that computes, or the memory port, allows. Each layer is a point of a roofline,
without and with latency hiding, as in figure 10 of the paper. The latency of memory is varied for
C9. At last, the convolutions of ResNet-18 are added up term by term (`accelerator_totals`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dlcompiler.bench import accelerator_totals
from dlcompiler.errors import DLCompilerError
from dlcompiler.ops import Operator, operator
from dlcompiler.ops.packed.extents import extents_of
from dlcompiler.output_files import REPLACES, write_file
from dlcompiler.pipeline import build
from dlcompiler.pipeline.accelerator_kernel import AcceleratorKernel, AcceleratorReport
from dlcompiler.pipeline.rooflines import AcceleratorRoofline, RooflinePoint, roofline_of
from dlcompiler.space import Config, Workload
from dlcompiler.target import Target
from dlcompiler.target.accelerators.vta import VtaConfig, vta

SCHEMA_VERSION = 2
LAYERS: Mapping[str, tuple[int, int, int, int, int]] = {
    "C2": (56, 64, 64, 3, 1), "C3": (56, 64, 64, 1, 1), "C4": (56, 64, 128, 3, 2),
    "C5": (56, 64, 128, 1, 2), "C6": (28, 128, 128, 3, 1), "C7": (28, 128, 256, 3, 2),
    "C8": (28, 128, 256, 1, 2), "C9": (14, 256, 256, 3, 1), "C10": (14, 256, 512, 3, 2),
    "C11": (14, 256, 512, 1, 2), "C12": (7, 512, 512, 3, 1),
}  # fmt: skip
"""Name in the paper's table 2 -> height and width, input channels, output channels, kernel and
stride."""
LATENCIES = (4, 16, 64, 128)
"""Cycles before the first data of a request; [clock]."""
SERIES = ("without latency hiding", "with latency hiding")
"""Series of the roofline: the tiling without virtual threads and double buffers; the default."""
PUBLISHED = {"without": 0.70, "hidden": 0.88}
"""Peak utilisation of compute resources without and with latency hiding, on a VTA at 200 MHz.

**Source:** "TVM", OSDI 2018, section 6.4, figure 10."""


@dataclass(frozen=True)
class Row:
    """A layer on an accelerator; all numbers are simulated."""

    layer: str
    config: Mapping[str, Any]
    products: int
    """Products of blocks; [1]."""
    bytes: int
    """Bytes that the memory port moves with the default config [byte]."""
    cycles_without: int
    """Cycles of its tiling without virtual threads and double buffers; [clock]."""
    cycles_threads: int
    """Cycles of its tiling with two virtual threads; [clock]."""
    cycles: int
    """Cycles of the default config; [clock]."""
    bound: int
    """Cycles in which the engine that computes is busy, or the loads at the width of the port,
    whichever are more; [clock]."""
    is_right: bool
    """Whether its values are those of NumPy."""
    points: Mapping[str, RooflinePoint]
    """Series, one of `SERIES` -> its point on the roofline."""

    @property
    def utilisation(self) -> float:
        """Products per cycle of the default config."""
        return self.products / self.cycles

    def __str__(self) -> str:
        shares = (
            self.products / n for n in (self.cycles_without, self.cycles_threads, self.cycles)
        )
        without, threads, best = (f"{share:6.1%}" for share in shares)
        of_bound = self.bound / self.cycles
        wrong = "" if self.is_right else "  WRONG VALUES"
        return (
            f"{self.layer:<4} GEMM core busy {without} plain, {threads} with threads, {best} by "
            f"default: {self.cycles:,} cycles, the engine busy {of_bound:.0%}{wrong}"
        )


def run_suite(
    say: Callable[[str], None], layers: Sequence[str] = tuple(LAYERS), *, profile: str = "B",
    latencies: Sequence[int] = LATENCIES, counts: Mapping[str, int] = accelerator_totals.COUNTS,
    picture: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Simulate the layers; return the document.

    Parameters
    ----------
    say
        Called with each row as soon as it is there.
    layers
        Names of `LAYERS`.
    profile
        Rules of the timed simulator: ``"A"`` or ``"B"``.
    latencies
        For the sweep; empty leaves it out.
    counts
        The layers that are added up, with how often ResNet-18 has them.
    picture
        File for the roofline, as SVG; an existing one is replaced.
    """
    target = vta("vta-pynq", VtaConfig(profile=profile)).target
    rows, failed = [], {}
    for name in layers:
        try:
            rows.append(measure(name, target))
        except DLCompilerError as error:
            failed[name] = str(error)
            continue
        say(str(rows[-1]))
    means = {
        key: float(np.exp(np.mean([np.log(share(row)) for row in rows])))
        for key, share in _SHARES.items()
        if rows
    }
    say(", ".join(f"{key} {mean:.3f}" for key, mean in means.items()) + " (geometric means)")
    peak = {
        "without": max((row.products / row.cycles_without for row in rows), default=0.0),
        "hidden": max((row.utilisation for row in rows), default=0.0),
    }
    say(
        f"most products a cycle: {peak['without']:.1%} without latency hiding, "
        f"{peak['hidden']:.1%} with it; published {PUBLISHED['without']:.0%} and "
        f"{PUBLISHED['hidden']:.0%}"
    )
    sweep = [_latency_row(each, profile, say) for each in latencies]
    if picture is not None and rows:
        write_file(picture, roofline(rows, target).svg, REPLACES)
    return {
        "version": SCHEMA_VERSION, "provenance": f"simulated on vta-pynq, profile {profile}",
        "published": PUBLISHED, "accelerator": [_json(row) for row in rows],
        "geometric means": means, "peak": peak, "latency": sweep,
        "totals": accelerator_totals.totals(say, workload_of, counts), "failed": failed,
    }  # fmt: skip


def _json(row: Row) -> dict[str, Any]:
    points = {
        series: {"intensity": point.demand.intensity, "rate": point.rate}
        for series, point in row.points.items()
    }
    return {**asdict(replace(row, points={})), "points": points}


def roofline(rows: Sequence[Row], target: Target) -> AcceleratorRoofline:
    """Return the roofline of rows: a point of each series for each layer."""
    return roofline_of(
        [(target.accelerator, row.points[series]) for series in SERIES for row in rows]
    )


_SHARES: Mapping[str, Callable[[Row], float]] = {
    "utilisation without": lambda row: row.products / row.cycles_without,
    "utilisation with threads": lambda row: row.products / row.cycles_threads,
    "utilisation": lambda row: row.utilisation,
    "of the bound": lambda row: row.bound / row.cycles,
}


def workload_of(layer: str) -> Workload:
    """Return a layer as a workload: with padding that keeps the size, a shift and a clip."""
    size, channels, filters, kernel, stride = LAYERS[layer]
    return operator("conv2d_packed").workload(
        c=channels, h=size, w=size, o=filters, kernel=kernel, stride=stride, padding=kernel // 2
    )


def measure(layer: str, target: Target) -> Row:
    """Simulate a layer."""
    item, workload = operator("conv2d_packed"), workload_of(layer)
    config = item.default_config(workload, target)
    plain = _variant(item, workload, target, config, threads="none", double="nothing")
    divided = config["threads"] if config["threads"] != "none" else "filters"
    threads = _variant(item, workload, target, config, threads=divided, double="nothing")
    kernel = _kernel(item, workload, target, config)
    reference = item.reference(workload, 0)
    expected = next(iter(reference.expected.values()))
    result = np.zeros(expected.shape, expected.dtype)
    kernel(*reference.inputs.values(), result)
    report = kernel.report()
    demand = report.demand
    port = -(-sum(demand.loaded.values()) // target.accelerator.port.bytes_per_cycle)
    computing = report.busy[target.accelerator.instruction("gemm").engine]
    return Row(
        layer, dict(config.values), extents_of(workload).updates, demand.bytes, plain.cycles,
        threads.cycles, report.cycles, max(computing, port), bool((result == expected).all()),
        {
            series: RooflinePoint(layer, each.demand, each.cycles, series)
            for series, each in zip(SERIES, (plain, report), strict=True)
        },
    )  # fmt: skip


def _variant(
    item: Operator, workload: Workload, target: Target, config: Config, **changes: Any
) -> AcceleratorReport:
    """Simulate a config with other values of some knobs."""
    other = item.space(workload, target).config(**{**dict(config.values), **changes})
    return _kernel(item, workload, target, other).report()


def _kernel(
    item: Operator, workload: Workload, target: Target, config: Config
) -> AcceleratorKernel:
    schedule, args = item.template(workload, target, config)
    kernel = build(schedule, args, target)
    assert isinstance(kernel, AcceleratorKernel)
    return kernel


def _latency_row(latency: int, profile: str, say: Callable[[str], None]) -> dict[str, Any]:
    """Simulate C9 with another latency of memory."""
    item, workload = operator("conv2d_packed"), workload_of("C9")
    target = vta("vta-pynq", VtaConfig(profile=profile, dram_latency=latency)).target
    config = item.default_config(workload, target)
    plain = _variant(item, workload, target, config, threads="none", double="nothing").cycles
    hidden = _kernel(item, workload, target, config).report().cycles
    products = extents_of(workload).updates
    say(
        f"C9 with a latency of {latency} cycles: GEMM core busy {products / plain:.1%} plain, "
        f"{products / hidden:.1%} by default"
    )
    return {"latency": latency, "cycles_without": plain, "cycles": hidden, "products": products}
