"""The ceilings of this machine, measured by a background thread when a picture first needs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from dlcompiler.errors import DLCompilerError
from dlcompiler.measurement.ceilings import Ceilings
from dlcompiler.measurement.known_ceilings import keep_ceilings, known_ceilings
from dlcompiler_widgets.explorer.measuring import ONE_AT_A_TIME
from dlcompiler_widgets.explorer.status import Status

if TYPE_CHECKING:
    from dlcompiler_widgets.explorer.session import Session

MEASURING = "measuring the machine …"
MOST_DOUBTS = 2
"""How often ceilings are measured again because a program exceeds them."""
Measure = Callable[[int, str], Ceilings]
"""Measures the ceilings for a number of threads and a dtype; may take seconds."""
_Key = tuple[int, str]


class Machine:
    """The ceilings of this machine, by number of threads and dtype.

    Parameters
    ----------
    measure
        Measures them; None: only those that are known are shown.
    """

    def __init__(self, measure: Measure | None = None) -> None:
        self.on_ready: Callable[[], None] | None = None
        """Called from the background thread when ceilings were measured, or could not be."""
        self._measure = measure
        self._thread = ThreadPoolExecutor(1, "machine")
        self._known: dict[_Key, Ceilings | None] = {}
        self._running: dict[_Key, Future[None]] = {}
        self._failed: dict[_Key, str] = {}
        self._doubts: Counter[_Key] = Counter()

    def ceilings(self, threads: int, dtype: str) -> Ceilings | str:
        """Return the ceilings; if they are not known, start to measure them, and say so."""
        key = (threads, dtype)
        found = self._find(key)
        if found is not None:
            return found
        if key in self._failed:
            return self._failed[key]
        if self._measure is None:
            return "the ceilings of the machine are not measured"
        if key not in self._running:
            self._running[key] = self._thread.submit(self._run, key, self._measure)
        return MEASURING

    def doubt(self, ceilings: Ceilings) -> bool:
        """Measure ceilings again because a program exceeds them; return whether that is being done.

        The machine was busy with other work when they were measured. The best of all measurements
        is kept; after `MOST_DOUBTS`, the ceilings stay as they are.
        """
        key = (ceilings.threads, ceilings.dtype)
        if self._measure is None or self._known.get(key) is not ceilings:
            return False
        if key not in self._running:
            if self._doubts[key] >= MOST_DOUBTS:
                return False
            self._doubts[key] += 1
            self._running[key] = self._thread.submit(self._run, key, self._measure)
        return True

    def again(self) -> None:
        """Forget all ceilings, so that they are measured anew."""
        if self._measure is not None:
            self._known = dict.fromkeys(self._known)  # the files are not looked at again
            self._failed.clear()

    def frozen(self) -> Machine:
        """Return the same ceilings, without a way to measure others."""
        made = Machine()
        made._known = dict(self._known)
        return made

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until nothing is being measured."""
        for future in list(self._running.values()):
            future.result(timeout_s)

    def close(self) -> None:
        """Start no other measurement."""
        self._measure = None
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _find(self, key: _Key) -> Ceilings | None:
        if key not in self._known:
            self._known[key] = None if self._measure is None else known_ceilings(*key)
        found, (threads, dtype) = self._known[key], key
        alone = self._find((1, dtype)) if found is not None and threads > 1 else None
        if found is not None and alone is not None:
            # Threads that wait cost nothing: several reach the rates of one, too.
            best = found.best_with(alone)
            self._known[key] = found = found if best == found else best
        return found

    def _run(self, key: _Key, measure: Measure) -> None:
        try:
            with ONE_AT_A_TIME:
                found, before = measure(*key), self._known.get(key)
            found = found if before is None else found.best_with(before)
            self._known[key] = found
            keep_ceilings(found)
        except DLCompilerError as error:
            self._failed[key] = f"the machine could not be measured: {error.problem}"
        except Exception as error:
            # A bug, too, must reach the page: nobody looks at what a thread prints.
            self._failed[key] = f"the machine could not be measured: {type(error).__name__}"
        try:
            if self.on_ready is not None and self._measure is not None:
                self.on_ready()
        finally:
            self._running.pop(key, None)


def measure_again(session: Session, args: Mapping[str, Any]) -> None:
    """Measure the ceilings of the machine anew."""
    session.machine.again()
    session.status = Status("Measuring the machine again …")
