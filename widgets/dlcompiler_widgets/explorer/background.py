"""Values that a background thread computes for pictures: a click waits for one only briefly."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

from dlcompiler.pipeline.cache_simulation import Cancellation
from dlcompiler_widgets.explorer.remembered import Remembered

PATIENCE_S = 0.1
"""How long a click waits for a value [s]."""
_REMEMBERED = 16

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True)
class _Run(Generic[V]):
    """The computation of a value, with what ends it early."""

    value: Future[V]
    cancellation: Cancellation

    def cancel(self) -> None:
        """End the computation, or do not begin it."""
        self.cancellation.set()
        self.value.cancel()


class Background(Generic[K, V]):
    """Values by key, computed one after the other in a background thread; the last ones are kept.

    Parameters
    ----------
    name
        Name of the thread.
    """

    def __init__(self, name: str) -> None:
        self.on_ready: Callable[[], None] | None = None
        """Called from the background thread when a value was not ready in time for `get`."""
        self._thread = ThreadPoolExecutor(1, name)
        self._known: Remembered[K, _Run[V]] = Remembered(_REMEMBERED)
        self._last: tuple[K, _Run[V]] | None = None

    def get(
        self, key: K, make: Callable[[Cancellation], V], patience_s: float | None = None
    ) -> V | None:
        """Return the value of a key, or None if it is not ready soon.

        Parameters
        ----------
        key
            All that the value depends on.
        make
            Computes the value; it may look whether it is cancelled. What it raises is raised here.
        patience_s
            How long to wait for it; None: `PATIENCE_S`. [s]
        """
        run = self._run_of(key, make)
        self._last = (key, run)
        wait([run.value], PATIENCE_S if patience_s is None else patience_s)
        if not run.value.done():
            run.value.add_done_callback(lambda _: self._report(run))
        # It may have become ready since then; then `on_ready` was called already.
        return run.value.result() if run.value.done() else None

    def _run_of(self, key: K, make: Callable[[Cancellation], V]) -> _Run[V]:
        def begin() -> _Run[V]:
            cancellation = Cancellation()
            return _Run(self._thread.submit(make, cancellation), cancellation)

        run = self._known.get(key, begin)
        if run.cancellation.is_set:
            self._known.drop(key)
            run = self._known.get(key, begin)
        return run

    def _report(self, run: _Run[V]) -> None:
        if self.on_ready is not None and not run.cancellation.is_set:
            self.on_ready()

    def leave(self, key: K) -> None:
        """Cancel the last computation unless it is that of a key, or is over."""
        if self._last is not None and self._last[0] != key:
            if not self._last[1].value.done():
                self._last[1].cancel()
            self._last = None

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the last requested value is ready; False if that takes too long."""
        return self._last is None or not wait([self._last[1].value], timeout_s).not_done

    def close(self) -> None:
        """Cancel what is under way, and stop the background thread."""
        self.on_ready = None
        if self._last is not None:
            self._last[1].cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)
