"""Do something at most so often, and once more after the last time it was asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Throttle:
    """Calls an action when poked, with a pause between calls.

    Parameters
    ----------
    action : callable
        Called in the thread that pokes, or in one of a timer; never twice at once.
    pause_s : float
        Least time between two calls [s].
    """

    def __init__(self, action: Callable[[], None], pause_s: float) -> None:
        self._action = action
        self._pause_s = pause_s
        self._lock = threading.RLock()
        self._last = -pause_s
        self._timer: threading.Timer | None = None

    def poke(self) -> None:
        """Ask for a call: now, or when the pause is over."""
        with self._lock:
            if self._timer is not None:
                return
            wait_s = self._last + self._pause_s - time.monotonic()
            if wait_s <= 0:
                self._call()
            else:
                self._timer = threading.Timer(wait_s, self._on_timer)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """Call now."""
        with self._lock:
            self.cancel()
            self._call()

    def cancel(self) -> None:
        """Forget a call that is still to come."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _on_timer(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer = None
                self._call()

    def _call(self) -> None:
        self._last = time.monotonic()
        self._action()
