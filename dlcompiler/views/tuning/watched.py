"""What is watched of a run: its trials as short rows, its rounds, and where its time went.

Everything that is drawn is made of `Watched`, so that pictures are pure functions, and a widget
reads each trial once however long the run gets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dlcompiler.autotune import OUTCOMES, Trial, TuningRun
from dlcompiler.autotune.candidate import StoredCandidate
from dlcompiler.autotune.proposal import Origin
from dlcompiler.autotune.run.clock import Phases
from dlcompiler.autotune.run.rounds import Round
from dlcompiler.autotune.trial import OutcomeName
from dlcompiler.runtime.provenance import MEASURED, Provenance
from dlcompiler.space import Space


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A trial in short."""

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
    """Seconds of a call that the model expected before it was measured [s]."""
    build_s: float = 0.0
    """What scheduling, generating and compiling took [s]."""
    run_s: float = 0.0
    """What checking and timing took [s]."""
    provenance: Provenance = MEASURED
    """Whether its time is measured or simulated, and on what."""
    candidate: StoredCandidate | None = None
    """What was tried, if it is no config of the space."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A run as far as it has come."""

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
    """Where the time went."""
    elapsed_s: float = 0.0
    remaining_s: float | None = None
    """About how long it goes on at most [s]; None: nothing is known yet, or it is over."""
    note: str = ""

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
        """How many trials ended in which way."""
        found = Counter(row.outcome for row in self.rows)
        return {name: found[name] for name in OUTCOMES if found[name]}

    def row(self, index: int) -> TrialRow | None:
        """Return a trial by its number."""
        if 0 <= index < len(self.rows) and self.rows[index].index == index:
            return self.rows[index]
        return next((row for row in self.rows if row.index == index), None)


def watched(run: TuningRun, before: Watched | None = None) -> Watched:
    """Return what a run has come to.

    Parameters
    ----------
    run
        The run, going on or ended.
    before
        What this returned earlier of the same run: only later trials are read.
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
    """Return the points that a candidate is compared with: measured ones, evenly chosen."""
    points = [row.point for row in seen.rows if row.seconds]
    return points[:: max(-(-len(points) // most), 1)]


def row_of(trial: Trial) -> TrialRow:
    """Return a trial in short."""
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
    """Return how many trials are done, of how many.

    Examples
    --------
    >>> from dlcompiler.space import Knob, Workload
    >>> done_text(Watched("", "running", Space(Workload.of("x"), [Knob("k", (1, 2))]), 1200))
    '0 of 1,200'
    """
    done = f"{len(seen.rows):,}"
    return done if seen.most_trials is None else f"{done} of {seen.most_trials:,}"
