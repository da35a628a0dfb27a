"""The suite ``tuning``: how many trials each tuner needs on the replay tables.

A *hit* is a point at least `HIT` times as fast as the table's best. Each tuner searches each table
with several seeds, without records; the operator's default config is not tried first. The result is
the number of the trial of the first hit, or the table's size if there is none.
"""

from __future__ import annotations

import datetime
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dlcompiler.autotune.features import SpaceFeatures
from dlcompiler.autotune.models import FeatureSource, KnobFeatures
from dlcompiler.autotune.models.cache import CachedFeatures
from dlcompiler.autotune.models.experience import Experience, experience_of
from dlcompiler.autotune.models.joined import JoinedFeatures
from dlcompiler.autotune.pools.replay import SUFFIX, ReplayTable
from dlcompiler.autotune.proposal import Tuner
from dlcompiler.autotune.tuners import tuner as make_tuner
from dlcompiler.bench.goals import Verdict
from dlcompiler.bench.implementations import target_of
from dlcompiler.bench.intervals import geometric_mean
from dlcompiler.bench.page import verdict_text
from dlcompiler.bench.tables import WORKS
from dlcompiler.errors import UserError
from dlcompiler.ops import operator

SCHEMA_VERSION = 1
HIT = 0.95
SEEDS = 20
BATCH = 8
GUIDED = "xgb"
"""The model-guided tuner, for which the goals are."""
TUNERS = ("random", "genetic", "descent", "ridge", "xgb-rank", GUIDED)
MANY = 150
"""Trials of random points from which on the goals compare the model with them."""
FROM, TO, WARM_TRIALS = ("C2", "C6"), "C9", 200
"""The experience for table `TO`: records of `WARM_TRIALS` trials on each table of `FROM`."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Replayed:
    """The result of a tuner on a table."""

    table: str
    tuner: str
    """Name of the tuner; ``xgb after C2, C6`` starts with records of runs on C2 and C6."""
    trials: tuple[int, ...]
    """Number of the first hit, for each seed."""
    seconds_per_trial: float
    """Time of proposing for each trial [s]."""

    @property
    def median(self) -> float:
        """Median number of trials."""
        return statistics.median(self.trials)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and the third quartile."""
        low, high = np.percentile(self.trials, (25, 75))
        return float(low), float(high)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "table": self.table, "tuner": self.tuner, "median_trials": self.median,
            "quartiles": list(self.quartiles), "trials": list(self.trials),
            "tuner_seconds_per_trial": self.seconds_per_trial,
        }  # fmt: skip


def trials_to_hit(table: ReplayTable, searcher: Tuner, batch: int = BATCH) -> tuple[int, float]:
    """Let a tuner search a table; return the number of the first hit, and the time of proposing.

    Parameters
    ----------
    table : ReplayTable
        What is searched.
    searcher : Tuner
        A tuner that proposes points of the table only.
    batch : int
        How many points are proposed at once.

    Returns
    -------
    trials : int
        At most the table's size.
    seconds : float
        Total time of proposing [s].
    """
    hits, count, thought = table.hits(HIT), 0, 0.0
    while count < len(table.rows):
        start = time.perf_counter()
        proposals = searcher.propose(batch)
        thought += time.perf_counter() - start
        if not proposals:
            break
        for proposal in proposals:
            count += 1
            if proposal.point in hits:
                return count, thought
        for proposal in proposals:
            searcher.observe(proposal.point, table.by_point[proposal.point].rate)
    return len(table.rows), thought


def features_of_table(table: ReplayTable) -> tuple[FeatureSource, str]:
    """Return the features of the points of a table, and a note if some are missing."""
    knobs = KnobFeatures(table.space)
    item, workload = operator(table.workload.op), table.workload
    space = item.space(workload, target_of(1))
    if space.fingerprint != table.space.fingerprint:
        note = f"{table.name}: the operator's space has changed since; its knobs are the features"
        return knobs, note
    programs = SpaceFeatures(item, workload, target_of(1), table.space)
    points = np.array(table.points, np.int64)
    return CachedFeatures(JoinedFeatures([knobs, programs]), lambda: points), ""


