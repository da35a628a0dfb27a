"""How the address of an element changes from one iteration of a loop to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dlcompiler.arith import Analyzer, Interval
from dlcompiler.ir import (
    Axis,
    Binary,
    Const,
    Expr,
    TensorLoad,
    Var,
    free_vars,
    index_const,
    substitute,
    walk,
)

_LEAST = 16
"""Least iterations of a period that gets a loop of its own: shorter ones fill no vectors."""


def steps_of(load: TensorLoad, axes: Sequence[Axis]) -> Mapping[Var, int | None]:
    """Return by how many elements the address of a load changes from one iteration to the next.

    Parameters
    ----------
    load : TensorLoad
        An element of a tensor in row-major order.
    axes : sequence of Axis
        The loops.

    Returns
    -------
    mapping
        Variable of a loop -> the number of elements; None if it is not always the same.
    """
    found: dict[Var, int | None] = dict.fromkeys((axis.var for axis in axes), 0)
    address: Expr = index_const(0)
    stride: int | None = 1
    for index, extent in zip(reversed(load.indices), reversed(load.tensor.shape), strict=True):
        if stride is None:
            found |= dict.fromkeys(free_vars(index))
        else:
            address = address + index * stride
            stride = stride * extent if isinstance(extent, int) else None
    for term in _analyzer(axes).affine(address).terms.values():
        if len(term.parts) == 1 and isinstance(term.parts[0], Var):
            if found.get(term.parts[0], 0) is not None:
                found[term.parts[0]] = term.factor
        else:
            found |= dict.fromkeys(set().union(*(free_vars(part) for part in term.parts)))
    return found


def step_in(expr: Expr, axes: Sequence[Axis]) -> int | None:
    """Return by how much an expression grows in an iteration of the last loop; None if it varies.

    Examples
    --------
    >>> from dlcompiler import te
    >>> row, column = te.compute((4, 9), lambda i, j: i * j).op.axis
    >>> step_in(column.var * 2 + row.var, (row, column)), step_in(column.var // 2, (row, column))
    (2, None)
    """
    last, step = axes[-1].var, 0
    for term in _analyzer(axes).affine(expr).terms.values():
        if len(term.parts) == 1 and term.parts[0] is last:
            step = term.factor
        elif any(last in free_vars(part) for part in term.parts):
            return None
    return step


def _analyzer(axes: Sequence[Axis]) -> Analyzer:
    """Return an analyzer that knows the ranges of loops."""
    return Analyzer({
        axis.var: Interval(0, max(axis.extent, 1) - 1)
        for axis in axes
        if isinstance(axis.extent, int)
    })  # fmt: skip


def period_of(axis: Axis, loads: Sequence[TensorLoad]) -> int | None:
    """Return after how many iterations of a loop all loads start again; None if they do not.

    It is n if an index contains ``i % n``, and n divides the extent of the loop.
    """
    found: set[int] = set()
    for load in loads:
        for index in load.indices:
            for node in walk(index):
                match node:
                    case Binary("floormod", Var() as var, Const(value)) if var is axis.var:
                        found.add(int(value))
    extent = axis.extent
    if len(found) != 1 or not isinstance(extent, int):
        return None
    (period,) = found
    return period if _LEAST <= period < extent and extent % period == 0 else None


def simplified(load: TensorLoad, values: Mapping[Var, Expr], axes: Sequence[Axis]) -> TensorLoad:
    """Return a load with other expressions in place of variables, and simple indices."""
    analyzer = _analyzer(axes)
    indices = [analyzer.simplify(substitute(index, values)) for index in load.indices]
    return TensorLoad(load.tensor, tuple(indices))
