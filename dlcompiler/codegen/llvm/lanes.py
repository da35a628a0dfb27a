"""Extract one lane of a vector expression, and find the step between lanes of an index."""

from __future__ import annotations

from typing import TypeAlias

from dlcompiler import dtypes
from dlcompiler.ir import Binary, Broadcast, Call, Cast, Const, Expr, Ramp, Var, rewrite
from dlcompiler.ir.rewrite import Node, children

Progression: TypeAlias = tuple[Expr, int]
"""An index by its lanes: lane `l` is the scalar expression plus `l` times the step."""


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
