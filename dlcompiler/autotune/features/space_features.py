"""Features of all configs of a space, computed without making their schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler.autotune.features.columns import Column
from dlcompiler.autotune.features.evaluation import ColumnProgram, Program, Tables
from dlcompiler.autotune.features.itervar import curve_columns, itervar_columns
from dlcompiler.autotune.features.legality import is_legal
from dlcompiler.autotune.features.programs import Memo, program_columns
from dlcompiler.autotune.features.skeletons import Skeletons
from dlcompiler.autotune.features.statements import Statement, statements
from dlcompiler.autotune.features.tracing import Skeleton
from dlcompiler.autotune.models.base import Indices, Matrix
from dlcompiler.errors import TuningError
from dlcompiler.ops import Operator
from dlcompiler.schedule.state import State
from dlcompiler.space import Config, Space, Workload
from dlcompiler.target import Target

Yields: TypeAlias = Callable[[tuple[Statement, ...], Target, Memo], Iterator[Column]]

KINDS: dict[str, Yields] = {
    "nest": program_columns,
    "itervar": itervar_columns,
    "curve": curve_columns,
}
"""Name of a set of features -> the function that yields its columns."""


@dataclass(slots=True, eq=False)
class _Way:
    """A skeleton with its feature columns and its legality formula."""

    columns: tuple[Column, ...]
    legal: Program
    program: ColumnProgram | None = None
    """Evaluation of its columns, made at its first use."""


class SpaceFeatures:
    """Features of the configs of a space: a `FeatureSource`.

    Parameters
    ----------
    operator, workload, target, space
        The operator and its template, the target, and the space of its configs.
    kind : {"nest", "itervar", "curve"}
        Which features: our own of loop nests, or AutoTVM's.

    Notes
    -----
    The template is run once for each skeleton (`trace`); all configs of a skeleton are evaluated as
    vectors. A template that only reads its workload, target and config gives the same features as
    `features_of` of the schedule of each config.
    """

    def __init__(
        self,
        operator: Operator,
        workload: Workload,
        target: Target,
        space: Space,
        kind: str = "nest",
    ) -> None:
        self._space = space
        self._target = target
        self._skeletons = Skeletons(operator, workload, target, space, self._way)
        self._columns_of = _kind(kind)
        self._radices = [len(knob.values) for knob in space.knobs]
        self._memo: Memo = {}
        self._tables: Tables = {}

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the features of all skeletons."""
        self._skeletons.explore()
        return tuple(
            dict.fromkeys(column.name for way in self._skeletons.found for column in way.columns)
        )

    @property
    def skeletons(self) -> int:
        """Number of skeletons found so far: different sequences of the template's decisions."""
        return len(self._skeletons.found)

    def rows(self, points: Indices) -> Matrix:
        """Return a row for each point, shape ``(len(points), len(columns))``; NaN: absent."""
        points = np.asarray(points, np.int64)
        digits = self._space.digits(points)
        width = len(self.columns)
        result = np.empty((len(points), width), np.float32)
        for skeleton, members in self._skeletons.grouped(points, digits).items():
            way = self._skeletons.found[skeleton]
            if way.program is None:
                way.program = ColumnProgram(way.columns, self.columns, self._radices, self._tables)
            result[members] = way.program.rows(digits[members])
        return result

    def legal(self, points: Indices) -> npt.NDArray[np.bool_]:
        """Tell which points respect the numeric limits of schedules, shape ``(len(points),)``.

        The schedules of all other points would be refused. Filters of the space are not evaluated.
        """
        points = np.asarray(points, np.int64)
        digits = self._space.digits(points)
        result = np.ones(len(points), np.bool_)
        for skeleton, members in self._skeletons.grouped(points, digits).items():
            (answers,) = self._skeletons.found[skeleton].legal.evaluate(digits[members])
            result[members] = np.asarray(answers) != 0
        return result

    def _way(self, skeleton: Skeleton) -> _Way:
        if skeleton.state is None:
            return _Way((), Program([0]))
        found = statements(skeleton.state, skeleton.symbols)
        columns = tuple(self._columns_of(found, self._target, self._memo))
        return _Way(columns, Program([is_legal(found)]))


def features_of(state: State, target: Target, kind: str = "nest") -> dict[str, float]:
    """Return the features of a schedule's state, by name.

    Parameters
    ----------
    state : State
        State of a schedule without symbols.
    target : Target
        What it is scheduled for.
    kind : {"nest", "itervar", "curve"}
        Which features: our own of loop nests, or AutoTVM's.
    """
    columns = tuple(_kind(kind)(statements(state), target, {}))
    names = [column.name for column in columns]
    nothing = np.empty((1, 0), np.int64)
    (row,) = ColumnProgram(columns, names).rows(nothing)
    return dict(zip(names, row.tolist(), strict=True))


def template_features(
    operator: Operator, workload: Workload, target: Target, config: Config, kind: str = "nest"
) -> dict[str, float]:
    """Compute the features of one config from its schedule."""
    s, _ = operator.template(workload, target, config)
    return features_of(s.state, target, kind)


def _kind(name: str) -> Yields:
    if name not in KINDS:
        raise TuningError(
            "features of a space", "no features have this name", got=repr(name),
            expected=", ".join(KINDS),
        )  # fmt: skip
    return KINDS[name]
