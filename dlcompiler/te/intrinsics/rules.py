"""Checks of a tensor intrinsic's computation: fixed shapes, and each operand read as a whole."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dlcompiler.arith import Affine, Analyzer, Interval
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Expr, IfThenElse, Reduce, TensorLoad, Var, walk
from dlcompiler.te.tensor import ComputeOp, PlaceholderOp, Tensor

MAX_POINTS = 2**20
"""Most points of the iteration space of one intrinsic; [1]."""


def check_declaration(op: object, where: str) -> None:
    """Refuse an operation that cannot be the computation of a tensor intrinsic.

    Parameters
    ----------
    op
        The operation that the user gives.
    where
        Names the declaration in errors.

    Raises
    ------
    ExpressionError
        If it is not a `ComputeOp` with one output on placeholders of fixed shapes, each read as a
        whole, or if its reduction, a condition or a symbol prevents matching.
    """
    if not isinstance(op, ComputeOp):
        raise ExpressionError(
            where, "not a computation", got=repr(op), expected="C.op of a computed tensor C"
        )
    if len(op.outputs) > 1:
        raise ExpressionError(
            where, "the computation has several outputs", got=len(op.outputs), expected=1
        )
    for tensor in op.input_tensors:
        if not isinstance(tensor.op, PlaceholderOp):
            raise ExpressionError(
                where, f"the input {tensor.name} is itself computed", expected="placeholders",
                hint="write the whole computation as one te.compute",
            )  # fmt: skip
    _check_extents(op, where)
    _check_body(op.body, where)
    ranges = {axis.var: Interval(0, axis.static_extent - 1) for axis in (*op.axis, *op.reduce_axis)}
    for tensor in op.input_tensors:
        loads = (node for node in walk(op.body) if isinstance(node, TensorLoad))
        if not any(_reads_all(load, ranges) for load in loads if load.tensor is tensor):
            raise ExpressionError(
                where, f"the input {tensor.name} is not read as a whole",
                got=f"shape {tensor.shape}",
                hint="give it the shape of the elements that are read, without gaps",
            )  # fmt: skip


def _check_extents(op: ComputeOp, where: str) -> None:
    tensors: tuple[Tensor, ...] = (*op.input_tensors, *op.outputs)
    extents = [*(a.extent for a in op.reduce_axis), *(e for t in tensors for e in t.shape)]
    for extent in extents:
        if not isinstance(extent, int) or extent < 1:
            raise ExpressionError(
                where, "an extent is not a positive number", got=str(extent),
                expected="fixed shapes", because="an instruction has a fixed number of elements",
            )  # fmt: skip
    points = math.prod(axis.static_extent for axis in (*op.axis, *op.reduce_axis))
    if points > MAX_POINTS:
        raise ExpressionError(
            where,
            "the computation has too many points",
            got=f"{points}",
            expected=f"at most {MAX_POINTS}",
        )


def _check_body(body: Expr, where: str) -> None:
    if isinstance(body, Reduce):
        if body.reducer.op is None:
            raise ExpressionError(
                where, "a reducer defined by te.comm_reducer cannot be matched",
                got=body.reducer.name, expected="te.sum, te.prod, te.min or te.max",
            )  # fmt: skip
        if body.condition is not None or body.init:
            raise ExpressionError(
                where, "a reduction with where= or init= cannot be matched", got=str(body)
            )
    if any(isinstance(node, IfThenElse) for node in walk(body)):
        raise ExpressionError(
            where, "which elements are read depends on a condition", got=str(body),
            hint="use te.select, which evaluates both sides",
        )  # fmt: skip
    free = {node for node in walk(body) if isinstance(node, Var) and node.is_symbol}
    if free:
        raise ExpressionError(
            where, "the computation depends on a symbol", got=min(v.name for v in free)
        )


def _reads_all(load: TensorLoad, ranges: Mapping[Var, Interval]) -> bool:
    """Tell whether a load reads each element of its tensor, checked dimension by dimension."""
    analyzer = Analyzer(ranges)
    used: set[Var] = set()
    for index, extent in zip(load.indices, load.tensor.shape, strict=True):
        form = analyzer.affine(index)
        own = {part for term in form.terms.values() for part in term.parts}
        # Dimensions that share a variable, as in A[i, i], do not reach all combinations.
        if used & own or not _sweeps(form, ranges, extent):
            return False
        used |= {part for part in own if isinstance(part, Var)}
    return True


def _sweeps(form: Affine, ranges: Mapping[Var, Interval], extent: object) -> bool:
    """Tell whether a sum of loop variables takes each value from 0 to ``extent - 1``.

    Terms are added in increasing order of their factors. The sum so far takes all values from `low`
    to ``low + reach``. A further term leaves no gap if its factor is at most ``reach + 1``.
    """
    low, reach = form.constant, 0
    for term in sorted(form.terms.values(), key=lambda term: abs(term.factor)):
        (variable, *others) = term.parts
        if others or not isinstance(variable, Var) or abs(term.factor) > reach + 1:
            return False
        width = term.factor * int(ranges[variable].high)
        low, reach = low + min(0, width), reach + abs(width)
    return low == 0 and reach + 1 == extent
