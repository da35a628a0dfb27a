"""Find the skeleton of each config of a space: the tree of a template's decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from dlcompiler.autotune.features.evaluation import Digits, Program
from dlcompiler.autotune.features.numbers import Graph, Number
from dlcompiler.autotune.features.tracing import Skeleton, trace
from dlcompiler.autotune.models.base import Indices
from dlcompiler.errors import TuningError
from dlcompiler.ops import Operator
from dlcompiler.space import Space, Workload
from dlcompiler.target import Target

MOST_SKELETONS = 4096
"""Largest number of skeletons; beyond it, features are computed from each schedule, slowly."""
_EXPLORED = 1 << 15
"""Number of configs sampled to find the skeletons of a large space."""
T = TypeVar("T")


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


class Skeletons(Generic[T]):
    """The skeletons of a space, and something made of each.

    Parameters
    ----------
    operator, workload, target, space
        The operator and its template, the target, and the space of its configs.
    make : callable
        Makes of a skeleton what is kept in `found`.
    """

    def __init__(
        self,
        operator: Operator,
        workload: Workload,
        target: Target,
        space: Space,
        make: Callable[[Skeleton], T],
    ) -> None:
        self.space = space
        self.found: list[T] = []
        """The results of `make`, one for each skeleton found so far."""
        self._trace = partial(trace, operator, workload, target, space)
        self._make = make
        self._graph = Graph()
        self._root: _Branch | _Leaf | None = None

    def explore(self) -> None:
        """Find the skeletons of a sample of the space."""
        points = np.array(self.space.sample(_EXPLORED, 0), np.int64)
        self.grouped(points, self.space.digits(points))

    def grouped(self, points: Indices, digits: Digits) -> dict[int, Indices]:
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
        if len(self.found) >= MOST_SKELETONS:
            raise TuningError(
                "features of a space", "the template makes too many decisions by its config",
                got=f"more than {MOST_SKELETONS} ways through it",
                hint="compare knobs less, and use them as factors of splits more",
            )  # fmt: skip
        skeleton = self._trace(point, self._graph)
        self.found.append(self._make(skeleton))
        node: _Branch | _Leaf = _Leaf(len(self.found) - 1)
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
