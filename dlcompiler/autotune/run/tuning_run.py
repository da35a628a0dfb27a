"""Tuning runs: a search in a thread, whose trials can be watched, stopped and used."""

from __future__ import annotations

import contextlib
import math
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dlcompiler.autotune.models import CostModel
from dlcompiler.autotune.pools.measure_pool import MeasurePool
from dlcompiler.autotune.proposal import Tuner
from dlcompiler.autotune.records.store import RecordStore
from dlcompiler.autotune.run.clock import Clock, Phases
from dlcompiler.autotune.run.control import Control
from dlcompiler.autotune.run.events import Event, EventKind, Listener, RunState
from dlcompiler.autotune.run.guarded import GuardedTuner
from dlcompiler.autotune.run.loop import Search
from dlcompiler.autotune.run.plan import Plan
from dlcompiler.autotune.run.progress import RunProgress
from dlcompiler.autotune.run.rounds import Round, predictions, rank_correlation, recall
from dlcompiler.autotune.table import trials_table
from dlcompiler.autotune.trial import OutcomeName, Trial
from dlcompiler.display import render
from dlcompiler.errors import TuningError
from dlcompiler.runtime.timing import format_rate
from dlcompiler.schedule import Schedule
from dlcompiler.te import Tensor

if TYPE_CHECKING:
    import pandas

_WAIT_PIECE_S = 0.2
_STOP_LIMIT_S = 0.6
_RECENT = 32
_FEWEST = 6
"""Trials from which the pace of a run, and so its end, is estimated."""


