"""Draw which banks of shared memory the lanes of a warp hit, and what padding would change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from dlcompiler.simulate.gpu import AccessCounters
from dlcompiler.simulate.gpu.kernel import KernelFacts
from dlcompiler.simulate.gpu.padding import best_padding, padded, paddings
from dlcompiler.simulate.gpu.requests import Request
from dlcompiler.simulate.gpu.transactions import BANKS, WORD_BYTES
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
    lane_at,
    launch_text,
    to_draw,
    whose,
)
from dlcompiler.views.memory.scene import Flow
from dlcompiler.views.render.colors import ramp
from dlcompiler.views.render.scene import Cell, Mark, Role, Scene
from dlcompiler.views.render.units import format_count

_STACK, _THICKEST, _THINNEST = 64.0, 10.0, 2.5
"""Height of all passes, and of one, at most and at least; [px]."""
_COLUMNS = (
    "access", "layout", "bytes of a lane", "lanes", "passes of this request",
    "passes without conflicts", "busiest bank", "which request", "requests of the kernel",
    "passes of the kernel", "conflict degree",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Served:
    """A word of shared memory that a pass serves."""

    part: int
    """Which part of the warp wants it: lanes with wide accesses take turns; [1]."""
    row: int
    """The number of the pass, from 0."""
    word: int
    """Which word of the array, from 0; [1]."""

    @property
    def bank(self) -> int:
        """The bank that has the word."""
        return self.word % BANKS


def banks_scene(kernel: KernelFacts, machine: str) -> Scene:
    """Return the picture of the banks that the lanes of a warp hit.

    Parameters
    ----------
    kernel
        What is known of the kernel.
    machine
        The GPU that its counters are simulated for.
    """
    accesses = accesses_of(kernel, "shared")
    drawn = to_draw(accesses, lambda counters: counters.most.wavefronts)
    return {
        "title": "Banks of shared memory",
        "summary": _summary(kernel, machine, accesses, len(drawn)),
        "how_to_read": "each access has the lanes of one warp above and the 32 banks below, each 4 "
        "bytes wide. The warp is the first one that is active, in the first block and iteration. "
        "A row of banks is a pass: in a pass each bank serves one word, to all lanes that want it. "
        "Lanes have the colour of the pass that serves them. One row is ideal; several rows in one "
        "column are a conflict. Bars show the passes if the rows of the array were longer.",
        **arranged(drawn, partial(_draw, [request for _, request, _ in accesses])),
        "table": {"columns": list(_COLUMNS), "rows": _rows(accesses)},
    }


def served(request: Request) -> list[Served]:
    """Return the words of a request, each with the pass that serves it.

    In a part of the warp, the n-th word of each bank is served in the n-th pass.
    """
    found: list[Served] = []
    lanes, row = len(request.addresses), 0
    parts = _parts(request)
    for part in range(parts):
        own = request.addresses[part * lanes // parts : (part + 1) * lanes // parts]
        words = {word for address in own if address is not None
                 for word in _words(request, address)}  # fmt: skip
        depth = [0] * BANKS
        for word in sorted(words):
            found.append(Served(part, row + depth[word % BANKS], word))
            depth[word % BANKS] += 1
        row += max(depth)
    return found


def _parts(request: Request) -> int:
    return max(min(request.parts, len(request.addresses)), 1)


def _words(request: Request, address: int) -> range:
    first = address // WORD_BYTES
    return range(first, first + max(request.bytes // WORD_BYTES, 1))


def _draw(requests: Sequence[Request], access: Access, y: float, marks: list[Mark]) -> float:
    name, request, counters = access
    keys = keys_of_site(request)
    degree = counters.conflict_degree or 0.0
    passes = request.wavefronts
    texts = [
        f"{passes} pass{'es' * (passes != 1)}, ideal {request.ideal_wavefronts}",
        f"{request.bytes} B a lane, {whose(request)};",
        f"all warps: degree {degree:.3g}, {format_count(counters.most.wavefronts)} passes",
    ]
    y = caption(name, texts, keys, y, marks)
    rows = served(request)
    count = max(each.row for each in rows) + 1
    colors = [ramp(n / max(count - 1, 1)) for n in range(count)]
    draw_lanes(request, _lane_colors(request, rows, colors), keys, y, marks)
    draw_fan(request, partial(_bank_at, request), y + STRIP, marks)
    y = _draw_passes(request, rows, colors, y + STRIP + FAN, marks)
    if passes > request.ideal_wavefronts:
        y = _draw_paddings(request, requests, y + 4, marks)
    return y


def _lane_colors(request: Request, rows: Sequence[Served], colors: Sequence[str]) -> list[str]:
    """Return the colour of the pass that serves the first word of each lane."""
    lanes, parts = len(request.addresses), _parts(request)
    row_of = {(each.part, each.word): each.row for each in rows}
    return [
        "" if address is None else colors[row_of[lane * parts // lanes, address // WORD_BYTES]]
        for lane, address in enumerate(request.addresses)
    ]


def _bank_at(request: Request, lane: int) -> float:
    address = request.addresses[lane]
    assert address is not None
    return lane_at(address // WORD_BYTES % BANKS, BANKS)


def _draw_passes(
    request: Request, rows: Sequence[Served], colors: Sequence[str], y: float, marks: list[Mark]
) -> float:
    """Draw a row of banks for each pass; words of neighbouring banks are one mark."""
    count, width, keys = len(colors), INNER / BANKS, keys_of_site(request)
    height = max(min(_STACK / count, _THICKEST), _THINNEST)
    marks.append({"shape": "rect", "role": "axis", "x": LEFT, "y": y, "w": INNER,
                  "h": round(count * height, 1), "keys": keys,
                  "title": "the banks, from 0 on; a row for each pass"})  # fmt: skip
    for row, group in groupby(sorted(rows, key=lambda s: (s.row, s.bank)), key=lambda s: s.row):
        own = list(group)
        for _, run in groupby(enumerate(own), key=lambda item: item[1].bank - item[0]):
            words = [each for _, each in run]
            first, last = words[0].bank, words[-1].bank
            banks = f"bank {first}" if first == last else f"banks {first} to {last}"
            marks.append({
                "shape": "rect", "role": "cell", "x": round(LEFT + first * width, 1),
                "y": round(y + row * height, 1), "w": round(len(words) * width, 1),
                "h": round(height, 1), "fill": colors[row], "keys": keys,
                "title": f"pass {row + 1}: {banks}",
            })  # fmt: skip
    bottom = round(count * height, 1)
    inner = "".join(f"M{LEFT + n * width:.1f} {y}v{bottom:g}" for n in range(1, BANKS))
    marks.append({"shape": "path", "role": "grid", "d": inner})
    return y + bottom


def _draw_paddings(
    request: Request, requests: Sequence[Request], y: float, marks: list[Mark]
) -> float:
    """Draw the passes of the accesses to an array for longer rows, as bars."""
    buffer = request.site.buffer
    found = paddings(requests, buffer)
    most, best = max(passes for passes, _ in found.values()), best_padding(found)
    if len(found) == 1:
        Flow(marks, LEFT, y).text("Padding does not apply: the array has one row.", "soft")
        return y + 17
    Flow(marks, LEFT, y).text(f"one request of each access to {buffer.name}, if rows were", "soft")
    y += 19
    for elements, (passes, _) in found.items():
        role: Role = "name" if elements == best else "label"
        text = "as they are" if not elements else f"{_elements(elements)} longer"
        marks.append({"shape": "text", "role": role, "x": LEFT, "y": y + 10, "text": text})
        width = (INNER - 208) * passes / most
        marks.append({
            "shape": "rect", "role": "bar", "x": LEFT + 132, "y": y, "w": round(max(width, 2), 1),
            "h": 11, "fill": "#009E73" if elements == best else "#56B4E9",
            "title": f"rows {text}: {passes} passes", "keys": keys_of_site(request),
        })  # fmt: skip
        marks.append({"shape": "text", "role": role, "x": round(LEFT + 138 + max(width, 2), 1),
                      "y": y + 10, "text": f"{passes} pass{'es' * (passes != 1)}"})  # fmt: skip
        y += 15
    return y


def _summary(kernel: KernelFacts, machine: str, accesses: Sequence[Access], drawn: int) -> str:
    head = f"{launch_text(kernel, machine)}."
    if not accesses:
        return f"{head} It uses no shared memory: there are no banks to conflict."
    known = [each for each in accesses if each[1].addresses]
    bad = [
        f"{name} takes {request.wavefronts} passes instead of {request.ideal_wavefronts}"
        for name, request, _ in known if request.wavefronts > request.ideal_wavefronts
    ]  # fmt: skip
    text = f"{head} {'; '.join(bad)}." if bad else f"{head} No lane waits for a bank."
    for buffer in dict.fromkeys(request.site.buffer for _, request, _ in known):
        found = paddings([request for _, request, _ in known], buffer)
        best = best_padding(found)
        if best:
            text += (
                f" If rows of {buffer.name} were {_elements(best)} longer, its accesses would take "
                f"{found[best][0]} passes instead of {found[0][0]}."
            )
    hidden = [name for name, request, _ in accesses if request.why_not]
    if hidden:
        text += f" Not drawn, as their addresses are not known: {', '.join(hidden)}."
    if drawn < len(known):
        text += f" The {drawn} accesses with most passes are drawn; the table has all."
    return text


def _elements(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"


def _rows(accesses: Sequence[Access]) -> list[list[Cell]]:
    rows = []
    requests = [request for _, request, _ in accesses]
    for name, request, counters in accesses:
        rows.append(_row(name, request, counters))
        if not request.addresses or request.wavefronts == request.ideal_wavefronts:
            continue
        for elements in paddings(requests, request.site.buffer):
            if elements:
                there = padded(request, elements)
                layout = f"rows {_elements(elements)} longer"
                rows.append([name, layout, *_of_request(there), None, None, None])
    return rows


def _row(name: str, request: Request, counters: AccessCounters) -> list[Cell]:
    degree = counters.conflict_degree
    return [
        name, "as it is", *_of_request(request), counters.most.requests, counters.most.wavefronts,
        None if degree is None else round(degree, 2),
    ]  # fmt: skip


def _of_request(request: Request) -> list[Cell]:
    if not request.addresses:
        return [request.bytes, None, None, None, None, request.why_not]
    words = [each.bank for each in served(request)]
    busiest = max(sorted(set(words)), key=words.count)
    return [
        request.bytes, int(request.mask.sum()), request.wavefronts, request.ideal_wavefronts,
        busiest, whose(request),
    ]  # fmt: skip
