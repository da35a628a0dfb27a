"""Pause, resume and stop the thread of a run, and interrupt its pool."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from dlcompiler.autotune.candidate import Tried
from dlcompiler.autotune.pools.measure_pool import Compared, ComparingPool, MeasurePool, Report
from dlcompiler.autotune.trial import Result
from dlcompiler.errors import MeasurementError

_INTERRUPT_EVERY_S = 0.1


class Control:
    """A pool whose batches other threads can cut short.

    Parameters
    ----------
    pool : MeasurePool
        The pool. Only the run's thread measures with it; any thread may pause, resume and stop.
    """

    def __init__(self, pool: MeasurePool) -> None:
        self._pool = pool
        self._changed = threading.Condition(threading.RLock())
        self._is_paused = self._is_stopping = False
        self._is_measuring = self._is_cut = False

    @property
    def is_paused(self) -> bool:
        """Whether no batch may begin."""
        return self._is_paused

    @property
    def is_stopping(self) -> bool:
        """Whether no batch will begin any more."""
        return self._is_stopping

    # -- the run's thread --------------------------------------------------------------------

    def measure(self, configs: Sequence[Tried], best_s: float | None, report: Report) -> bool:
        """Measure a batch; after it was cut short, nothing more of it is reported.

        The result of an interrupted measurement is meaningless: its process was killed.

        Returns
        -------
        bool
            Whether the batch is whole: it was not cut short.
        """
        if not self._begin():
            return False

        def report_unless_cut(number: int, result: Result) -> None:
            if not self._is_cut:
                report(number, result)

        try:
            self._pool.measure(configs, best_s, report_unless_cut)
        except MeasurementError:
            if not self._is_cut:  # an interrupted pool may raise
                raise
        finally:
            self._finish()
        return not self._is_cut

    def compare(
        self, configs: Sequence[Tried], budget_s: float, seed: int
    ) -> Sequence[Compared] | None:
        """Measure a few configs in turn; None if the pool cannot compare, or was interrupted.

        Raises
        ------
        MeasurementError
            If a worker crashes.
        """
        if not isinstance(self._pool, ComparingPool) or not self._begin():
            return None
        try:
            found = self._pool.compare(configs, budget_s=budget_s, seed=seed)
        except MeasurementError:
            if not self._is_cut:
                raise
            return None
        finally:
            self._finish()
        return None if self._is_cut else found

    def _begin(self) -> bool:
        """Return whether a batch may begin now; if so, mark it as being measured."""
        with self._changed:
            if self._is_paused or self._is_stopping:
                return False
            self._is_measuring, self._is_cut = True, False
            return True

    def _finish(self) -> None:
        with self._changed:
            self._is_measuring = False
            self._changed.notify_all()

    def enough(self) -> None:
        """End the current batch; called from within a report of the batch."""
        self._is_cut = True
        self._pool.interrupt()

    def wait_while_paused(self) -> None:
        """Wait until the run is resumed or stopped."""
        with self._changed:
            while self._is_paused and not self._is_stopping:
                self._changed.wait()

    # -- any thread --------------------------------------------------------------------------

    def pause(self) -> None:
        """Interrupt the current batch, and begin no other until `resume`."""
        with self._changed:
            self._is_paused = True
            self._cut()

    def resume(self) -> None:
        """Allow batches to begin again."""
        with self._changed:
            self._is_paused = False
            self._changed.notify_all()

    def stop(self) -> None:
        """Interrupt the current batch, and never begin another one."""
        with self._changed:
            self._is_stopping = True
            self._cut()
            self._changed.notify_all()

    def _cut(self) -> None:
        if self._is_measuring and not self._is_cut:
            self._is_cut = True
            threading.Thread(target=self._keep_interrupting, daemon=True).start()

    def _keep_interrupting(self) -> None:
        """Repeat the interrupt until the batch ends: one alone may come before a measurement.

        The lock keeps an interrupt from reaching the batch after this one.
        """
        with self._changed:
            while self._is_measuring and self._is_cut:
                self._pool.interrupt()
                self._changed.wait(_INTERRUPT_EVERY_S)
