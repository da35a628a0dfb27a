"""Compute the elements that all earlier steps of an iteration space touch, without running them.

The earlier steps form one box of loop values for each loop. For example, the steps before i=2, j=3
are those with i < 2, and those with i=2 and j < 3. Inside a box, two dimensions of a tensor are
independent if no loop changes both and no condition contains loops of both. So each group of
connected dimensions is enumerated alone, and the elements are all combinations. This takes a few
hundred evaluations, however many steps there are.

The page has the same rules (``js/earlier.js``); a test compares them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler.views.loops.iteration_space import (
    Formula,
    IterationSpace,
    SpaceAccess,
    SpaceTensor,
)
from dlcompiler.views.loops.visits import loop_values, loops_in, value_of

MOST_ENUMERATED = 16_384
"""A group of connected dimensions with more loop values counts as touched everywhere."""

Ranges: TypeAlias = list[range]
"""The values of each loop in a box; each is not empty."""


@dataclass(frozen=True)
class Part:
    """Some dimensions of a tensor, and the combinations of their indices that are touched."""

    dims: tuple[int, ...]
    values: frozenset[tuple[int, ...]]


@dataclass(frozen=True)
class Region:
    """A set of elements of a tensor: all combinations of the indices in its parts."""

    parts: tuple[Part, ...]
    exact: bool
    """Whether all these elements are touched; otherwise the touched ones are among them."""

    def contains(self, element: Sequence[int]) -> bool:
        """Tell whether an element is in the region."""
        return all(tuple(element[n] for n in part.dims) in part.values for part in self.parts)


def earlier(space: IterationSpace, tensor: SpaceTensor, step: int) -> list[Region]:
    """Return the elements of a tensor that the steps before `step` touch.

    Parameters
    ----------
    space
        The model.
    tensor
        One of its tensors.
    step
        Number of the iteration of the chosen loop, counted through all loops around it, from 0.
    """
    values = loop_values(space, step)
    extents = [loop["extent"] for loop in space["loops"]]
    return [
        region
        for level, value in enumerate(values)
        if value
        for region in _regions(
            space,
            tensor,
            [
                *(range(v, v + 1) for v in values[:level]),
                range(value),
                *map(range, extents[level + 1 :]),
            ],
        )
    ]


def in_step(space: IterationSpace, tensor: SpaceTensor, step: int) -> list[Region]:
    """Return the elements of a tensor that one step touches."""
    values = loop_values(space, step)
    inner = [range(loop["extent"]) for loop in space["loops"][space["depth"] :]]
    return list(_regions(space, tensor, [*(range(v, v + 1) for v in values), *inner]))


def _regions(space: IterationSpace, tensor: SpaceTensor, ranges: Ranges) -> Iterator[Region]:
    for access in tensor["accesses"]:
        region = _region(space, tensor, access, ranges)
        if region is not None:
            yield region


def _region(
    space: IterationSpace, tensor: SpaceTensor, access: SpaceAccess, ranges: Ranges
) -> Region | None:
    """Return the elements that an access touches in a box of loop values; None for no element."""
    conditions = [*space["conditions"], *access["conditions"]]
    formulas = [*access["indices"], *conditions]
    count = len(access["indices"])
    parts: list[Part] = []
    exact = True
    for group in _connected(formulas, ranges):
        dims = tuple(n for n in group if n < count)
        loops = sorted({n for f in group for n in loops_in(formulas[f]) if len(ranges[n]) > 1})
        if math.prod(len(ranges[n]) for n in loops) > MOST_ENUMERATED:
            exact = False
            sizes = (tensor["shape"][n] for n in dims)
            parts += [
                Part((n,), frozenset((at,) for at in range(size)))
                for n, size in zip(dims, sizes, strict=True)
            ]
            continue
        tests = [formulas[n] for n in group if n >= count]
        indices = [formulas[n] for n in dims]
        found = frozenset(_points(indices, tests, loops, ranges))
        if not found:
            return None
        parts.append(Part(dims, found))
    return Region(tuple(part for part in parts if part.dims), exact)


def _points(
    indices: Sequence[Formula], tests: Sequence[Formula], loops: Sequence[int], ranges: Ranges
) -> Iterator[tuple[int, ...]]:
    values = [each.start for each in ranges]
    for point in itertools.product(*(ranges[n] for n in loops)):
        for n, value in zip(loops, point, strict=True):
            values[n] = value
        if all(value_of(test, values) for test in tests):
            yield tuple(value_of(index, values) for index in indices)


def _connected(formulas: Sequence[Formula], ranges: Ranges) -> list[list[int]]:
    """Group the formulas that share a loop with several values, directly or through others."""
    groups: list[tuple[set[int], list[int]]] = []
    for number, formula in enumerate(formulas):
        loops = {n for n in loops_in(formula) if len(ranges[n]) > 1}
        joined = [group for group in groups if group[0] & loops]
        groups = [group for group in groups if not group[0] & loops]
        members = sorted([number, *(m for group in joined for m in group[1])])
        groups.append((loops.union(*(group[0] for group in joined)), members))
    return [members for _, members in groups]
