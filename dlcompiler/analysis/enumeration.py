"""The elements that an access touches, tried out point by point: for indices of any form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from functools import reduce

import numpy as np

from dlcompiler.analysis.accesses import Access
from dlcompiler.analysis.index_sets import IndexSet
from dlcompiler.ir import Binary, Call, Compare, Const, Expr, Logical, Not, Var, walk

MOST_POINTS = 1 << 15
"""Most combinations of loop variables that are tried."""

_BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "floordiv": np.floor_divide,
    "floormod": np.mod, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


class _UnknownError(Exception):
    """An expression has no value here: it reads data."""


def addresses(
    access: Access,
    shape: Sequence[int],
    free: Set[Var],
    extents: Mapping[Var, int],
    place: Mapping[Var, int],
) -> IndexSet | None:
    """Return the row-major addresses that an access touches, or None if that takes too long.

    Parameters
    ----------
    access
        The access.
    shape
        Of its buffer.
    free
        The variables of the loops that run.
    extents
        Their iterations.
    place
        Where the other loops stand.
    """
    exprs = (*access.indices, *access.conditions)
    used = dict.fromkeys(n for expr in exprs for n in walk(expr) if isinstance(n, Var))
    running = [var for var in used if var in free]
    if math.prod(extents[var] for var in running) > MOST_POINTS:
        return None
    values: dict[Var, np.ndarray] = {
        var: np.asarray(place[var]) for var in used if var in place and var not in free
    }
    for n, var in enumerate(running):
        axes = [1] * len(running)
        axes[n] = -1
        values[var] = np.arange(extents[var]).reshape(axes)
    try:
        holds = [_value(condition, values) for condition in access.conditions]
        indices = [_value(index, values) for index in access.indices]
    except _UnknownError:
        return None
    address = reduce(lambda whole, part: whole * part[0] + part[1],
                     zip(shape, indices, strict=True), np.asarray(0))  # fmt: skip
    whole, *masks = np.broadcast_arrays(address, *holds)
    mask = np.logical_and.reduce(masks) if masks else np.ones(whole.shape, bool)
    return _set_of(np.unique(whole[mask]))


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
            return _BINARY[op](_value(a, values), _value(b, values))  # type: ignore[no-any-return]
        case Compare(op, a, b):
            return _COMPARE[op](_value(a, values), _value(b, values))  # type: ignore[no-any-return]
        case Logical(op, a, b):
            both = _value(a, values), _value(b, values)
            return np.asarray(np.logical_and(*both) if op == "and" else np.logical_or(*both))
        case Not(a):
            return np.asarray(np.logical_not(_value(a, values)))
        case Call("likely", (inner,), _):
            return _value(inner, values)
    raise _UnknownError
