"""Live tuning runs: how good the result is, how fast trials come, and what the tuner itself takes.

The works are those of the replay tables, on one thread. What a run found is measured beside other
libraries, as `dlcompiler.bench.contest` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dlcompiler.autotune import TuningRun, tune
from dlcompiler.bench.contest import Bench, Settings
from dlcompiler.bench.intervals import Ratio
from dlcompiler.bench.problems import Problem, problem_of, target_of
from dlcompiler.bench.results import Result
from dlcompiler.bench.tables import WORKS, Subject, subject_of
from dlcompiler.bench.works import Row, Work, parse_work
from dlcompiler.space import Config

TRIALS = 200


@dataclass(frozen=True)
class LiveRun:
    """What came of a run, and of its best config beside other libraries."""

    name: str
    """Of the work: a key of `dlcompiler.bench.tables.WORKS`."""
    tuner: str
    seed: int
    trials: int
    best_s: float | None
    """Shortest time of a call, measured in the run [s]."""
    best_at: int | None
    """Number of the trial that it came of, from 0: the analytic config is 0."""
    default_s: float | None
    """Time of the analytic config [s]."""
    elapsed_s: float
    """Of the whole run [s]."""
    trials_per_s: float
    """Of all trials, their building and checking counted [1/s]."""
    own_share: float
    """Part of the time that the tuner's own work took: search, features, training, books."""
    outcomes: Mapping[str, int]
    """How many trials ended in which way."""
    peer: str | None = None
    """The fastest other library."""
    ratio: Ratio | None = None
    """Its time divided by ours, with the best config, in alternation."""
    why_not: str = ""
    """Why there is no ratio."""

    def to_json(self) -> dict[str, Any]:
        """Return a value that ``json`` can write."""
        return asdict(self)

    def __str__(self) -> str:
        beside = ""
        if self.ratio is not None:
            low, high = self.ratio.low, self.ratio.high
            beside = f"; {self.ratio.median:.2f} [{low:.2f}, {high:.2f}] × {self.peer}"
        best = "nothing measured" if self.best_s is None else f"best {self.best_s * 1e3:.4g} ms"
        default = "" if self.default_s is None else f" (analytic {self.default_s * 1e3:.4g} ms)"
        return (
            f"{self.name:<20} {best}{default} at trial {self.best_at} of {self.trials};"
            f" {self.trials_per_s:.1f} trials/s, own work {100 * self.own_share:.0f} %"
            f"{beside}{f'; {self.why_not}' if self.why_not else ''}"
        )


def live_run(
    name: str,
    *,
    trials: int = TRIALS,
    tuner: str = "xgb",
    seed: int = 0,
    peers: Sequence[str] = Settings().peers,
) -> LiveRun:
    """Tune a work on this machine, and measure what was found beside other libraries.

    Parameters
    ----------
    name : str
        A key of `dlcompiler.bench.tables.WORKS`, or a work.
    trials : int
        Of the run.
    tuner : str
        A key of `dlcompiler.autotune.tuners.REGISTRY`.
    seed : int
        Of the run.
    peers : sequence of str
        Libraries to measure beside; those that are not installed are left out.
    """
    subject = subject_of(name)
    run = tune(
        subject.workload, target_of(1), trials=trials, tuner=tuner, seed=seed, threads=1, block=True
    )
    found = _summary(subject, run, tuner, seed)
    if run.best is None or not peers:
        return found
    work = parse_work(WORKS.get(name, name))
    problem = replace(
        problem_of(work, work.judged), operator=subject.operator, workload=subject.workload
    )
    return _beside(found, work, problem, run.best.config, tuple(peers))


def _summary(subject: Subject, run: TuningRun, tuner: str, seed: int) -> LiveRun:
    best = run.best
    default = next((trial for trial in run.trials if trial.origin == "default"), None)
    return LiveRun(
        subject.name,
        tuner,
        seed,
        len(run.trials),
        None if best is None else best.seconds,
        None if best is None else best.index,
        None if default is None else default.seconds,
        run.elapsed_s,
        run.trials_per_second,
        run.clock.own_share,
        {str(name): count for name, count in run.counts.items()},
    )


def _beside(
    found: LiveRun, work: Work, problem: Problem, config: Config, peers: tuple[str, ...]
) -> LiveRun:
    with _FixedBench(Settings(peers=peers, judged_only=True), problem, config) as bench:
        result: Result = bench.measure_row(work, work.judged)
    contest = result.contest
    if contest is None:
        return replace(found, why_not=result.reason)
    peer = contest.best_peer
    if peer is None:
        return replace(found, why_not="no other library is installed")
    return replace(found, peer=peer, ratio=contest.peers[peer].ratio)


class _FixedBench(Bench):
    """Measures one problem with one config."""

    def __init__(self, settings: Settings, problem: Problem, config: Config) -> None:
        super().__init__(settings)
        self._fixed = replace(problem, fixed=config)

    def _problem(self, work: Work, row: Row, threads: int) -> Problem:
        del work, row, threads
        return self._fixed
