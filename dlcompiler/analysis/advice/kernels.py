"""Advice about kernels of GPUs: accesses of warps, occupancy, blocks, registers, barriers."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dlcompiler.analysis.advice.subject import Finding, Rule, Severity, Subject
from dlcompiler.ir import Buffer, Origin
from dlcompiler.schedule import Step
from dlcompiler.simulate.gpu import AccessCounters
from dlcompiler.simulate.gpu.kernel import KernelFacts
from dlcompiler.simulate.gpu.margins import margins_of
from dlcompiler.simulate.gpu.padding import best_padding, paddings
from dlcompiler.simulate.gpu.transactions import SECTOR_BYTES
from dlcompiler.simulate.gpu.waves import waves_of

WASTEFUL = 2.0
"""Sectors over those that the bytes would fill, from which on an access is reported; [1]."""
CONFLICT = 1.5
"""Passes over those without conflicts, from which on an access is reported; [1]."""
WORTH = 0.1
"""Least part of a kernel's sectors, or passes, of an access that is reported; [1]."""
LOW = 0.5
"""Occupancy below which it is reported; [1]."""
WAITING = 0.1
"""Part of the predicted time that is latency, from which on a low occupancy costs time; [1]."""
EMPTY = 0.2
"""Part of all places for blocks that is empty, from which on a tail is reported; [1]."""
SEVERE = 4.0
"""Factor of sectors or passes from which on an access is the first thing to mend; [1]."""


def uncoalesced(subject: Subject) -> Iterator[Finding]:
    """Find accesses to global memory whose warps touch more sectors than their bytes fill."""
    for kernel in subject.kernels:
        whole = kernel.counters.total("global")[1].sectors
        for access in kernel.counters.accesses:
            each, ideal = access.sectors_per_request, _ideal_sectors(access)
            if each is None or each < WASTEFUL * ideal or access.most.sectors < WORTH * whole:
                continue
            share = access.most.sectors / whole
            stage, path = place_of(subject, access.site.origin)
            yield Finding(
                stage, path,
                f"{access.name}: each request of a warp moves {each:.3g} sectors of "
                f"{SECTOR_BYTES} bytes, where {ideal} would do, {share:.0%} of all sectors of the "
                "kernel: let neighbours along threadIdx.x touch neighbouring elements, or load a "
                "tile into shared memory row by row",
                "high" if each >= SEVERE * ideal else "medium",
            )  # fmt: skip


def _ideal_sectors(access: AccessCounters) -> int:
    """Return the sectors that the bytes of a request fill if they are side by side."""
    lanes = access.most.lanes / max(access.most.requests, 1)
    return max(math.ceil(lanes * access.bytes / SECTOR_BYTES), 1)


def bank_conflict(subject: Subject) -> Iterator[Finding]:
    """Find accesses to shared memory in which lanes wait for each other's bank."""
    for kernel in subject.kernels:
        whole = kernel.counters.total("shared")[1].wavefronts
        for access in kernel.counters.accesses:
            degree = access.conflict_degree
            if degree is None or degree < CONFLICT or access.most.wavefronts < WORTH * whole:
                continue
            buffer = access.site.buffer
            stage, path = place_of(subject, access.site.origin)
            found = paddings(kernel.requests, buffer)
            best = best_padding(found)
            text = (
                f"{access.name}: a warp takes {degree:.3g} times as many passes through shared "
                "memory as without bank conflicts"
            )
            if best:
                elements = "1 element" if best == 1 else f"{best} elements"
                text += (
                    f"; with rows of {buffer.name} that are {elements} longer, one request of each "
                    f"of its accesses takes {found[best][0]} passes in all instead of {found[0][0]}"
                )
            yield Finding(
                stage, path, text, "high" if degree >= SEVERE else "medium",
                _padded(subject, buffer, best) if best else None,
            )  # fmt: skip


def _padded(subject: Subject, buffer: Buffer, elements: int) -> Step | None:
    """Return the step that makes the rows of a stage's buffer longer."""
    state = subject.schedule.state
    stage = state.stage(buffer.name) if state.has_stage(buffer.name) else None
    pitch = buffer.strides[-2]
    if stage is None or len(stage.op.axis) < 2 or not isinstance(pitch, int):
        return None
    row = stage.paths[stage.op.axis[-2]]
    return subject.step("storage_align", stage.name, axis=row, factor=pitch, offset=elements)


def low_occupancy(subject: Subject) -> Iterator[Finding]:
    """Find kernels of which few warps run at once, and what limits them."""
    for kernel in subject.kernels:
        found = kernel.occupancy
        if found is None or found.fraction >= LOW:
            continue
        text = f"{kernel.counters.name}: {found}"
        if found.blocks:
            text += "".join(_gains(subject, kernel))
        severity: Severity = "low" if found.blocks else "high"
        if kernel.time is not None and kernel.time.seconds:
            waiting = kernel.time.latency_s / kernel.time.seconds
            text += f". {waiting:.0%} of its predicted time is waiting that no other warp fills"
            severity = "medium" if waiting >= WAITING else "low"
        yield Finding(*kernel_place(subject, kernel, "threadIdx"), text, severity)


def _gains(subject: Subject, kernel: KernelFacts) -> Iterator[str]:
    """Yield with how much less of the limiting resource one more block would run."""
    found = kernel.occupancy
    for margin in margins_of(kernel, subject.target):
        most = margin.most_for_more
        if found is not None and found.limited_by == (margin.resource,) and most is not None:
            unit = "registers" if margin.resource == "registers" else "bytes of shared memory"
            yield f"; with at most {most:,} {unit}, {found.blocks + 1} or more blocks would run"


