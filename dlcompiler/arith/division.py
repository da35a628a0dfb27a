"""Simplify divisions of indices: each rule is a function, with the law that proves it.

All rules divide ``q*d + r`` by a positive d, where ``q*d`` collects the multiples of d in the
dividend. Each rule covers ``//`` and ``%``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from dlcompiler.arith.affine import Affine, Term
from dlcompiler.arith.laws import c, d, k, law, q, r, x
from dlcompiler.ir import Binary, Const, compare, structural_key
from dlcompiler.ir.operations import BinaryOp, fold_index

if TYPE_CHECKING:
    from dlcompiler.arith.analyzer import Analyzer

ONE = Affine.of_constant(1)


@dataclass(frozen=True, slots=True)
class Division:
    """``quotient*divisor + rest``, to be divided by `divisor`."""

    op: BinaryOp
    quotient: Affine
    rest: Affine
    divisor: Affine

    def answer(self, quotient: Affine, rest: Affine) -> Affine:
        """Return `quotient` for a floordiv, and `rest` for a floormod."""
        return quotient if self.op == "floordiv" else rest


Rule: TypeAlias = "Callable[[Division, Analyzer], Affine | None]"


def divide(op: BinaryOp, a: Affine, b: Affine, analyzer: Analyzer) -> Affine:
    """Return ``a // b`` or ``a % b`` (`op` floordiv or floormod), simplified."""
    if b.is_constant:
        if a.is_constant or b.constant == 0:
            return Affine.of_constant(fold_index(op, a.constant, b.constant))
        if b.constant < 0:
            return _atom(op, a, b)
        division = Division(op, *a.split_by(b.constant), b)
        return _apply(CONSTANT_RULES, division, analyzer)
    if a.is_constant and a.constant == 0:
        return a
    known = analyzer.where_running(a, b)
    if known.bounds(b).low < 1:
        return _atom(op, a, b)
    quotient, rest = a.divide(b)
    if len(b.terms) + bool(b.constant) > 1 and len(rest.terms) >= len(a.terms):
        quotient, rest = Affine.of_constant(0), a  # the rewritten form is longer
    return _apply(SYMBOLIC_RULES, Division(op, quotient, rest, b), known)


def _apply(rules: tuple[Rule, ...], division: Division, analyzer: Analyzer) -> Affine:
    for rule in rules:
        result = rule(division, analyzer)
        if result is not None:
            return result
    return multiples(division)


