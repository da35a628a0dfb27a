"""Enumerate the elements that an access touches, point by point, for indices of any form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from functools import reduce

import numpy as np

from dlcompiler.analysis.index_sets import IndexSet
from dlcompiler.analysis.references import Reference, Sum
from dlcompiler.ir import Binary, Call, Compare, Const, Expr, Logical, Not, Var
from dlcompiler.ir.operations import BINARY, COMPARISONS

MOST_POINTS = 1 << 15
"""Most combinations of loop variables that are tried."""

_BINARY = ("add", "sub", "mul", "floordiv", "floormod", "min", "max")
"""The operations that indices are tried with."""


class _UnknownError(Exception):
    """An expression cannot be evaluated, because it reads data."""


def addresses(
    reference: Reference, shape: Sequence[int], free: Set[Var], place: Mapping[Var, int]
) -> IndexSet | None:
    """Return the row-major addresses that an access touches, or None if that takes too long.

    Parameters
    ----------
    reference
        The access.
    shape
        Shape of its buffer.
    free
        The variables of the loops that run.
    place
        The values of the other loops.
    """
    extents = reference.extents
    running = [var for var in extents if var in free and var in reference.variables]
    if math.prod(extents[var] for var in running) > MOST_POINTS:
        return None
    values: dict[Var, np.ndarray] = {var: np.asarray(at) for var, at in place.items()}
    for n, var in enumerate(running):
        axes = [1] * len(running)
        axes[n] = -1
        values[var] = np.arange(extents[var]).reshape(axes)
    try:
        indices, holds = _evaluated(reference, values)
    except _UnknownError:
        return None
    address = reduce(lambda whole, part: whole * part[0] + part[1],
                     zip(shape, indices, strict=True), np.asarray(0))  # fmt: skip
    whole, *masks = np.broadcast_arrays(address, *holds)
    mask = np.logical_and.reduce(masks) if masks else np.ones(whole.shape, bool)
    return _set_of(np.unique(whole[mask]))


def _evaluated(
    reference: Reference, values: Mapping[Var, np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the indices at all points, and for each condition a mask of where it holds."""
    if reference.is_affine and reference.is_known:
        indices = [_total(sum_, values) for sum_ in reference.indices if sum_ is not None]
        totals = [(bound, _total(bound.sum, values)) for bound in reference.bounds]
        return indices, [(bound.low <= x) & (x <= bound.high) for bound, x in totals]
    access = reference.access
    return (
        [_value(index, values) for index in access.indices],
        [_value(condition, values) for condition in access.conditions],
    )


def _total(sum_: Sum, values: Mapping[Var, np.ndarray]) -> np.ndarray:
    parts = (factor * values[var] for var, factor in sum_.factors.items())
    return sum(parts, start=np.asarray(sum_.constant))


def _set_of(members: np.ndarray) -> IndexSet:
    if not len(members):
        return IndexSet(0, 1, 0)
    low, high = int(members[0]), int(members[-1])
    bits = np.zeros(high - low + 1, np.uint8)
    bits[members - low] = 1
    packed = int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")
    return IndexSet(low, 1, len(members), packed).normal()


def _value(expr: Expr, values: Mapping[Var, np.ndarray]) -> np.ndarray:
    match expr:
        case Const(value, _):
            return np.asarray(value)
        case Var() if expr in values:
            return values[expr]
        case Binary(op, a, b) if expr.dtype == "index" and op in _BINARY:
            return np.asarray(BINARY[op].arrays(_value(a, values), _value(b, values)))
        case Compare(op, a, b):
            return np.asarray(COMPARISONS[op].arrays(_value(a, values), _value(b, values)))
        case Logical(op, a, b):
            both = _value(a, values), _value(b, values)
            return np.asarray(np.logical_and(*both) if op == "and" else np.logical_or(*both))
        case Not(a):
            return np.asarray(np.logical_not(_value(a, values)))
        case Call("likely", (inner,), _):
            return _value(inner, values)
    raise _UnknownError
