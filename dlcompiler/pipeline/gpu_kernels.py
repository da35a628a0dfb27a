"""Find what is known of the kernels of a program before it runs, for pictures and advice.

`gpu_report` reports on a program that is built, with the registers that ptxas finds. Here they are
estimated, so that a view of a schedule needs no generated code.
"""

from __future__ import annotations

from dataclasses import replace

from dlcompiler.codegen.gpu.barriers import inserted, without_needless
from dlcompiler.codegen.gpu.lane_accesses import as_lanes
from dlcompiler.errors import TargetError
from dlcompiler.ir import Barrier, walk
from dlcompiler.ir.program import Launch, Program
from dlcompiler.passes.merge_thread_loops import ThreadProgram, merge_thread_loops
from dlcompiler.pipeline.gpu_report import counted_of, estimate_of, time_of_counted
from dlcompiler.simulate.gpu import Given, count_launch
from dlcompiler.simulate.gpu.counters import WARP
from dlcompiler.simulate.gpu.kernel import KernelFacts
from dlcompiler.simulate.gpu.occupancy import occupancy
from dlcompiler.simulate.gpu.requests import first_requests
from dlcompiler.simulate.gpu.resources import Resources
from dlcompiler.target import Target


def kernels_of(program: Program, target: Target) -> list[KernelFacts]:
    """Return what is known of each kernel of a program whose shapes are known.

    Parameters
    ----------
    program
        The kernels and launches.
    target
        The GPU.

    Raises
    ------
    TargetError
        The target is no GPU.
    UserError
        The number of blocks or iterations depends on symbols or data.
    """
    if target.device != "gpu":
        raise TargetError(
            f"describe the kernels of {program.func.name}", "there are counters for GPUs only",
            got=f"target {target.name}, a {target.device}", hint='choose a GPU: target="rtx-a6000"',
        )  # fmt: skip
    return [_facts(launch, target) for launch in program.launches]


def _facts(launch: Launch, target: Target) -> KernelFacts:
    thread = merge_thread_loops(launch)
    thread = without_needless(launch, thread, inserted(launch, thread))
    barriers = _barriers(thread)
    lanes = as_lanes(thread, target.emits)
    warp = target.limits.get("warp_size", WARP)
    counters = count_launch(lanes, launch.kernel.name, loops=launch.loops, warp_size=warp)
    counted = counted_of(launch, target, Given())
    needs = bounded(estimate_of(launch, counted), counters.threads, target)
    return KernelFacts(
        counters, first_requests(lanes, loops=launch.loops, warp_size=warp), needs,
        occupancy(target, threads=counters.threads, registers=needs.registers,
                  shared_bytes=needs.shared_bytes),
        time_of_counted(counted, needs, target), counted.launches, len(barriers),
        len(barriers) - len(_barriers(without_needless(launch, thread, barriers))),
    )  # fmt: skip


def bounded(needs: Resources, threads: int, target: Target) -> Resources:
    """Return resources with as few registers as a block needs to fit on a multiprocessor.

    Generated code says how many threads a block has (``__launch_bounds__``), so a compiler gives
    them no more registers than there are. The estimate does not know this limit.

    Parameters
    ----------
    needs
        The estimate.
    threads
        Threads of a block. [1]
    target
        The GPU.
    """
    for registers in range(needs.registers, 0, -1):
        found = occupancy(
            target, threads=threads, registers=registers, shared_bytes=needs.shared_bytes
        )
        if found is None or found.blocks or "registers" not in found.limited_by:
            return replace(needs, registers=registers)
    return needs


def _barriers(thread: ThreadProgram) -> list[Barrier]:
    return [node for node in walk(thread.body) if isinstance(node, Barrier)]
