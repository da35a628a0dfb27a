"""A connection for the user's requests that works while a cell is running."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import traitlets

from dlcompiler_widgets.routing import OpenWidget


class TuningControl(OpenWidget):
    """A widget model without a view, whose comm carries requests and their answers only.

    A front end may hold back messages to a widget that a thread pushes to, until the running cell
    has ended. So the user's requests go through a comm of their own. For the same reason the page
    sends a hello a moment after it appeared, and waits for the answer.

    Parameters
    ----------
    handle : callable
        Called with each request; from any thread.
    """

    _esm = "export default { render() {} };"

    intent = traitlets.Dict().tag(sync=True)
    """The user's request: ``{"id", "op", "args"}``."""
    hello = traitlets.Int(0).tag(sync=True)
    """The message that the page sends after it appeared."""
    answer = traitlets.Unicode("").tag(sync=True)
    """The hello or the id of the request that was answered last."""

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