@law(
    compare("eq", (q * d + r) // d, q + r // d),
    compare("eq", (q * d + r) % d, r % d),
    when=(d > 0,),
)
def multiples(division: Division) -> Affine:
    """Simplify ``(q*d + r) // d`` to ``q + r // d``, and ``(q*d + r) % d`` to ``r % d``."""
    atom = _atom(division.op, division.rest, division.divisor)
    return division.answer(division.quotient.plus(atom), atom)


@law(compare("eq", (q * d + r) // d, q), compare("eq", (q * d + r) % d, r), when=(r >= 0, r < d))
def within(division: Division, analyzer: Analyzer) -> Affine | None:
    """Simplify ``r // d`` to 0 and ``r % d`` to r where r is in [0, d)."""
    rest, divisor = division.rest, division.divisor
    bounds = analyzer.bounds(rest)
    is_within = bounds.low >= 0 and divisor.is_constant and bounds.high < divisor.constant
    if not is_within and (not divisor.is_constant or analyzer.is_symbolic(rest, bounds)):
        above = analyzer.decide("ge", rest)
        is_within = bool(above and analyzer.decide("lt", rest.plus(divisor, -1)))
    return division.answer(division.quotient, rest) if is_within else None


@law(
    compare("eq", (q * d + r) // d, q - 1),
    compare("eq", (q * d + r) % d, r + d),
    when=(r < 0, r + d >= 0),
)
def below(division: Division, analyzer: Analyzer) -> Affine | None:
    """Simplify ``r // d`` to -1 and ``r % d`` to ``r + d`` where r is in [-d, 0)."""
    raised = division.rest.plus(division.divisor)
    if not (analyzer.decide("lt", division.rest) and analyzer.decide("ge", raised)):
        return None
    return division.answer(division.quotient.plus(ONE, -1), raised)


@law(
    compare("eq", (c * x + r) // (c * d), x // d),
    compare("eq", (c * x + r) % (c * d), c * (x % d) + r),
    when=(r >= 0, r < c, d > 0),
)
def grouped(division: Division, analyzer: Analyzer) -> Affine | None:
    """Simplify ``(a*c + b) // (n*c)`` to ``a // n`` where b is in [0, c), for the largest c."""
    divisor = division.divisor.constant
    factors = {math.gcd(divisor, term.factor) for term in division.rest.terms.values()}
    for group in sorted(factors, reverse=True):
        whole, part = division.rest.split_by(group)
        bounds = analyzer.bounds(part)
        if group > 1 and bounds.low >= 0 and bounds.high < group:
            inner = divide(division.op, whole, Affine.of_constant(divisor // group), analyzer)
            return division.answer(division.quotient.plus(inner), inner.times(group).plus(part))
    return None


@law(compare("eq", x // c // d, x // (c * d)), when=(compare("ne", c, 0), d > 0))
def nested(division: Division, analyzer: Analyzer) -> Affine | None:
    """Simplify ``x // c // d`` to ``x // (c*d)``."""
    if division.op != "floordiv" or len(division.rest.terms) != 1:
        return None
    match division.rest.to_expr():
        case Binary("floordiv", inner, Const(value, _)):
            divisor = division.divisor.times(int(value))
            whole = divide("floordiv", analyzer.affine(inner), divisor, analyzer)
            return division.quotient.plus(whole)
    return None


CONSTANT_RULES: tuple[Rule, ...] = (within, grouped, nested)
SYMBOLIC_RULES: tuple[Rule, ...] = (within, below)


@law(
    compare("eq", Binary("truncdiv", x, d), x // d),
    compare("eq", Binary("truncmod", x, d), x % d),
    when=(x >= 0, d >= 0),
)
def truncated(op: BinaryOp, a: Affine, b: Affine, analyzer: Analyzer) -> Affine:
    """Return ``truncdiv`` or ``truncmod``; as ``//`` or ``%`` if no operand is negative."""
    if a.is_constant and b.is_constant:
        return Affine.of_constant(fold_index(op, a.constant, b.constant))
    if analyzer.bounds(b).low >= 0 and analyzer.bounds(a).low >= 0:
        return divide("floordiv" if op == "truncdiv" else "floormod", a, b, analyzer)
    return _atom(op, a, b)


def _atom(op: BinaryOp, a: Affine, b: Affine) -> Affine:
    return Affine.of_atom(Binary(op, a.to_expr(), b.to_expr()))


# -- sums of quotients and remainders -------------------------------------------------------------


def joined(affine: Affine, analyzer: Analyzer) -> Affine:
    """Combine quotients and remainders of the same dividend."""
    for term in affine.terms.values():
        match term.parts:
            case (Binary("floormod", _, _),):
                for rule in JOIN_RULES:
                    result = rule(affine, term, analyzer)
                    if result is not None:
                        return joined(result, analyzer)
    return affine


@law(compare("eq", x // c * (k * c) + x % c * k, x * k), when=(compare("ne", c, 0),))
def whole(affine: Affine, term: Term, analyzer: Analyzer) -> Affine | None:
    """Replace ``x // d * d + x % d`` by ``x``."""
    dividend, divisor = _operands(term, analyzer)
    known = analyzer.where_running(dividend, divisor)
    if not divisor.is_constant and known.bounds(divisor).low < 1:
        return None
    partner = _partner(term, analyzer)
    wanted = partner.product(divisor).times(term.factor)
    if not _contains(affine, wanted):
        return None
    rest = affine.plus(Affine.of_product(term.parts, term.factor), -1)
    return rest.plus(wanted, -1).plus(dividend, term.factor)


@law(
    compare("eq", x // c // d, x // (c * d)),
    compare("eq", x // c % d * (k * c) + x % c * k, x % (c * d) * k),
    when=(c > 0, d > 0),
)
def digits(affine: Affine, term: Term, analyzer: Analyzer) -> Affine | None:
    """Join two digits of a number: ``x // c % d * c + x % c`` becomes ``x % (c*d)``."""
    dividend, divisor = _operands(term, analyzer)
    if not divisor.is_constant or divisor.constant < 0:
        return None
    partner = _partner(term, analyzer)
    for other in affine.terms.values():
        if other.factor == divisor.constant * term.factor and (count := _modulus(other, partner)):
            both = divide("floormod", dividend, divisor.times(count), analyzer)
            rest = affine.plus(Affine.of_product(term.parts, term.factor), -1)
            rest = rest.plus(Affine.of_product(other.parts, other.factor), -1)
            return rest.plus(both, term.factor)
    return None


JOIN_RULES = (whole, digits)


def _operands(term: Term, analyzer: Analyzer) -> tuple[Affine, Affine]:
    remainder = term.parts[0]
    assert isinstance(remainder, Binary)
    return analyzer.affine(remainder.a), analyzer.affine(remainder.b)


def _partner(term: Term, analyzer: Analyzer) -> Affine:
    """Return the quotient with the same operands as a remainder, which is asked for repeatedly."""
    remainder = term.parts[0]
    known = analyzer.partners.get(id(remainder))
    if known is None:
        quotient = divide("floordiv", *_operands(term, analyzer), analyzer)
        known = analyzer.partners[id(remainder)] = remainder, quotient
    return known[1]


def _contains(affine: Affine, part: Affine) -> bool:
    """Tell whether a form contains all terms of `part`, with the same factors."""
    if part.is_constant:
        return False
    return all(
        key in affine.terms and affine.terms[key].factor == term.factor
        for key, term in part.terms.items()
    )


def _modulus(term: Term, dividend: Affine) -> int:
    """Return d when the term's atom is ``dividend % d``; 0 when it is not."""
    match term.parts:
        case (Binary("floormod", x, Const(d, _)),) if d > 0:
            if structural_key(x) == structural_key(dividend.to_expr()):
                return int(d)
    return 0
