"""Limit how often an action is called; the last request is always followed by a call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Throttle:
    """Calls an action on request, with a pause between calls.

    The action runs in a thread of its own, so a request returns at once.

    Parameters
    ----------
    action : callable
        The action; two calls never overlap.
    pause_s : float
        Least time between the beginnings of two calls [s].
    most_s : float, optional
        Largest pause [s]. The pause is four times as long as the last call, within `pause_s` and
        `most_s`, so that short calls take at most a fifth of a core.
    """

    def __init__(
        self, action: Callable[[], None], pause_s: float, most_s: float | None = None
    ) -> None:
        self._action = action
        self._least_s = self._pause_s = pause_s
        self._most_s = pause_s if most_s is None else most_s
        self._lock = threading.Lock()
        self._running = threading.Lock()
        self._last = -pause_s
        self._timer: threading.Timer | None = None

    def poke(self) -> None:
        """Request a call as soon as the pause is over."""
        with self._lock:
            if self._timer is not None:
                return
            wait_s = max(self._last + self._pause_s - time.monotonic(), 0.0)
            self._timer = threading.Timer(wait_s, self._on_timer)
            self._timer.daemon = True
            self._timer.start()

    def cancel(self) -> None:
        """Cancel a pending call."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _on_timer(self) -> None:
        with self._running:
            with self._lock:
                if self._timer is None:
                    return
                self._timer = None  # A request from here on causes another call.
                self._last = time.monotonic()
            self._action()
            took_s = time.monotonic() - self._last
            self._pause_s = max(self._least_s, min(4 * took_s, self._most_s))
