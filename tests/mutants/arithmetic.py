"""Mistakes in the simplification of expressions."""

from __future__ import annotations

from dataclasses import replace

from dlcompiler.arith.affine import Affine
from dlcompiler.ir import Binary, Const
from tests.mutants.mutant import Family
from tests.mutants.patching import Patch

ARITHMETIC = Family()
ANALYZER, REGION = "arith/analyzer.py", "arith/region.py"
DIVISION, DATA = "arith/division.py", "arith/data.py"


@ARITHMETIC(DIVISION, quick=True)
def floordiv_floormod_swapped(patch: Patch) -> None:
    """The simplifier takes a quotient for a remainder."""
    other = {"floordiv": "floormod", "floormod": "floordiv"}
    patch.function(
        "arith.division:divide",
        lambda original, op, a, b, analyzer: original(other[op], a, b, analyzer),
    )


@ARITHMETIC(DIVISION)
def remainder_of_large_dropped(patch: Patch) -> None:
    """``x % c`` becomes x although x may be c."""

    def wrong(original, op, a, b, analyzer):
        if op == "floormod" and b.is_constant and b.constant > 1:
            bounds = analyzer.bounds(a)
            if bounds.low >= 0 and bounds.high <= b.constant:
                return a
        return original(op, a, b, analyzer)

    patch.function("arith.division:divide", wrong)


@ARITHMETIC(ANALYZER)
def minimum_is_maximum(patch: Patch) -> None:
    """Where the simplifier can decide, the minimum is the larger value."""
    other = {"min": "max", "max": "min"}

    def wrong(original, op, a, b, analyzer):
        result = original(other[op], a, b, analyzer)
        is_decided = result is a or result is b
        return result if is_decided else original(op, a, b, analyzer)

    patch.function("arith.analyzer:extremum", wrong)


@ARITHMETIC(ANALYZER)
def less_is_at_most(patch: Patch) -> None:
    """``a < b`` counts as proven when a may be b."""

    def wrong(original, self, op):
        return original(self, "le" if op == "lt" else op)

    patch.method("arith.interval:Interval", "decide", wrong)


@ARITHMETIC(ANALYZER)
def bounds_ignore_signs(patch: Patch) -> None:
    """The bounds of ``-2*x`` are those of ``2*x``."""

    def wrong(original, self, affine):
        terms = {key: replace(term, factor=abs(term.factor)) for key, term in affine.terms.items()}
        return original(self, Affine(terms, affine.constant))

    patch.method("arith.analyzer:Analyzer", "bounds", wrong)


@ARITHMETIC(DATA)
def wrapping_product_undone(patch: Patch) -> None:
    """``x*c // c`` becomes x for integers that wrap."""

    def wrong(original, expr):
        match expr:
            case Binary("floordiv", Binary("mul", x, Const(c, _)), Const(d, _)) if c == d and c:
                return x
        return original(expr)

    patch.function("arith.data:rewritten", wrong)


@ARITHMETIC(DATA)
def times_zero_is_zero(patch: Patch) -> None:
    """``x*0`` becomes 0 for floats, infinite and NaN ones too."""

    def wrong(original, expr):
        match expr:
            case Binary("mul", _, Const(0, _) as zero):
                return zero
        return original(expr)

    patch.function("arith.data:rewritten", wrong)


@ARITHMETIC("arith/affine.py")
def split_truncates(patch: Patch) -> None:
    """A term that the divisor does not divide goes to the quotient, too."""

    def wrong(original, self, divisor):
        quotient, rest = original(self, divisor)
        terms = dict(rest.terms)
        for key, term in list(terms.items())[:1]:
            if abs(term.factor) > divisor:
                del terms[key]
                quotient = quotient.plus(Affine({key: term}), 1 // divisor)
        return quotient, Affine(terms, rest.constant)

    patch.method("arith.affine:Affine", "split_by", wrong)


@ARITHMETIC(REGION)
def quotient_span_one_short(patch: Patch) -> None:
    """The span of ``x // c`` forgets that x may begin inside a group."""

    def wrong(original, span, divisor, analyzer):
        first, _ = original(span, divisor, analyzer)
        return first, max((span[1] - 1) // divisor + 1, 1)

    patch.function("arith.region:_divide", wrong)


@ARITHMETIC(REGION)
def remainder_span_does_not_wrap(patch: Patch) -> None:
    """The span of ``x % c`` is the span of x."""

    def wrong(original, span, divisor):
        start, extent = span
        _, rest = start.split_by(divisor)
        first = Affine.of_atom(Binary("floormod", rest.to_expr(), Const(divisor, "index")))
        return first, min(extent, divisor)

    patch.function("arith.region:_remainder", wrong)
