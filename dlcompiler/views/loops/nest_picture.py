"""A loop nest as a picture: each loop is a coloured bar beside its body.

It is made of styled lines of text, not of SVG: JupyterLab removes SVG from notebooks that are not
trusted, which is every notebook that someone else ran. Where styles are removed too, as on
GitHub, indented text remains.
"""

from __future__ import annotations

from collections.abc import Mapping

from dlcompiler.views.loops.loop_tree import AXIS_WORDS, LINES, LoopTree, Row, kind_text
from dlcompiler.views.render.colors import SIGN_COLORS
from dlcompiler.views.render.markup import Markup, tag

MONO = "Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SANS = "system-ui, -apple-system, 'Segoe UI', sans-serif"
HOW_TO_READ = (
    "How to read: outer loops enclose inner ones. The bar of a loop spans everything that the loop "
    "repeats. Its colour is that of its original axis; inner parts are lighter."
)

_NAME_PX, _EXTENT_PX, _KIND_PX, _AXIS_PX = 420, 60, 104, 70
# With their gaps they fit the output of a notebook's cell that is 760 px wide.
_LEVEL_PX, _BAR_PX, _LINE_PX = 18, 7, 24
_BLOCK = "display:inline-block;vertical-align:top"
_SPACE = "\u00a0"


def nest_picture(tree: LoopTree) -> Markup:
    """Return the picture of a loop tree.

    Parameters
    ----------
    tree
        The view model.

    Returns
    -------
    Markup
        A ``div``, without ids or scripts; its text has the colour of what surrounds it.
    """
    rows = {row["key"]: row for row in tree["rows"]}
    return tag(
        "div",
        {
            "class": "dlc-nest",
            "title": f"Loop nest: {tree['summary']}",
            "style": f"font-family:{MONO};font-size:12px;line-height:{_LINE_PX}px;"
            "overflow-x:auto;margin:4px 0",
        },
        _line(_columns("loop", "extent", "kind", "axis"), "opacity:0.7"),
        *(_row(row, rows) for row in tree["rows"]),
    )


def _line(content: Markup, style: str = "", title: str | None = None) -> Markup:
    return tag("div", {"title": title, "style": f"white-space:nowrap;{style}"}, content)


def _row(row: Row, rows: Mapping[str, Row]) -> Markup:
    bars = "".join(_levels(row, rows))
    if row["type"] == "stage":
        name = tag("strong", {"style": "font-size:13px"}, row["name"])
        text = tag("span", {"style": "opacity:0.75"}, f"{_SPACE * 2}{row['detail']}")
        return _line(Markup(bars + name + text), title=row["label"])
    if row["type"] in LINES:
        text = tag("span", {"style": "opacity:0.85"}, row["name"])
        return _line(Markup(bars + text), title=row["label"])
    name = Markup(bars + tag("strong", None, row["name"]))
    axis = AXIS_WORDS[row["axis"]]
    return _line(_columns(name, _extent(row), _kind(row), axis), title=row["label"])


def _columns(name: str, extent: str, kind: str, axis: str) -> Markup:
    cells = (
        (name, f"width:{_NAME_PX}px"),
        (extent, f"width:{_EXTENT_PX}px;text-align:right"),
        (kind, f"width:{_KIND_PX}px;margin-left:24px"),
        (axis, f"width:{_AXIS_PX}px"),
    )
    return Markup(" ".join(tag("span", {"style": f"{_BLOCK};{s}"}, text) for text, s in cells))


def _kind(row: Row) -> Markup:
    if row["kind"] == "serial":
        return tag("span", {"style": "opacity:.72"}, "serial")
    edge = f"2px solid {SIGN_COLORS[row['sign']]}" if row["sign"] else "1px solid gray"
    style = f"border:{edge};border-radius:9px;padding:1px 7px;font-weight:bold"
    return tag("span", {"style": style}, kind_text(row))


def _levels(row: Row, rows: Mapping[str, Row]) -> list[Markup]:
    """Return the indentation of a row: for each level, the bar of the loop on that level."""
    bars: dict[int, list[str]] = {}
    at: Row | None = row
    while at is not None:
        if at["type"] == "loop":
            bars[at["depth"]] = at["colors"]
        at = rows.get(at["parent"] or "")
    last = row["depth"] + (row["type"] == "loop")
    return [_level(bars.get(depth, [])) for depth in range(last)]


def _level(colors: list[str]) -> Markup:
    """Return one level of indentation; with colours, it contains the bar of a loop."""
    room = _LEVEL_PX - _BAR_PX if colors else _LEVEL_PX
    marks = []
    for n, color in enumerate(colors):
        edges = "border-left:1px solid gray;" if n == 0 else ""
        edges += "border-right:1px solid gray;" if n == len(colors) - 1 else ""
        style = f"{_BLOCK};width:{round(5 / len(colors), 1)}px;height:{_LINE_PX}px;{edges}"
        style += "box-sizing:content-box;"
        marks.append(tag("span", {"style": f"{style}background-color:{color}"}))
    gap = tag("span", {"style": f"{_BLOCK};width:{room}px"}, _SPACE)
    return Markup("".join(marks) + gap)


def _extent(row: Row) -> str:
    extent = row["extent"]
    return f"{extent:,}" if isinstance(extent, int) else str(extent)
