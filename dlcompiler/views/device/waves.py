"""Draw the waves in which the blocks of a kernel run on the multiprocessors of a GPU."""

from __future__ import annotations

import math

from dlcompiler.runtime.timing import format_seconds
from dlcompiler.simulate.gpu.kernel import KernelFacts
from dlcompiler.simulate.gpu.waves import Waves, waves_of
from dlcompiler.target import Target
from dlcompiler.views.device.lanes import INNER, LEFT, LINE, WIDTH, launch_text
from dlcompiler.views.memory.scene import Flow
from dlcompiler.views.render.scene import Cell, Mark, Scene
from dlcompiler.views.render.units import format_count, percent

MOST_WAVES = 12
"""Waves that are drawn one by one; of more, those in the middle are one column; [1]."""
_HEIGHT = 120.0
_FULL, _TAIL = "#56B4E9", "#D55E00"
_COLUMNS = ("waves", "blocks", "blocks that fit", "places used", "blocks of a multiprocessor")


def waves_scene(kernel: KernelFacts, target: Target, machine: str) -> Scene:
    """Return the picture of the waves of a kernel.

    Parameters
    ----------
    kernel
        What is known of the kernel.
    target
        The GPU.
    machine
        Its name in the text.
    """
    found = waves_of(kernel, target)
    if found is None:
        why = "how many blocks run at once is not known"
        if kernel.occupancy is not None:
            why = "no block fits on a multiprocessor"
        return _without(f"{launch_text(kernel, machine)}; {why}.")
    marks: list[Mark] = []
    y = _draw(found, 2.0, marks)
    y = _draw_time(kernel, y + 6, marks)
    return {
        "title": "Waves",
        "summary": _summary(kernel, found, machine),
        "how_to_read": "each column is a wave: the blocks that run at once. Its height is all "
        "places for blocks on all multiprocessors; the filled part has blocks. The last wave, the "
        "tail, is orange if it leaves places empty: they wait until its blocks end. Blocks start "
        "as places become free, so that real waves overlap a little.",
        "width": WIDTH,
        "height": y + 4,
        "marks": marks,
        "table": {"columns": list(_COLUMNS), "rows": _rows(found)},
    }


def _columns(found: Waves) -> list[tuple[str, float, bool]]:
    """Return what each column stands for, its filled part, and whether it is the tail."""
    columns = [(f"{n + 1}", 1.0, False) for n in range(found.full)]
    if found.tail:
        columns.append((f"{found.count}", found.tail / found.places, True))
    if len(columns) > MOST_WAVES:
        first, last = MOST_WAVES // 2, MOST_WAVES // 2 - 1
        middle = f"{len(columns) - first - last} more"
        columns = [*columns[:first], (middle, 1.0, False), *columns[-last:]]
    return columns


def _draw(found: Waves, y: float, marks: list[Mark]) -> float:
    flow = Flow(marks, LEFT, y)
    flow.text(f"{found.places:,} places for blocks", "name")
    flow.text(f"{found.processors} multiprocessors × {found.resident}", "soft")
    top, columns = flow.y + LINE + 4, _columns(found)
    is_cut = found.count > MOST_WAVES
    pitch = min(INNER / max(len(columns) + is_cut, 1), 60.0)
    x = LEFT
    for text, part, is_tail in columns:
        wide = pitch * (2 if "more" in text else 1)
        width, height = wide - 5, _HEIGHT * part
        blocks = found.tail if is_tail else found.places
        what = f"wave {text}" if "more" not in text else f"{text} waves, each"
        title = f"{what}: {blocks:,} of {found.places:,} places have a block"
        marks.append({"shape": "rect", "role": "axis", "x": round(x, 1), "y": top,
                      "w": round(width, 1), "h": _HEIGHT, "title": title})  # fmt: skip
        marks.append({"shape": "rect", "role": "bar", "x": round(x, 1),
                      "y": round(top + _HEIGHT - max(height, 1.5), 1), "w": round(width, 1),
                      "h": round(max(height, 1.5), 1), "fill": _TAIL if is_tail else _FULL,
                      "title": title})  # fmt: skip
        marks.append({"shape": "text", "role": "soft", "x": round(x + width / 2, 1),
                      "y": top + _HEIGHT + 14, "anchor": "middle", "text": text})  # fmt: skip
        x += wide
    y = top + _HEIGHT + 20
    if found.tail:
        share = percent(found.tail / found.places)
        flow = Flow(marks, LEFT, y)
        flow.text(f"tail: {found.tail:,} block{'s' * (found.tail != 1)}", "label")
        flow.text(f"{share} of the places, {found.busy} of {found.processors} multiprocessors",
                  "soft")  # fmt: skip
        y = flow.y + LINE
    return y


def _draw_time(kernel: KernelFacts, y: float, marks: list[Mark]) -> float:
    """Draw the predicted time of the kernel, and what of it the tail adds."""
    time = kernel.time
    if time is None or not time.seconds:
        return y
    flow = Flow(marks, LEFT, y)
    flow.text(f"{format_seconds(time.seconds)} predicted", "label")
    flow.text(f"of it {format_seconds(time.tail_s)} by the tail", "soft")
    y = flow.y + LINE + 2
    tail = min(time.tail_s / time.seconds, 1.0) * INNER
    marks.append({"shape": "rect", "role": "bar", "x": LEFT, "y": y, "w": round(INNER - tail, 1),
                  "h": 12, "fill": _FULL, "title": "all but the tail"})  # fmt: skip
    if tail >= 0.5:
        marks.append({"shape": "rect", "role": "bar", "x": round(LEFT + INNER - tail, 1), "y": y,
                      "w": round(tail, 1), "h": 12, "fill": _TAIL,
                      "title": f"the tail: {format_seconds(time.tail_s)}"})  # fmt: skip
    return y + 16


def _summary(kernel: KernelFacts, found: Waves, machine: str) -> str:
    head = f"{launch_text(kernel, machine)}"
    head += f", started {kernel.launches:,} times." if kernel.launches > 1 else "."
    if found.blocks < found.processors:
        idle = found.processors - found.blocks
        return (
            f"{head} Only {found.blocks:,} of {found.processors} multiprocessors have a block: "
            f"{idle} are idle."
        )
    if not found.full:
        share = percent(found.tail / found.places)
        return f"{head} All its blocks run at once and fill {share} of {found.places:,} places."
    waves = found.blocks / found.places
    text = f"{head} Its blocks run in {waves:.3g} waves of {format_count(found.places)}"
    if not found.tail:
        return f"{text}: each wave is full."
    text += f"; the last one fills {percent(found.tail / found.places)} of its places"
    return f"{text}, so that {percent(1 - found.used)} of all places stay empty."


def _rows(found: Waves) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    if found.full:
        rows.append([f"{found.full:,} full", found.full * found.places, found.places, percent(1.0),
                     f"{found.resident}"])  # fmt: skip
    if found.tail:
        most = math.ceil(found.tail / found.processors)
        rows.append(["the last one", found.tail, found.places,
                     percent(found.tail / found.places), f"at most {most}"])  # fmt: skip
    return rows


def _without(summary: str) -> Scene:
    return {
        "title": "Waves", "summary": summary,
        "how_to_read": "the occupancy of the kernel says why.",
        "width": WIDTH, "height": 20.0, "marks": [],
        "table": {"columns": list(_COLUMNS), "rows": []},
    }  # fmt: skip
