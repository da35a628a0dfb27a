"""A connection for Cancel requests, which works while a cell is running."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets


class Control(anywidget.AnyWidget):
    """A widget model without a view, whose comm carries Cancel requests and their answers only.

    If a thread pushes to a widget, a front end may hold back messages to that widget until the
    running cell has ended. Cancel must not wait, so it has a comm of its own. For the same reason,
    the page sends ``hello`` a moment after it has appeared, and gets an answer.

    Parameters
    ----------
    cancel
        Called for each request; from any thread.
    """

    _esm = "export default { render() {} };"

    asked = traitlets.Int(0).tag(sync=True)
    """Number of times that the page has requested a cancel."""
    hello = traitlets.Int(0).tag(sync=True)
    """What the page says after it appeared."""
    answer = traitlets.Int(0).tag(sync=True)
    """The hello that was answered."""

    def __init__(self, cancel: Callable[[], object]) -> None:
        super().__init__()
        self._cancel = cancel
        self.observe(self._on_asked, names="asked")
        self.observe(self._on_hello, names="hello")

    def _on_asked(self, change: Any) -> None:
        self._cancel()

    def _on_hello(self, change: Any) -> None:
        self.answer = change["new"]

    def __repr__(self) -> str:
        return "Control()"
