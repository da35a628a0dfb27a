"""The picture of simulated caches; a background thread simulates.

A simulation that takes longer than `PATIENCE_S` is shown when it is ready. It is cancelled when the
schedule moves to another state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError
from dlcompiler.pipeline.cache_simulation import MOST_ACCESSES, Cancellation, simulate_program
from dlcompiler.views.memory.cache_scene import cache_scene
from dlcompiler.views.render.scene import Scene
from dlcompiler_widgets.explorer.remembered import Remembered

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

PATIENCE_S = 0.1
"""How long a click waits for a simulation [s]."""
_REMEMBERED = 16


@dataclass(frozen=True)
class _Run:
    """A simulation that was asked for, with what ends it early."""

    scene: Future[Scene]
    cancellation: Cancellation

    def cancel(self) -> None:
        """End the simulation, or do not begin it."""
        self.cancellation.set()
        self.scene.cancel()


class Caches:
    """The simulations that were asked for, by state."""

    def __init__(self) -> None:
        self.on_ready: Callable[[], None] | None = None
        """Called from the background thread when a simulation was not ready in time."""
        self._thread = ThreadPoolExecutor(1, "caches")
        self._known: Remembered[str, _Run] = Remembered(_REMEMBERED)
        self._last: tuple[str, _Run] | None = None

    def model(self, session: Session) -> Mapping[str, Any]:
        """Return the picture of the current state; ``is_pending`` until it is simulated."""
        node = session.schedule.node
        func = session.lowered(node, "loops")
        if isinstance(func, DLCompilerError):
            raise func
        self.leave(node.id)
        run = self._run_of(node.id, lambda c: cache_scene(
            simulate_program(func, session.target, MOST_ACCESSES, c)))  # fmt: skip
        self._last = (node.id, run)
        wait([run.scene], PATIENCE_S)
        if not run.scene.done():
            run.scene.add_done_callback(lambda _: self._report(run))
        if not run.scene.done():  # else it was called before this answer
            return _PENDING
        return run.scene.result()

    def _run_of(self, state: str, simulate: Callable[[Cancellation], Scene]) -> _Run:
        def begin() -> _Run:
            cancellation = Cancellation()
            return _Run(self._thread.submit(simulate, cancellation), cancellation)

        run = self._known.get(state, begin)
        if run.cancellation.is_set:
            self._known.drop(state)
            run = self._known.get(state, begin)
        return run

    def _report(self, run: _Run) -> None:
        if self.on_ready is not None and not run.cancellation.is_set:
            self.on_ready()

    def leave(self, state: str) -> None:
        """Cancel the simulation of another state, if one is under way."""
        if self._last is not None and self._last[0] != state:
            if not self._last[1].scene.done():
                self._last[1].cancel()
            self._last = None

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the last requested simulation is ready; False if that takes too long."""
        return self._last is None or not wait([self._last[1].scene], timeout_s).not_done

    def close(self) -> None:
        """Cancel what is under way, and stop the background thread."""
        self.on_ready = None
        if self._last is not None:
            self._last[1].cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)


_PENDING: Mapping[str, Any] = {
    "title": "Caches, simulated",
    "summary": "The caches are being simulated …",
    "how_to_read": "the picture comes when the simulation is ready.",
    "width": 364.0,
    "height": 20.0,
    "marks": [],
    "table": {"columns": ["level"], "rows": []},
    "is_pending": True,
}
