"""What a run searches with: a tuner, with what its model looks at and what other shapes teach."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dlcompiler.autotune.features import SpaceFeatures
from dlcompiler.autotune.models import FeatureSource, KnobFeatures
from dlcompiler.autotune.models.base import CostModel, Indices, Matrix
from dlcompiler.autotune.models.experience import Experience, experience_of
from dlcompiler.autotune.models.joined import JoinedFeatures
from dlcompiler.autotune.models.trees import preload
from dlcompiler.autotune.proposal import Proposal, Tuner
from dlcompiler.autotune.records.record import Record, target_key
from dlcompiler.autotune.records.store import RecordStore
from dlcompiler.autotune.tuners import check_name, tuner
from dlcompiler.errors import DLCompilerError, TuningError
from dlcompiler.ops import Operator
from dlcompiler.runtime.provenance import Kind
from dlcompiler.space import Space, Workload
from dlcompiler.target import Target

WITHOUT_MODEL = frozenset({"random", "grid", "genetic", "descent"})
"""Tuners that look at no features."""
MOST_SHAPES = 4
"""Other shapes that are learned from: those with the most records."""
MOST_RECORDS = 1000
"""Of each of them."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What is tuned."""

    operator: Operator
    workload: Workload
    target: Target
    threads: int
    space: Space
    kind: Kind = "measured"
    """Whether times are measured or simulated."""


class DeferredTuner:
    """A tuner that is made when it is asked first: in the thread of a run.

    Parameters
    ----------
    make : callable
        Makes the tuner. Features of a space take a while.
    more : callable, optional
        Returns what is to be said beside the tuner's note.
    """

    def __init__(self, make: Callable[[], Tuner], more: Callable[[], str] = str) -> None:
        self._make = make
        self._more = more
        self._made: Tuner | None = None

    @property
    def note(self) -> str:
        """What a user should know about how it works now; may be empty."""
        return (
            "" if self._made is None else "; ".join(filter(None, (self._made.note, self._more())))
        )

    @note.setter
    def note(self, text: str) -> None:
        self._tuner().note = text

    @property
    def model(self) -> CostModel | None:
        """The cost model, as it was last fitted; None: there is none, or not yet."""
        return None if self._made is None else self._made.model

    @property
    def walkers(self) -> tuple[int, ...]:
        """Points where its searchers stand."""
        return () if self._made is None else self._made.walkers

    def propose(self, count: int) -> Sequence[Proposal]:
        """Return up to `count` points that were not observed; none when there are no more."""
        return self._tuner().propose(count)

    def observe(self, point: int, rate: float | None) -> None:
        """Take in what came of a point: calls per second, None when it failed."""
        self._tuner().observe(point, rate)

    def _tuner(self) -> Tuner:
        if self._made is None:
            self._made = self._make()
        return self._made


def searcher(name: str, searched: Searched, seed: int, store: RecordStore) -> Tuner:
    """Return the tuner of a run.

    Parameters
    ----------
    name : str
        A key of `dlcompiler.autotune.tuners.TUNERS`.
    searched : Searched
        What is tuned.
    seed : int
        Of the search.
    store : RecordStore
        Its records of other shapes of the operator, on this machine, are learned from.

    Raises
    ------
    TuningError
        If there is no tuner of this name.
    """
    check_name(name)
    programs = Programs(searched)
    if name not in WITHOUT_MODEL:  # while the workers start; whoever asks for it waits
        for preparation in (preload, lambda: programs.columns):
            threading.Thread(target=preparation, name="features", daemon=True).start()

    def make() -> Tuner:
        if name in WITHOUT_MODEL:
            return tuner(name, searched.space, seed)
        features = JoinedFeatures([KnobFeatures(searched.space), programs])
        known, learned = experience_in(store, searched, features)
        made = tuner(name, searched.space, seed, features=features, experience=known)
        made.note = "; ".join(filter(None, (made.note, learned)))
        return made

    return DeferredTuner(make, lambda: programs.lack)


class Programs:
    """What the programs of a space do, as far as its template can be traced.

    A template is anyone's code: where tracing it fails, nothing is known of its programs, and the
    search goes on with the knobs.

    Parameters
    ----------
    searched : Searched
        Whose programs.
    """

    def __init__(self, searched: Searched) -> None:
        self._features = SpaceFeatures(
            searched.operator, searched.workload, searched.target, searched.space
        )
        self.lack = ""
        """Why less is known than should be; empty if nothing is missing."""
        self._tracing = threading.Lock()

    @property
    def columns(self) -> tuple[str, ...]:
        """What each number is; the first thread that asks finds it out, others wait for it."""
        with self._tracing:
            return self._columns

    @cached_property
    def _columns(self) -> tuple[str, ...]:
        try:
            return self._features.columns
        except Exception as error:  # whatever a template raises
            self.lack = _lack(error)
            return ()

    def rows(self, points: Indices) -> Matrix:
        """Return a row for each point, shape ``(len(points), len(columns))``; NaN: no such one."""
        if self.columns:
            try:
                return self._features.rows(points)
            except Exception as error:  # as above
                self.lack = _lack(error)
        return np.full((len(points), len(self.columns)), np.nan, np.float32)


def _lack(error: Exception) -> str:
    problem = error.problem if isinstance(error, DLCompilerError) else ""
    return f"the model sees the knobs only: {problem or type(error).__name__}"


def experience_in(
    store: RecordStore, searched: Searched, features: FeatureSource
) -> tuple[Experience | None, str]:
    """Return what the records of other shapes teach, and a note about it; None: there are none."""
    shapes: dict[Workload, list[Record]] = {}
    for record in store.records(target=target_key(searched.target, searched.threads)):
        if record.provenance.kind != searched.kind:
            continue
        if record.workload.op == searched.workload.op and record.workload != searched.workload:
            shapes.setdefault(record.workload, []).append(record)
    chosen = sorted(shapes, key=lambda other: (-len(shapes[other]), str(other)))[:MOST_SHAPES]
    parts = [part for other in chosen if (part := _shape(other, shapes[other], searched))]
    if not parts:
        return None, ""
    found = experience_of(features.columns, parts)
    if not len(found):
        return None, ""
    return found, f"learns from {len(found)} records of {_shapes(len(parts))}, too"


def _shape(
    workload: Workload, records: Sequence[Record], searched: Searched
) -> tuple[FeatureSource, list[int], list[float | None]] | None:
    """Return the records of a shape as points of its space; None if it has another space now."""
    try:
        space = searched.operator.space(workload, searched.target)
        known = [record for record in records if record.config.fingerprint == space.fingerprint]
        points = [space.index_of(record.config) for record in known[:MOST_RECORDS]]
    except (TuningError, KeyError):
        return None
    if not points:
        return None
    times = [record.result.seconds for record in known[:MOST_RECORDS]]
    other = Searched(searched.operator, workload, searched.target, searched.threads, space)
    rates = [None if seconds is None else 1 / seconds for seconds in times]
    described = JoinedFeatures([KnobFeatures(space), Programs(other)])
    return described, points, rates


def _shapes(count: int) -> str:
    return "another shape" if count == 1 else f"{count} other shapes"
