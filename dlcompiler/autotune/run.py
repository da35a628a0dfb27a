"""Tuning runs: a search in a thread, whose trials can be watched, stopped and used."""

from __future__ import annotations

import datetime
import math
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from dlcompiler.autotune.pool import MeasurePool
from dlcompiler.autotune.proposal import Proposal, Tuner
from dlcompiler.autotune.records import Record, target_key
from dlcompiler.autotune.store import RecordStore
from dlcompiler.autotune.trial import OUTCOMES, OutcomeName, Result, Trial
from dlcompiler.display import render
from dlcompiler.errors import TuningError
from dlcompiler.ops import Operator
from dlcompiler.schedule import Schedule
from dlcompiler.space import Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

RunState: TypeAlias = Literal["running", "stopping", "finished", "stopped", "failed"]
EventKind: TypeAlias = Literal["trial", "note", "stopping", "ended"]

_INTERRUPT_EVERY_S = 0.1
_WAIT_PIECE_S = 0.2


@dataclass(frozen=True, slots=True)
class Event:
    """Something happened in a run."""

    kind: EventKind
    """``trial``: one more is done; ``note``: `TuningRun.note` changed; ``stopping``; ``ended``."""
    run: TuningRun
    """The run."""
    trial: Trial | None = None
    """The trial that is done."""


