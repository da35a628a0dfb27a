"""Extract one lane of a vector expression, and find the distances between lanes of an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from dlcompiler import dtypes
from dlcompiler.ir import Binary, Broadcast, Call, Cast, Const, Expr, Ramp, Var, rewrite
from dlcompiler.ir.operations import BinaryOp, fold_index
from dlcompiler.ir.rewrite import Node, children

Progression: TypeAlias = tuple[Expr, int]
"""An index by its lanes: lane `l` is the scalar expression plus `l` times the step."""

Pattern: TypeAlias = tuple[Expr, tuple[int, ...]]
"""An index by its lanes: lane `l` is the scalar expression plus the `l`-th number."""


def is_uniform(expr: Expr) -> bool:
    """Tell whether all lanes of `expr` are equal because it is built from scalars only."""
    pending, seen = [expr], set[int]()
    while pending:
        current = pending.pop()
        if dtypes.lanes(current.dtype) == 1 or id(current) in seen:
            continue
        seen.add(id(current))
        if isinstance(current, Ramp | Var):
            return False
        if not isinstance(current, Broadcast):
            pending.extend(child for child in children(current) if isinstance(child, Expr))
    return True


def first_lane(expr: Expr) -> Expr:
    """Return the scalar expression of lane 0, which all lanes of a uniform one share."""
    return rewrite(expr, _scalar)


def _scalar(node: Node) -> Node:
    """Return the scalar form of a node whose children are already scalar."""
    match node:
        case Broadcast(value, _):
            return value
        case Ramp(base, _, _):
            return base
        case Const(value, dtype) if dtypes.lanes(dtype) > 1:
            return Const(value, dtypes.element(dtype))
        case Cast(value, dtype) if dtypes.lanes(dtype) > 1:
            return Cast(value, dtypes.element(dtype))
        case Call(name, args, dtype) if dtypes.lanes(dtype) > 1:
            return Call(name, args, dtypes.element(dtype))
    return node


def progression(index: Expr) -> Progression | None:
    """Return the first lane of `index` and the step between lanes; None if it varies."""
    if dtypes.lanes(index.dtype) == 1:
        return index, 0
    match index:
        case Ramp(base, Const(step), _):
            return base, int(step)
        case Binary("add" | "sub" as op, a, b):
            left, right = progression(a), progression(b)
            if left is None or right is None:
                return None
            step = left[1] + (right[1] if op == "add" else -right[1])
            return Binary(op, left[0], right[0]), step
        case Binary("mul", a, b) if not is_uniform(index):
            factor, other = (a, b) if is_uniform(a) else (b, a)
            scaled, by = progression(other), first_lane(factor)
            if scaled is None or not is_uniform(factor) or not isinstance(by, Const):
                return None
            return Binary("mul", scaled[0], by), scaled[1] * int(by.value)
    return (first_lane(index), 0) if is_uniform(index) else None


def pattern(index: Expr) -> Pattern | None:
    """Return a scalar expression and the numbers that lanes add to it; None if these vary.

    The lanes of ``broadcast(i*8, 4) + (0 : +4)//broadcast(2, 4)`` are ``i*8`` plus 0, 0, 1, 1.
    """
    lanes, scalar = dtypes.lanes(index.dtype), dtypes.element(index.dtype)
    match index:
        case Const(value):
            return Const(0, scalar), (int(value),) * lanes
        case Broadcast(value, _):
            found = pattern(value)
            return None if found is None else (found[0], found[1] * lanes)
        case Ramp(base, Const(step), _):
            first = pattern(base)
            steps = tuple(lane * int(step) for lane in range(lanes))
            return None if first is None else (first[0], _combined("add", first[1] * lanes, steps))
        case Cast(value, _) if lanes > 1 and _is_wide(scalar) and _is_wide(value.dtype):
            found = pattern(value)
            return None if found is None else (_cast(found[0], scalar), found[1])
        case Binary(op, a, b) if lanes > 1 and op in _INTEGER and _is_wide(scalar):
            left, right = pattern(a), pattern(b)
            if left is None or right is None:
                return None
            both = _base(op, left[0], right[0])
            return None if both is None else (both, _combined(op, left[1], right[1]))
    return (index, (0,)) if lanes == 1 else None


def _is_wide(dtype: str) -> bool:
    """Tell whether lanes keep their distances: numbers of a narrow dtype wrap between them."""
    return dtypes.element(dtype) in ("index", "int32", "int64")


_INTEGER: tuple[BinaryOp, ...] = ("add", "sub", "mul", "floordiv", "floormod", "min", "max")


def _combined(op: BinaryOp, a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    return tuple(fold_index(op, x, y) for x, y in zip(a, b, strict=True))


def _base(op: BinaryOp, a: Expr, b: Expr) -> Expr | None:
    """Combine the scalar parts of two patterns; None if the lanes would not stay constants."""
    if _is_zero(a) and _is_zero(b):
        return a
    if op not in ("add", "sub"):
        return None
    return a if _is_zero(b) else b if op == "add" and _is_zero(a) else Binary(op, a, b)


def _is_zero(expr: Expr) -> bool:
    return isinstance(expr, Const) and expr.value == 0


def _cast(expr: Expr, dtype: str) -> Expr:
    return Const(0, dtype) if _is_zero(expr) else Cast(expr, dtype)
