"""Checks of a tensor's definition: names, dtypes, extents, and the expression of an element."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.arith import Analyzer
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import (
    Axis,
    Binary,
    Cast,
    Const,
    Expr,
    Extent,
    Reduce,
    TensorLoad,
    Var,
    as_expr,
    cast,
    depth,
    free_vars,
    walk,
)
from dlcompiler.ir.names import MAX_NAME, checked_label
from dlcompiler.ir.operators import Operators
from dlcompiler.ir.shapes import check_rank, check_shape
from dlcompiler.te.access import check_accesses, earlier_reads
from dlcompiler.te.constant_operands import check_constants
from dlcompiler.te.tensor import ComputeOp, Tensor

MAX_DEPTH = 128  # passes and printers recurse: Python stops them at about 1000 frames


def define_tensors(
    name: str, axes: tuple[Axis, ...], values: Sequence[Any], where: str, tag: str = ""
) -> tuple[Tensor, ...]:
    """Define tensors whose elements at `axes` are `values`.

    Parameters
    ----------
    name : str
        Name of the operation.
    axes : tuple of Axis
        The data axes, one for each dimension.
    values : sequence
        The expression of an element, for each output.
    where : str
        Names the operation in errors.
    tag : str
        Free text kept with the operation.

    Raises
    ------
    ExpressionError
        If a value is not a valid expression over `axes`, or reads outside a tensor.
    """
    bodies = tuple(_as_data(as_expr(value)) for value in values)
    if not bodies:
        raise ExpressionError(where, "no expression of an element is given", got=repr(values))
    _check_together(bodies, where)
    for body in bodies:
        check_body(body, axes, where)
    perhaps_states = earlier_reads(bodies, axes)
    for body in bodies:
        reduced = body.axes if isinstance(body, Reduce) else ()
        check_rank(len(axes) + len(reduced), where)
        check_accesses(body, (*axes, *reduced), where, left=perhaps_states)
    return ComputeOp(name, axes, bodies, tag).outputs


def _as_data(body: Expr) -> Expr:
    return cast(body, "int32") if body.dtype == "index" else body


def _check_together(bodies: Sequence[Expr], where: str) -> None:
    """Refuse outputs that are neither all plain expressions nor all results of one reduction."""
    reductions = [body for body in bodies if isinstance(body, Reduce)]
    if not reductions:
        return
    head = reductions[0]
    is_whole = len(bodies) == len(reductions) == len(head.values)
    are_one = all(
        body.values is head.values and body.reducer is head.reducer and body.index == n
        for n, body in enumerate(reductions)
    )
    if is_whole and are_one:
        return
    problem = "the outputs are not the results of one reduction"
    if len(bodies) == 1:
        problem = "only one of the reduction's results is used"
    raise ExpressionError(
        where, problem,
        got=", ".join(str(body) for body in bodies),
        expected="all results of one reduction, in their order, as returned by the reducer",
        hint="give each reduction its own te.compute, or combine them with te.comm_reducer",
    )  # fmt: skip


def checked_name(name: object, where: str) -> str:
    """Return the name of a tensor, an axis or a variable; refuse one that is not valid."""
    if isinstance(name, str) and len(name) > MAX_NAME:
        checked_label(name, where)
    if not isinstance(name, str) or not name.replace(".", "_").replace("-", "_").isidentifier():
        raise ExpressionError(
            where, "not usable as a name", got=repr(name), expected="letters, digits, '_' and '.'"
        )
    return name


def checked_data_dtype(dtype: Any, where: str) -> str:
    """Return the name of a dtype; refuse one that elements of tensors cannot have."""
    name = dtypes.as_dtype(dtype)
    if dtypes.is_index(name) or dtypes.lanes(name) != 1:
        raise ExpressionError(where, "not the dtype of a tensor", got=name, expected="float32 …")
    return name


def checked_extent(value: Any, where: str) -> Extent:
    """Return an extent: an int if its value is known, else a simplified formula of symbols.

    A float with an integral value is accepted: classic code computes extents with ``/``.
    """
    if isinstance(value, Const):
        value = value.value
    if isinstance(value, Expr):
        return _symbolic_extent(value, where)
    is_number = not isinstance(value, bool | np.bool_ | Operators)
    if is_number and hasattr(value, "__index__"):
        return operator.index(value)
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return int(value)
    raise ExpressionError(where, "an extent must be an integer", got=repr(value))


def _symbolic_extent(value: Expr, where: str) -> Extent:
    if not free_vars(value) and isinstance(known := Analyzer({}).simplify(value), Const):
        return checked_extent(known, where)
    strange = [node for node in walk(value) if not isinstance(node, Const | Var | Binary)]
    strange += [var for var in free_vars(value) if not var.is_symbol]
    if value.dtype != "index" or strange:
        raise ExpressionError(
            where, "an extent must be an integer", got=f"{value} ({value.dtype})",
            expected="a number, or a formula of te.var symbols: n + 1, n // 2",
        )  # fmt: skip
    simple = Analyzer({}).simplify(value)
    return int(simple.value) if isinstance(simple, Const) else simple


def checked_shape(shape: Any, where: str) -> tuple[Extent, ...]:
    """Return `shape` as a tuple of extents, or say which one is wrong."""
    extents = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    check_rank(len(extents), where)
    result = tuple(checked_extent(extent, where) for extent in extents)
    check_shape(result, where)
    return result


def check_body(body: Expr, axes: Sequence[Axis], where: str) -> None:
    """Refuse a body that is too deep, has an inner reduction, or uses unknown variables."""
    if depth(body) > MAX_DEPTH:
        raise ExpressionError(
            where,
            "the expression is nested too deeply",
            got=f"{depth(body)} levels",
            expected=f"at most {MAX_DEPTH}",
            hint="split it into several te.compute, or reduce over an axis instead of adding terms",
        )
    known = {axis.var for axis in axes}
    inner: list[Expr] = [body]
    if isinstance(body, Reduce):
        inner = [*body.values, *(() if body.condition is None else (body.condition,))]
        _check_init(body, known, where)
        known |= {axis.var for axis in body.axes}
    check_constants(inner, axes, where)
    for item in (node for expr in inner for node in walk(expr)):
        if isinstance(item, Reduce):
            raise ExpressionError(
                where,
                "a reduction stands inside another expression",
                got=str(item),
                hint="give the reduction its own te.compute and use its elements",
            )
        if isinstance(item, Var) and not item.is_symbol and item not in known:
            raise ExpressionError(
                where,
                f"the axis {item} does not belong to this computation",
                got=str(body),
                hint="reduce over it with te.sum(…, axis=…)",
            )


def _check_init(body: Reduce, known: set[Var], where: str) -> None:
    for start in body.init:
        if strange := [v for v in free_vars(start) if v not in known and not v.is_symbol]:
            raise ExpressionError(
                where, "a reduction starts from a value that depends on the axis reduced over",
                got=f"{start}, with {strange[0]}",
            )  # fmt: skip
        if not isinstance(start, Const | Var | TensorLoad | Cast):
            raise ExpressionError(
                where, "a reduction can start from a number or an element of a tensor",
                got=str(start), hint="compute the start in its own te.compute",
            )  # fmt: skip
