"""Models on devices: GPUs, real and simulated, and parts of one model on several devices.

Python starts one kernel after another. Each device has an arena of its own. A value that is needed
on another device is copied; so are inputs and results of a model on a GPU.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import DLCompilerError, UserError
from dlcompiler.graph.execution.kernels import ModelKernel
from dlcompiler.graph.execution.model import RunnableModel, check_repeats
from dlcompiler.graph.execution.profiles import KernelTime, Profile
from dlcompiler.graph.execution.spaces import Space
from dlcompiler.graph.execution.steps import COPY, Place, Step, Steps
from dlcompiler.graph.ir import Module
from dlcompiler.graph.memory import MemoryPlan
from dlcompiler.graph.operators.base import Array
from dlcompiler.pipeline.accelerator_kernel import AcceleratorKernel
from dlcompiler.pipeline.device_kernels import DeviceKernel
from dlcompiler.pipeline.devices import device_of
from dlcompiler.pipeline.executables import SimulatedKernel
from dlcompiler.runtime.arguments import Param, as_checked_array, check_count, refuse_overlap
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.runtime.timing import measured_here
from dlcompiler.target import Target

HOST = "host"
"""Where the arrays of a call are."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """A copy from one device to another in each call."""

    name: str
    """What is copied: a parameter, a result, or a value between kernels."""
    source: str
    """The device it is copied from; ``"host"`` for an array of the caller."""
    target: str
    bytes: int
    """Size; [byte]."""


class DeviceModel(RunnableModel):
    """A model whose kernels run on devices.

    Parameters
    ----------
    module : Module
        The module that consists of kernels, with the decisions of the passes.
    steps : Steps
        Its steps, with their devices.
    kernels : sequence of ModelKernel
        The kernels of the steps.
    targets : mapping
        Device -> its target; the first is the default device.
    spaces : mapping
        Device -> its memory.

    Notes
    -----
    Several threads may call it at the same time: each call has arenas of its own.
    """

    def __init__(
        self, module: Module, steps: Steps, kernels: Sequence[ModelKernel],
        targets: Mapping[str, Target], spaces: Mapping[str, Space],
    ) -> None:  # fmt: skip
        super().__init__(steps)
        self.module = module
        """The module that consists of kernels."""
        self.targets = dict(targets)
        """Device -> its target; the first is the default device."""
        self.kernels = tuple(kernels)
        """Its different kernels."""
        self._spaces = dict(spaces)
        self._weights = {
            (place.device, place.number): spaces[place.device].bytes_of(steps.weights[place.number])
            for step in steps.steps
            for place in step.places
            if place.kind == "weight"
        }
        device_of_kernel = {step.kernel: step.device for step in steps.steps}
        self._inside = [
            [_on(spaces[device_of_kernel[n]], array) for array in kernel.weights]
            for n, kernel in enumerate(kernels)
        ]

    @property
    def plans(self) -> Mapping[str, MemoryPlan]:
        """Device -> where values between kernels lie in its arena."""
        return dict(self._steps.plans)

    @property
    def kernel_names(self) -> tuple[str, ...]:
        """Names of the different kernels, by their numbers in `steps`."""
        return tuple(kernel.name for kernel in self.kernels)

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """The copies between devices in each call, in order; weights are copied once, before."""
        default = next(iter(self.targets))
        is_gpu = self.targets[default].device != "cpu"
        inputs = [Transfer(p.name, HOST, default, p.nbytes) for p in self._steps.inputs]
        outputs = [Transfer(p.name, default, HOST, p.nbytes) for p in self._steps.outputs]
        between = [
            Transfer(step.name, step.places[0].device, step.places[1].device, step.places[0].bytes)
            for step in self.steps
            if step.kernel == COPY
        ]
        return (*inputs, *between, *outputs) if is_gpu else tuple(between)

    def run(self, *arrays: Any) -> None:
        """Compute the result into given arrays: inputs, then outputs, as in `params`.

        Raises
        ------
        CallError, ProgramError, OutOfMemory
            As of a call.
        DeviceUnavailable, DeviceFault
            A device cannot be used, or failed.
        """
        check_count("the model", self.params, arrays)
        taken = [
            as_checked_array(f"call the model: argument {n} ({param.name})", param, array)
            for n, (param, array) in enumerate(zip(self.params, arrays, strict=True), 1)
        ]
        _refuse_overlaps(self.params, taken)
        inputs = len(self._steps.inputs)
        run = self._run(taken[:inputs], taken[inputs:])
        for n in range(len(self.steps)):
            run.one(n)
        run.finish()

    def stepped(self, /, *args: Any, **named: Any) -> DeviceRun:
        """Return a run that stops after each kernel.

        Parameters
        ----------
        *args, **named
            As of a call.
        """
        return self._run(self.checked_inputs(args, named), self._new_outputs())

    def _run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> DeviceRun:
        return DeviceRun(self._steps, self.kernels, self._spaces, inputs, outputs,
                         self._weights, self._inside)  # fmt: skip

    def profile(self, /, *args: Any, repeats: int = 3, **named: Any) -> Profile:
        """Return how long each kernel takes: predicted on a simulated device, else measured.

        Parameters
        ----------
        *args, **named
            As of a call.
        repeats : int
            Runs of which the shortest counts, where times are measured; [1].

        Returns
        -------
        Profile
            A `KernelTime` for each kernel, in the order of the steps; copies between devices are
            not among them.
        """
        check_repeats(repeats)
        found: dict[int, float] = {}
        known: dict[int, float] = {}
        for _ in range(repeats):
            run = self.stepped(*args, **named)
            for n, step in enumerate(self.steps):
                if step.kernel != COPY:
                    if step.kernel not in known:
                        known.update(self._predicted(step, run))
                    seconds = known.get(step.kernel)
                    if seconds is None:
                        seconds = run.timed(n)
                    found[n] = min(found.get(n, seconds), seconds)
                run.one(n)
        return Profile(
            KernelTime(step.name, self.kernel_names[step.kernel], found[n], self._times(step))
            for n, step in enumerate(self.steps)
            if step.kernel != COPY
        )

    def save(self, path: str | Path) -> NoReturn:
        """Refuse to write a file: code of devices cannot be saved.

        Raises
        ------
        UserError
            Always.
        """
        raise UserError(
            f"save a model to {path}", "code of devices cannot be saved",
            got=", ".join(target.name for target in self.targets.values()),
            hint="graph.to_json(module) writes the graph; a model for a CPU can be saved",
        )  # fmt: skip

    def _predicted(self, step: Step, run: DeviceRun) -> Mapping[int, float]:
        """Return the predicted time of a kernel, if it is simulated."""
        built = self.kernels[step.kernel].built
        if not isinstance(built, SimulatedKernel | AcceleratorKernel):
            return {}
        try:
            seconds = built.report().seconds
        except DLCompilerError:  # what it does depends on the arrays
            seconds = built.report(*run.arrays(step)).seconds
        return {step.kernel: float("nan") if seconds is None else seconds}

    def _times(self, step: Step) -> Provenance:
        target = self.targets[step.device]
        return device_of(target).times(target) or measured_here()

    def __repr__(self) -> str:
        arenas = ", ".join(
            f"arena {plan.bytes:,} bytes on {self.targets[name].name}"
            for name, plan in self.plans.items()
        )
        return f"DeviceModel({len(self.steps)} steps, {arenas}, {len(self.transfers)} transfers)"


class DeviceRun:
    """A run of a model on devices, with arenas of its own.

    Parameters
    ----------
    steps, kernels, spaces
        Of the model.
    inputs, outputs : sequence of ndarray
        The arrays of the caller.
    weights, inside
        Arrays of the model on its devices: those of its steps, and those inside each kernel.
    """

    def __init__(
        self, steps: Steps, kernels: Sequence[ModelKernel], spaces: Mapping[str, Space],
        inputs: Sequence[Array], outputs: Sequence[Array],
        weights: Mapping[tuple[str, int], Any], inside: Sequence[Sequence[Any]],
    ) -> None:  # fmt: skip
        self._steps, self._kernels, self._spaces = steps, kernels, spaces
        self._weights, self._inside = weights, inside
        self.outputs = outputs
        """The arrays of the results; `finish` writes them."""
        self._default = spaces[next(iter(steps.plans))]
        self._given = {
            "input": [self._default.bytes_of(array) for array in inputs],
            "output": [self._new_output(array) for array in outputs],
        }
        self._arenas = {
            name: spaces[name].allocate(plan.bytes) for name, plan in steps.plans.items()
        }

    def steps(self) -> Iterator[tuple[Step, list[Array]]]:
        """Run step by step; yield each one with copies of what it stored in this process.

        Raises
        ------
        ProgramError, OutOfMemory, DeviceUnavailable, DeviceFault
            As of a call of the kernel.
        """
        for n, step in enumerate(self._steps.steps):
            arrays = self.one(n)
            space = self._spaces[step.device]
            yield step, [space.to_host(each) for each in arrays[len(arrays) - step.outputs :]]
        self.finish()

    def one(self, number: int) -> list[Any]:
        """Run one step, and return its arrays on their device."""
        step = self._steps.steps[number]
        if step.kernel == COPY:
            self._copy(*step.places)
            return []
        arrays = self.arrays(step)
        self._kernels[step.kernel].built(*arrays)
        return arrays

    def timed(self, number: int) -> float:
        """Return how long the kernel of one step takes, measured on its device; [s]."""
        step = self._steps.steps[number]
        built, arrays = self._kernels[step.kernel].built, self.arrays(step)
        if isinstance(built, DeviceKernel):
            return float(built.use(lambda call: call.clocked().seconds(1), *arrays))
        start = time.perf_counter()
        built(*arrays)
        return time.perf_counter() - start

    def arrays(self, step: Step) -> list[Any]:
        """Return the arrays of a step: inputs, what stands inside its kernel, outputs."""
        kernel = self._kernels[step.kernel]
        space = self._spaces[step.device]
        params = kernel.params
        inputs = len(step.places) - step.outputs
        inside = self._inside[step.kernel]
        taken = [*params[:inputs], *params[inputs + len(inside) :]]
        parts = [
            self._part(place, param.static_shape, param.dtype, space)
            for place, param in zip(step.places, taken, strict=True)
        ]
        return [*parts[:inputs], *inside, *parts[inputs:]]

    def _part(self, place: Place, shape: Sequence[int], dtype: str, space: Space) -> Any:
        if place.kind == "arena":
            return space.part(self._arenas[place.device], place.number, shape, dtype)
        if place.kind == "weight":
            return space.part(self._weights[place.device, place.number], 0, shape, dtype)
        return space.part(self._given[place.kind][place.number], 0, shape, dtype)

    def _copy(self, source: Place, to: Place) -> None:
        shape = (source.bytes,)
        ends = [self._spaces[source.device], self._spaces[to.device]]
        arrays = [
            self._part(place, shape, "uint8", space)
            for place, space in zip((source, to), ends, strict=True)
        ]
        ends[1].write(arrays[1], ends[0].to_host(arrays[0]))

    def _new_output(self, array: Array) -> Any:
        if self._default.is_host:
            return self._default.bytes_of(array)
        return self._default.allocate(array.nbytes)

    def finish(self) -> None:
        """Copy results to the arrays of the caller."""
        if self._default.is_host:
            return
        for array, made in zip(self.outputs, self._given["output"], strict=True):
            dtype = dtypes.from_numpy(array.dtype)
            array[...] = self._default.to_host(self._default.part(made, 0, array.shape, dtype))


def _on(space: Space, array: Array) -> Any:
    """Return an array of this process in the memory of a device."""
    return space.part(space.bytes_of(array), 0, array.shape, dtypes.from_numpy(array.dtype))


def _refuse_overlaps(params: Sequence[Param], arrays: Sequence[Array]) -> None:
    """Refuse an output that shares memory with another array."""
    for n, param in enumerate(params):
        for other in range(len(params)):
            is_pair = param.is_output and n != other
            if is_pair and np.shares_memory(arrays[n], arrays[other]):
                raise refuse_overlap("the model", params, n, other)
