"""What must reach Python also while a cell is busy: Cancel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets


class Control(anywidget.AnyWidget):
    """A model without a view whose comm only answers.

    A front end's messages to a widget that a thread pushes to may be held back until the running
    cell has ended. So what has to be served at once goes through a comm of its own; for the same
    reason the page says hello a moment after it appeared, and is answered.

    Parameters
    ----------
    cancel
        Called for each request; from any thread.
    """

    _esm = "export default { render() {} };"

    asked = traitlets.Int(0).tag(sync=True)
    """How often the page asked to cancel."""
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
