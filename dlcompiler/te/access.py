"""Does an expression read outside its tensors? Answered when it is written, with a witness."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from dlcompiler.arith import Analyzer, Interval
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import (
    Axis,
    Binary,
    Const,
    Expr,
    Extent,
    IfThenElse,
    Logical,
    Reduce,
    Select,
    TensorHandle,
    TensorLoad,
    Var,
    binary,
    compare,
    extent_expr,
    free_vars,
    index_const,
    numeric,
    structural_equal,
    substitute,
    walk,
)
from dlcompiler.ir.expr import BinaryOp
from dlcompiler.ir.rewrite import children
from dlcompiler.te.elements import Block, Elements
from dlcompiler.te.plan import NO_PLAN
from dlcompiler.te.tensor import ComputeOp, PlaceholderOp, Tensor

MAX_CORNER_AXES = 8
MAX_POINTS = 2**16

Requirement: TypeAlias = tuple[Expr, str]
"""A condition on symbols, and what is wrong where it does not hold."""


def check_accesses(
    body: Expr, axes: Sequence[Axis], where: str, left: Collection[TensorHandle] = ()
) -> None:
    """Refuse an element that is outside its tensor for some values of the axes.

    Looks at the corners of the iteration space, where affine indices are extreme, and at all points
    (up to 65536) of an index that is no sum; it refuses only with a point in hand. What stands
    under `te.if_then_else`, or after the first condition of `te.all` and `te.any`, is guarded and
    not looked at; indices read from tensors are not known. Of tensors that are `left` for later,
    the first index is not looked at.

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
            if not isinstance(extent, int) or (dimension == 0 and load.tensor in left):
                continue
            for point, value in (*_corners(index, extents), *_extremes(index, axes)):
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


def earlier_reads(bodies: Iterable[Expr], axes: Sequence[Axis]) -> frozenset[TensorHandle]:
    """Return the placeholders that are read only at earlier places of the first axis.

    They may be states of a recurrence, of which the first places are given in another way.
    """
    found: dict[TensorHandle, bool] = {}
    for load in (node for body in bodies for node in walk(body) if isinstance(node, TensorLoad)):
        if not axes or not load.indices or not isinstance(load.tensor, Tensor):
            continue
        terms, constant = numeric.linear_form(load.indices[0]) or ({}, 0)
        is_input = isinstance(load.tensor.op, PlaceholderOp)
        is_earlier = is_input and terms == {axes[0].var: 1} and constant < 0
        found[load.tensor] = is_earlier and found.get(load.tensor, True)
    return frozenset(tensor for tensor, is_earlier in found.items() if is_earlier)


def requirements(op: ComputeOp, sizes: Collection[Var]) -> tuple[Requirement, ...]:
    """Return what symbols must satisfy so that an operation reads inside its tensors.

    Parameters
    ----------
    op
        The operation.
    sizes
        Symbols that are not negative.

    Returns
    -------
    tuple of (condition, problem)
        What is proved for all sizes is left out, and so is what stands under a guard. An index is
        taken between the ends that its parts have: more than it reaches where one axis occurs in
        several parts that do not cancel.
    """
    axes = (*op.axis, *op.reduce_axis)
    if all(isinstance(e, int) for t in (*op.input_tensors, *op.outputs) for e in t.shape) and all(
        isinstance(axis.extent, int) for axis in axes
    ):
        return ()
    ranges = dict.fromkeys(sizes, Interval(0, math.inf))
    extents = {axis.var: extent_expr(axis.extent) for axis in axes}
    analyzer = Analyzer(ranges, extents)
    found: dict[str, Requirement] = {}
    for load in (load for body in op.bodies for load in _unguarded_loads(body)):
        for dimension, index in enumerate(load.indices):
            for condition in _conditions(index, load.tensor.shape[dimension], extents, analyzer):
                problem = f"{op.name} would read {load} outside dimension {dimension}"
                found.setdefault(str(condition), (condition, problem))
    return tuple(found.values())


def _conditions(
    index: Expr, extent: Extent, extents: Mapping[Var, Expr], analyzer: Analyzer
) -> Iterator[Expr]:
    """Yield the conditions under which an index is inside, where a proof fails."""
    simple = analyzer.simplify(index)
    ends = _ends(simple, extents)
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


def _ends(index: Expr, extents: Mapping[Var, Expr]) -> tuple[Expr, Expr] | None:
    """Return the least and the greatest value of an index, as formulas of symbols."""
    match index:
        case Const():
            return index, index
        case Var():
            if index not in extents:
                return index, index
            return index_const(0), binary("sub", extents[index], 1)
        case Binary(op, a, b):
            left, right = _ends(a, extents), _ends(b, extents)
            return None if left is None or right is None else _binary_ends(op, left, right)
        case Select(_, a, b) | IfThenElse(_, a, b):
            left, right = _ends(a, extents), _ends(b, extents)
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
        # By a divisor of any sign that all elements share: monotonic; by zero, 0.
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


def _extremes(index: Expr, axes: Sequence[Axis]) -> Iterator[tuple[dict[Var, int], int]]:
    """Yield the points where an index that is no sum is least and greatest."""
    used = tuple(axis for axis in axes if axis.var in free_vars(index))
    is_known = {axis.var for axis in used if isinstance(axis.extent, int)} == free_vars(index)
    if not is_known or numeric.linear_form(index) is not None:
        return
    has_loads = any(isinstance(node, TensorLoad) for node in walk(index))
    if has_loads or math.prod(axis.static_extent for axis in used) > MAX_POINTS:
        return
    block = Block.whole(used)
    elements = Elements(ComputeOp("index", used, (index,)), {}, block, NO_PLAN, is_wide=False)
    with numeric.quiet():
        values = np.broadcast_to(elements.of(index), block.extents)
    for place in (values.argmin(), values.argmax()):
        point = np.unravel_index(place, values.shape)
        names = {axis.var: int(n) for axis, n in zip(used, point, strict=True)}
        yield names, int(values[point])
