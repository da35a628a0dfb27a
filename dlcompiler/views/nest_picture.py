"""A loop nest as an SVG picture: each loop a coloured bracket around what it repeats."""

from __future__ import annotations

from dlcompiler.views.loop_tree import LoopTree, Row
from dlcompiler.views.markup import Attributes, Markup, tag

WIDTH = 720
INDENT = 18
HEIGHTS = {"stage": 30, "loop": 26, "statement": 24}
HEAD = 24
EXTENT_X, KIND_X, AXIS_X = WIDTH - 226, WIDTH - 210, WIDTH - 108
CHARACTER = 7.4
"""Advance of the monospaced font at `FONT_SIZE`, at most; [px]."""
FONT_SIZE = 12
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, -apple-system, 'Segoe UI', sans-serif"

HOW_TO_READ = (
    "How to read: outer loops enclose inner ones; the bar of a loop spans what it repeats, and has "
    "the colour of the axis that it came from (lighter: an inner part of it)."
)


def nest_picture(tree: LoopTree) -> Markup:
    """Return the picture of a loop tree.

    Parameters
    ----------
    tree
        The view model.

    Returns
    -------
    Markup
        An ``svg`` element, without ids or scripts; its text has the colour of what surrounds it.
    """
    rows = tree["rows"]
    tops = [HEAD]
    for row in rows:
        tops.append(tops[-1] + HEIGHTS[row["type"]])
    parts = [_head()]
    for n, row in enumerate(rows):
        inside = next((m for m in range(n + 1, len(rows)) if rows[m]["depth"] <= row["depth"]), -1)
        parts.append(_row(row, tops[n], tops[inside] - tops[n]))
    height = tops[-1] + 4
    return tag(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {WIDTH} {height}",
            "width": WIDTH,
            "height": height,
            "role": "img",
            "aria-label": f"Loop nest: {tree['summary']}",
            "style": "max-width:100%;height:auto;display:block",
            "font-size": FONT_SIZE,
            "fill": "currentColor",
        },
        *parts,
    )


def _head() -> Markup:
    return tag(
        "g",
        {"font-family": SANS, "font-size": 11, "opacity": "0.7"},
        tag("text", {"x": 4, "y": 14}, "loop"),
        tag("text", {"x": EXTENT_X, "y": 14, "text-anchor": "end"}, "extent"),
        tag("text", {"x": KIND_X + 8, "y": 14}, "kind"),
        tag("text", {"x": AXIS_X, "y": 14}, "axis"),
    )


def _row(row: Row, top: int, height: int) -> Markup:
    x = 4 + row["depth"] * INDENT
    title = tag("title", None, row["label"])
    if row["type"] == "stage":
        return tag("g", None, title, _stage_text(row, x, top))
    if row["type"] == "statement":
        return tag("g", None, title, _statement_text(row, x, top))
    return tag("g", None, title, *_bracket(row, x, top, height), *_loop_text(row, x, top))


def _stage_text(row: Row, x: int, top: int) -> Markup:
    return tag(
        "text",
        {"x": x, "y": top + 20, "font-family": SANS},
        tag("tspan", {"font-weight": 600, "font-size": 13}, row["name"]),
        tag("tspan", {"dx": 8, "opacity": "0.75"}, row["detail"]),
    )


def _statement_text(row: Row, x: int, top: int) -> Markup:
    room = int((WIDTH - x - 12) / CHARACTER)
    text = row["name"] if len(row["name"]) <= room else row["name"][: room - 1] + "…"
    return tag("text", {"x": x + 8, "y": top + 16, "font-family": MONO}, text)


def _bracket(row: Row, x: int, top: int, height: int) -> list[Markup]:
    place = {"x": x, "y": top + 1, "height": height - 2}
    colors = row["colors"]
    parts = [tag("rect", {**place, "width": WIDTH - x - 2, "rx": 3, "fill-opacity": "0.035"})]
    share = (height - 2) / len(colors)
    for n, color in enumerate(colors):
        bar = {"x": x, "y": round(top + 1 + n * share, 1), "width": 5, "height": round(share, 1)}
        parts.append(tag("rect", {**bar, "fill": color}))
    outline = {"fill": "none", "stroke": "currentColor", "stroke-opacity": "0.35"}
    parts.append(tag("rect", {**place, "width": 5, **outline, "stroke-width": "0.75"}))
    return parts


def _loop_text(row: Row, x: int, top: int) -> list[Markup]:
    y = top + 17
    parts = [
        tag("text", {"x": x + 14, "y": y, "font-family": MONO, "font-weight": 600}, row["name"]),
        tag(
            "text",
            {"x": EXTENT_X, "y": y, "font-family": MONO, "text-anchor": "end"},
            f"{row['extent']:,}",
        ),
        tag(
            "text",
            {"x": AXIS_X, "y": y, "font-family": SANS, "opacity": "0.75"},
            "reduction" if row["axis"] == "reduce" else "data",
        ),
    ]
    if row["kind"] == "serial":
        parts.append(
            tag("text", {"x": KIND_X + 8, "y": y, "font-family": SANS, "opacity": "0.55"}, "serial")
        )
        return parts
    pill: Attributes = {
        "x": KIND_X,
        "y": top + 4,
        "width": 84,
        "height": 18,
        "rx": 9,
        "fill": "none",
    }
    text: Attributes = {"x": KIND_X + 8, "y": y, "font-family": SANS, "font-weight": 600}
    return [
        *parts,
        tag("rect", {**pill, "stroke": "currentColor", "stroke-opacity": "0.6"}),
        tag("text", text, row["kind"]),
    ]
