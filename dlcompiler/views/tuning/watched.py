"""Snapshot of a tuning run for its pictures: short rows of trials, rounds, and time by phase.

Pictures read only `Watched`, so they are pure functions, and each trial of a long run is read
once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dlcompiler.autotune import OUTCOMES, Trial, TuningRun
from dlcompiler.autotune.candidate import StoredCandidate
from dlcompiler.autotune.proposal import Origin
from dlcompiler.autotune.run.clock import Phases
from dlcompiler.autotune.run.rounds import Round
from dlcompiler.autotune.trial import OutcomeName
from dlcompiler.runtime.provenance import MEASURED, Provenance
from dlcompiler.runtime.timing import format_seconds
from dlcompiler.space import Space


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial, reduced to what pictures and tables show."""

    index: int
    """Number of the trial in its run, from 0."""
    point: int
    """Index of the config in the space."""
    outcome: OutcomeName = "ok"
    """How it ended."""
    seconds: float | None = None
    """Median seconds of a call [s]; None unless it ended well."""
    gflops: float | None = None
    """Rate [GFLOP/s]; None unless it ended well."""
    elapsed_s: float = 0.0
    """From the start of the run to the end of the trial [s]."""
    round: int = 0
    """Number of its batch."""
    origin: Origin = "random"
    """Why it was tried."""
    predicted_s: float | None = None
    """Time of a call that the model predicted before the trial ran [s]."""
    build_s: float = 0.0
    """Time of scheduling, code generation and compilation [s]."""
    run_s: float = 0.0
    """Time of checking and timing [s]."""
    provenance: Provenance = MEASURED
    """Whether its time is measured or simulated, and on what."""
    candidate: StoredCandidate | None = None
    """The candidate, if it is no config of the space."""


@dataclass(frozen=True, slots=True)
class Watched:
    """Snapshot of a tuning run."""

    title: str
    """The workload."""
    state: str
    space: Space
    most_trials: int | None = None
    """The budget in trials; None: only time ends it."""
    rows: Sequence[TrialRow] = ()
    """Its trials, in their order."""
    prior: Sequence[TrialRow] = ()
    """Trials of earlier runs that it learned from."""
    rounds: Sequence[Round] = ()
    phases: Phases | None = None
    """Time spent in each phase."""
    elapsed_s: float = 0.0
    remaining_s: float | None = None
    """Estimated time left, at most [s]; None: not known yet, or the run has ended."""
    note: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it has ended: no more trials follow."""
        return self.state in ("finished", "stopped", "failed")

    @property
    def best(self) -> TrialRow | None:
        """The fastest trial of this run."""
        return min((row for row in self.rows if row.seconds), key=_seconds, default=None)

    @property
    def provenance(self) -> Provenance:
        """Whether its times are measured or simulated, and on what; all are of one kind."""
        timed = (row.provenance for row in (*self.rows, *self.prior) if row.seconds)
        return next(timed, MEASURED)

    @property
    def counts(self) -> Mapping[OutcomeName, int]:
        """Number of trials for each outcome that occurs."""
        found = Counter(row.outcome for row in self.rows)
        return {name: found[name] for name in OUTCOMES if found[name]}

    def row(self, index: int) -> TrialRow | None:
        """Return a trial by its number."""
        if 0 <= index < len(self.rows) and self.rows[index].index == index:
            return self.rows[index]
        return next((row for row in self.rows if row.index == index), None)


def watched(run: TuningRun, before: Watched | None = None) -> Watched:
    """Take a snapshot of a run.

    Parameters
    ----------
    run
        The run, still running or ended.
    before
        An earlier snapshot of the same run, if there is one: only later trials are then read.
    """
    known = before.rows if before else ()
    trials = run.trials
    rows = (*known, *(row_of(trial) for trial in trials[len(known) :]))
    prior = before.prior if before and before.prior else tuple(row_of(each) for each in run.prior)
    return Watched(
        str(run.plan.workload), run.state, run.plan.space, run.plan.trials, rows, prior,
        run.rounds, run.clock, run.elapsed_s, run.remaining_s if run.is_running else None,
        run.note,
    )  # fmt: skip


def reference_of(seen: Watched, most: int = 64) -> list[int]:
    """Return at most `most` points of successful trials, evenly spaced over the run.

    Explanations compare a candidate with their average prediction.
    """
    points = [row.point for row in seen.rows if row.seconds]
    return points[:: max(-(-len(points) // most), 1)]


def row_of(trial: Trial) -> TrialRow:
    """Return the row of a trial."""
    seconds = trial.seconds
    return TrialRow(
        trial.index, trial.point, trial.outcome, seconds,
        None if seconds is None else trial.flops / seconds / 1e9,
        trial.elapsed_s, trial.round, trial.origin, trial.predicted_s, trial.result.build_s,
        trial.result.run_s, trial.provenance, trial.candidate,
    )  # fmt: skip


def _seconds(row: TrialRow) -> float:
    assert row.seconds is not None
    return row.seconds


def done_text(seen: Watched) -> str:
    """Return the number of trials that are done, and the budget if there is one.

    Examples
    --------
    >>> from dlcompiler.space import Knob, Workload
    >>> done_text(Watched("", "running", Space(Workload.of("x"), [Knob("k", (1, 2))]), 1200))
    '0 of 1,200'
    """
    done = f"{len(seen.rows):,}"
    return done if seen.most_trials is None else f"{done} of {seen.most_trials:,}"


def time_left(seen: Watched, write: Callable[[float], str] = format_seconds) -> str:
    """Return the estimate of the time left in words; empty if the run has ended or has no limit.

    Parameters
    ----------
    seen
        The run.
    write
        Writes a time [s].
    """
    is_limited = seen.most_trials is not None
    if seen.remaining_s is None and not (seen.state == "running" and is_limited):
        return ""
    return left_text(seen.remaining_s, write)


def left_text(remaining_s: float | None, write: Callable[[float], str] = format_seconds) -> str:
    """Return an estimate of the time left in words; None: it is not known yet.

    Examples
    --------
    >>> left_text(2.5), left_text(None)
    ('about 2.5 s to go', 'estimating the time left')
    """
    if remaining_s is None:
        return "estimating the time left"
    return f"about {write(max(remaining_s, 0.0))} to go"
