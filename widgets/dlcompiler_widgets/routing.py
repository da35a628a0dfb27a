"""Messages of a page are served by the shell that the page asks for, also when it is a new one."""

from __future__ import annotations

from typing import Any

import anywidget


class OpenWidget(anywidget.AnyWidget):
    """A widget whose messages are not bound to the shell that published last.

    JupyterLab opens a *subshell* for each page and asks for it in its messages, so that they are
    served while a cell is busy. A comm of ipykernel 7.4 sends them instead to the shell that
    published on it last: at first the main one, which a cell keeps busy; and after a page was
    loaded again, the subshell of the page that is gone, where they are lost. So what it remembers
    is forgotten after each message; where a comm remembers nothing, nothing happens.
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