class TuningRun:
    """A search for the fastest config of a workload. `dlcompiler.autotune.run.tune` starts it.

    The search runs in a thread of its own, and candidates run in worker processes. If either fails,
    the trials done so far are still in `trials` and in the `store`.
    """

    def __init__(
        self,
        plan: Plan,
        tuner: Tuner,
        pool: MeasurePool,
        store: RecordStore,
        listeners: Sequence[Listener] = (),
    ) -> None:
        self.plan = plan
        """What is searched, how, and for how long."""
        self.store = store
        """The store of its records."""
        self.listeners: list[Listener] = list(listeners)
        """Called with each `Event`, mostly from the run's thread; they should be quick."""
        self._tuner = GuardedTuner(tuner)
        self._pool = pool
        self._progress = RunProgress()
        self._clock = Clock()
        self._control = Control(pool)
        self._search = Search(
            plan, self._tuner, pool, self._control, store, self._progress, self._clock,
            uuid.uuid4().hex[:12], self._tell_of,
        )  # fmt: skip
        self._state: RunState = "running"
        self._error: BaseException | None = None
        self._has_end = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="tune", daemon=True)

    # -- what a user sees --------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Its name in the records."""
        return self._search.name

    @property
    def state(self) -> RunState:
        """``running``, ``paused``, ``stopping``; or its end: ``finished``, ``stopped``, ``failed``.

        In ``paused`` and ``stopping``, the measurement in progress is interrupted.
        """
        return self._state

    @property
    def is_running(self) -> bool:
        """Return whether the search goes on, so that more trials may follow."""
        return not self._ended.is_set()

    @property
    def note(self) -> str:
        """Notes for the user, such as that records are used or a cost model is missing; or ''."""
        return "; ".join(self.notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """The parts of `note`."""
        return self._progress.notes

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials so far."""
        return self._progress.trials

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The rounds so far; the last one may be going on."""
        return self._progress.rounds

    @property
    def prior(self) -> tuple[Trial, ...]:
        """Trials of earlier runs that the store had; they are not measured again."""
        return self._progress.prior

    @property
    def best(self) -> Trial | None:
        """The fastest trial, of this run or of an earlier one."""
        return self._progress.best

    @property
    def counts(self) -> Mapping[OutcomeName, int]:
        """The number of trials with each outcome."""
        return self._progress.counts

    @property
    def model(self) -> CostModel | None:
        """The tuner's cost model after its last fit; None: it has none. Any thread may use it."""
        return self._tuner.model

    @property
    def walkers(self) -> tuple[int, ...]:
        """Points at which the tuner's walkers were when it last proposed."""
        rounds = self._progress.rounds
        return rounds[-1].walkers if rounds else ()

    @property
    def elapsed_s(self) -> float:
        """Duration so far, without pauses [s]."""
        return self._clock.elapsed_s

    @property
    def clock(self) -> Phases:
        """Time by activity: searching, building, running, waiting."""
        return self._clock.phases()

    @property
    def trials_per_second(self) -> float:
        """Average number of trials per second [1/s]."""
        return self._progress.count / max(self.elapsed_s, 1e-9)

    @property
    def remaining_s(self) -> float | None:
        """Predicted time until the run ends, at the pace of the last trials [s].

        0 once it has ended; None while too few trials are done. The first one is not counted: it
        also waits for worker processes and for the first proposals. It is an upper limit.
        """
        if not self.is_running:
            return 0.0
        plan, done, elapsed = self.plan, self.trials, self.elapsed_s
        limits = [] if plan.seconds is None else [max(plan.seconds - elapsed, 0.0)]
        if plan.trials is not None and len(done) >= _FEWEST:
            recent = done[-_RECENT:]
            pace = max(elapsed - recent[0].elapsed_s, 0.0) / (len(recent) - 1)
            limits.append((plan.trials - len(done)) * pace)
        return min(limits, default=None)

    def recall(self, count: int = 16) -> float | None:
        """Return the share of the fastest `count` trials that the model predicted to be among them.

        Only trials with a prediction count; None if there are too few.
        """
        return recall(*predictions(self.trials), count)

    def rank_correlation(self) -> float | None:
        """Return the rank correlation of predicted and measured times of all predicted trials."""
        return rank_correlation(*predictions(self.trials))

    def best_so_far(self) -> list[tuple[int, float]]:
        """Return (index, GFLOP/s) of each trial of this run that was faster than all before it."""
        series: list[tuple[int, float]] = []
        for trial in self.trials:
            if trial.gflops is not None and (not series or trial.gflops > series[-1][1]):
                series.append((trial.index, trial.gflops))
        return series

    def best_schedule(self) -> tuple[Schedule, tuple[Tensor, ...]]:
        """Return the schedule of the best config, and the kernel's parameters to build it with.

        Raises
        ------
        TuningError
            If no config has been measured.
        """
        best = self.best
        if best is None:
            raise TuningError(
                f"best schedule of {self.plan.workload}", "no config has been measured",
                got=f"{len(self.trials)} trials: {dict(self.counts)}",
                hint="the search goes on: run.wait() returns when it has ended"
                if self.is_running else None,
            )  # fmt: skip
        return self.plan.operator.template(self.plan.workload, self.plan.target, best.config)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the trials as a table: a row for each, a column ``cfg.NAME`` for each knob."""
        return trials_table(self.trials)

    def __repr__(self) -> str:
        best, total = self.best, self.plan.trials
        parts = [f"{self.state}, {len(self.trials)}{f'/{total}' if total else ''} trials"]
        if best is not None:
            parts.append(f"best {format_rate(best.gflops or 0)} GFLOP/s {best.provenance}")
        parts += [f"{count} {name}" for name, count in self.counts.items() if name != "ok"]
        return f"TuningRun({self.plan.workload}: {', '.join(parts)})"

    def _repr_html_(self) -> str:
        return render("tuning_run", self)

    # -- what a user asks --------------------------------------------------------------------

    def pause(self) -> None:
        """Interrupt the measurement, and measure nothing until `resume`. Returns at once."""
        if self._go("running", "paused"):
            self._control.pause()
            self._tell(Event("state", self))

    def resume(self) -> None:
        """Continue after `pause`: interrupted candidates are measured again."""
        if self._go("paused", "running"):
            self._control.resume()
            self._tell(Event("state", self))

    def stop(self) -> None:
        """End the run within a second, without the trials in progress. Returns at once."""
        if self._go("running", "stopping") or self._go("paused", "stopping"):
            self._control.stop()
            threading.Thread(target=self._end_in_time, daemon=True).start()
            self._tell(Event("state", self))

    def wait(self, timeout_s: float | None = None) -> TuningRun:
        """Wait until the run has ended, or for `timeout_s` seconds; returns the run.

        Raises
        ------
        TuningError
            If the run failed: its records could not be stored, or no worker could be started.
        """
        end = math.inf if timeout_s is None else time.perf_counter() + timeout_s
        # In pieces, because waiting for a lock without a limit ignores Ctrl-C on some systems.
        while not self._ended.wait(min(_WAIT_PIECE_S, max(end - time.perf_counter(), 0.0))):
            if time.perf_counter() >= end:
                break
        if self._error is not None:
            raise TuningError(
                f"tune {self.plan.workload}", f"the run failed after {len(self.trials)} trials",
                because=str(self._error), hint="its trials are in run.trials",
            ) from self._error  # fmt: skip
        return self

    def wait_or_stop(self) -> TuningRun:
        """Wait until the run has ended; an interrupt stops it, and is raised when it has ended.

        Raises
        ------
        TuningError
            As `wait`.
        """
        try:
            return self.wait()
        except KeyboardInterrupt:
            self.stop()
            self.wait()
            raise

    def _go(self, before: RunState, after: RunState) -> bool:
        with self._progress.lock:
            if self._state != before:
                return False
            self._state = after
            return True

    # -- the thread --------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread; `tune` calls this."""
        self._thread.start()

    def _work(self) -> None:
        state: RunState = "failed"
        try:
            self._search.run()
            state = "stopped" if self._control.is_stopping else "finished"
        except Exception as error:
            if self._control.is_stopping:  # an interrupted pool may raise
                state = "stopped"
            else:
                self._error = error
                self._progress.note("error", f"{type(error).__name__}: {error}")
                self._tell(Event("note", self))
        finally:
            try:
                self._pool.close()
            finally:
                self._end(state)
                self.store.close_thread()  # again: listeners may have read it

    def _end_in_time(self) -> None:
        """End a stopped run after a time limit, even if its thread still chooses or trains."""
        if not self._ended.wait(_STOP_LIMIT_S):
            self._end("stopped")
            self.store.close_thread()

    def _end(self, state: RunState) -> None:
        with self._progress.lock:
            if self._has_end:
                return
            self._has_end = True
        with contextlib.suppress(TuningError):  # the stored trials are right without it
            self.store.leave(self.name, state)
        self.store.close_thread()  # first: who has waited for the end may delete the file
        self._clock.begin("ended")
        self._state = state
        self._ended.set()
        self._tell(Event("ended", self))

    def _tell_of(self, kind: EventKind, trial: Trial | None, found: Round | None) -> None:
        self._tell(Event(kind, self, trial, found))

    def _tell(self, event: Event) -> None:
        """Call the listeners; a listener that fails is removed, and the run goes on."""
        for listener in tuple(self.listeners):
            try:
                listener(event)
            except Exception as error:
                self.listeners.remove(listener)
                text = f"a listener failed: {type(error).__name__}: {error}"
                self._progress.note("listener", text)
