"""Report what a program does on a GPU: time, counters, resources and occupancy of each kernel."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dlcompiler.codegen.gpu.barriers import inserted, without_needless
from dlcompiler.codegen.gpu.lane_accesses import as_lanes
from dlcompiler.codegen.gpu.shuffles import with_shuffles
from dlcompiler.display import render
from dlcompiler.errors import DLCompilerError, TargetError
from dlcompiler.ir import Buffer, PrimFunc, Var
from dlcompiler.ir.program import Launch, Program
from dlcompiler.passes.merge_thread_loops import ThreadProgram, merge_thread_loops
from dlcompiler.pipeline.launch_limits import launches_with_memory, no_block_fits, shared_bytes
from dlcompiler.runtime import ptxas
from dlcompiler.runtime.arguments import check_all
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.runtime.source import Source
from dlcompiler.runtime.symbols import Symbols
from dlcompiler.simulate.gpu import Given, KernelCounters, Tally, count_launch
from dlcompiler.simulate.gpu.counters import WARP
from dlcompiler.simulate.gpu.occupancy import Occupancy, occupancy
from dlcompiler.simulate.gpu.populations import FIELDS, astuple
from dlcompiler.simulate.gpu.resources import Resources, estimated
from dlcompiler.simulate.gpu.time import KernelTime, count_phases, predict
from dlcompiler.target import Target
from dlcompiler.target.gpus import INSTRUCTIONS

_KERNEL = re.compile(r"__launch_bounds__\(\d+\) (\w+)\(")


@dataclass(frozen=True, slots=True, eq=False)
class KernelReport:
    """What one kernel does on a GPU."""

    counters: KernelCounters
    """What its warps execute; simulated."""
    resources: Resources
    """Its registers and memory."""
    occupancy: Occupancy | None
    """How many blocks run at once; None if the target does not say enough."""
    time: KernelTime | None
    """How long it takes, predicted; None if the target has no rates for it, or no block fits."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that ``json`` can write."""
        counters = self.counters
        return {
            "name": counters.name,
            "blocks": counters.blocks, "threads": counters.threads, "warps": counters.warps,
            "accesses": [
                {
                    "name": access.name, "buffer": access.site.buffer.name,
                    "is_write": access.site.is_write, "space": access.space,
                    "bytes": access.bytes, "is_exact": access.is_exact,
                    "least": _numbers(access.least), "most": _numbers(access.most),
                    "sectors_per_request": access.sectors_per_request,
                    "efficiency": access.efficiency, "conflict_degree": access.conflict_degree,
                }
                for access in counters.accesses
            ],
            "instructions": {
                kind: {"least": _numbers(least), "most": _numbers(most)}
                for kind, (least, most) in counters.instructions.items()
            },
            "active_fraction": counters.active_fraction,
            "is_exact": counters.is_exact,
            "resources": self.resources.to_dict(),
            "occupancy": None if self.occupancy is None else self.occupancy.to_dict(),
            "time": None if self.time is None else self.time.to_dict(),
        }  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class GPUReport:
    """What a program does on a GPU, kernel by kernel."""

    name: str
    """Name of the program."""
    target: Target
    """The GPU."""
    kernels: tuple[KernelReport, ...]
    """The kernels, in the order in which they run."""

    @property
    def provenance(self) -> Provenance:
        """Where the counters come from: simulated, for this target."""
        return Provenance("simulated", self.target.name)

    @property
    def seconds(self) -> float | None:
        """Predicted time of all kernels, one after the other; None if one has none [s]."""
        times = [kernel.time for kernel in self.kernels]
        return None if None in times else sum(time.seconds for time in times if time)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that ``json`` can write."""
        return {
            "name": self.name, "target": self.target.name,
            "counters_from": self.provenance.to_json(),
            "seconds": self.seconds,
            "seconds_from": self.seconds and times_on(self.target).to_json(),
            "kernels": [kernel.to_dict() for kernel in self.kernels],
        }  # fmt: skip

    def __str__(self) -> str:
        return render("gpu_report_text", self)

    def __repr__(self) -> str:
        count = len(self.kernels)
        kernels = "1 kernel" if count == 1 else f"{count} kernels"
        return f"GPUReport({self.name} for {self.target.name}: {kernels})"

    def _repr_html_(self) -> str:
        return render("gpu_report", self)


def times_on(target: Target) -> Provenance:
    """Return the provenance of predicted times: of the time model, with the numbers of a GPU."""
    return Provenance("predicted", f"the time model of {target.name}")


def report_of(
    source: Source, program: Program, target: Target, arguments: Sequence[Any]
) -> GPUReport:
    """Return what a program does on a GPU, without running it.

    Parameters
    ----------
    source
        Its generated code, from whose CUDA C ptxas reads the registers.
    program
        The kernels and launches.
    target
        The GPU.
    arguments
        Arguments of a call, if there are any: their shapes give symbols their values, and arrays of
        integers decide the indices and conditions that depend on them.

    Raises
    ------
    TargetError
        The target is no GPU.
    UserError
        The number of blocks or iterations depends on symbols or data, and no arguments are given.
    """
    if target.device != "gpu":
        raise TargetError(
            f"report of {program.func.name}", "only programs for GPUs have a report",
            got=f"target {target.name}, a {target.device}", hint='build it for target="gpu"',
        )  # fmt: skip
    given = given_by(program.func, source, arguments)
    resources = _resources(program, source, target, arguments)
    kernels = (
        _kernel(launch, needs, target, given)
        for launch, needs in zip(program.launches, resources, strict=True)
    )
    return GPUReport(program.func.name, target, tuple(kernels))


def predicted_s(program: Program, target: Target) -> float | None:
    """Predict the time of a program whose shapes are known; None if one of its kernels has none.

    Registers are estimated, so that this is fast: `report_of` asks ptxas. [s]

    Raises
    ------
    UserError
        As of `report_of`.
    """
    total = 0.0
    for launch in program.launches:
        time = time_of(launch, estimate_of(launch), target, Given())
        if time is None:
            return None
        total += time.seconds
    return total


def time_of(
    launch: Launch, needs: Resources, target: Target, given: Given, constant: Sequence[str] = ()
) -> KernelTime | None:
    """Predict the time of a kernel; None if the target has no rates, or no block fits.

    It is None, too, if the kernel uses tensor cores and the target has no rates for them.

    Parameters
    ----------
    launch
        The launch of the kernel.
    needs
        Its registers and its memory.
    target
        The GPU.
    given
        Values of symbols, and arrays.
    constant
        Names of arrays that are in constant memory.
    """
    counted = count_phases(generated_thread(launch, target.emits), given, loops=launch.loops)
    found = occupancy(target, threads=counted.threads, registers=needs.registers,
                      shared_bytes=needs.shared_bytes)  # fmt: skip
    kinds = {kind for counters, _ in counted.phases for kind in counters.instructions}
    is_tensor = any(kind.endswith(" mma") for kind in kinds)
    if found is None or (is_tensor and "tensor cores" not in target.rates):
        return None
    arrays = {
        reach.buffer for _, read in counted.phases for reach in read.reaches
        if reach.buffer.name in constant
    }  # fmt: skip
    return predict(counted, target, found, needs.shared_bytes, arrays)


def generated_thread(launch: Launch, emits: Collection[str]) -> ThreadProgram:
    """Return what one thread does in generated code: with shuffles, and the barriers it needs.

    What threads read of one another by shuffles counts as shared memory, whose crossbar they use.
    Tensor intrinsics are as of `as_lanes`.
    """
    thread, exchanged = with_shuffles(launch, merge_thread_loops(launch))
    thread = without_needless(launch, thread, inserted(launch, thread))
    return as_lanes(replace(thread, shared=(*thread.shared, *exchanged)), emits)


def counters_of(program: Program, warp_size: int = WARP) -> list[KernelCounters]:
    """Return the counters of each launch of a program whose shapes are known.

    Barriers count that code generation leaves out if it proves them to be needless, which takes
    longer: `report_of` does.

    Parameters
    ----------
    program
        The kernels and launches.
    warp_size
        Threads of a warp. [1]

    Raises
    ------
    UserError
        As of `report_of`.
    """
    return [
        count_launch(
            as_lanes(merge_thread_loops(launch), INSTRUCTIONS),
            launch.kernel.name,
            loops=launch.loops,
            warp_size=warp_size,
        )
        for launch in program.launches
    ]


def given_by(func: PrimFunc, source: Source, arguments: Sequence[Any]) -> Given:
    """Return what the arguments of a call say about a program: symbols, and arrays it reads."""
    if not arguments:
        return Given()
    interface = source.interface
    if interface.variables:
        Symbols(interface.params, interface.variables, interface.checks).bind(func.name, arguments)
    else:
        check_all(func.name, interface.params, arguments)
    numbers: dict[Var, int] = {}
    arrays: dict[Buffer, np.ndarray] = {}
    for param, argument in zip(func.params, arguments, strict=True):
        if isinstance(param, Var):
            if isinstance(argument, int | np.integer):
                numbers[param] = int(argument)
            continue
        array = np.asarray(argument)
        for extent, size in zip(param.shape, array.shape, strict=False):
            if isinstance(extent, Var):
                numbers[extent] = size
        if param not in func.outputs:
            arrays[param] = array
    return Given(numbers, arrays)


def refuse_too_large(report: GPUReport) -> None:
    """Refuse a program with a kernel of which no block fits on a multiprocessor.

    Raises
    ------
    TargetError
        The message names the kernel, the resource and the limit.
    """
    for kernel in report.kernels:
        found, needs, limits = kernel.occupancy, kernel.resources, report.target.limits
        if found is None or found.blocks:
            continue
        threads = kernel.counters.threads
        what = {
            "registers": (f"{needs.registers} registers of a thread, {threads} threads",
                          f"{limits['registers_per_block']:,} registers of a block"),
            "threads": (f"{threads} threads", f"{limits['max_threads_per_block']:,} threads"),
            "shared memory": (f"{needs.shared_bytes:,} bytes of shared memory",
                              f"{limits['max_shared_bytes']:,} bytes"),
        }  # fmt: skip
        got, most = what[found.limited_by[0]]
        raise no_block_fits(
            report.target, kernel.counters.name, f"{got} ({needs.provenance})", most
        )


def _kernel(launch: Launch, needs: Resources, target: Target, given: Given) -> KernelReport:
    thread = merge_thread_loops(launch)
    thread = without_needless(launch, thread, inserted(launch, thread))
    counters = count_launch(
        as_lanes(thread, target.emits), launch.kernel.name,
        loops=launch.loops, given=given, warp_size=target.limits.get("warp_size", WARP),
    )  # fmt: skip
    found = occupancy(
        target, threads=counters.threads, registers=needs.registers,
        shared_bytes=needs.shared_bytes,
    )  # fmt: skip
    return KernelReport(counters, needs, found, time_of(launch, needs, target, given))


def _assembled(source: Source, target: Target) -> list[Resources] | str:
    """Return the resources of each kernel by ptxas, in order; or why they are not known."""
    if not target.cpu.startswith("sm_"):
        return "ptxas assembles for NVIDIA's GPUs only"
    try:
        cuda = source.named("cuda")
    except DLCompilerError as error:
        return str(error).splitlines()[0]
    found = ptxas.assembled(cuda, target.cpu)
    if isinstance(found, str):
        return found
    by = f"ptxas for {target.cpu}"
    return [
        Resources(a.registers, a.spill_bytes, a.shared_bytes, a.local_bytes, by)
        for a in (found[name] for name in _KERNEL.findall(cuda))
    ]


def _resources(
    program: Program, source: Source, target: Target, arguments: Sequence[Any]
) -> list[Resources]:
    """Return the resources of each launch; an assembler does not know what a launch adds."""
    registers, launches = _assembled(source, target), launches_with_memory(program)
    shared = list(shared_bytes(launches, source.interface, arguments).values())
    if isinstance(registers, str):
        return [
            replace(estimate_of(launch), shared_bytes=sum(sizes), note=registers)
            for launch, sizes in zip(program.launches, shared, strict=True)
        ]
    return [
        replace(each, shared_bytes=each.shared_bytes + added)
        for each, (_, added) in zip(registers, shared, strict=True)
    ]


def estimate_of(launch: Launch) -> Resources:
    """Estimate the resources of a kernel in CUDA C, whose shuffles replace some memory."""
    return estimated(with_shuffles(launch, merge_thread_loops(launch))[0])


def _numbers(tally: Tally) -> dict[str, int]:
    return {name: n for name, n in zip(FIELDS, astuple(tally), strict=True) if n}
