"""Pictures as data: marks with positions, texts and keys, laid out in Python.

The static SVG of a picture, its drawing in a browser, its table and its tests all use the same
*scene*. The `keys` of a mark are those of the loop tree, so that a click on it chooses a loop, and
the chosen loop is highlighted in the picture.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal, NotRequired, TypedDict
from urllib.parse import quote

from dlcompiler.views.render.markup import Attributes, Markup, heading, tag
from dlcompiler.views.render.text import shortened

Cell = str | int | float | None
Role = Literal[
    "box", "bar", "edge", "axis", "capacity", "cell", "name", "label", "soft", "warn", "node",
    "grid", "curve", "band", "dots",
]  # fmt: skip
Anchor = Literal["start", "middle", "end"]
Glyph = Literal["disc", "ring", "tick", "cross", "diamond"]
"""The role of a mark in its picture; style sheets define its look."""

# Boxes stand in boxes: at this opacity, the words in eight of them have a contrast of 4.5 on white
# and on black ground.
_STYLES: dict[str, str] = {
    "box": "fill-opacity:.11;stroke:currentColor;stroke-opacity:.55",
    "bar": "stroke:currentColor;stroke-opacity:.7",
    "cell": "stroke:currentColor;stroke-opacity:.45",
    "node": "fill-opacity:.22;stroke:currentColor;stroke-opacity:.7",
    "edge": "fill:none;stroke:currentColor;stroke-opacity:.7",
    "axis": "fill:none;stroke:currentColor;stroke-opacity:.4",
    "capacity": "fill:none;stroke:currentColor;stroke-dasharray:4 3",
    "name": "fill:currentColor;font-weight:600",
    "label": "fill:currentColor",
    "soft": "fill:currentColor;fill-opacity:.72",
    "warn": "fill:none;stroke:currentColor;stroke-width:2",
    "grid": "fill:none;stroke:currentColor;stroke-opacity:.16",
    "curve": "fill:none;stroke-width:2",
    "band": "fill-opacity:.22;stroke:none",
    "dots": "stroke-width:1",
}
_ABSOLUTE = re.compile(r"([MLC])([-\d. ]+)")
_GAP = 20.0
"""Between parts of a picture; [px]."""
_FONT = "font-family:system-ui,-apple-system,'Segoe UI',sans-serif;font-size:12px"
# An image does not inherit colours. It has a ground of its own, so that its words can be read
# whatever stands around it; these are the colours of the workbench outside a notebook's theme.
_IMAGE_STYLE = (
    "svg{color:#1f2328;background:#ffffff}"
    "@media(prefers-color-scheme:dark){svg{color:#e3e6e9;background:#16191c}}"
)


class Mark(TypedDict, total=False):
    """A shape or a text; lengths in pixels from the top left corner."""

    shape: Literal["rect", "line", "path", "circle", "text", "dots"]
    role: Role
    x: float
    y: float
    w: float
    h: float
    x2: float
    y2: float
    r: float
    d: str
    text: str
    anchor: Anchor
    fill: str
    stroke: str
    dash: str
    glyph: Glyph
    xy: list[float]
    """Positions of dots, x and y in turn; `keys` has one key for each dot."""
    keys: list[str]
    title: str
    """Tooltip, also read by screen readers."""
    instruction: tuple[int, int]
    """Part of a program of an accelerator, and number of the instruction that it stands for."""


class Table(TypedDict):
    """The contents of a picture as a table."""

    columns: list[str]
    rows: list[list[Cell]]


class Part(TypedDict):
    """A part of a picture: a page puts the parts below each other where it is narrow."""

    count: int
    """Number of its marks, which follow those of the part before."""
    x: float
    """Its left edge while the parts are beside each other; [px]."""
    width: float
    height: float


class Parts(TypedDict):
    """The size, the marks and the parts of a picture: what `beside` returns."""

    width: float
    height: float
    marks: list[Mark]
    parts: list[Part]


class Scene(TypedDict):
    """A picture: its marks, a description, and a table."""

    title: str
    summary: str
    """The picture in a sentence."""
    how_to_read: str
    width: float
    height: float
    marks: list[Mark]
    parts: NotRequired[list[Part]]
    """Parts that a narrow page puts below each other; a picture without them stays as it is."""
    table: Table


def beside(*parts: tuple[float, float, Sequence[Mark]]) -> Parts:
    """Put parts of a picture beside each other, from left to right.

    Parameters
    ----------
    *parts
        Width, height and marks of each, with positions from its own corner. All parts but the
        first consist of rectangles, lines, texts, and paths of absolute M, L and C followed by
        relative commands.

    Raises
    ------
    ValueError
        For another shape in a part that is moved.
    """
    marks: list[Mark] = []
    found: list[Part] = []
    x = 0.0
    for width, height, own in parts:
        marks += [_moved(mark, x) for mark in own] if found else own
        found.append({"count": len(own), "x": x, "width": width, "height": height})
        x += width + _GAP
    height = max(part["height"] for part in found)
    return {"width": x - _GAP, "height": height, "marks": marks, "parts": found}


def _moved(mark: Mark, by: float) -> Mark:
    if mark["shape"] == "path":
        return {**mark, "d": _ABSOLUTE.sub(partial(_moved_command, by), mark["d"])}
    if mark["shape"] not in {"rect", "line", "text"}:
        raise ValueError(f"a part with the shape {mark['shape']} cannot be moved")
    moved: Mark = {**mark, "x": mark["x"] + by}
    if "x2" in mark:
        moved["x2"] = mark["x2"] + by
    return moved


def _moved_command(by: float, command: re.Match[str]) -> str:
    """Move the pairs of coordinates behind an absolute M, L or C to the right."""
    numbers = [float(number) for number in command[2].split()]
    moved = [value if n % 2 else round(value + by, 1) for n, value in enumerate(numbers)]
    return command[1] + " ".join(f"{value:g}" for value in moved)


def scene_html(scene: Scene, *, is_open: bool = False) -> Markup:
    """Return a scene as an image with its summary, its reading instructions and its table.

    Parameters
    ----------
    scene
        The picture.
    is_open
        Whether the table is unfolded.

    Returns
    -------
    Markup
        A fragment without script and ``id``.
    """
    small = {"style": "font-size:12px;opacity:.85;margin:4px 0"}
    return tag(
        "figure",
        {"class": "dlc-fragment-figure", "style": "margin:4px 0"},
        tag("p", {"style": "margin:4px 0"}, scene["summary"]),
        scene_image(scene),
        tag("figcaption", small, f"How to read: {scene['how_to_read']}"),
        tag(
            "details",
            {"open": "open" if is_open else None},
            tag("summary", {"style": "cursor:pointer;font-size:12px"}, "The same as a table"),
            table_html(scene["table"]["columns"], scene["table"]["rows"]),
        ),
    )


def scene_image(scene: Scene) -> Markup:
    """Return a scene as an image whose source is its SVG.

    JupyterLab removes SVG elements from notebooks that are not trusted and keeps images
    (docs/adr/0021-static-outputs.md).
    """
    return tag(
        "img",
        {
            "src": f"data:image/svg+xml;charset=utf-8,{_source(scene)}",
            "alt": _in_words(scene),
            "width": _number(scene["width"]),
            "height": _number(scene["height"]),
            "style": "max-width:100%;height:auto",
        },
    )


def _source(scene: Scene) -> str:
    """Return a scene as the address of an image, with shorter titles if it is long.

    In a page, browsers show no titles of what is in an image; they do if it is opened by itself.
    """
    source = quote(scene_document(scene), safe=_UNQUOTED)
    for words in (_first_line, lambda title: ""):
        if len(source) <= _MOST_BYTES:
            break
        marks = [{**mark, "title": words(mark.get("title", ""))} for mark in scene["marks"]]
        source = quote(scene_document({**scene, "marks": marks}), safe=_UNQUOTED)  # type: ignore[typeddict-item]
    return source


def _first_line(title: str) -> str:
    return shortened(title.partition("\n")[0], 60)


_MOST_BYTES = 48_000
"""An image with its table and words is to stay below 60 kB; [byte]."""
_UNQUOTED = " !$&'()*+,-./:;=?@_~"
"""What may stand in the address of data; the rest is written as ``%22``."""


def scene_document(scene: Scene) -> str:
    """Return a scene as an SVG file. Its attributes are in single quotes, which cost one byte."""
    used = dict.fromkeys(mark["role"] for mark in scene["marks"])
    rules = "".join(f".{role}{{{_STYLES[role]}}}" for role in used)
    style = tag("style", None, Markup(_IMAGE_STYLE + rules))
    namespace = {"xmlns": "http://www.w3.org/2000/svg"}
    # `tag` writes a quote inside a text as a reference: all others are those round attributes.
    return str(_svg(scene, namespace, style, has_classes=True)).replace('"', "'")


def _in_words(scene: Scene) -> str:
    return f"{scene['title']}: {scene['summary']}"


def scene_svg(scene: Scene) -> Markup:
    """Return the marks of a scene as an SVG element."""
    return _svg(scene, {})


def _svg(scene: Scene, attributes: Attributes, *head: Markup, has_classes: bool = False) -> Markup:
    return tag(
        "svg",
        {
            **attributes,
            "viewBox": f"0 0 {_number(scene['width'])} {_number(scene['height'])}",
            "width": _number(scene["width"]),
            "height": _number(scene["height"]),
            "role": "img",
            "aria-label": _in_words(scene),
            "style": _FONT,
        },
        *head,
        tag("title", None, scene["title"]),
        *(_mark(mark, has_class=has_classes) for mark in scene["marks"]),
    )


def _mark(mark: Mark, *, has_class: bool = False) -> Markup:
    """Return a mark as an element, with the style of its role or with the role as its class."""
    is_text = mark["shape"] == "text"
    style = {"fill": mark.get("fill") if is_text else None, "stroke": mark.get("stroke"),
             "stroke-dasharray": mark.get("dash")}  # fmt: skip
    rules = [] if has_class else [_STYLES[mark["role"]]]
    rules += [f"{name}:{value}" for name, value in style.items() if value]
    look: Attributes = {
        "class": mark["role"] if has_class else None,
        # An attribute yields to the style of a role that fills nothing.
        "fill": None if is_text else mark.get("fill") or None,
        "style": ";".join(rules) or None,
    }
    name, attributes = _shape(mark)
    title = [tag("title", None, mark["title"])] if mark.get("title") else []
    text = [mark["text"]] if is_text else []
    return tag(name, {**attributes, **look}, *text, *title)


def _shape(mark: Mark) -> tuple[str, Attributes]:
    def at(*names: str) -> list[str]:
        return [_number(mark.get(name, 0.0)) for name in names]  # type: ignore[arg-type]

    match mark["shape"]:
        case "rect":
            x, y, width, height = at("x", "y", "w", "h")
            return "rect", {"x": x, "y": y, "width": width, "height": height, "rx": 2}
        case "line":
            x1, y1, x2, y2 = at("x", "y", "x2", "y2")
            return "line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
        case "circle":
            cx, cy, r = at("x", "y", "r")
            return "circle", {"cx": cx, "cy": cy, "r": r}
        case "path":
            return "path", {"d": mark["d"]}
        case "dots":
            return "path", {"d": dots_path(mark)}
        case "text":
            x, y = at("x", "y")
            return "text", {"x": x, "y": y, "text-anchor": mark.get("anchor", "start")}


def dots_path(mark: Mark) -> str:
    """Return the path of many small signs; ``drawDots`` in ``js/scene.js`` draws the same.

    Examples
    --------
    >>> dots_path({"glyph": "tick", "r": 3, "xy": [10, 20, 30.5, 20]})
    'M10 17v6M30.5 17v6'
    """
    size = mark.get("r", 3.0)
    r, width = _number(size), _number(2 * size)
    xy = mark["xy"]
    draw: dict[str, Callable[[float, float], str]] = {
        "disc": lambda x, y: (
            f"M{_number(x - size)} {_number(y)}a{r} {r} 0 1 0 {width} 0a{r} {r} 0 1 0 -{width} 0"
        ),
        "tick": lambda x, y: f"M{_number(x)} {_number(y - size)}v{width}",
        "cross": lambda x, y: (
            f"M{_number(x - size)} {_number(y - size)}l{width} {width}m0 -{width}l-{width} {width}"
        ),
        "diamond": lambda x, y: f"M{_number(x)} {_number(y - size)}l{r} {r}l-{r} {r}l-{r} -{r}z",
    }
    draw["ring"] = draw["disc"]
    one = draw[mark["glyph"]]
    return "".join(one(x, y) for x, y in zip(xy[::2], xy[1::2], strict=True))


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def table_html(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """Return an HTML table; numbers and their headings are right-aligned."""
    body = [list(row) for row in rows]
    heads = [heading(text, f"text-align:{_side(n, body)}") for n, text in enumerate(columns)]
    return tag(
        "table",
        {"class": "dlc-fragment-table", "style": "border-spacing:8px 2px"},
        tag("thead", None, tag("tr", None, *heads)),
        tag("tbody", None, *(tag("tr", None, *map(_cell, row)) for row in body)),
    )


def _side(column: int, rows: list[list[object]]) -> str:
    """Return the alignment of a column's heading: right over numbers."""
    cells = [row[column] for row in rows]
    is_number = any(isinstance(cell, int | float) for cell in cells)
    return "right" if is_number and not any(isinstance(cell, str) for cell in cells) else "left"


def _cell(value: object) -> Markup:
    if value is None:
        return tag("td")
    if isinstance(value, int | float):
        return tag("td", {"style": "text-align:right"}, f"{value:,}")
    text = str(value).lstrip(" ")
    indentation = "\u00a0" * (len(str(value)) - len(text))  # these do not break or collapse
    return tag("td", {"style": "text-align:left"}, indentation + text)
