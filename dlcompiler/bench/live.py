"""Live tuning runs: quality of the result, trials per second, and share of the tuner's time.

The works are those of the replay tables, on one thread. The best config of a run is
compared with other libraries, as in `dlcompiler.bench.contest`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dlcompiler.autotune import TuningRun, tune
from dlcompiler.autotune.pools.local import LocalPool
from dlcompiler.bench.contest import Bench, Settings
from dlcompiler.bench.goals import Verdict
from dlcompiler.bench.implementations import Implementation, implementation_of, target_of
from dlcompiler.bench.intervals import Ratio
from dlcompiler.bench.results import Result
from dlcompiler.bench.tables import WORKS, Subject, subject_of
from dlcompiler.bench.tuning import HIT
from dlcompiler.bench.works import Row, Work, parse_work
from dlcompiler.space import Config

TRIALS = 200
MOST_OWN = 0.15
FAST_S = 5e-3
"""Kernels below this time are to be measured …"""
PER_SECOND = {True: 8.0, False: 5.0, None: 5.0}
"""… so many times a second, where building and running overlap and where they do not."""
RATED = ("gemm", "conv2d")
"""Families that are to be as fast as the best other library."""


@dataclass(frozen=True)
class LiveRun:
    """The result of a run, and the ratio of its best config to other libraries."""

    name: str
    """Name of the work: a key of `dlcompiler.bench.tables.WORKS`."""
    tuner: str
    seed: int
    trials: int
    best_s: float | None
    """Shortest time of a call, measured in the run [s]."""
    best_at: int | None
    """Number of the trial with this time; trial 0 is the analytic config."""
    default_s: float | None
    """Time of the analytic config [s]."""
    elapsed_s: float
    """Duration of the whole run [s]."""
    trials_per_s: float
    """Trials per second, including building and checking [1/s]."""
    own_share: float
    """Share of the time for the tuner's own work: search, features, training, records."""
    outcomes: Mapping[str, int]
    """How many trials ended in which way."""
    overlaps: bool | None = None
    """Whether candidates were built while others ran; a test of the machine decides it."""
    hit_s: float | None = None
    """The longest time of a hit: of the replay table, if there is one [s]."""
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
    best_s: float | None = None,
) -> LiveRun:
    """Tune a work on this machine, and compare the best config with other libraries.

    Parameters
    ----------
    name : str
        A key of `dlcompiler.bench.tables.WORKS`, or a work.
    trials : int
        Number of trials of the run.
    tuner : str
        A key of `dlcompiler.autotune.tuners.TUNERS`.
    seed : int
        Seed of the run.
    peers : sequence of str
        Libraries to compare with; those that are not installed are left out.
    best_s : float, optional
        The best time of a replay table, with which the run's is compared [s].
    """
    subject, target = subject_of(name), target_of(1)
    pool = LocalPool(subject.operator, subject.workload, target, threads=1, seed=seed)
    run = tune(
        subject.workload, target, trials=trials, tuner=tuner, seed=seed, threads=1, pool=pool,
    ).wait_or_stop()  # fmt: skip
    limit = None if best_s is None else best_s / HIT
    found = replace(_summary(subject, run, tuner, seed), overlaps=pool.overlaps, hit_s=limit)
    if run.best is None or not peers:
        return found
    work = parse_work(WORKS.get(name, name))
    implementation = replace(
        implementation_of(work, work.judged), operator=subject.operator, workload=subject.workload
    )
    return _beside(found, work, implementation, run.best.config, tuple(peers))


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
    found: LiveRun,
    work: Work,
    implementation: Implementation,
    config: Config,
    peers: tuple[str, ...],
) -> LiveRun:
    with _FixedBench(Settings(peers=peers, judged_only=True), implementation, config) as bench:
        result: Result = bench.measure_row(work, work.judged)
    contest = result.contest
    if contest is None:
        return replace(found, why_not=result.reason)
    peer = contest.best_peer
    if peer is None:
        return replace(found, why_not="no other library is installed")
    return replace(found, peer=peer, ratio=contest.peers[peer].ratio)


class _FixedBench(Bench):
    """Measures one implementation with one config."""

    def __init__(self, settings: Settings, implementation: Implementation, config: Config) -> None:
        super().__init__(settings)
        self._fixed = replace(implementation, fixed=config)

    def _implementation(self, work: Work, row: Row, threads: int) -> Implementation:
        del work, row, threads
        return self._fixed


def judge_live(runs: Sequence[LiveRun]) -> tuple[Verdict, ...]:
    """Compare live runs with their goals."""
    rated = [run for run in runs if _family(run.name) in RATED]
    fast = [run for run in runs if run.best_s is not None and run.best_s < FAST_S]
    tables = [run for run in runs if run.hit_s is not None]
    return (
        _all(
            "after the live trials, products and convolutions ≥ 1.0 × the best other library",
            {run.name: None if run.ratio is None else run.ratio.median for run in rated},
            lambda ratio: ratio >= 1.0,
        ),
        _all(
            "each live run reaches 0.95 of its table's best",
            {run.name: run.hit_s / run.best_s if run.hit_s and run.best_s else None
             for run in tables},
            lambda part: part >= 1.0,
        ),
        _all(
            f"the tuner's own work ≤ {100 * MOST_OWN:.0f} % of a live run",
            {run.name: -run.own_share for run in runs},
            lambda share: -share <= MOST_OWN,
        ),
        _all(
            "kernels under 5 ms: trials a second over what is asked for (8, or 5 if builds wait)",
            {run.name: run.trials_per_s / PER_SECOND[run.overlaps] for run in fast},
            lambda rate: rate >= 1.0,
        ),
    )  # fmt: skip


def _family(name: str) -> str:
    return WORKS.get(name, name).partition(":")[0]


def _all(text: str, values: Mapping[str, float | None], holds: Callable[[float], bool]) -> Verdict:
    """Judge the smallest of some values; larger values are better."""
    if not values or None in values.values():
        return Verdict(text, None, False, "not measured")
    known = {name: value for name, value in values.items() if value is not None}
    worst = min(known, key=lambda name: known[name])
    return Verdict(text, abs(known[worst]), holds(known[worst]), worst)
