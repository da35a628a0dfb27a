"""Compute the range of an index while some of its variables vary and the others are fixed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler.arith.affine import Affine
from dlcompiler.arith.analyzer import Analyzer
from dlcompiler.ir import (
    Binary,
    Const,
    Expr,
    Extent,
    Load,
    TensorLoad,
    Var,
    binary,
    extent_expr,
    free_vars,
    index_const,
    walk,
)


@dataclass(frozen=True, slots=True)
class Span:
    """`extent` consecutive indices that begin at `first`, a sum of fixed variables.

    The extent is a number where it is known, else a formula of symbols.
    """

    first: Affine
    extent: Extent


def relax(expr: Expr, moving: Collection[Var], analyzer: Analyzer) -> Span | None:
    """Return a span that covers `expr` while the variables `moving` run through their ranges.

    Returns
    -------
    Span or None
        None when no finite extent is known, and when the index is read from a tensor.
    """
    affine = analyzer.affine(expr)
    static = _relax_affine(affine, moving, analyzer)
    if static is not None:
        return Span(*static)
    return _relax_symbolic(expr, moving, analyzer)


def _relax_symbolic(expr: Expr, moving: Collection[Var], analyzer: Analyzer) -> Span | None:
    """Return the span between the symbolic ends of a monotonic index; None if there are none."""
    if _reads_data(expr):
        return None
    low, high = analyzer.lower_bound(expr, moving), analyzer.upper_bound(expr, moving)
    if low is None or high is None:
        return None
    extent = high.plus(low, -1).plus(Affine.of_constant(1))
    if extent.is_constant:
        return Span(low, max(extent.constant, 0))
    formula = extent.to_expr()
    if analyzer.interval(formula).low < 0:  # of a loop that does not run
        formula = Binary("max", formula, index_const(0))
    return Span(low, formula)


_Static: TypeAlias = tuple[Affine, int]
"""A span of known extent."""


def _relax_affine(affine: Affine, moving: Collection[Var], analyzer: Analyzer) -> _Static | None:
    first = Affine.of_constant(affine.constant)
    steps = 0
    for term in affine.terms.values():
        span = _relax_atom(term.atom, moving, analyzer)
        if span is None:
            return None
        reach = (span[1] - 1) * abs(term.factor)
        first = first.plus(span[0], term.factor)
        if term.factor < 0:
            first = first.plus(Affine.of_constant(reach), -1)
        steps += reach
    return first, steps + 1


def _relax_atom(atom: Expr, moving: Collection[Var], analyzer: Analyzer) -> _Static | None:
    if not any(var in moving for var in free_vars(atom)):
        return None if _reads_data(atom) else (Affine.of_atom(atom), 1)
    match atom:
        case Binary("floordiv", inner, Const(c, _)) if c > 0:
            span = _relax_affine(analyzer.affine(inner), moving, analyzer)
            if span is not None:
                return _divide(span, int(c), analyzer)
        case Binary("floormod", inner, Const(c, _)) if c > 0:
            span = _relax_affine(analyzer.affine(inner), moving, analyzer)
            if span is not None:
                return _remainder(span, int(c))
        case Binary("min" | "max" as op, inner, Const() as limit):
            span = _relax_affine(analyzer.affine(inner), moving, analyzer)
            if span is not None:  # it begins at the limit, or where the values do
                return analyzer.affine(Binary(op, span[0].to_expr(), limit)), span[1]
    bounds = analyzer.interval(atom)
    if not bounds.is_bounded:
        return None
    return Affine.of_constant(int(bounds.low)), int(bounds.high - bounds.low) + 1


def _reads_data(atom: Expr) -> bool:
    """Tell whether an index depends on the elements of a tensor, which may not exist yet."""
    return any(isinstance(node, TensorLoad | Load) for node in walk(atom))


def _divide(span: _Static, divisor: int, analyzer: Analyzer) -> _Static:
    start, extent = span
    quotient, rest = start.split_by(divisor)
    if rest.is_constant:
        return quotient, (rest.constant + extent - 1) // divisor + 1
    first = analyzer.affine(Binary("floordiv", start.to_expr(), Const(divisor, "index")))
    # The start may lie anywhere in its group of `divisor`, at worst at its end.
    return first, (extent + divisor - 2) // divisor + 1


def _remainder(span: _Static, divisor: int) -> _Static:
    start, extent = span
    _, rest = start.split_by(divisor)
    if rest.is_constant and rest.constant + extent <= divisor:
        return rest, extent
    return Affine.of_constant(0), divisor


def union(a: Span, b: Span, analyzer: Analyzer) -> Span | None:
    """Return a span that covers both; None when their distance is not known."""
    distance = b.first.plus(a.first, -1)
    bounds = analyzer.interval(distance.to_expr())
    if not bounds.is_bounded:
        return None
    low, reach = min(0, int(bounds.low)), int(bounds.high)
    first = a.first.plus(Affine.of_constant(low))
    if isinstance(a.extent, int) and isinstance(b.extent, int):
        return Span(first, max(a.extent, reach + b.extent) - low)
    end_a = extent_expr(a.extent)
    end_b = binary("add", extent_expr(b.extent), reach)
    return Span(first, analyzer.simplify(binary("sub", binary("max", end_a, end_b), low)))