def load_tables(folder: Path) -> dict[str, ReplayTable]:
    """Read the tables of a folder, those of the suite first.

    Raises
    ------
    UserError
        If there are none.
    """
    paths = {path.name.removesuffix(SUFFIX): path for path in sorted(folder.glob(f"*{SUFFIX}"))}
    if not paths:
        raise UserError(
            "bench --suite tuning", "there are no replay tables", got=str(folder),
            hint=f"dlcompiler bench --measure-table all --into {folder}",
        )  # fmt: skip
    order = [name for name in WORKS if name in paths]
    order += [name for name in paths if name not in order]
    return {name: ReplayTable.load(paths[name]) for name in order}


def run_suite(
    tables: Mapping[str, ReplayTable],
    say: Say,
    *,
    tuners: Sequence[str] = TUNERS,
    seeds: int = SEEDS,
) -> dict[str, Any]:
    """Replay tuners on tables and judge them; return the document.

    Parameters
    ----------
    tables : mapping of str to ReplayTable
        By name.
    say : callable
        Called with each line of the results.
    tuners : sequence of str
        Names of `dlcompiler.autotune.tuners.TUNERS`.
    seeds : int
        Searches of each tuner on each table, with the seeds from 0.
    """
    found: list[Replayed] = []
    sources: dict[str, FeatureSource] = {}
    for name, table in tables.items():
        say(f"\n{_title(table)}")
        sources[name], note = features_of_table(table)
        if note:
            say(f"  {note}")
        for chosen in tuners:
            found.append(_replayed(table, chosen, sources[name], range(seeds)))
            say(_line(found[-1]))
    if GUIDED in tuners and {*FROM, TO} <= tables.keys():
        found.append(_with_experience(tables, sources, range(seeds)))
        say(_line(found[-1]))
    verdicts = judge(found)
    say("")
    for verdict in verdicts:
        say(f"  {verdict_text(asdict(verdict))}")
    return {
        "version": SCHEMA_VERSION,
        "suite": "tuning",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "seeds": seeds,
        "batch": BATCH,
        "hit": HIT,
        "tables": [_facts(table) for table in tables.values()],
        "results": [item.to_json() for item in found],
        "goals": [asdict(verdict) for verdict in verdicts],
    }


def judge(found: Iterable[Replayed]) -> tuple[Verdict, ...]:
    """Compare the model-guided tuner with random points, the genetic tuner, and a cold start."""
    medians = {(item.table, item.tuner): item.median for item in found}
    tables = list(dict.fromkeys(table for table, _ in medians))
    both = [t for t in tables if (t, "random") in medians and (t, GUIDED) in medians]
    ratios = {t: medians[t, GUIDED] / medians[t, "random"] for t in both}
    hard = [t for t in both if medians[t, "random"] >= MANY]
    easy = [t for t in both if t not in hard]
    where = f"where random needs {MANY} trials or more"
    verdicts = [
        _mean(f"{where}: geometric mean of trials over random's ≤ 1/3", 1 / 3, ratios, hard),
        _worst(f"{where}: none > 2/3 of random's trials", 2 / 3, ratios, hard),
        _fewer_than_genetic(f"{where}: fewer trials than the genetic tuner", medians, hard),
        _worst("elsewhere: no more trials than random", 1.0, ratios, easy),
    ]
    warm = medians.get((TO, _warm_name()))
    cold = medians.get((TO, GUIDED))
    text = (
        f"{TO} with records of {' and '.join(FROM)}: at most half the trials of a cold start,"
        " or the first trial"
    )
    if warm is None or cold is None:
        verdicts.append(Verdict(text, None, False, "not measured: tables are missing"))
    else:
        # No search hits before its first trial.
        verdicts.append(Verdict(text, warm / cold, warm <= max(cold / 2, 1.0)))
    return tuple(verdicts)


