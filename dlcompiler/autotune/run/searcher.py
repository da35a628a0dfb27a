"""Make the tuner of a run, with the features of its model and records of other shapes."""

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
"""Tuners without features."""
MOST_SHAPES = 4
"""Number of other shapes to learn from: those with the most records."""
MOST_RECORDS = 1000
"""The most records of each shape."""


@dataclass(frozen=True, slots=True)
class Searched:
    """The workload that is tuned, with its space."""

    operator: Operator
    workload: Workload
    target: Target
    threads: int
    space: Space
    kind: Kind = "measured"
    """Whether times are measured or simulated."""


class DeferredTuner:
    """A tuner that is made at its first use, in the thread of a run.

    Parameters
    ----------
    make : callable
        Makes the tuner, which takes a while because of the features of the space.
    more : callable, optional
        Returns a text that is added to the tuner's note.
    """

    def __init__(self, make: Callable[[], Tuner], more: Callable[[], str] = str) -> None:
        self._make = make
        self._more = more
        self._made: Tuner | None = None

    @property
    def note(self) -> str:
        """A note for the user about how the tuner works at present; may be empty."""
        return (
            "" if self._made is None else "; ".join(filter(None, (self._made.note, self._more())))
        )

    @note.setter
    def note(self, text: str) -> None:
        self._tuner().note = text

    @property
    def model(self) -> CostModel | None:
        """The cost model after its last fit; None: there is none, or not yet."""
        return None if self._made is None else self._made.model

    @property
    def walkers(self) -> tuple[int, ...]:
        """The current points of the walkers."""
        return () if self._made is None else self._made.walkers

    def propose(self, count: int) -> Sequence[Proposal]:
        """Return up to `count` points that were not observed; an empty result when all were."""
        return self._tuner().propose(count)

    def observe(self, point: int, rate: float | None) -> None:
        """Record the result of a point: calls per second, None if it failed."""
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
        Seed of the search.
    store : RecordStore
        Its records of other shapes of the operator, on this machine, are learned from.

    Raises
    ------
    TuningError
        If there is no tuner of this name.
    """
    check_name(name)
    programs = Programs(searched)
    if name not in WITHOUT_MODEL:  # while the workers start; the first use waits for it
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
    """Features of the programs of a space; none if its template cannot be traced.

    A template is the user's code. If tracing it fails, there are no features of its programs, and
    the search uses the knobs only.

    Parameters
    ----------
    searched : Searched
        The workload and its space.
    """

    def __init__(self, searched: Searched) -> None:
        self._features = SpaceFeatures(
            searched.operator, searched.workload, searched.target, searched.space
        )
        self.lack = ""
        """Why features are missing; empty if none are."""
        self._tracing = threading.Lock()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features; the first thread that reads them computes them, others wait."""
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
        """Return a row for each point, shape ``(len(points), len(columns))``; NaN: absent."""
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
    """Return the records of other shapes for learning, and a note; None if there are none."""
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
    """Convert the records of a shape to points of its space; None if the space has changed."""
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
