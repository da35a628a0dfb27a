"""Represent index expressions as sums of integer multiples of atoms: ``i*32 + j*m - 1``.

An atom is a variable, an index expression that is not a sum (``i // 3``, ``min(i, j)``, a load), or
a product of these (``j*m``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

from dlcompiler.ir import Binary, Const, Expr, Var, binary, index_const, structural_key
from dlcompiler.records import slot_setters

AtomKey: TypeAlias = Hashable
ZERO = index_const(0)

# A product is multiplied out unless that makes more terms, or a term of more parts, than these.
MAX_TERMS, MAX_PARTS = 16, 6
_SHORT = 4
"""Most operations, one inside another, of an atom whose key is computed directly; [1]."""


@dataclass(frozen=True, slots=True)
class Term:
    """An atom, as the product of its parts, times a factor that is not zero."""

    parts: tuple[Expr, ...]
    factor: int

    def __init__(self, parts: tuple[Expr, ...], factor: int) -> None:
        _set_parts(self, parts)
        _set_factor(self, factor)

    @property
    def atom(self) -> Expr:
        """The product of the parts."""
        return self.parts[0] if len(self.parts) == 1 else reduce(_times, self.parts)

    def without(self, part: Expr) -> Affine:
        """Return the term divided by `part`, which must be one of its parts."""
        position = next(n for n, other in enumerate(self.parts) if other is part)
        return Affine.of_product((*self.parts[:position], *self.parts[position + 1 :]), self.factor)


_set_parts, _set_factor = slot_setters(Term)


@dataclass(frozen=True, slots=True)
class Affine:
    """``sum(factor * atom) + constant``; the terms keep the order of their first appearance."""

    terms: dict[AtomKey, Term]
    constant: int = 0

    def __init__(self, terms: dict[AtomKey, Term], constant: int = 0) -> None:
        _set_terms(self, terms)
        _set_constant(self, constant)

    @staticmethod
    def of_constant(value: int) -> Affine:
        """Return the form of a number: it has no terms."""
        return Affine({}, value)

    @staticmethod
    def of_atom(atom: Expr) -> Affine:
        """Return the form that consists of one atom."""
        return Affine({atom_key(atom): Term((atom,), 1)})

    @staticmethod
    def of_product(parts: tuple[Expr, ...], factor: int) -> Affine:
        """Return `factor` times the product of `parts`; none of them may be a product itself."""
        if not parts:
            return Affine.of_constant(factor)
        return Affine({_product_key(parts): Term(parts, factor)})

    @property
    def is_constant(self) -> bool:
        """Tell whether the form has no atoms."""
        return not self.terms

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        """Return ``self + factor * other``."""
        terms = dict(self.terms)
        for key, term in other.terms.items():
            old = terms.get(key)
            total = term.factor * factor + (old.factor if old else 0)
            if total:
                terms[key] = Term(term.parts, total)
            else:
                terms.pop(key, None)
        return Affine(terms, self.constant + factor * other.constant)

    def times(self, factor: int) -> Affine:
        """Return ``factor * self``."""
        if factor == 0:
            return Affine.of_constant(0)
        terms = {key: Term(t.parts, t.factor * factor) for key, t in self.terms.items()}
        return Affine(terms, self.constant * factor)

    def product(self, other: Affine) -> Affine:
        """Return ``self * other``, multiplied out unless that grows too long."""
        if other.is_constant:
            return self.times(other.constant)
        if self.is_constant:
            return other.times(self.constant)
        if self._is_long_with(other):
            return Affine.of_atom(_times(self.to_expr(), other.to_expr()))
        result = self.times(other.constant).plus(other.times(self.constant))
        result = Affine(result.terms, self.constant * other.constant)
        for a in self.terms.values():
            for b in other.terms.values():
                result = result.plus(Affine.of_product(a.parts + b.parts, a.factor * b.factor))
        return result

    def _is_long_with(self, other: Affine) -> bool:
        """Tell whether ``self * other``, multiplied out, would be too long."""
        if len(self.terms) * len(other.terms) > MAX_TERMS or self.degree + other.degree > MAX_PARTS:
            return True
        if max(len(form.terms) + bool(form.constant) for form in (self, other)) == 1:
            return False
        parts = (p for form in (self, other) for t in form.terms.values() for p in t.parts)
        return any(isinstance(part, Binary) and part.op == "mul" for part in parts)

    @property
    def degree(self) -> int:
        """The largest number of parts in a term."""
        return max((len(term.parts) for term in self.terms.values()), default=0)

    def divide(self, divisor: Affine) -> tuple[Affine, Affine]:
        """Return (quotient, rest) with ``self == divisor * quotient + rest``.

        `divisor` must not be a constant. Every multiple of its longest term goes into the quotient.
        """
        lead = max(divisor.terms.values(), key=lambda term: (len(term.parts), term.factor > 0))
        wanted = Counter(map(atom_key, lead.parts))
        quotient, rest = Affine.of_constant(0), self
        for _ in range(MAX_TERMS):
            piece = next(
                filter(None, (_quotient(t, lead, wanted) for t in rest.terms.values())), None
            )
            if piece is None:
                break
            quotient = quotient.plus(piece)
            rest = rest.plus(piece.product(divisor), -1)
        return quotient, rest

    def split_by(self, divisor: int) -> tuple[Affine, Affine]:
        """Return (quotient, rest) with ``self == divisor * quotient + rest``.

        The rest consists of the terms whose factor is not a multiple of `divisor`, and of a
        constant in ``[0, divisor)``.
        """
        quotient, rest = {}, {}
        for key, term in self.terms.items():
            if term.factor % divisor == 0:
                quotient[key] = Term(term.parts, term.factor // divisor)
            else:
                rest[key] = term
        return (
            Affine(quotient, self.constant // divisor),
            Affine(rest, self.constant % divisor),
        )

    def to_expr(self) -> Expr:
        """Return the expression, positive terms first."""
        ordered = sorted(self.terms.values(), key=lambda term: term.factor < 0)
        result = _sum(ordered)
        if result is None:
            return index_const(self.constant)
        if self.constant > 0:
            return binary("add", result, index_const(self.constant))
        if self.constant < 0:
            return binary("sub", result, index_const(-self.constant))
        return result


_set_terms, _set_constant = slot_setters(Affine)


def is_same_sum(a: Expr, b: Expr) -> bool:
    """Tell whether two expressions consist of the same index arithmetic on the same operands.

    Index arithmetic is compared by structure, because each affine form builds new nodes. Any other
    operand must be the same object.
    """
    pairs = [(a, b)]
    seen = set()
    while pairs:
        a, b = pairs.pop()
        if a is b or (id(a), id(b)) in seen:
            continue
        match a, b:
            case Binary(op, x, y), Binary(other, u, v) if op == other and a.dtype == "index":
                seen.add((id(a), id(b)))
                pairs += ((x, u), (y, v))
            case Const(x, "index"), Const(y, "index") if x == y:
                pass
            case _:
                return False
    return True


def _times(a: Expr, b: Expr) -> Expr:
    return Binary("mul", a, b)


def _quotient(term: Term, lead: Term, wanted: Counter[AtomKey]) -> Affine | None:
    """Return ``term / lead``, or None if not exact; `wanted` counts the atoms of `lead`."""
    if term.factor % lead.factor or len(term.parts) < len(lead.parts):
        return None
    missing = wanted.copy()
    kept = []
    for part in term.parts:
        key = atom_key(part)
        if missing[key]:
            missing[key] -= 1
        else:
            kept.append(part)
    if missing.total():
        return None
    return Affine.of_product(tuple(kept), term.factor // lead.factor)


def _product_key(parts: tuple[Expr, ...]) -> AtomKey:
    """Return a key of a product, which does not depend on the order of the parts."""
    if len(parts) == 1:
        return atom_key(parts[0])
    return frozenset(Counter(map(atom_key, parts)).items())


def atom_key(atom: Expr) -> AtomKey:
    """Return a key of an atom: equal atoms have equal keys."""
    key = _short_key(atom, _SHORT)
    return structural_key(atom) if key is None else key


def _short_key(expr: Expr, depth: int) -> AtomKey | None:
    """Return a key of short index arithmetic, in a tenth of the time; None for other expressions.

    Operands that are shared count at each use: the limit of the depth bounds the length.
    """
    kind = type(expr)
    if kind is Var:
        return id(expr)
    if kind is Const:
        return (expr.value,) if expr.dtype == "index" else None  # type: ignore[attr-defined]
    if kind is not Binary or not depth:
        return None
    a = _short_key(expr.a, depth - 1)  # type: ignore[attr-defined]
    b = None if a is None else _short_key(expr.b, depth - 1)  # type: ignore[attr-defined]
    return None if b is None else (expr.op, a, b)  # type: ignore[attr-defined]


def _sum(terms: Iterable[Term]) -> Expr | None:
    result: Expr | None = None
    for term in terms:
        size = abs(term.factor)
        piece = term.atom if size == 1 else Binary("mul", term.atom, index_const(size))
        if result is not None:
            result = Binary("add" if term.factor > 0 else "sub", result, piece)
        else:
            result = piece if term.factor > 0 else Binary("sub", ZERO, piece)
    return result
