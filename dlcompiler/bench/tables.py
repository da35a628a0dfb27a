"""Make replay tables: measure points of a space, then the neighbours of the best, then the best.

1. A sample of points (all, where there are no more), and the default config.
2. All points that differ from one of the best in one knob, until the best have no new neighbours.
   The best is then also the best of its neighbours.
3. The fastest points several times more, in rounds with different orders, because the shortest of
   thousands of single times is too short by chance. The times of a round are divided by the speed
   of the machine in that round.

Each time is stored as soon as it is measured, so that an interrupted measurement can go on.
"""

from __future__ import annotations

import datetime
import random
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dlcompiler.autotune import LocalPool, Record, RecordStore, Result, target_key
from dlcompiler.autotune.pools.measure_pool import MeasurePool
from dlcompiler.autotune.pools.replay import SUFFIX, ReplayTable, TableRow
from dlcompiler.bench.implementations import implementation_of, operator_call, target_of
from dlcompiler.bench.intervals import geometric_mean, median_interval
from dlcompiler.bench.works import parse_work
from dlcompiler.errors import TuningError
from dlcompiler.ops import Operator, operator
from dlcompiler.space import Space, Workload

WORKS: dict[str, str] = {
    "gemm-512x512x512": "gemm:512x512x512",
    "gemm-1024x32x1024": "gemm:1024x32x1024",
    "C2": "conv2d:1x64x56x56,64,3,1,1",
    "C6": "conv2d:1x128x28x28,128,3,1,1",
    "C9": "conv2d:1x256x14x14,256,3,1,1",
    "D5": "depthwise:1x256x28x28,3,1,1",
    "D9": "depthwise:1x1024x7x7,3,1,1",
    "softmax-64x1000": "softmax:64x1000",
}
"""Name of a table -> its work; C2 … D9 as in `dlcompiler.bench.suites`."""

FOLDER = Path(__file__).parent / "tables"
"""Folder of the tables that ship."""

SEED = 0
POINTS = 2000
BEST = 10
"""Number of the best points whose neighbours are measured."""
MOST_EXPANSIONS = 8
NEAR_BEST = 0.9
"""What is at least this fast, compared with the best, is measured again …"""
MOST_AGAIN = 128
"""… but no more points than this …"""
ROUNDS = 7
"""… in so many rounds: six are the fewest that give an interval."""
BATCH = 64

_FIRST = "points"
_SAY_EVERY_S = 10.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Subject:
    """The subject of a table: a work on one thread, computed by one operator with a space."""

    name: str
    operator: Operator
    workload: Workload
    space: Space

    @property
    def key(self) -> str:
        """The machine's name in records."""
        return target_key(target_of(1), 1)

    @property
    def default(self) -> int:
        """The point of the analytic config."""
        return self.space.index_of(self.operator.default_config(self.workload, target_of(1)))


@dataclass
class _Journal:
    """The results of a measurement by rounds, kept in a store."""

    subject: Subject
    store: RecordStore
    pool: MeasurePool
    say: Say
    first: dict[int, Result] = field(default_factory=dict)
    rounds: dict[int, dict[int, Result]] = field(default_factory=dict)

    def read(self) -> None:
        """Read the results of an earlier measurement."""
        subject = self.subject
        for record in self.store.records(subject.workload, subject.key):
            is_measured = record.provenance.kind == "measured"
            if is_measured and record.config.fingerprint == subject.space.fingerprint:
                results = self.of(record.run)
                results.setdefault(subject.space.index_of(record.config), record.result)

    def of(self, run: str) -> dict[int, Result]:
        """Return the results of a run, which is ``points`` or ``round N``."""
        kind, _, number = run.partition(" ")
        return self.rounds.setdefault(int(number), {}) if kind == "round" else self.first

    def measure(self, points: Iterable[int], run: str) -> None:
        """Measure, in order, the points for which this run has no result yet."""
        known = self.of(run)
        rest = [point for point in dict.fromkeys(points) if point not in known]
        start = said = time.perf_counter()
        for batch in _batches(rest):
            self._measure_batch(batch, run, known)
            now = time.perf_counter()
            if now - said > _SAY_EVERY_S:
                said = now
                done = sum(point in known for point in rest)
                self.say(
                    f"  {run}: {done:,} of {len(rest):,}, {done / (now - start):.1f} a second;"
                    f" best {_milliseconds(self.best_s)}"
                )

    def _measure_batch(self, points: Sequence[int], run: str, known: dict[int, Result]) -> None:
        subject, results = self.subject, dict[int, Result]()
        configs = [subject.space.at(point) for point in points]
        try:
            self.pool.measure(
                configs, self.best_s, lambda n, result: results.__setitem__(points[n], result)
            )
        finally:
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
            self.store.add(
                Record(
                    subject.workload, subject.key, subject.space.at(point), result, run,
                    len(known) + number, now,
                )
                for number, (point, result) in enumerate(results.items())
            )  # fmt: skip
            known.update(results)

    @property
    def best_s(self) -> float | None:
        """The shortest time of the first pass [s]."""
        return min((r.seconds for r in self.first.values() if r.seconds is not None), default=None)

    def fastest(self) -> list[int]:
        """Return the points of the first pass that have a time, the shortest first."""
        timed = [(r.seconds, point) for point, r in self.first.items() if r.seconds is not None]
        return [point for _, point in sorted(timed)]


