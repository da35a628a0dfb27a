"""Static pictures of containers: boxes, tabs, accordions and outputs of ipywidgets that hold ours.

A container has no picture of its own. If one of our widgets is in it, the cell that displays the
container also gets a static output, with the pictures of all of our widgets in it. An Output can be
filled long after its cell has run, such as by a button: its static output is there from the
beginning, without contents, and is updated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import ipywidgets
from ipywidgets.widgets import widget as widget_module

from dlcompiler.views.render.markup import Markup, tag
from dlcompiler_widgets.static_output import (
    StaticOutput,
    after_cells,
    follow_cells,
    is_kernel,
    on_display,
    static_page,
)

CONTAINERS = (ipywidgets.Box, ipywidgets.Output)
"""Classes whose display is observed; tabs, accordions, grids and ``interactive`` are boxes."""
_VIEW = "application/vnd.jupyter.widget-view+json"

_shown_in: WeakKeyDictionary[ipywidgets.Output, list[StaticOutput]] = WeakKeyDictionary()
"""What was displayed in an Output, until the page says what the Output holds."""
_waiting: list[Container] = []
"""Containers without a widget of ours that the running cell has displayed."""


class Container(StaticOutput):
    """The static picture of a container: the pictures of our widgets in it.

    Parameters
    ----------
    root : Box or Output
        What a cell displays.
    """

    def __init__(self, root: Any) -> None:
        self._root = root
        self.members: list[StaticOutput] = []
        """Our widgets in the container, from the first to the last."""
        self._follow()

    @property
    def comm(self) -> Any:
        """The connection of the container; None once it is closed."""
        return self._root.comm

    @property
    def model_id(self) -> str:  # type: ignore[override]  # that of a widget can be set
        """The id of the container."""
        return str(self._root.model_id)

    def __repr__(self) -> str:
        return str(self._live_data()["text/plain"])

    def _live_data(self) -> dict[str, Any]:
        found = self._root._repr_mimebundle_()
        return dict(found[0] if isinstance(found, tuple) else found)

    def _live(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        return (self._live_data(), {}) if self.comm is not None else None

    def _follow(self) -> None:
        """Find the widgets that are in the container now, and follow their changes."""
        for part in _parts(self._root):
            if isinstance(part, StaticOutput):
                part.held_by(self)
            else:
                # A trait registers a handler once, however often it is asked to.
                part.observe(self._on_change, names=_followed(part))
        self.members = [part for part in _parts(self._root) if isinstance(part, StaticOutput)]

    def _on_change(self, change: Any) -> None:
        if isinstance(change["owner"], ipywidgets.Output):
            _shown_in.pop(change["owner"], None)  # The trait says what it holds.
        self._follow()
        self.static_changed()

    def static_text(self) -> str:
        """Return the texts of all widgets."""
        return "\n\n".join(member.static_text() for member in self.members)

    def static_html(self) -> str:
        """Return the pictures of all widgets, each under the title of its tab, if it has one."""
        if not self.members:
            return ""
        parts: dict[str, Markup] = {}
        titles = dict(_titles(self._root))
        for number, member in enumerate(self.members, 1):
            name = titles.get(member, "")
            head = tag("h4", None, name) if name else Markup("")
            html = Markup(f"{head}{member.static_html()}")
            parts[f"{number}. {name or repr(member)}"] = html
        return str(static_page("", parts, self.static_text))


def _followed(part: Any) -> list[str]:
    return [name for name in ("children", "outputs", "titles") if part.has_trait(name)]


def _parts(widget: Any) -> Iterator[Any]:
    """Yield the containers and our widgets in a container, itself first."""
    if isinstance(widget, StaticOutput):
        yield widget
    elif isinstance(widget, CONTAINERS):
        yield widget
        for child in _children(widget):
            yield from _parts(child)


def _children(widget: Any) -> list[Any]:
    if not isinstance(widget, ipywidgets.Output):
        return list(widget.children)
    views = [output.get("data", {}).get(_VIEW, {}) for output in widget.outputs]
    found = [widget_module._instances.get(view.get("model_id", "")) for view in views]
    return [child for child in found if child is not None] or _shown_in.get(widget, [])


def _titles(widget: Any, title: str = "") -> Iterator[tuple[StaticOutput, str]]:
    """Yield our widgets in a container with the titles of the tabs that they are in."""
    if isinstance(widget, StaticOutput):
        yield widget, title
        return
    if not isinstance(widget, CONTAINERS):
        return
    titles = getattr(widget, "titles", ())
    for number, child in enumerate(_children(widget)):
        own = titles[number] if number < len(titles) else ""
        yield from _titles(child, " / ".join(filter(None, (title, own))))


def show(widget: Any) -> None:
    """Display a container with a static picture; a NotImplementedError: without one."""
    if isinstance(widget, StaticOutput):
        widget._ipython_display_()
        return
    if not is_kernel() or widget.comm is None:
        raise NotImplementedError
    container = Container(widget)
    if not container.members:
        if any(isinstance(part, ipywidgets.Output) for part in _parts(widget)):
            _waiting.append(container)
            follow_cells()
        raise NotImplementedError
    container._ipython_display_()


@on_display
def _note(widget: StaticOutput) -> None:
    """Note in which Output a widget is being displayed."""
    for model in list(widget_module._instances.values()):
        if isinstance(model, ipywidgets.Output) and model.msg_id:
            _shown_in.setdefault(model, []).append(widget)


@after_cells
def _show_waiting() -> None:
    """Add the pictures of the Outputs that the cell has displayed before it has filled them.

    A cell that has ended gets no more outputs: an Output that is still empty has an empty one.
    """
    waiting = list(_waiting)
    _waiting.clear()
    for container in waiting:
        container._follow()
        container.show_picture()
