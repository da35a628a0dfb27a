"""Features of all configs of a space, computed without making their schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler.autotune.features.columns import Column
from dlcompiler.autotune.features.evaluation import ColumnProgram, Digits, Program, Tables
from dlcompiler.autotune.features.itervar import curve_columns, itervar_columns
from dlcompiler.autotune.features.legality import is_legal
from dlcompiler.autotune.features.numbers import Graph, Number
from dlcompiler.autotune.features.programs import Memo, program_columns
from dlcompiler.autotune.features.statements import Statement, statements
from dlcompiler.autotune.features.tracing import trace
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

MOST_SKELETONS = 4096
"""Largest number of skeletons; beyond it, features are computed from each schedule, slowly."""
_EXPLORED = 1 << 15
"""Number of configs sampled to find the skeletons of a large space."""


@dataclass(slots=True, eq=False)
class _Way:
    """A skeleton with its feature columns and its legality formula."""

    columns: tuple[Column, ...]
    legal: Program
    program: ColumnProgram | None = None
    """Evaluation of its columns, made at its first use."""


@dataclass(slots=True, eq=False)
class _Leaf:
    skeleton: int


@dataclass(slots=True, eq=False)
class _Branch:
    """Node of the tree of a template's decisions: one decision and a subtree for each outcome."""

    program: Program
    condition: Number
    is_true: _Branch | _Leaf | None = None
    is_false: _Branch | _Leaf | None = None


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
        self._trace = partial(trace, operator, workload, target, space)
        self._columns_of = _kind(kind)
        self._radices = [len(knob.values) for knob in space.knobs]
        self._graph = Graph()
        self._memo: Memo = {}
        self._tables: Tables = {}
        self._root: _Branch | _Leaf | None = None
        self._ways: list[_Way] = []

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the features of all skeletons."""
        self._explore()
        return tuple(dict.fromkeys(column.name for way in self._ways for column in way.columns))

    @property
    def skeletons(self) -> int:
        """Number of skeletons found so far: different sequences of the template's decisions."""
        return len(self._ways)

    def rows(self, points: Indices) -> Matrix:
        """Return a row for each point, shape ``(len(points), len(columns))``; NaN: absent."""
        points = np.asarray(points, np.int64)
        digits = self._space.digits(points)
        width = len(self.columns)
        result = np.empty((len(points), width), np.float32)
        for skeleton, members in self._grouped(points, digits).items():
            way = self._ways[skeleton]
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
        for skeleton, members in self._grouped(points, digits).items():
            (answers,) = self._ways[skeleton].legal.evaluate(digits[members])
            result[members] = np.asarray(answers) != 0
        return result

    # -- skeletons -------------------------------------------------------------------------------

    def _explore(self) -> None:
        points = np.array(self._space.sample(_EXPLORED, 0), np.int64)
        self._grouped(points, self._space.digits(points))

    def _grouped(self, points: Indices, digits: Digits) -> dict[int, Indices]:
        """Return the positions of the points of each skeleton; trace skeletons that are missing."""
        result: dict[int, list[Indices]] = {}
        everyone = np.arange(len(points))
        if self._root is None and len(points):
            self._root = self._traced(int(points[0]), ())
        stack: list[tuple[_Branch | _Leaf, Indices, tuple[Number, ...]]] = []
        if self._root is not None:
            stack.append((self._root, everyone, ()))
        while stack:
            node, members, path = stack.pop()
            if isinstance(node, _Leaf):
                result.setdefault(node.skeleton, []).append(members)
                continue
            (answers,) = node.program.evaluate(digits[members])
            yes = np.broadcast_to(np.asarray(answers) != 0, len(members))
            below = (*path, node.condition)
            for name, chosen in (("is_true", members[yes]), ("is_false", members[~yes])):
                if not len(chosen):
                    continue
                if getattr(node, name) is None:
                    setattr(node, name, self._traced(int(points[chosen[0]]), below))
                stack.append((getattr(node, name), chosen, below))
        return {key: np.concatenate(parts) for key, parts in sorted(result.items())}

    def _traced(self, point: int, path: Sequence[Number]) -> _Branch | _Leaf:
        """Run the template for a point; return the tree of its decisions after those in `path`."""
        if len(self._ways) >= MOST_SKELETONS:
            raise TuningError(
                "features of a space", "the template makes too many decisions by its config",
                got=f"more than {MOST_SKELETONS} ways through it",
                hint="compare knobs less, and use them as factors of splits more",
            )  # fmt: skip
        skeleton = self._trace(point, self._graph)
        if skeleton.state is None:
            way = _Way((), Program([0]))
        else:
            found = statements(skeleton.state, skeleton.symbols)
            columns = tuple(self._columns_of(found, self._target, self._memo))
            way = _Way(columns, Program([is_legal(found)]))
        self._ways.append(way)
        node: _Branch | _Leaf = _Leaf(len(self._ways) - 1)
        for decision in reversed(skeleton.decisions):
            if decision.condition in path:
                continue
            branch = _Branch(Program([decision.condition]), decision.condition)
            if decision.is_true:
                branch.is_true = node
            else:
                branch.is_false = node
            node = branch
        return node


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
