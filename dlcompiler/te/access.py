"""Does an expression read outside its tensors? Answered when it is written, with a witness."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from dlcompiler.arith import Analyzer
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import (
    Axis,
    Const,
    Expr,
    IfThenElse,
    Logical,
    Reduce,
    TensorLoad,
    Var,
    free_vars,
    index_const,
    substitute,
)
from dlcompiler.ir.rewrite import children

MAX_CORNER_AXES = 8


def check_accesses(body: Expr, axes: Sequence[Axis], where: str) -> None:
    """Refuse an element that is outside its tensor for some values of the axes.

    Looks at the corners of the iteration space, where affine indices are extreme, and refuses only
    with a corner in hand. What stands under `te.if_then_else`, or after the first condition of
    `te.all` and `te.any`, is guarded and not looked at; indices read from tensors are not known.

    Raises
    ------
    ExpressionError
        With the axes' values that lead outside.
    """
    extents = {axis.var: axis.extent for axis in axes if isinstance(axis.extent, int)}
    if 0 in extents.values():
        return
    for load in _unguarded_loads(body):
        for dimension, index in enumerate(load.indices):
            extent = load.tensor.shape[dimension]
            if not isinstance(extent, int):
                continue
            for point, value in _corners(index, extents):
                if not 0 <= value < extent:
                    at = ", ".join(f"{var.name}={n}" for var, n in point.items()) or "every point"
                    raise ExpressionError(
                        where,
                        f"{load} lies outside {load.tensor.name} at {at}",
                        got=f"index {value} in dimension {dimension}",
                        expected=f"0 to {extent - 1}, as {load.tensor.name} has the shape "
                        f"{load.tensor.shape}",
                        hint="guard it: te.if_then_else(condition, element, other)",
                    )


def _unguarded_loads(body: Expr) -> Iterator[TensorLoad]:
    seen: set[int] = set()
    stack = [body]
    while stack:
        expr = stack.pop()
        if id(expr) in seen:
            continue
        seen.add(id(expr))
        if isinstance(expr, IfThenElse):
            stack.append(expr.condition)
            continue
        if isinstance(expr, Logical):  # its second condition is evaluated only if it decides
            stack.append(expr.a)
            continue
        if isinstance(expr, Reduce) and expr.condition is not None:
            stack.extend((expr.condition, *expr.init))
            continue
        if isinstance(expr, TensorLoad):
            yield expr
        stack.extend(child for child in children(expr) if isinstance(child, Expr))


def _corners(index: Expr, extents: Mapping[Var, int]) -> Iterator[tuple[dict[Var, int], int]]:
    """Yield the corners of the axes that an index depends on, with its value there."""
    names = sorted(free_vars(index) & set(extents), key=lambda var: var.name)
    if len(names) > MAX_CORNER_AXES:
        return
    for ends in itertools.product(*((0, extents[var] - 1) for var in names)):
        point = dict(zip(names, ends, strict=True))
        fixed = substitute(index, {var: index_const(n) for var, n in point.items()})
        value = Analyzer({}).simplify(fixed)
        if isinstance(value, Const):
            yield point, int(value.value)