def subject_of(text: str) -> Subject:
    """Return the subject of a table, from the name of a shipped table or from a work.

    A convolution is `conv2d_direct` with its default block: the form with a large space.

    Raises
    ------
    UserError
        If there is no such work.
    """
    work = parse_work(WORKS.get(text, text))
    name = next((name for name, known in WORKS.items() if known == work.text), None)
    if work.family == "conv2d":
        item = operator("conv2d_direct")
        workload = item.workload(**operator_call(work)[1])
    else:
        implementation = implementation_of(work, work.judged)
        item, workload = implementation.operator, implementation.workload
    space = item.space(workload, target_of(1))
    return Subject(name or work.text.replace(":", "-"), item, workload, space)


def pool_of(subject: Subject) -> MeasurePool:
    """Return the pool of this machine, with one thread."""
    target = target_of(1)
    return LocalPool(subject.operator, subject.workload, target, threads=1)


def measure_table(
    subject: Subject,
    store: RecordStore,
    pool: MeasurePool,
    machine: Mapping[str, str],
    *,
    points: int = POINTS,
    say: Say = print,
) -> ReplayTable:
    """Measure a table; results in the store are not measured again.

    Parameters
    ----------
    subject : Subject
        The work and its space.
    store : RecordStore
        Keeps results until the table is complete.
    pool : MeasurePool
        The pool that measures.
    machine : mapping of str to str
        Description of the machine.
    points : int
        Number of random points; the table also has neighbours of the best.
    say : callable
        Called with lines about the progress.

    Raises
    ------
    TuningError
        If no point could be measured.
    """
    journal = _Journal(subject, store, pool, say)
    journal.read()
    space = subject.space
    say(f"{subject.name}: {space!r}")
    journal.measure((subject.default, *space.sample(points, SEED)), _FIRST)
    if journal.best_s is None:
        raise TuningError(f"measure the table {subject.name}", "no point could be measured")
    for _ in range(MOST_EXPANSIONS):
        around = [p for best in journal.fastest()[:BEST] for p in space.neighbours(best)]
        if all(point in journal.first for point in around):
            break
        journal.measure(around, _FIRST)
    again = _worth_again(journal)
    for number in range(ROUNDS):
        order = random.Random(f"{SEED} {number}").sample(again, len(again))
        journal.measure(order, f"round {number}")
    rows = tuple(_rows(journal, again))
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    return ReplayTable(
        subject.name, subject.workload, subject.key, dict(machine), date,
        space.knobs, tuple(item.rule for item in space.filters), rows,
    )  # fmt: skip


def path_of(folder: str | Path, name: str) -> Path:
    """Return the file of a table in a folder."""
    return Path(folder) / f"{name}{SUFFIX}"


def _worth_again(journal: _Journal) -> list[int]:
    """Return the points near the best, sorted so that a resumed measurement uses the same order."""
    limit = (journal.best_s or 0.0) / NEAR_BEST
    near = [p for p in journal.fastest() if (journal.first[p].seconds or 0.0) <= limit]
    return sorted(near[:MOST_AGAIN])


def _rows(journal: _Journal, again: Sequence[int]) -> Iterator[TableRow]:
    repeated = _levelled(journal.rounds, again)
    for point, result in sorted(journal.first.items()):
        samples = repeated.get(point) or result.samples_s
        if result.seconds is None or not samples:
            yield TableRow(point, result.outcome)
            continue
        low, high = median_interval(samples)
        yield TableRow(point, "ok", statistics.median(samples), low, high)


def _levelled(
    rounds: Mapping[int, Mapping[int, Result]], points: Sequence[int]
) -> dict[int, tuple[float, ...]]:
    """Return the times of points over the rounds, corrected for the speed of the machine.

    The speed of the machine in a round is the geometric mean of the times of those points that all
    rounds have.
    """
    times = [
        {point: s for point, result in found.items() if (s := result.seconds) is not None}
        for _, found in sorted(rounds.items())
    ]
    common = [point for point in points if all(point in found for found in times)]
    if not times or not common:
        return {}
    means = [geometric_mean([found[point] for point in common]) for found in times]
    usual = statistics.median(means)
    return {
        point: tuple(found[point] * usual / mean for found, mean in zip(times, means, strict=True))
        for point in common
    }


def _batches(points: Sequence[int]) -> Iterator[Sequence[int]]:
    return (points[start : start + BATCH] for start in range(0, len(points), BATCH))


def _milliseconds(seconds: float | None) -> str:
    return "none" if seconds is None else f"{seconds * 1e3:.4g} ms"
