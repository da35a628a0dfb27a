"""The range that an index sweeps while some of its variables run and the others stand still."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dlcompiler.arith.affine import Affine
from dlcompiler.arith.analyzer import Analyzer
from dlcompiler.ir import Binary, Const, Expr, Load, TensorLoad, Var, free_vars, walk


@dataclass(frozen=True, slots=True)
class Span:
    """`extent` consecutive indices from `first` on, which depends on the variables that stand."""

    first: Affine
    extent: int


def relax(expr: Expr, moving: Collection[Var], analyzer: Analyzer) -> Span | None:
    """Return a span that covers `expr` while the variables `moving` run through their ranges.

    Returns
    -------
    Span or None
        None when no finite extent is known, and when the index is read from a tensor.
    """
    return _relax_affine(analyzer.affine(expr), moving, analyzer)


def _relax_affine(affine: Affine, moving: Collection[Var], analyzer: Analyzer) -> Span | None:
    first = Affine.of_constant(affine.constant)
    steps = 0
    for term in affine.terms.values():
        span = _relax_atom(term.atom, moving, analyzer)
        if span is None:
            return None
        reach = (span.extent - 1) * abs(term.factor)
        first = first.plus(span.first, term.factor)
        if term.factor < 0:
            first = first.plus(Affine.of_constant(reach), -1)
        steps += reach
    return Span(first, steps + 1)


def _relax_atom(atom: Expr, moving: Collection[Var], analyzer: Analyzer) -> Span | None:
    if not any(var in moving for var in free_vars(atom)):
        return None if _reads_data(atom) else Span(Affine.of_atom(atom), 1)
    match atom:
        case Binary("floordiv", inner, Const(c, _)) if c > 0:
            span = _relax_affine(analyzer.affine(inner), moving, analyzer)
            if span is not None:
                return _divide(span, int(c), analyzer)
        case Binary("floormod", inner, Const(c, _)) if c > 0:
            span = _relax_affine(analyzer.affine(inner), moving, analyzer)
            if span is not None:
                return _remainder(span, int(c), analyzer)
    bounds = analyzer.interval(atom)
    if not bounds.is_bounded:
        return None
    return Span(Affine.of_constant(int(bounds.low)), int(bounds.high - bounds.low) + 1)


def _reads_data(atom: Expr) -> bool:
    """Tell whether an index depends on the elements of a tensor: it may not be computed yet."""
    return any(isinstance(node, TensorLoad | Load) for node in walk(atom))


def _divide(span: Span, divisor: int, analyzer: Analyzer) -> Span:
    quotient, rest = span.first.split_by(divisor)
    if rest.is_constant:
        return Span(quotient, (rest.constant + span.extent - 1) // divisor + 1)
    first = analyzer.affine(Binary("floordiv", span.first.to_expr(), Const(divisor, "index")))
    # The start may lie anywhere in its group of `divisor`, at worst at its end.
    return Span(first, (span.extent + divisor - 2) // divisor + 1)


def _remainder(span: Span, divisor: int, analyzer: Analyzer) -> Span:
    _, rest = span.first.split_by(divisor)
    if rest.is_constant and rest.constant + span.extent <= divisor:
        return Span(rest, span.extent)
    return Span(Affine.of_constant(0), divisor)


def union(a: Span, b: Span, analyzer: Analyzer) -> Span | None:
    """Return a span that covers both; None when their distance is not known."""
    distance = b.first.plus(a.first, -1)
    bounds = analyzer.interval(distance.to_expr())
    if not bounds.is_bounded:
        return None
    low = min(0, int(bounds.low))
    high = max(a.extent, int(bounds.high) + b.extent)
    return Span(a.first.plus(Affine.of_constant(low)), high - low)
