"""What the accesses behind the picture of a block cost: the counters of a simulated GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from dlcompiler.simulate.gpu import AccessCounters, KernelCounters
from dlcompiler.simulate.gpu.counters import together
from dlcompiler.simulate.recording import Touch
from dlcompiler.views.cards.gpu_reports import access_sentence
from dlcompiler.views.render.scene import Cell, Table
from dlcompiler.views.render.units import percent

_MEMORY = {
    "global": ("sectors of 32 B", "sectors per request", "bytes used"),
    "shared": ("passes", "conflict degree"),
}
"""Columns of accesses to a memory, between those that all accesses have."""


class Costs(TypedDict):
    """What the warps of a whole launch do for the accesses that a picture shows."""

    title: str
    """Where the numbers come from."""
    table: Table
    """A row for each access of the program; no columns if nothing is counted."""
    note: str
    """The whole kernel in a sentence, or why nothing is counted."""


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of a kernel, or why they are not known."""

    kernel: KernelCounters | None = None
    machine: str = ""
    """The simulated GPU."""
    why_not: str = ""
    """Why they are not known; '' where nobody asks for them."""


UNCOUNTED = Counters()


def costs_of(touch: Touch | None, counters: Counters) -> Costs:
    """Return what the accesses of a touch cost.

    Parameters
    ----------
    touch
        The reads, or the writes, of a buffer.
    counters
        Counters of the kernel that the block is of.
    """
    kernel = counters.kernel
    if kernel is None:
        note = f"The counters are not known: {counters.why_not}." if counters.why_not else ""
        return {"title": "", "table": {"columns": [], "rows": []}, "note": note}
    found = accesses_of(touch, kernel)
    spaces = list(dict.fromkeys(access.space for access in found))
    between = _MEMORY[spaces[0]] if len(spaces) == 1 else ()
    columns = ["access", "requests of warps", *between, "active threads"] if found else []
    names = _names(found)
    rows = [
        [name, *_counts(access, kernel.warp_size, detailed=bool(between))]
        for name, access in zip(names, found, strict=True)
    ]
    title = f"Simulated on {counters.machine}: all blocks and phases of the kernel"
    return {"title": title, "table": {"columns": columns, "rows": rows}, "note": _whole(kernel)}


def accesses_of(touch: Touch | None, kernel: KernelCounters) -> list[AccessCounters]:
    """Return the accesses of a kernel that read, or write, the buffer of a touch."""
    if touch is None:
        return []
    return [
        access for access in kernel.accesses
        if access.site.buffer.name == touch.buffer.name and access.site.is_write == touch.is_write
    ]  # fmt: skip


def cost_sentence(touch: Touch | None, kernel: KernelCounters | None) -> str:
    """Return in words what the accesses of a touch cost a warp; '' if that is not known."""
    found = accesses_of(touch, kernel) if kernel is not None else []
    # Accesses of different widths and in different memory do not have a cost in common.
    alike = len({(access.space, access.bytes) for access in found}) == 1
    return access_sentence(together(found)) if alike else ""


def _names(accesses: Sequence[AccessCounters]) -> list[str]:
    """Return the accesses as text; several are numbered, with their widths and stages."""
    if len(accesses) == 1:
        return [accesses[0].name]
    count = len(accesses)
    return [
        f"{each.name}, {n} of {count}: {each.bytes} B{_stage_of(each)}"
        for n, each in enumerate(accesses, 1)
    ]


def _stage_of(access: AccessCounters) -> str:
    stages = dict.fromkeys(step.stage for step in access.site.origin)
    return f" in {', '.join(stages)}" if stages else ""


def _counts(access: AccessCounters, warp_size: int, *, detailed: bool) -> list[Cell]:
    least, most = access.least, access.most
    details: list[Cell] = []
    if detailed and access.space == "global":
        used = access.efficiency
        details = [
            _count(least.sectors, most.sectors), _ratio(access.sectors_per_request),
            "" if used is None else percent(min(used, 1)),
        ]  # fmt: skip
    elif detailed:
        details = [_count(least.wavefronts, most.wavefronts), _ratio(access.conflict_degree)]
    lanes = warp_size * most.requests
    active = percent(most.lanes / lanes) if lanes else ""
    return [_count(least.requests, most.requests), *details, active]


def _count(least: int, most: int) -> Cell:
    return most if least == most else f"{least:,} to {most:,}"


def _ratio(value: float | None) -> Cell:
    return None if value is None else round(value, 2)


def _whole(kernel: KernelCounters) -> str:
    active = kernel.active_fraction
    if active is None:
        return "The kernel executes nothing."
    some = "" if kernel.is_exact else ", at most, as data decides"
    barriers = kernel.instructions.get("barrier")
    waits = f"; {barriers[1].requests:,} barriers of warps" if barriers else ""
    lost = "no divergence" if active == 1 else "the others wait"
    return (
        f"The whole kernel: {kernel.issued:,} instructions of warps{some}; {percent(active)} of "
        f"the threads of these warps are active: {lost}{waits}."
    )
