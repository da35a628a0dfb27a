"""The elements that one step of an iteration space touches.

The page has the same rules (``js/visits.js``); a test compares them.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypedDict

from dlcompiler.ir.operations import BinaryOp, fold_index
from dlcompiler.views.loops.iteration_space import Formula, IterationSpace, SpaceTensor

MOST_POINTS = 4096
"""A step that touches more points is drawn dimension by dimension."""


class Touched(TypedDict):
    """The elements of a tensor that a step touches."""

    points: list[list[int]]
    """Elements, in the order of the visit, each once. Empty if `exact` is False."""
    spans: list[list[int]]
    """For each dimension the indices that occur, ascending."""
    exact: bool
    """Whether `points` are all of them; otherwise all that is known is `spans`."""
    is_box: bool
    """Whether all products of `spans` are touched."""


_INDEX_OPERATIONS: dict[str, BinaryOp] = {
    "+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "floormod",
    "truncdiv": "truncdiv", "truncmod": "truncmod", "min": "min", "max": "max",
    "bitand": "bitand", "bitor": "bitor", "bitxor": "bitxor", "shl": "shl", "shr": "shr",
}  # fmt: skip
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    **{name: partial(fold_index, op) for name, op in _INDEX_OPERATIONS.items()},
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
    "and": lambda a, b: bool(a and b), "or": lambda a, b: bool(a or b),
}  # fmt: skip
OPERATIONS = tuple(_OPERATIONS)
"""What a formula may do with two values; the page has the same."""


def value_of(formula: Formula, values: Sequence[int]) -> int:
    """Evaluate a formula, given the values of the loops."""
    if isinstance(formula, int):
        return formula
    match formula:
        case ["v", n]:
            return values[n]
        case ["not", a]:
            return not value_of(a, values)
        case [op, a, b]:
            return int(_OPERATIONS[op](value_of(a, values), value_of(b, values)))
    raise ValueError(f"not a formula: {formula!r}")


def loop_values(space: IterationSpace, step: int) -> list[int]:
    """Return the values of the first `depth` loops in a step, outermost first."""
    values: list[int] = []
    for loop in reversed(space["loops"][: space["depth"]]):
        values.append(step % loop["extent"])
        step //= loop["extent"]
    return values[::-1]


def touched(space: IterationSpace, step: int) -> dict[str, Touched]:
    """Return the elements of each tensor, by its name, that a step touches.

    Parameters
    ----------
    space
        The model.
    step
        Number of the iteration of the chosen loop, counted through all loops around it, from 0.
    """
    return {tensor["name"]: touched_in(space, tensor, step) for tensor in space["tensors"]}


def touched_in(space: IterationSpace, tensor: SpaceTensor, step: int) -> Touched:
    """Return the elements of one tensor that a step touches."""
    outer = loop_values(space, step)
    inner = [loop["extent"] for loop in space["loops"][space["depth"] :]]
    if math.prod(inner) <= MOST_POINTS:
        return _points(space, tensor, outer, inner)
    return _spans(space, tensor, outer)


def _points(
    space: IterationSpace, tensor: SpaceTensor, outer: list[int], inner: list[int]
) -> Touched:
    found: dict[tuple[int, ...], None] = {}
    for rest in itertools.product(*map(range, inner)):
        values = [*outer, *rest]
        if not all(value_of(guard, values) for guard in space["conditions"]):
            continue
        for access in tensor["accesses"]:
            if all(value_of(guard, values) for guard in access["conditions"]):
                found[tuple(value_of(index, values) for index in access["indices"])] = None
    spans = [sorted({point[n] for point in found}) for n in range(len(tensor["shape"]))]
    is_box = len(found) == math.prod(map(len, spans))
    return {
        "points": [list(point) for point in found], "spans": spans, "exact": True, "is_box": is_box,
    }  # fmt: skip


def _spans(space: IterationSpace, tensor: SpaceTensor, outer: list[int]) -> Touched:
    """Return the touched indices of each dimension alone: each depends on few loops."""
    spans: list[set[int]] = [set() for _ in tensor["shape"]]
    for access in tensor["accesses"]:
        for n, index in enumerate(access["indices"]):
            spans[n] |= _range_of(space, index, outer, tensor["shape"][n])
    return {
        "points": [],
        "spans": [sorted(span) for span in spans],
        "exact": False,
        "is_box": _is_box(space, tensor),
    }


def _is_box(space: IterationSpace, tensor: SpaceTensor) -> bool:
    """Tell whether the touched elements are a box: no loop of the step changes two dimensions."""
    ways = {str(access["indices"]) for access in tensor["accesses"]}
    conditions = [*space["conditions"], *(c for a in tensor["accesses"] for c in a["conditions"])]
    loops = [
        n for index in tensor["accesses"][0]["indices"] for n in loops_in(index)
        if n >= space["depth"]
    ]  # fmt: skip
    small = all(space["loops"][n]["extent"] <= MOST_POINTS for n in loops)
    return len(ways) == 1 and not conditions and small and len(loops) == len(set(loops))


def _range_of(space: IterationSpace, index: Formula, outer: list[int], size: int) -> set[int]:
    loops = space["loops"]
    used = sorted(n for n in loops_in(index) if n >= space["depth"])
    if math.prod(loops[n]["extent"] for n in used) > MOST_POINTS:
        return set(range(size))
    values = [*outer, *(0 for _ in loops[len(outer) :])]
    found = set()
    for rest in itertools.product(*(range(loops[n]["extent"]) for n in used)):
        for n, value in zip(used, rest, strict=True):
            values[n] = value
        found.add(value_of(index, values))
    return {value for value in found if 0 <= value < size}


def loops_in(formula: Formula) -> set[int]:
    """Return the numbers of the loops that a formula contains."""
    if isinstance(formula, int):
        return set()
    if formula[0] == "v":
        return {formula[1]}
    return set[int]().union(*(loops_in(part) for part in formula[1:]))