Listener: TypeAlias = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run searches, how, and how long."""

    operator: Operator
    workload: Workload
    target: Target
    space: Space
    threads: int
    """Threads of parallel loops."""
    trials: int
    """Most trials."""
    seconds: float | None
    """No trial begins later than this [s]."""
    batch: int
    """Points that a tuner proposes at once."""
    flops: float
    """Floating-point operations of one call."""


@dataclass(slots=True)
class _Progress:
    """What changes while a run goes on; its lock guards it."""

    state: RunState = "running"
    note: str = ""
    error: BaseException | None = None
    trials: list[Trial] = field(default_factory=list)
    prior: list[Trial] = field(default_factory=list)
    ended_after_s: float | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)


class TuningRun:
    """A search for the fastest config of a workload. `dlcompiler.autotune.tune` starts it.

    The search goes on in a thread of its own, candidates run in a worker process. Whatever happens
    to either, the trials done so far are in `trials` and in the `store`.
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
        """What is searched."""
        self.store = store
        """Where its records are."""
        self.name = uuid.uuid4().hex[:12]
        """Its name in the records."""
        self.listeners: list[Listener] = list(listeners)
        """Called after each trial and at the end, from the run's thread; they should be quick."""
        self._tuner = tuner
        self._pool = pool
        self._progress = _Progress()
        self._start = time.perf_counter()
        self._stop_asked = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"tune-{self.name}", daemon=True)

    # -- what a user sees --------------------------------------------------------------------

    @property
    def state(self) -> RunState:
        """``running``, ``stopping``, or how it ended: ``finished``, ``stopped``, ``failed``."""
        return self._progress.state

    @property
    def is_running(self) -> bool:
        """Tell whether trials may still come."""
        return not self._ended.is_set()

    @property
    def note(self) -> str:
        """What a user should know: that there is no cost model, what made it fail; or nothing."""
        return self._progress.note

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials so far."""
        with self._progress.lock:
            return tuple(self._progress.trials)

    @property
    def prior(self) -> tuple[Trial, ...]:
        """Trials of earlier runs that the store had; they are not measured again."""
        return tuple(self._progress.prior)

    @property
    def best(self) -> Trial | None:
        """The fastest trial, of this run or of an earlier one."""
        measured = [trial for trial in (*self.prior, *self.trials) if trial.seconds is not None]
        return min(measured, key=_seconds, default=None)

    @property
    def counts(self) -> Mapping[OutcomeName, int]:
        """How many trials ended in which way."""
        found = Counter(trial.outcome for trial in self.trials)
        return {name: found[name] for name in OUTCOMES if found[name]}

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, or that it took [s]."""
        ended = self._progress.ended_after_s
        return time.perf_counter() - self._start if ended is None else ended

    @property
    def trials_per_second(self) -> float:
        """Trials done in a second, on average [1/s]."""
        return len(self.trials) / max(self.elapsed_s, 1e-9)

    def best_so_far(self) -> list[tuple[int, float]]:
        """Return, for each trial of this run at which the best rose, its index and GFLOP/s."""
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

    def stop(self) -> None:
        """Ask the run to end: within a second, without the trial it is at. Returns at once."""
        with self._progress.lock:
            if self._progress.state != "running":
                return
            self._progress.state = "stopping"
        self._stop_asked.set()
        threading.Thread(target=self._keep_interrupting, daemon=True).start()
        self._tell(Event("stopping", self))

    def wait(self, timeout_s: float | None = None) -> TuningRun:
        """Wait until the run has ended, or for `timeout_s` seconds; returns the run.

        Raises
        ------
        TuningError
            If the run failed: its records could not be stored, or no worker could be started.
        """
        end = math.inf if timeout_s is None else time.perf_counter() + timeout_s
        # In pieces: a lock that waits for ever does not notice Ctrl-C on every system.
        while not self._ended.wait(min(_WAIT_PIECE_S, max(end - time.perf_counter(), 0.0))):
            if time.perf_counter() >= end:
                break
        error = self._progress.error
        if error is not None:
            raise TuningError(
                f"tune {self.plan.workload}", f"the run failed after {len(self.trials)} trials",
                because=str(error), hint="its trials are in run.trials",
            ) from error  # fmt: skip
        return self

    def __repr__(self) -> str:
        best = self.best
        parts = [f"{self.state}, {len(self.trials)}/{self.plan.trials} trials"]
        if best is not None:
            parts.append(f"best {best.gflops:.3g} GFLOP/s")
        parts += [f"{count} {name}" for name, count in self.counts.items() if name != "ok"]
        return f"TuningRun({self.plan.workload}: {', '.join(parts)})"

    def _repr_html_(self) -> str:
        return render("tuning_run", self)

    # -- the search --------------------------------------------------------------------------

    def start(self) -> None:
        """Begin; `tune` calls this."""
        self._thread.start()

    def _work(self) -> None:
        state: RunState = "failed"
        try:
            self._learn_from_records()
            self._search()
            state = "stopped" if self._stop_asked.is_set() else "finished"
        except Exception as error:
            if self._stop_asked.is_set():  # what was interrupted may complain
                state = "stopped"
            else:
                self._progress.error = error
                self._note(f"{type(error).__name__}: {error}")
        finally:
            self._end(state)

    def _end(self, state: RunState) -> None:
        try:
            self._pool.close()
            self.store.close_thread()
        finally:
            with self._progress.lock:
                self._progress.state = state
                self._progress.ended_after_s = time.perf_counter() - self._start
            self._ended.set()
            self._tell(Event("ended", self))

    def _learn_from_records(self) -> None:
        """Take in what the store has of this space, on this machine."""
        self._note(self._tuner.note)
        space, plan = self.plan.space, self.plan
        for record in self.store.records(plan.workload, target_key(plan.target, plan.threads)):
            if record.config.fingerprint != space.fingerprint:
                continue
            point = space.index_of(record.config)
            trial = Trial(record.trial, point, record.config, record.result, 0.0, plan.flops)
            self._progress.prior.append(trial)
            self._tuner.observe(point, _rate(trial))

    def _search(self) -> None:
        """Try the default config, then what the tuner proposes."""
        plan = self.plan
        default = plan.space.index_of(plan.operator.default_config(plan.workload, plan.target))
        proposals: Sequence[Proposal] = [Proposal(default, "default")]
        if any(trial.point == default for trial in self.prior):
            proposals = self._propose()
        number = 0
        while proposals and not self._is_over():
            self._try(proposals, number)
            proposals = self._propose()
            number += 1

    def _propose(self) -> Sequence[Proposal]:
        left = self.plan.trials - len(self._progress.trials)
        if left <= 0 or self._stop_asked.is_set():
            return ()
        return self._tuner.propose(min(self.plan.batch, left))

    def _is_over(self) -> bool:
        out_of_time = self.plan.seconds is not None and self.elapsed_s >= self.plan.seconds
        done = len(self._progress.trials) >= self.plan.trials
        return done or out_of_time or self._stop_asked.is_set()

    def _try(self, proposals: Sequence[Proposal], round_number: int) -> None:
        """Measure a batch; each trial is on the disk before anyone hears of it."""
        configs = [self.plan.space.at(proposal.point) for proposal in proposals]

        def report(number: int, result: Result) -> None:
            if self._stop_asked.is_set():
                return  # what an interrupted measurement says means nothing
            proposal, config = proposals[number], configs[number]
            trials = self._progress.trials
            trial = Trial(
                len(trials), proposal.point, config, result, self.elapsed_s, self.plan.flops,
                round_number, proposal.origin, proposal.predicted_s, proposal.spread,
            )  # fmt: skip
            self.store.add([self._record(trial)])
            with self._progress.lock:
                trials.append(trial)
            self._tuner.observe(trial.point, _rate(trial))
            self._tell(Event("trial", self, trial))
            if self._is_over():
                self._pool.interrupt()

        best = self.best
        self._pool.measure(configs, None if best is None else best.seconds, report)

    def _record(self, trial: Trial) -> Record:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        machine = target_key(self.plan.target, self.plan.threads)
        return Record(
            self.plan.workload, machine, trial.config, trial.result, self.name, trial.index, now
        )

    # -- telling -----------------------------------------------------------------------------

    def _note(self, text: str) -> None:
        if text:
            self._progress.note = text
            self._tell(Event("note", self))

    def _tell(self, event: Event) -> None:
        """Call the listeners; one that fails is not called again, and never ends the run."""
        for listener in tuple(self.listeners):
            try:
                listener(event)
            except Exception as error:
                self.listeners.remove(listener)
                self._progress.note = f"a listener failed: {type(error).__name__}: {error}"

    def _keep_interrupting(self) -> None:
        """Interrupt until the run has ended: it may be about to begin a measurement."""
        while True:
            self._pool.interrupt()
            if self._ended.wait(_INTERRUPT_EVERY_S):
                return


def _rate(trial: Trial) -> float | None:
    """Return calls per second, or None for a trial that failed."""
    return None if trial.seconds is None else 1 / trial.seconds


def _seconds(trial: Trial) -> float:
    assert trial.seconds is not None
    return trial.seconds
