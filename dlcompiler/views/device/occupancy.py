"""Draw how many blocks each resource of a multiprocessor has room for, and what more would cost."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.simulate.gpu.kernel import KernelFacts
from dlcompiler.simulate.gpu.margins import Margin, margins_of
from dlcompiler.simulate.gpu.occupancy import Occupancy
from dlcompiler.target import Target
from dlcompiler.views.device.lanes import INNER, LEFT, LINE, WIDTH, launch_text
from dlcompiler.views.memory.scene import Flow
from dlcompiler.views.render.scene import Anchor, Cell, Mark, Role, Scene, beside
from dlcompiler.views.render.units import format_bytes, percent

_BAR = 14.0
_CURVE = 96.0
_COLUMNS = ("resource", "the kernel uses", "blocks it has room for", "limits", "blocks with more",
            "most for as many blocks", "most for one block more")  # fmt: skip
_LIMITING, _OTHER = "#D55E00", "#56B4E9"


def occupancy_scene(kernel: KernelFacts, target: Target, machine: str) -> Scene:
    """Return the picture of the occupancy of a kernel.

    Parameters
    ----------
    kernel
        What is known of the kernel.
    target
        The GPU.
    machine
        Its name in the text.
    """
    found = kernel.occupancy
    if found is None:
        why = f"the occupancy is not known: {target.name} does not say what a multiprocessor holds"
        return _without(f"{launch_text(kernel, machine)}; {why}.")
    margins = margins_of(kernel, target)
    bars: list[Mark] = []
    low = _draw_bars(kernel, found, target, 2.0, bars)
    low = _draw_margins(found, margins, low + 4, bars)
    curves: list[Mark] = []
    y = 2.0
    for margin in margins:
        y = _draw_curve(margin, found, y, curves) + 14
    parts = [(WIDTH, low + 4, bars)] + ([(WIDTH, y, curves)] if margins else [])
    return {
        "title": "Occupancy",
        "summary": _summary(kernel, found, margins, machine),
        "how_to_read": "each bar is the number of blocks that a resource of a multiprocessor has "
        "room for; the shortest one decides, and is orange. The steps show how many blocks run at "
        "once if a thread used other numbers of registers, or a block other amounts of shared "
        f"memory, and all else stayed. Registers are {kernel.needs.source}.",
        **beside(*parts),
        "table": {"columns": list(_COLUMNS), "rows": _rows(kernel, found, target, margins)},
    }


def _draw_bars(
    kernel: KernelFacts, found: Occupancy, target: Target, y: float, marks: list[Mark]
) -> float:
    most = max(min(max(found.limits.values()), target.limits["max_blocks_per_processor"]), 1)
    for name, blocks in found.limits.items():
        is_least = name in found.limited_by
        flow = Flow(marks, LEFT, y)
        flow.text(name, "name")
        flow.x += 8
        flow.text(_use(kernel, name), "soft")
        y = flow.y + LINE
        shown = min(blocks, most)
        width = max((INNER - 90) * shown / most, 2.0)
        text = f"{blocks} block{'s' * (blocks != 1)}"
        marks.append({"shape": "rect", "role": "bar", "x": LEFT, "y": y, "w": round(width, 1),
                      "h": _BAR, "fill": _LIMITING if is_least else _OTHER,
                      "title": f"{name}: room for {text}"})  # fmt: skip
        marks.append({"shape": "text", "role": "name" if is_least else "label",
                      "x": round(LEFT + width + 6, 1), "y": y + 11.5, "text": text})  # fmt: skip
        y += _BAR + 6
    return y


def _draw_margins(
    found: Occupancy, margins: Sequence[Margin], y: float, marks: list[Mark]
) -> float:
    for margin in margins:
        flow = Flow(marks, LEFT, y)
        flow.text(f"{_amount(margin, margin.step)} more:", "label")
        flow.text(_effect(found.blocks, margin.with_more), "soft")
        y = flow.y + LINE
    return y


def _draw_curve(margin: Margin, found: Occupancy, y: float, marks: list[Mark]) -> float:
    """Draw the blocks that run at once over the use of a resource, as steps."""
    flow = Flow(marks, LEFT, y)
    unit = "of a thread" if margin.resource == "registers" else "of a block"
    flow.text(f"blocks, by {margin.resource} {unit}", "name")
    top, left = flow.y + 2 * LINE + 6, LEFT + 20
    room = WIDTH - LEFT - left
    end = max(margin.end, margin.used, 1)
    most = max(blocks for _, blocks in margin.curve)

    def at(use: float, blocks: float) -> tuple[float, float]:
        return left + room * min(use / end, 1.0), top + _CURVE * (1 - blocks / max(most, 1))

    points = [at(margin.curve[0][0], margin.curve[0][1])]
    for use, blocks in margin.curve[1:]:
        points += [(at(use, 0)[0], points[-1][1]), at(use, blocks)]
    points.append((left + room, points[-1][1]))
    way = "L".join(f"{x:.1f} {each:.1f}" for x, each in points)
    bottom = top + _CURVE
    marks.append({"shape": "path", "role": "axis", "d": f"M{left} {top}L{left} {bottom}"
                  f"L{left + room:.1f} {bottom}"})  # fmt: skip
    marks.append({"shape": "path", "role": "curve", "d": f"M{way}", "stroke": "#0072B2",
                  "title": f"blocks that run at once, by {margin.resource}"})  # fmt: skip
    x, height = at(margin.used, found.blocks)
    marks.append({"shape": "line", "role": "capacity", "x": round(x, 1), "y": top,
                  "x2": round(x, 1), "y2": bottom,
                  "title": f"now: {_amount(margin, margin.used)}"})  # fmt: skip
    marks.append({"shape": "rect", "role": "bar", "x": round(x - 4, 1), "y": round(height - 4, 1),
                  "w": 8, "h": 8, "fill": _LIMITING,
                  "title": f"now: {found.blocks} blocks"})  # fmt: skip
    _label_curve(margin, x, (left, top, left + room, bottom), most, marks)
    return bottom + 16


def _label_curve(
    margin: Margin, x: float, box: tuple[float, float, float, float], most: int, marks: list[Mark]
) -> None:
    """Write the ends of both axes into a curve, and the use at `x`; `box` are its edges."""
    left, top, right, bottom = box
    is_right = x > left + (right - left) * 0.6
    texts: tuple[tuple[float, float, Anchor, Role, str], ...] = (
        (left - 4, top + 10, "end", "label", str(most)),
        (left - 4, bottom, "end", "label", "0"),
        (x - 8 if is_right else x + 8, top - 7, "end" if is_right else "start", "label",
         f"now {_amount(margin, margin.used)}"),
        (right, bottom + 14, "end", "soft", _amount(margin, margin.end)),
    )  # fmt: skip
    for at, y, anchor, role, text in texts:
        marks.append({"shape": "text", "role": role, "x": round(at, 1), "y": y, "anchor": anchor,
                      "text": text})  # fmt: skip


def _summary(kernel: KernelFacts, found: Occupancy, margins: Sequence[Margin], machine: str) -> str:
    head = f"{launch_text(kernel, machine)}."
    limits = " and ".join(found.limited_by)
    if not found.blocks:
        return f"{head} No block fits on a multiprocessor: {limits} do not suffice."
    text = (
        f"{head} {found.blocks} block{'s' * (found.blocks != 1)} run{'s' * (found.blocks == 1)} at "
        f"once on a multiprocessor: {found.warps} of {found.most_warps} warps "
        f"({percent(found.fraction)}), limited by {limits}."
    )
    for margin in margins:
        if margin.with_more < found.blocks:
            text += f" {_amount(margin, margin.step)} more would leave {_blocks(margin.with_more)}."
        is_only = found.limited_by == (margin.resource,)
        if is_only and margin.most_for_more is not None:
            text += (
                f" With at most {_amount(margin, margin.most_for_more)}, "
                f"{_blocks(found.blocks + 1)} or more would run."
            )
    return text


def _rows(
    kernel: KernelFacts, found: Occupancy, target: Target, margins: Sequence[Margin]
) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for name, blocks in found.limits.items():
        margin = next((each for each in margins if each.resource == name), None)
        more: list[Cell] = ["", "", ""]
        if margin is not None:
            gain = margin.most_for_more
            more = [
                f"{margin.with_more} with {_amount(margin, margin.step)} more",
                _amount(margin, margin.most_same),
                "none" if gain is None else _amount(margin, gain),
            ]
        is_limit = "yes" if name in found.limited_by else ""
        rows.append([name, _use(kernel, name), blocks, is_limit, *more])
    return rows


def _use(kernel: KernelFacts, name: str) -> str:
    needs, counters = kernel.needs, kernel.counters
    return {
        "registers": f"{needs.registers} of a thread, {needs.source}",
        "threads": f"{counters.threads:,} of a block, {counters.warps} warps",
        "shared memory": f"{format_bytes(needs.shared_bytes)} of a block",
        "blocks": "as many as a multiprocessor takes",
    }[name]


def _amount(margin: Margin, value: int) -> str:
    if margin.resource == "registers":
        return f"{value} register{'s' * (value != 1)}"
    return f"{format_bytes(value)} of shared memory"


def _blocks(count: int) -> str:
    return "1 block" if count == 1 else f"{count} blocks"


def _effect(before: int, after: int) -> str:
    return f"still {_blocks(before)}" if after == before else f"{before} → {_blocks(after)}"


def _without(summary: str) -> Scene:
    return {
        "title": "Occupancy", "summary": summary,
        "how_to_read": "choose another target to see its limits.",
        "width": WIDTH, "height": 20.0, "marks": [],
        "table": {"columns": list(_COLUMNS), "rows": []},
    }  # fmt: skip
