"""Draw which sectors of global memory the lanes of a warp touch, access by access."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from dlcompiler.simulate.gpu import AccessCounters
from dlcompiler.simulate.gpu.kernel import KernelFacts
from dlcompiler.simulate.gpu.requests import Request
from dlcompiler.simulate.gpu.transactions import SECTOR_BYTES, halves
from dlcompiler.views.device.lanes import (
    FAN,
    INNER,
    LEFT,
    STRIP,
    Access,
    accesses_of,
    arranged,
    caption,
    draw_fan,
    draw_lanes,
    keys_of_site,
    launch_text,
    to_draw,
    whose,
)
from dlcompiler.views.render.colors import ramp
from dlcompiler.views.render.scene import Cell, Mark, Scene
from dlcompiler.views.render.units import format_count, percent

WASTEFUL = 1.5
"""Sectors, over those that the bytes would fill, from which on an access is called wasteful;
[1]."""
_LEAST_SHOWN = 4
"""Sectors that a strip has room for at least: the 128 bytes of 32 lanes with 4 bytes each; [1]."""
_BOX = 14.0
_LEAST_WIDTH = 3.0
"""Of the used part of a sector, so that its outline does not hide it; [px]."""
_COLUMNS = (
    "access", "bytes of a lane", "lanes", "sectors of this request", "sectors if side by side",
    "from byte", "to byte", "which request", "requests of the kernel", "sectors of the kernel",
    "sectors per request", "used bytes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Touched:
    """A sector that a request moves."""

    part: int
    """Which part of the warp moves it: lanes with wide accesses take turns; [1]."""
    number: int
    """Which sector of the array, from 0; [1]."""
    first: int
    """The first of its bytes that is used; [byte]."""
    end: int
    """Where the used bytes end; [byte]."""
    used: int
    """How many of its bytes the lanes use; [byte]."""


def coalescing_scene(kernel: KernelFacts, machine: str) -> Scene:
    """Return the picture of what the lanes of a warp touch in global memory.

    Parameters
    ----------
    kernel
        What is known of the kernel.
    machine
        The GPU that its counters are simulated for.
    """
    accesses = accesses_of(kernel, "global")
    drawn = to_draw(accesses, lambda counters: counters.most.sectors)
    return {
        "title": "Coalescing",
        "summary": _summary(kernel, machine, accesses, len(drawn)),
        "how_to_read": "each access has the lanes of one warp above and the sectors of 32 bytes "
        "that they touch below, in the order of addresses. The warp is the first one that is "
        "active, in the first block and iteration. Lanes of one colour begin in the same sector. "
        "The filled part of a sector is used; the rest is moved for nothing. A gap between boxes "
        "means that sectors in between are not touched. The averages are those of all warps.",
        **arranged(drawn, _draw),
        "table": {"columns": list(_COLUMNS), "rows": [_row(*access) for access in accesses]},
    }


def touched(request: Request) -> list[Touched]:
    """Return the sectors that a request moves, part by part, in the order of addresses."""
    lanes = len(request.addresses)
    parts = min(halves(request.bytes), max(lanes, 1))
    bytes_of: dict[tuple[int, int], set[int]] = {}
    for lane, address in enumerate(request.addresses):
        if address is not None:
            key = lane * parts // lanes, address // SECTOR_BYTES
            bytes_of.setdefault(key, set()).update(range(address, address + request.bytes))
    return [
        Touched(*key, min(used), max(used) + 1, len(used)) for key, used in sorted(bytes_of.items())
    ]


def _draw(access: Access, y: float, marks: list[Mark]) -> float:
    name, request, counters = access
    keys = keys_of_site(request)
    average = counters.sectors_per_request or 0.0
    texts = [
        f"{_sectors(request.sectors)}, ideal {request.ideal_sectors}",
        f"{request.bytes} B a lane, {whose(request)};",
        f"all warps: {average:.3g} a request, {format_count(counters.most.sectors)} in all",
    ]
    y = caption(name, texts, keys, y, marks)
    sectors = touched(request)
    parts = max(sector.part for sector in sectors) + 1
    lanes = len(request.addresses)
    whole = min(halves(request.bytes), lanes)
    numbers = {(sector.part, sector.number): n for n, sector in enumerate(sectors)}
    colors = [ramp(n / max(len(sectors) - 1, 1)) for n in range(len(sectors))]
    at = [
        None if address is None else numbers[lane * whole // lanes, address // SECTOR_BYTES]
        for lane, address in enumerate(request.addresses)
    ]
    draw_lanes(request, ["" if n is None else colors[n] for n in at], keys, y, marks)
    boxes = _boxes(sectors)
    draw_fan(request, partial(_first_byte, request, at, boxes), y + STRIP, marks)
    y += STRIP + FAN
    for sector, color, box in zip(sectors, colors, boxes, strict=True):
        _draw_sector(request, sector, color, box, y, marks)
    outlines = "".join(f"M{x:.1f} {y}h{w:.1f}v{_BOX}h-{w:.1f}z" for x, w in boxes)
    marks.append({"shape": "path", "role": "axis", "d": outlines})
    if parts > 1:
        text = f"The lanes take {parts} turns: a turn moves at most 128 bytes."
        marks.append({"shape": "text", "role": "soft", "x": LEFT, "y": y + _BOX + 15, "text": text})
        y += 20
    return y + _BOX


def _boxes(sectors: Sequence[Touched]) -> list[tuple[float, float]]:
    """Return the left edge and the width of each sector; there are gaps where some are left out."""
    gaps = [
        0 if (a.part, a.number + 1) == (b.part, b.number) else 1
        for a, b in itertools.pairwise(sectors)
    ]
    gap = 3.0 if len(sectors) <= 64 else 0.5
    room = INNER - gap * sum(gaps)
    width = room / max(len(sectors), _LEAST_SHOWN)
    boxes, x = [], LEFT
    for is_apart in (*gaps, 0):
        boxes.append((x, width))
        x += width + gap * is_apart
    return boxes


def _first_byte(
    request: Request, at: Sequence[int | None], boxes: Sequence[tuple[float, float]], lane: int
) -> float:
    """Return where the middle of the bytes of a lane is in the strip of sectors; [px]."""
    number, address = at[lane], request.addresses[lane]
    assert number is not None
    assert address is not None
    x, width = boxes[number]
    middle = address % SECTOR_BYTES + min(request.bytes, SECTOR_BYTES) / 2
    return x + width * min(middle / SECTOR_BYTES, 1.0)


def _draw_sector(
    request: Request, sector: Touched, color: str, box: tuple[float, float], y: float,
    marks: list[Mark],
) -> None:  # fmt: skip
    x, width = box
    begin = sector.number * SECTOR_BYTES
    scale = width / SECTOR_BYTES
    used = min(sector.end, begin + SECTOR_BYTES) - sector.first
    title = (
        f"bytes {begin:,} to {begin + SECTOR_BYTES - 1:,} of {request.site.buffer.name}: "
        f"{sector.used} are used"
    )
    marks.append({
        "shape": "rect", "role": "cell", "x": round(x + (sector.first - begin) * scale, 1), "y": y,
        "w": round(max(used * scale, _LEAST_WIDTH), 1), "h": _BOX, "fill": color,
        "title": title, "keys": keys_of_site(request),
    })  # fmt: skip


def _sectors(count: int) -> str:
    return f"{count} sector{'s' * (count != 1)}"


def _summary(kernel: KernelFacts, machine: str, accesses: Sequence[Access], drawn: int) -> str:
    head = f"{launch_text(kernel, machine)}."
    if not accesses:
        return f"{head} It accesses no global memory."
    total = sum(counters.most.sectors for *_, counters in accesses)
    used = sum(counters.most.lanes * counters.bytes for *_, counters in accesses)
    share = percent(min(used / (SECTOR_BYTES * total), 1.0)) if total else "none"
    text = f"{head} All warps move {format_count(total)} sectors; {share} of their bytes are used."
    known = [each for each in accesses if each[1].addresses]
    bad = [
        f"{name} takes {request.sectors} sectors where {request.ideal_sectors} would do"
        for name, request, _ in known if request.sectors >= WASTEFUL * request.ideal_sectors
    ]  # fmt: skip
    text += (
        f" {'; '.join(bad)}."
        if bad
        else " Each access touches as few sectors as it can."
        if known
        else ""
    )
    for reason in dict.fromkeys(request.why_not for _, request, _ in accesses if request.why_not):
        names = ", ".join(name for name, request, _ in accesses if request.why_not == reason)
        text += f" {names}: not drawn, {reason}."
    if drawn < len(known):
        text += f" The {drawn} accesses that move most are drawn; the table has {len(accesses)}."
    return text


def _row(name: str, request: Request, counters: AccessCounters) -> list[Cell]:
    used = counters.efficiency
    taken = [address for address in request.addresses if address is not None]
    own: list[Cell] = [None, None, None, None, None, request.why_not]
    if taken:
        own = [len(taken), request.sectors, request.ideal_sectors, min(taken),
               max(taken) + request.bytes - 1, whose(request)]  # fmt: skip
    average = counters.sectors_per_request
    return [
        name, request.bytes, *own, counters.most.requests, counters.most.sectors,
        None if average is None else round(average, 2),
        "" if used is None else percent(min(used, 1)),
    ]  # fmt: skip