def _mean(text: str, most: float, ratios: Mapping[str, float], names: Sequence[str]) -> Verdict:
    if not names:
        return Verdict(text, None, False, "no such table")
    mean = geometric_mean([ratios[name] for name in names])
    return Verdict(text, mean, mean <= most, f"of {', '.join(names)}")


def _worst(text: str, most: float, ratios: Mapping[str, float], names: Sequence[str]) -> Verdict:
    if not names:
        return Verdict(text, None, False, "no such table")
    name = max(names, key=lambda table: ratios[table])
    return Verdict(text, ratios[name], ratios[name] <= most, name)


def _fewer_than_genetic(
    text: str, medians: Mapping[tuple[str, str], float], names: Sequence[str]
) -> Verdict:
    ratios = {
        table: medians[table, GUIDED] / medians[table, "genetic"]
        for table in names
        if (table, "genetic") in medians
    }
    if not ratios:
        return Verdict(text, None, False, "no such table")
    name = max(ratios, key=lambda table: ratios[table])
    return Verdict(text, ratios[name], ratios[name] < 1.0, name)


def _replayed(
    table: ReplayTable,
    name: str,
    features: FeatureSource,
    seeds: Iterable[int],
    experience: Callable[[int], Experience] | None = None,
) -> Replayed:
    trials, thought = [], 0.0
    for seed in seeds:
        searcher = make_tuner(
            name, table.space, seed, points=table.points, features=features,
            experience=None if experience is None else experience(seed),
        )  # fmt: skip
        count, seconds = trials_to_hit(table, searcher)
        trials.append(count)
        thought += seconds
    shown = name if experience is None else _warm_name()
    return Replayed(table.name, shown, tuple(trials), thought / sum(trials))


def _with_experience(
    tables: Mapping[str, ReplayTable], sources: Mapping[str, FeatureSource], seeds: Iterable[int]
) -> Replayed:
    """Replay the model-guided tuner after runs on other shapes with the same seed."""

    def experience(seed: int) -> Experience:
        shapes = []
        for name in FROM:
            points = _run(tables[name], sources[name], seed)
            rates = [tables[name].by_point[point].rate for point in points]
            shapes.append((sources[name], points, rates))
        return experience_of(sources[TO].columns, shapes)

    return _replayed(tables[TO], GUIDED, sources[TO], seeds, experience)


def _run(table: ReplayTable, features: FeatureSource, seed: int) -> list[int]:
    """Return the points that a run of `WARM_TRIALS` trials tries."""
    searcher = make_tuner(GUIDED, table.space, seed, points=table.points, features=features)
    tried: list[int] = []
    while len(tried) < WARM_TRIALS:
        proposals = searcher.propose(min(BATCH, WARM_TRIALS - len(tried)))
        if not proposals:
            break
        for proposal in proposals:
            tried.append(proposal.point)
            searcher.observe(proposal.point, table.by_point[proposal.point].rate)
    return tried


def _warm_name() -> str:
    return f"{GUIDED} after {', '.join(FROM)}"


def _title(table: ReplayTable) -> str:
    return (
        f"{table.name}: {len(table.rows):,} points of {table.date}, {len(table.hits(HIT))} hits, "
        f"best {(table.best.median_s or 0.0) * 1e3:.4g} ms"
    )


def _line(item: Replayed) -> str:
    low, high = item.quartiles
    return (
        f"  {item.tuner:<18} {item.median:>7.1f} trials, half between {low:.1f} and {high:.1f};"
        f" {item.seconds_per_trial * 1e3:.1f} ms a trial"
    )


def _facts(table: ReplayTable) -> dict[str, Any]:
    return {
        "name": table.name, "workload": table.workload.to_json(), "points": len(table.rows),
        "hits": len(table.hits(HIT)), "best_seconds": table.best.median_s, "date": table.date,
        "fingerprint": table.space.fingerprint, "machine": dict(table.machine),
    }  # fmt: skip
