"""Static outputs: what a notebook shows of a widget where no kernel runs it.

A cell that displays a widget gets two outputs: the live view, and below it a static picture (HTML).
Style sheets hide the picture while the live view is there (``js/static.css``). The picture is
updated when the widget changes, so that a saved notebook holds what the widget last showed
(docs/adr/0021-static-outputs.md).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakSet, ref

from IPython import get_ipython
from IPython.display import display

from dlcompiler.views.render.markup import Markup, tag

LARGEST_BYTES = 60_000
"""Largest size of a static picture: a notebook stores one for each displayed widget."""
LONGEST_TEXT = 12_000
"""Number of characters that are shown of a text in place of pictures that are too large."""
REFRESH_AFTER_S = 1.0
"""Time between a change that no cell made, such as a click, and the update of the picture [s]."""

# Only a trusted notebook shows a live view that finds no model, as one line of text; and only in a
# trusted notebook does this style sheet apply. Where it is removed, the line stays.
_HIDE_EMPTY_VIEW = (
    ".jp-OutputArea-child:has(+ .jp-OutputArea-child > .jp-OutputArea-output > .dlc-static)"
    " > .jp-OutputArea-output:not(:has(*)) { display: none }"
)

_LOG = logging.getLogger(__name__)


class StaticOutput:
    """Base of the widgets that leave a static picture in a saved notebook.

    It stands before the widget class among the bases of a widget.
    """

    comm: Any
    model_id: str

    _static_shown: str | None = None
    """The HTML that the notebook holds; None before the widget is displayed."""
    _holders: tuple[ref[StaticOutput], ...] = ()
    """The containers whose static pictures hold this one's."""

    def static_text(self) -> str:
        """Return the text that a terminal shows: `repr`, and lines below it."""
        raise NotImplementedError

    def static_html(self) -> str:
        """Return the HTML that is shown where no front end runs the widget; it has no script."""
        raise NotImplementedError

    def static_changed(self) -> None:
        """Have the displayed picture updated: after the running cell, or in a second."""
        if self._static_shown is not None:
            _REFRESHER.note(self)
        for each in self._holders:
            if holder := each():
                holder.static_changed()

    def static_replaced(self) -> None:
        """Stop updating the picture: no output holds it any more."""
        self._static_shown = None

    def held_by(self, holder: StaticOutput) -> None:
        """Note that another static picture holds this one, and changes with it."""
        known = [each for each in self._holders if each() not in (None, holder)]
        # Replaced as a whole: another thread may read it.
        self._holders = (*known, ref(holder))

    def _live(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the data and the metadata of the live view; None: there is no view."""
        if self.comm is None:
            return None  # The widget is closed.
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        return (bundle, {}) if isinstance(bundle, dict) else bundle

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return view and picture as one output, for programs that ask a widget for it."""
        live = self._live(**kwargs)
        if live is None:
            return None
        data, metadata = live
        return {**data, "text/plain": self.static_text(), "text/html": self.static_html()}, metadata

    def _ipython_display_(self) -> None:
        """Display the live view and the static picture, each as an output of its own."""
        if not is_kernel():
            raise NotImplementedError  # IPython then displays it as one output.
        for listener in _DISPLAY_LISTENERS:
            listener(self)
        live = self._live()
        if live is None:
            self.show_picture()
            return
        data, metadata = live
        # Front ends that do not run widgets show nothing here, and the picture below.
        empty = {"text/plain": repr(self), "text/html": "<div></div>"}
        _publish({**data, **empty}, metadata=metadata)
        self.show_picture()

    def show_picture(self) -> None:
        """Display the static picture as an output that is updated until the widget is closed."""
        _CELLS.note(self)
        self._static_shown = ""  # A change from here on is noted.
        self._static_shown = self.static_html()
        options = {"display_id": self._display_id} if self.comm is not None else {}
        _publish(self._static_bundle(), **options)
        _REFRESHER.follow_cells()

    def _refresh(self, *, again: bool) -> None:
        """Update the displayed picture if it has changed; ``again``: even if it has not."""
        if self.comm is None or self._static_shown is None:
            return  # A closed widget keeps its last picture; no output holds a replaced one.
        html = self.static_html()
        if again or html != self._static_shown:
            self._static_shown = html
            _publish(self._static_bundle(), display_id=self._display_id, update=True)

    @property
    def _display_id(self) -> str:
        return f"dlcompiler-{self.model_id}"

    def _static_bundle(self) -> dict[str, str]:
        style = tag("style", None, Markup(_HIDE_EMPTY_VIEW))
        html = tag("div", {"class": "dlc-static"}, style, Markup(self._static_shown))
        text = self.static_text().removeprefix(f"{self!r}\n")
        return {"text/html": str(html), "text/plain": text}


def _publish(bundle: dict[str, Any], **options: Any) -> None:
    """Send an output, or the update of one, to the notebook."""
    display(bundle, raw=True, **options)  # type: ignore[no-untyped-call]


_DISPLAY_LISTENERS: list[Callable[[StaticOutput], None]] = []
_CELL_LISTENERS: list[Callable[[], None]] = []


def on_display(listener: Callable[[StaticOutput], None]) -> Callable[[StaticOutput], None]:
    """Have a function called with each widget that is about to be displayed."""
    _DISPLAY_LISTENERS.append(listener)
    return listener


def after_cells(listener: Callable[[], None]) -> Callable[[], None]:
    """Have a function called after each cell, before pictures are updated."""
    _CELL_LISTENERS.append(listener)
    return listener


def follow_cells() -> None:
    """Call the functions of `after_cells` from the end of the running cell on."""
    _REFRESHER.follow_cells()


def is_kernel() -> bool:
    """Return whether IPython runs as a kernel, whose outputs a notebook can store and update."""
    return hasattr(get_ipython(), "kernel")


class Refresher:
    """Updates the pictures of changed widgets: after each cell, or a second after a change.

    A program that runs a notebook, such as nbconvert, drops what is published between two cells. So
    the update that a timer has published is published again after the next cell.
    """

    def __init__(self) -> None:
        self._stale: WeakSet[StaticOutput] = WeakSet()
        self._between_cells: WeakSet[StaticOutput] = WeakSet()
        """What the timer has updated since the last cell ended."""
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()
        self._refreshing = threading.Lock()
        """Held during updates: an older picture must not follow a newer one."""

    def follow_cells(self) -> None:
        """Update pictures after each cell that IPython runs."""
        # IPython registers a function once, however often it is asked to.
        get_ipython().events.register("post_run_cell", self.after_cell)

    def note(self, widget: StaticOutput) -> None:
        """Note that a widget has changed. From any thread."""
        with self._lock:
            self._stale.add(widget)
            if self._timer is None:
                self._timer = threading.Timer(REFRESH_AFTER_S, self._refresh, [False])
                self._timer.daemon = True
                self._timer.start()

    def after_cell(self, *_: object) -> None:
        """Update the pictures of all widgets that have changed in a cell, or before it."""
        for listener in _CELL_LISTENERS:
            _try(listener, listener)
        self._refresh(True)

    def _refresh(self, is_in_cell: bool) -> None:
        with self._refreshing:
            with self._lock:
                stale, again = list(self._stale), list(self._between_cells) * is_in_cell
                self._stale.clear()
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None
            for widget in dict.fromkeys([*stale, *again]):
                is_again = widget in again
                _try(lambda: widget._refresh(again=is_again), type(widget))  # noqa: B023
            self._between_cells.clear() if is_in_cell else self._between_cells.update(stale)


def _try(action: Callable[[], object], owner: object) -> None:
    """Call a function; a bug in it must disturb neither the cell nor the other pictures."""
    try:
        action()
    except Exception:
        _LOG.exception("the static picture of %s cannot be updated", owner)


_REFRESHER = Refresher()


class Cells:
    """Which pictures the outputs of each cell hold: a cell that runs again replaces its outputs."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[str, WeakSet[StaticOutput]]] = {}
        """By cell, the request that ran it last and the pictures that this run has displayed."""

    def note(self, widget: StaticOutput) -> None:
        """Note that the running cell displays a picture; front ends that name no cell: nothing."""
        parent: dict[str, Any] = getattr(get_ipython(), "get_parent", dict)() or {}
        cell = parent.get("metadata", {}).get("cellId")
        run = parent.get("header", {}).get("msg_id", "")
        if not isinstance(cell, str):
            return
        before, held = self._held.get(cell, (run, WeakSet()))
        if before != run:
            self._held[cell] = (run, WeakSet())
            for old in list(held):
                if not any(old in others for _, others in self._held.values()):
                    old.static_replaced()
        self._held.setdefault(cell, (run, held))[1].add(widget)


_CELLS = Cells()


def section(title: str, content: Markup, *, is_open: bool = False) -> Markup:
    """Return a part of a static picture that can be folded."""
    summary = tag("summary", {"style": "cursor:pointer;font-size:12px"}, title)
    return tag("details", {"open": "open"} if is_open else None, summary, content)


def static_page(title: str, parts: Mapping[str, Markup], words: Callable[[], str]) -> Markup:
    """Return a static picture: as many of its parts as fit into `LARGEST_BYTES`.

    Parameters
    ----------
    title
        What is shown; empty: each part says that by itself.
    parts
        Fragments by their names, the most important one first.
    words
        Returns the text that is shown if no part fits.
    """
    words_of_title = (tag("strong", None, title), " — run the cell to use the widget.")
    note = tag("p", None, *words_of_title) if title else Markup("")
    kept: list[Markup] = []
    left_out: list[str] = []
    size = len(note.encode()) + 1000  # the sentence below, and the elements round all parts
    for name, part in parts.items():
        size_with_it = size + len(part.encode())
        if size_with_it > LARGEST_BYTES:
            left_out.append(name)
            continue
        kept.append(part)
        size = size_with_it
    if not kept:
        text = words()
        cut = "\n…" if len(text) > LONGEST_TEXT else ""
        kept = [tag("pre", None, text[:LONGEST_TEXT] + cut)]
    if left_out:
        why = "Left out, because it is too large to be stored in a notebook: "
        kept.append(tag("p", None, f"{why}{', '.join(left_out)}."))
    return tag("div", None, note, *kept)
