"""Draw any scene as a figure for papers: the same marks, drawn by matplotlib."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dlcompiler.views.render.scene import Mark, Scene
from dlcompiler_widgets.paper import SETTINGS, PaperFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH_INCH = 6.4
_HEAD_PX = 26.0
_FONT_PX = 12.0
_ROLES: Mapping[str, Mapping[str, Any]] = {
    "grid": {"edgecolor": "#d8d8d8", "linewidth": 0.6, "zorder": 0.5},
    "axis": {"edgecolor": "#666666", "linewidth": 0.7},
    "edge": {"edgecolor": "#555555", "linewidth": 0.8},
    "capacity": {"edgecolor": "black", "linewidth": 0.8, "linestyle": "--"},
    "curve": {"edgecolor": "black", "linewidth": 1.4},
    "band": {"alpha": 0.22, "linewidth": 0.0},
    "warn": {"edgecolor": "black", "linewidth": 1.4},
}
_PLAIN: Mapping[str, Any] = {"edgecolor": "black", "linewidth": 0.5}
_MARKERS = {"disc": "o", "ring": "o", "tick": "|", "cross": "x", "diamond": "D"}
_COMMAND = re.compile(r"([MLHVZ])([^MLHVZ]*)")


def scene_figure(scene: Scene) -> PaperFigure:
    """Return a scene as a figure, as wide as a page."""
    matplotlib = importlib.import_module("matplotlib")
    width, height = scene["width"], scene["height"] + _HEAD_PX
    points = _WIDTH_INCH * 72 / width
    with matplotlib.rc_context(SETTINGS):
        figure = importlib.import_module("matplotlib.figure").Figure(
            figsize=(_WIDTH_INCH, height * points / 72)
        )
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, width)
        axes.set_ylim(scene["height"], -_HEAD_PX)
        axes.axis("off")
        font = {"fontsize": _FONT_PX * points, "va": "baseline"}
        axes.text(6, -8, scene["title"], fontweight="bold", **font)
        for mark in scene["marks"]:
            _DRAWERS[mark["shape"]](axes, mark, points)
    return PaperFigure(scene["title"], scene["summary"], figure)


def _look(mark: Mark) -> dict[str, Any]:
    look: dict[str, Any] = {**_PLAIN, **_ROLES.get(mark["role"], {})}
    fill = mark.get("fill", "none")
    look["facecolor"] = _color(fill)
    if "stroke" in mark:
        look["edgecolor"] = _color(mark["stroke"])
    if mark.get("dash"):
        look["linestyle"] = (0, tuple(float(part) for part in mark["dash"].split()))
    return look


def _color(text: str) -> str:
    return "black" if text == "currentColor" else text


def _rect(axes: Axes, mark: Mark, points: float) -> None:
    patches = importlib.import_module("matplotlib.patches")
    size = (mark["w"], mark["h"])
    axes.add_patch(patches.Rectangle((mark["x"], mark["y"]), *size, **_look(mark)))


def _circle(axes: Axes, mark: Mark, points: float) -> None:
    patches = importlib.import_module("matplotlib.patches")
    axes.add_patch(patches.Circle((mark["x"], mark["y"]), mark["r"], **_look(mark)))


def _line(axes: Axes, mark: Mark, points: float) -> None:
    _outline(axes, mark, [(mark["x"], mark["y"]), (mark["x2"], mark["y2"])], is_closed=False)


def _path(axes: Axes, mark: Mark, points: float) -> None:
    places: list[tuple[float, float]] = []
    is_closed = False
    for command, numbers in _COMMAND.findall(mark["d"]):
        values = [float(part) for part in numbers.split()]
        match command:
            case "M" | "L":
                places.append((values[0], values[1]))
            case "H":
                places.append((values[0], places[-1][1]))
            case "V":
                places.append((places[-1][0], values[0]))
            case "Z":
                is_closed = True
    _outline(axes, mark, places, is_closed=is_closed)


def _outline(axes: Axes, mark: Mark, places: list[tuple[float, float]], *, is_closed: bool) -> None:
    patches, paths = map(importlib.import_module, ("matplotlib.patches", "matplotlib.path"))
    ends = [places[0]] if is_closed else []
    path = paths.Path([*places, *ends], closed=is_closed)
    axes.add_patch(patches.PathPatch(path, **{**_look(mark), "fill": is_closed}))


def _dots(axes: Axes, mark: Mark, points: float) -> None:
    xy, look = mark["xy"], _look(mark)
    size = (2 * mark.get("r", 3.0) * points) ** 2
    is_line = mark["glyph"] in ("tick", "cross")
    colors: dict[str, Any] = (
        {"c": look["edgecolor"]} if is_line else
        {"facecolors": look["facecolor"], "edgecolors": look["edgecolor"]}
    )  # fmt: skip
    axes.scatter(xy[::2], xy[1::2], s=size, marker=_MARKERS[mark["glyph"]], linewidths=0.7,
                 zorder=2, **colors)  # fmt: skip


def _text(axes: Axes, mark: Mark, points: float) -> None:
    sides = {"start": "left", "middle": "center", "end": "right"}
    color = _color(mark.get("fill", "currentColor"))
    axes.text(
        mark["x"], mark["y"], mark["text"], ha=sides[mark.get("anchor", "start")], va="baseline",
        fontsize=_FONT_PX * points, color=color, zorder=3, parse_math=False,
        fontweight="bold" if mark["role"] == "name" else "normal",
    )  # fmt: skip


_DRAWERS: Mapping[str, Callable[[Axes, Mark, float], None]] = {
    "rect": _rect,
    "circle": _circle,
    "line": _line,
    "path": _path,
    "dots": _dots,
    "text": _text,
}