def too_few_blocks(subject: Subject) -> Iterator[Finding]:
    """Find kernels with fewer blocks than the GPU has multiprocessors."""
    cores = subject.target.cores
    for kernel in subject.kernels:
        if kernel.occupancy is None or kernel.blocks >= cores:
            continue  # a target that says nothing of its multiprocessors, such as "opencl"
        blocks = "1 block" if kernel.blocks == 1 else f"{kernel.blocks} blocks"
        yield Finding(
            *kernel_place(subject, kernel, "blockIdx"),
            f"{kernel.counters.name} has {blocks} for {cores} multiprocessors, of which "
            f"{cores - kernel.blocks} stay idle: make the tile of a block smaller, or split the "
            "reduction between blocks",
            "high" if 2 * kernel.blocks < cores else "medium",
        )  # fmt: skip


def tail_wave(subject: Subject) -> Iterator[Finding]:
    """Find kernels whose last wave of blocks leaves many multiprocessors without work."""
    for kernel in subject.kernels:
        waves = waves_of(kernel, subject.target)
        if waves is None or not waves.full or not waves.tail or 1 - waves.used < EMPTY:
            continue
        text = (
            f"the {waves.blocks:,} blocks of {kernel.counters.name} run in "
            f"{waves.blocks / waves.places:.3g} waves of {waves.places:,}; the last one has "
            f"{waves.tail:,}, so that {1 - waves.used:.0%} of all places stay empty"
        )
        if kernel.time is not None and kernel.time.seconds:
            text += f" and {kernel.time.tail_s / kernel.time.seconds:.0%} of the predicted time "
            text += "is the tail"
        yield Finding(
            *kernel_place(subject, kernel, "blockIdx"),
            text + ": choose tiles whose number is a little less than a multiple of that",
            "medium",
        )  # fmt: skip


def register_spill(subject: Subject) -> Iterator[Finding]:
    """Find kernels whose threads need more registers than they may have."""
    for kernel in subject.kernels:
        needs = kernel.needs
        if not needs.spill_bytes:
            continue
        yield Finding(
            *kernel_place(subject, kernel, "threadIdx"),
            f"a thread of {kernel.counters.name} has {needs.registers} registers and keeps "
            f"{needs.spill_bytes:,} bytes that do not fit in local memory ({needs.source}): make "
            "the tile of a thread smaller, or unroll less",
            "high",
        )  # fmt: skip


def redundant_barrier(subject: Subject) -> Iterator[Finding]:
    """Find barriers without which no two threads race."""
    for kernel in subject.kernels:
        count = kernel.needless_barriers
        if not count:
            continue
        warps = kernel.counters.warps
        waiting = "its only warp waits" if warps == 1 else f"the {warps} warps of a block wait"
        yield Finding(
            *kernel_place(subject, kernel, "threadIdx"),
            f"{count} of the {kernel.barriers} barriers of {kernel.counters.name} could be left "
            f"out: no two threads race without, but {waiting} there. Bind the stages around it in "
            "the same way, so that each thread reads only what it wrote itself",
            "low",
        )  # fmt: skip


def place_of(subject: Subject, origin: Origin) -> tuple[str, str]:
    """Return the stage and the innermost loop that a statement comes from; '' for no loop."""
    state = subject.schedule.state
    for step in reversed(origin):
        stage = state.stage(step.stage) if state.has_stage(step.stage) else None
        if stage is not None and step.axis in {stage.paths[leaf] for leaf in stage.leaves}:
            return step.stage, step.axis
    return (origin[-1].stage if origin else subject.footprint.func.name), ""


def kernel_place(subject: Subject, kernel: KernelFacts, kind: str) -> tuple[str, str]:
    """Return the stage that a kernel stores last, and its loop that is bound to a kind of axis."""
    stores = [access.site for access in kernel.counters.accesses
              if access.site.is_write and access.space == "global"]  # fmt: skip
    name = stores[-1].origin[-1].stage if stores and stores[-1].origin else ""
    state = subject.schedule.state
    if not state.has_stage(name):
        return subject.footprint.func.name, ""
    stage = state.stage(name)
    bound = (leaf for leaf in stage.leaves if str(stage.kind(leaf)).startswith(kind))
    leaf = next(bound, None)
    return name, "" if leaf is None else stage.paths[leaf]


_PRACTICES = "NVIDIA, CUDA C++ Best Practices Guide 12.9"
_PROGRAMMING = "NVIDIA, CUDA C++ Programming Guide 12.9"
RULES = (
    Rule(
        "uncoalesced access",
        f"{_PRACTICES}, section “Coalesced Access to Global Memory”",
        uncoalesced,
    ),
    Rule("bank conflict", f"{_PRACTICES}, section “Shared Memory and Memory Banks”", bank_conflict),
    Rule(
        "low occupancy",
        f"{_PRACTICES}, section “Occupancy”; V. Volkov, Better Performance at Lower Occupancy, GTC "
        "2010, for when it does no harm",
        low_occupancy,
    ),
    Rule(
        "too few blocks",
        f"{_PRACTICES}, section “Thread and Block Heuristics”",
        too_few_blocks,
    ),
    Rule(
        "tail wave",
        "J. Demouth, CUDA Pro Tip: Minimize the Tail Effect, NVIDIA Technical Blog, 2014",
        tail_wave,
    ),
    Rule(
        "register spill", f"{_PRACTICES}, sections “Local Memory” and “Registers”", register_spill
    ),
    Rule(
        "redundant barrier",
        f"{_PROGRAMMING}, section “Synchronization Instruction”",
        redundant_barrier,
    ),
)
