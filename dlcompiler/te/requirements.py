"""Conditions on symbols under which an operation reads inside its tensors.

They are checked once, when the program is called with the values of the symbols.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

from dlcompiler.arith import Analyzer, Interval
from dlcompiler.ir import (
    Binary,
    Const,
    Expr,
    Extent,
    IfThenElse,
    Logical,
    Select,
    TensorLoad,
    Var,
    binary,
    compare,
    extent_expr,
    free_vars,
    index_const,
    structural_equal,
)
from dlcompiler.ir.guards import guarded
from dlcompiler.ir.operations import BinaryOp
from dlcompiler.te.tensor import ComputeOp

Requirement: TypeAlias = tuple[Expr, str]
"""A condition on symbols, and the error text if it does not hold."""


def requirements(op: ComputeOp, sizes: Collection[Var]) -> tuple[Requirement, ...]:
    """Return the conditions on symbols under which an operation reads only inside its tensors.

    Parameters
    ----------
    op
        The operation.
    sizes
        Symbols that are not negative.

    Returns
    -------
    tuple of (condition, problem)
        Conditions that are proved for all sizes are left out, and so are reads under a guard. The
        conditions may be stricter than needed: the ends of an index are computed from the ends of
        its parts, which is exact only if no axis occurs in several parts, as i in ``i*n - i``.
    """
    axes = (*op.axis, *op.reduce_axis)
    shapes = (t.shape for t in (*op.input_tensors, *op.outputs))
    extents_used = (*itertools.chain(*shapes), *(axis.extent for axis in axes))
    indexed = set[Var]().union(*map(free_vars, op.bodies)) - {axis.var for axis in axes}
    if not indexed and all(isinstance(extent, int) for extent in extents_used):
        return ()
    ranges = dict.fromkeys(sizes, Interval(0, math.inf))
    extents = {axis.var: extent_expr(axis.extent) for axis in axes}
    analyzer = Analyzer(ranges, extents)
    found: dict[str, Requirement] = {}
    reads = (read for body in op.bodies for read in guarded(body, TensorLoad))
    for load in (load for load, guards in reads if not guards):
        for dimension, index in enumerate(load.indices):
            for condition in _conditions(index, load.tensor.shape[dimension], extents, analyzer):
                problem = f"{op.name} would read {load} outside dimension {dimension}"
                found.setdefault(str(condition), (condition, problem))
    return tuple(found.values())


def _conditions(
    index: Expr, extent: Extent, extents: Mapping[Var, Expr], analyzer: Analyzer
) -> Iterator[Expr]:
    """Yield those of ``index >= 0`` and ``index < extent`` that are not proved."""
    simple = analyzer.simplify(index)
    ends = index_ends(simple, extents) or index_ends(index, extents)
    if ends is None:
        return
    low, high = ends
    used = [extents[var] for var in sorted(free_vars(index) & set(extents), key=lambda v: v.name)]
    inside = (
        (compare("ge", simple, 0), compare("ge", low, 0)),
        (compare("lt", simple, extent_expr(extent)), compare("lt", high, extent_expr(extent))),
    )
    for proof, condition in inside:
        if analyzer.can_prove(proof):
            continue
        wanted: Expr = analyzer.simplify(condition)
        for count in used:  # a loop that does not run reads nothing
            if not isinstance(count, Const):
                wanted = Logical("or", compare("le", count, 0), wanted)
        if not (isinstance(wanted, Const) and wanted.value):
            yield wanted


def index_ends(index: Expr, extents: Mapping[Var, Expr]) -> tuple[Expr, Expr] | None:
    """Return bounds of an index as formulas of symbols; None if it has no such bounds."""
    match index:
        case Const():
            return index, index
        case Var():
            if index not in extents:
                return index, index
            return index_const(0), binary("sub", extents[index], 1)
        case Binary(op, a, b):
            left, right = index_ends(a, extents), index_ends(b, extents)
            return None if left is None or right is None else _binary_ends(op, left, right)
        case Select(_, a, b) | IfThenElse(_, a, b):
            left, right = index_ends(a, extents), index_ends(b, extents)
            if left is None or right is None:
                return None
            return binary("min", left[0], right[0]), binary("max", left[1], right[1])
    return None


def _binary_ends(
    op: BinaryOp, a: tuple[Expr, Expr], b: tuple[Expr, Expr]
) -> tuple[Expr, Expr] | None:
    match op:
        case "add" | "min" | "max":
            return binary(op, a[0], b[0]), binary(op, a[1], b[1])
        case "sub":
            return binary(op, a[0], b[1]), binary(op, a[1], b[0])
        case "mul":
            corners = [binary("mul", x, y) for x in dict.fromkeys(a) for y in dict.fromkeys(b)]
            low = high = corners[0]
            for corner in corners[1:]:
                low, high = binary("min", low, corner), binary("max", high, corner)
            return low, high
        case "floordiv" if isinstance(b[0], Const) and b[0] is b[1] and b[0].value > 0:
            return binary(op, a[0], b[0]), binary(op, a[1], b[0])
        case "floormod" if isinstance(b[0], Const) and b[0] is b[1] and b[0].value > 0:
            return index_const(0), binary("sub", b[0], 1)
        # The divisor is one value for all elements, of any sign: the quotient is monotonic in the
        # dividend. Division by zero gives 0, which lies between the ends.
        case "floordiv" if structural_equal(b[0], b[1], rename=False):
            ends = binary(op, a[0], b[0]), binary(op, a[1], b[0])
            return binary("min", *ends), binary("max", *ends)
        case "floormod" if structural_equal(b[0], b[1], rename=False):
            return binary("min", 0, b[0] + 1), binary("max", 0, b[0] - 1)
        case "bitand" | "bitor" | "bitxor":
            return _bitwise_ends(op, a, b)
    return None


def _bitwise_ends(
    op: BinaryOp, a: tuple[Expr, Expr], b: tuple[Expr, Expr]
) -> tuple[Expr, Expr] | None:
    """Bound bit operations: no bit is set beyond those of the operands."""
    highs = [high for low, high in (a, b) if _is_natural(low)]
    if op == "bitand" and highs:
        return index_const(0), binary("min", highs[0], highs[-1])
    if len(highs) == 2:
        return index_const(0), binary("add", *highs)
    return None


def _is_natural(low: Expr) -> bool:
    return isinstance(low, Const) and low.value >= 0
