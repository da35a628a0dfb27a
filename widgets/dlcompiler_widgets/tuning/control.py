"""The way for what a user wants, also while a cell is busy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import traitlets

from dlcompiler_widgets.routing import OpenWidget


class TuningControl(OpenWidget):
    """A model without a view whose comm only answers.

    A front end's messages to a widget that a thread pushes to may be held back until the running
    cell has ended. So what a user asks goes through a comm of its own; for the same reason the page
    says hello a moment after it appeared, and is answered.

    Parameters
    ----------
    handle : callable
        Called with each request; from any thread.
    """

    _esm = "export default { render() {} };"

    intent = traitlets.Dict().tag(sync=True)
    """What the user asked for: ``{"id", "op", "args"}``."""
    hello = traitlets.Int(0).tag(sync=True)
    """What the page says after it appeared."""
    answer = traitlets.Unicode("").tag(sync=True)
    """The hello, or the id of the request, that was answered."""

    def __init__(self, handle: Callable[[dict[str, Any]], object]) -> None:
        super().__init__()
        self._handle = handle
        self.observe(self._on_intent, names="intent")
        self.observe(self._on_hello, names="hello")

    def _on_intent(self, change: Any) -> None:
        try:
            self._handle(change["new"])
        finally:
            self.answer = str(change["new"].get("id"))

    def _on_hello(self, change: Any) -> None:
        self.answer = f"hello {change['new']}"

    def __repr__(self) -> str:
        return "TuningControl()"
