"""Route a page's messages to the shell that the page requests, even after a reload."""

from __future__ import annotations

from typing import Any

import anywidget


class OpenWidget(anywidget.AnyWidget):
    """A widget that does not bind its messages to the shell that last published on its comm.

    JupyterLab opens a *subshell* for each page and asks for it in its messages, so that they are
    served while a cell is busy. A comm of ipykernel 7.4 sends them instead to the shell that
    published on it last. At first, that is the main shell, which a running cell keeps busy. After a
    reload of the page, it is the subshell of the old page, where messages are lost. So this widget
    clears the stored shell after each message; other versions of comm store none.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._forget_shell()

    def _send(self, msg: Any, buffers: Any = None) -> None:
        super()._send(msg, buffers=buffers)
        self._forget_shell()

    def _forget_shell(self) -> None:
        comm = getattr(self, "comm", None)
        getattr(comm, "__dict__", {}).pop("_reply_subshell_id", None)
