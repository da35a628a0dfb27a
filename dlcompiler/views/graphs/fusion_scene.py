"""Fusion as static pictures and tables: the graph, its decisions, the arena, and measured times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dlcompiler.graph import MemoryPlan
from dlcompiler.views.graphs.fused_graph import Verdict
from dlcompiler.views.graphs.fusion_picture import EdgeLine, FusionPicture, kernel_key
from dlcompiler.views.graphs.module_card import shortened
from dlcompiler.views.render.boxes import count
from dlcompiler.views.render.colors import HUES
from dlcompiler.views.render.scene import Cell, Mark, Scene, Table
from dlcompiler.views.render.units import format_bytes

FUSED, NOT_FUSED = HUES[0], HUES[1]
COLUMNS = ["producer", "consumer", "decision", "rule", "effect", "buffer of the value"]
_PAD_PX, _LINE_PX = 9.0, 16.0
_PLOT_PX, _LEFT_PX, _TOP_PX = 240.0, 76.0, 10.0
_STEP_PX = (7.0, 64.0)
"""Least and largest width of a kernel in the picture of the arena; [px]."""
_MOST_NAMES = 60
_INK = "#1f2328"
_VALUES = (HUES[5], HUES[4], HUES[6], HUES[3])
"""Colours of values in the arena: pale ones, since words stand on them."""


def decision_table(verdicts: Sequence[Verdict], most: int | None = None) -> Table:
    """Return the decisions as a table: the same as the edges of the picture.

    Parameters
    ----------
    verdicts : sequence of Verdict
        ``graph.verdicts``.
    most : int, optional
        Most rows; the last one then says how many are left out.
    """
    rows: list[list[Cell]] = [
        [
            shortened(v.a, 60), shortened(v.b, 60),
            ("fused" if v.is_fused else "not fused") + (f" (asked: {v.wish})" if v.wish else ""),
            v.rule, v.effect, v.buffer,
        ]
        for v in verdicts[:most]
    ]  # fmt: skip
    if most is not None and len(verdicts) > most:
        more = f"… {len(verdicts) - most:,} more"
        rows.append([more, "module.decisions() has all", None, None, None, None])
    return {"columns": COLUMNS, "rows": rows}


def fusion_scene(picture: FusionPicture, table: Table) -> Scene:
    """Return the picture of fusion as marks.

    Parameters
    ----------
    picture : FusionPicture
        The view model.
    table : Table
        The same as a table.
    """
    marks: list[Mark] = []
    for frame in picture["frames"]:
        fill = FUSED if frame["kind"] == "kernel" else "none"
        marks.append({
            "shape": "rect", "role": "box", "x": frame["x"], "y": frame["y"], "w": frame["w"],
            "h": frame["h"], "fill": fill, "title": _facts(frame["facts"]),
        })  # fmt: skip
        if frame["kind"] == "block":
            marks[-1]["dash"] = "6 4"
    for edge in picture["edges"]:
        marks += _edge(edge)
    for frame in picture["frames"]:
        marks.append({"shape": "text", "role": "soft", "x": frame["x"] + 8, "y": frame["y"] + 15,
                      "text": frame["text"]})  # fmt: skip
    for node in picture["nodes"]:
        outline: Mark = {
            "shape": "rect", "role": "capacity" if node["kind"] == "input" else "node",
            "x": node["x"], "y": node["y"], "w": node["w"], "h": node["h"], "fill": "none",
            "title": _facts(node["facts"]),
        }  # fmt: skip
        marks.append(outline)
        if node["is_closed"]:
            inner: Mark = {"shape": "rect", "role": "axis", "x": node["x"] + 3, "y": node["y"] + 3,
                           "w": node["w"] - 6, "h": node["h"] - 6}  # fmt: skip
            marks.append(inner)
        for n, line in enumerate(node["lines"]):
            marks.append({"shape": "text", "role": "soft" if n else "name",
                          "x": node["x"] + _PAD_PX, "y": node["y"] + (n + 1) * _LINE_PX,
                          "text": line})  # fmt: skip
    return {
        "title": picture["title"], "summary": picture["summary"],
        "how_to_read": picture["how_to_read"], "width": picture["width"],
        "height": picture["height"], "marks": marks, "table": table,
    }  # fmt: skip


def _edge(edge: EdgeLine) -> list[Mark]:
    line: Mark = {"shape": "path", "role": "edge", "d": edge["d"], "title": edge["text"]}
    head: Mark = {"shape": "path", "role": "edge", "d": edge["head"]}
    if edge["kind"] == "input":
        return [line, head]
    color = FUSED if edge["kind"] == "fused" else NOT_FUSED
    if edge["kind"] == "fused":
        line["role"] = head["role"] = "warn"
    else:
        line["dash"] = "6 3"
    return [{**line, "stroke": color}, {**head, "stroke": color}]


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{label}: {value}" for label, value in facts)


# -- the arena ------------------------------------------------------------------------------------


def arena_scene(plan: MemoryPlan) -> Scene:
    """Return where values lie in the arena, and when: addresses against kernels.

    Parameters
    ----------
    plan : MemoryPlan
        The plan; each value belongs to the kernel that stores it.
    """
    number = max(len(plan.kernels), 1)
    step = min(max(_STEP_PX[0], 560.0 / number), _STEP_PX[1])
    width, size = _LEFT_PX + number * step + 12, max(plan.bytes, 1)
    scale = _PLOT_PX / size
    bottom = _TOP_PX + _PLOT_PX
    kernels = {name: kernel_key(n) for n, name in enumerate(plan.kernels)}
    marks: list[Mark] = [
        _line(_LEFT_PX, _TOP_PX, width - 12, _TOP_PX, "axis"),
        _line(_LEFT_PX, bottom, width - 12, bottom, "axis"),
        _text(_LEFT_PX - 6, bottom + 4, "0", "end"),
        _text(_LEFT_PX - 6, _TOP_PX + 8, format_bytes(plan.bytes), "end"),
        _text(_LEFT_PX, bottom + 18, "kernel 0"),
        _text(width - 12, bottom + 18, f"kernel {number - 1}", "end"),
    ]
    for n, value in enumerate(plan.placements):
        last = min(value.last, number - 1)
        x, w = _LEFT_PX + value.first * step, (last - value.first + 1) * step
        y, h = bottom - (value.offset + value.bytes) * scale, value.bytes * scale
        until = "the end" if value.last >= number else f"kernel {last}"
        title = (
            f"{shortened(value.name, 80)}: {value.bytes:,} bytes from byte {value.offset:,}, "
            f"from kernel {value.first} to {until}"
        )
        mark: Mark = {
            "shape": "rect", "role": "bar", "x": round(x, 1), "y": round(y, 1), "w": round(w, 1),
            "h": round(max(h, 1.0), 1), "fill": _VALUES[n % len(_VALUES)], "title": title,
            "keys": [key] if (key := _kernel_of(value.name, kernels)) else [],
        }  # fmt: skip
        marks.append(mark)
        if h > 13 and w > 7 * len(value.name) + 8:
            marks.append(_text(x + 5, round(y + h / 2 + 4, 1), value.name))
            marks[-1]["fill"] = _INK
    values: list[list[Cell]] = [
        [shortened(v.name, 60), v.offset, v.bytes, v.first, v.last] for v in plan.placements
    ]
    bound = (
        "no plan is smaller" if plan.bytes == plan.bound else f"at least {plan.bound:,} are needed"
    )
    return {
        "title": "The arena",
        "summary": (
            f"{plan.bytes:,} bytes for {count(len(plan.placements), 'value')} of "
            f"{count(len(plan.kernels), 'kernel')}; {bound}. Without reuse {plan.naive:,} bytes, "
            f"by the pool of Relay {plan.classic:,}."
        ),
        "how_to_read": (
            "a bar is a value between kernels. Its height is its size, its place up is its "
            "address, and it reaches from the kernel that stores it to the last one that reads it."
        ),
        "width": width, "height": bottom + 26, "marks": marks,
        "table": {"columns": ["value", "offset [byte]", "size [byte]", "stored by kernel",
                              "last read by kernel"], "rows": values},
    }  # fmt: skip


def _kernel_of(value: str, kernels: Mapping[str, str]) -> str:
    """Return the key of the kernel that stores a value; "" if it is none of them."""
    return kernels.get(value) or kernels.get(value.rpartition(".")[0], "")


# -- times ----------------------------------------------------------------------------------------


def times_scene(times: Sequence[tuple[str, float]], keys: Sequence[str], where: str) -> Scene:
    """Return the measured time of each kernel as a bar.

    Parameters
    ----------
    times : sequence of (str, float)
        Names of kernels and their times, in the order in which they run; [s].
    keys : sequence of str
        Keys of the kernels on the page.
    where : str
        How the times were found: ``measured on …``.
    """
    whole = sum(seconds for _, seconds in times)
    largest = max((seconds for _, seconds in times), default=0.0) or 1.0
    order = sorted(range(len(times)), key=lambda n: -times[n][1])[:_MOST_NAMES]
    marks: list[Mark] = []
    for row, n in enumerate(sorted(order)):
        name, seconds = times[n]
        y = row * 20.0
        share = seconds / whole if whole else 0.0
        bar: Mark = {
            "shape": "rect", "role": "bar", "x": 248, "y": y + 3, "h": 14, "fill": HUES[0],
            "w": round(max(220 * seconds / largest, 1.0), 1), "keys": [keys[n]],
            "title": f"{shortened(name, 80)}: {_time(seconds)}, {share:.0%} of all kernels",
        }  # fmt: skip
        marks += [
            _text(240, y + 14, shortened(name, 30), "end"), bar,
            _text(252 + bar["w"], y + 14, f"{_time(seconds)}  {share:.0%}"),
        ]  # fmt: skip
    left = len(times) - len(order)
    more = f" The {left} shortest are left out of the picture." if left else ""
    rows: list[list[Cell]] = [
        [shortened(name, 80), _time(seconds), f"{seconds / whole:.1%}" if whole else ""]
        for name, seconds in times
    ]
    return {
        "title": "Time of each kernel",
        "summary": f"{count(len(times), 'kernel')}, {_time(whole)} in all, {where}.{more}",
        "how_to_read": (
            "a bar is the time of one kernel by itself; where it is measured, the shortest of "
            "several runs. A call of a whole model has no Python between kernels, so it may take "
            "less than the sum."
        ),
        "width": 590.0, "height": max(20.0 * len(order), 20.0), "marks": marks,
        "table": {"columns": ["kernel", "time", "share"], "rows": rows},
    }  # fmt: skip


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _line(x: float, y: float, x2: float, y2: float, role: str) -> Mark:
    return {"shape": "line", "role": role, "x": x, "y": y, "x2": x2, "y2": y2}  # type: ignore[typeddict-item]


def _text(x: float, y: float, text: str, anchor: str = "start") -> Mark:
    return {"shape": "text", "role": "soft", "x": round(x, 1), "y": y, "text": text,
            "anchor": anchor}  # type: ignore[typeddict-item]  # fmt: skip
