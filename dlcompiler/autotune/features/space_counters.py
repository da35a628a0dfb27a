"""Counters of a GPU's warps for all configs of a space, without making their schedules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dlcompiler.autotune.features.launch_counts import Counted, SkeletonCounts, Table, table_of
from dlcompiler.autotune.features.skeletons import Skeletons
from dlcompiler.autotune.features.symbolic_nests import NotCoveredError
from dlcompiler.autotune.features.tracing import Skeleton
from dlcompiler.autotune.features.warp_pieces import Memo
from dlcompiler.autotune.models.base import Indices
from dlcompiler.errors import TuningError, UserError
from dlcompiler.ops import Operator
from dlcompiler.passes.merge_thread_loops import merge_thread_loops
from dlcompiler.pipeline.build import lower_program
from dlcompiler.simulate.gpu import count_launch
from dlcompiler.space import Space, Workload
from dlcompiler.target import Target

CHECKED = 3
"""Configs of each skeleton that are lowered, too, to check the formulas; [1]."""


@dataclass(frozen=True, slots=True, eq=False)
class SpaceCounts:
    """The counters of configs."""

    points: Indices
    table: Table
    """Name of a counter (`table_of`) -> its value for each config; -1 where a config lacks it."""
    is_refused: npt.NDArray[np.bool_]
    """Which configs are refused: `SpaceCounters.reason` says why."""
    is_alone: npt.NDArray[np.bool_]
    """Which configs were lowered one by one."""

    def of(self, number: int) -> dict[str, int]:
        """Return the counters of one of the configs by name; none if it is refused."""
        values = {name: int(column[number]) for name, column in self.table.items()}
        return {name: value for name, value in values.items() if value >= 0}


@dataclass(slots=True, eq=False)
class _Way:
    counts: SkeletonCounts | None
    why_alone: str = ""
    """Why its configs are lowered one by one; '' if they are not."""
    checked: int = 0


class SpaceCounters:
    """Counts what the configs of a space do on a GPU.

    Parameters
    ----------
    operator, workload, target, space
        The operator and its template, a GPU, and the space of its configs.

    Notes
    -----
    The counters equal those of `dlcompiler.pipeline.gpu_report` for the program of each config,
    lowered alone. The template is run once for each skeleton, and lowered with symbols for its
    knobs. Where that is not possible, each config is lowered, which takes 100 times as long;
    `why_alone` says for which reasons. A few configs of each skeleton are lowered in any case, and
    compared.
    """

    def __init__(
        self, operator: Operator, workload: Workload, target: Target, space: Space
    ) -> None:
        if target.device != "gpu":
            raise TuningError(
                "counters of a space", "only GPUs have them", got=f"target {target.name}",
                expected="a target whose device is a GPU",
            )  # fmt: skip
        self._of = operator, workload, target
        self._memo: Memo = {}
        self._skeletons = Skeletons(operator, workload, target, space, self._way)

    @property
    def space(self) -> Space:
        """The space of the configs."""
        return self._skeletons.space

    @property
    def why_alone(self) -> tuple[str, ...]:
        """Why the configs of some skeletons are lowered one by one."""
        return tuple(dict.fromkeys(w.why_alone for w in self._skeletons.found if w.why_alone))

    def counts(self, points: Indices) -> SpaceCounts:
        """Return the counters of configs."""
        points = np.asarray(points, np.int64)
        digits = self.space.digits(points)
        size = len(points)
        is_refused, is_alone = np.zeros(size, np.bool_), np.ones(size, np.bool_)
        parts: list[tuple[Indices, Table]] = []
        for skeleton, members in self._skeletons.grouped(points, digits).items():
            found = self._checked(skeleton, points[members], digits[members])
            if found is None:
                continue
            is_alone[members] = ~found.is_covered
            is_refused[members] = found.is_refused
            parts.append((members, found.table))
        for number in np.flatnonzero(is_alone):
            alone = self.alone(int(points[number]))
            is_refused[number] = alone is None
            row = {name: np.array([value]) for name, value in (alone or {}).items()}
            parts.append((np.array([number]), row))
        return SpaceCounts(points, _joined(parts, size), is_refused, is_alone)

    def alone(self, point: int) -> dict[str, int] | None:
        """Return the counters of one config by name, from its program; None if it is refused."""
        try:
            return self._lowered(point)
        except UserError:
            return None

    def reason(self, point: int) -> str:
        """Return why a config is refused; '' if it is not."""
        try:
            self._lowered(point)
        except UserError as error:
            return str(error)
        return ""

    def _lowered(self, point: int) -> dict[str, int]:
        operator, workload, target = self._of
        s, args = operator.template(workload, target, self.space.at(point))
        program = lower_program(s, args, target=target, verify_passes=False)
        warp = target.limits.get("warp_size", 32)
        return table_of([
            count_launch(merge_thread_loops(launch), loops=launch.loops, warp_size=warp)
            for launch in program.launches
        ])  # fmt: skip

    # -- skeletons -------------------------------------------------------------------------------

    def _way(self, skeleton: Skeleton) -> _Way:
        try:
            return _Way(SkeletonCounts(skeleton, self._of[2], self._memo))
        except NotCoveredError as reason:
            return _Way(None, str(reason))

    def _checked(self, skeleton: int, points: Indices, digits: Indices) -> Counted | None:
        """Return the counters of configs of a skeleton; None if each is to be lowered."""
        way = self._skeletons.found[skeleton]
        if way.counts is None:
            return None
        try:
            found = way.counts(digits)
        except NotCoveredError as reason:
            way.counts, way.why_alone = None, str(reason)
            return None
        for number in np.flatnonzero(found.is_covered)[: CHECKED - way.checked]:
            way.checked += 1
            alone = self.alone(int(points[number])) or {}
            row = {name: int(column[number]) for name, column in found.table.items()}
            if alone != {name: value for name, value in row.items() if value >= 0}:
                way.counts, way.why_alone = None, "the formulas differ from the lowered program"
                return None
        return found


def _joined(parts: list[tuple[Indices, Table]], size: int) -> Table:
    """Return one table for configs whose counters are in several."""
    result: Table = {}
    for members, table in parts:
        for name, values in table.items():
            result.setdefault(name, np.full(size, -1, np.int64))[members] = values
    return result
