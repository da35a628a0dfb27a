"""Index expressions as sums of integer multiples of atoms: ``i*32 + j - 1``.

An atom is a variable or an index expression that is not a sum (``i // 3``, ``min(i, j)``, a load).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler.ir import Binary, Expr, Var, binary, index_const, structural_key

AtomKey: TypeAlias = Hashable
ZERO = index_const(0)


@dataclass(frozen=True, slots=True)
class Term:
    """An atom times a factor that is not zero."""

    atom: Expr
    factor: int


@dataclass(frozen=True, slots=True)
class Affine:
    """``sum(factor * atom) + constant``; the terms keep the order they were first met in."""

    terms: dict[AtomKey, Term]
    constant: int = 0

    @staticmethod
    def of_constant(value: int) -> Affine:
        """Return a number."""
        return Affine({}, value)

    @staticmethod
    def of_atom(atom: Expr) -> Affine:
        """Return one atom."""
        return Affine({atom_key(atom): Term(atom, 1)})

    @property
    def is_constant(self) -> bool:
        """Tell whether no atom is left."""
        return not self.terms

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        """Return ``self + factor * other``."""
        terms = dict(self.terms)
        for key, term in other.terms.items():
            old = terms.get(key)
            total = term.factor * factor + (old.factor if old else 0)
            if total:
                terms[key] = Term(term.atom, total)
            else:
                terms.pop(key, None)
        return Affine(terms, self.constant + factor * other.constant)

    def times(self, factor: int) -> Affine:
        """Return ``factor * self``."""
        if factor == 0:
            return Affine.of_constant(0)
        terms = {key: Term(t.atom, t.factor * factor) for key, t in self.terms.items()}
        return Affine(terms, self.constant * factor)

    def split_by(self, divisor: int) -> tuple[Affine, Affine]:
        """Return (quotient, rest) with ``self == divisor * quotient + rest``.

        The rest holds the terms whose factor `divisor` does not divide, and a constant in
        ``[0, divisor)``.
        """
        quotient, rest = {}, {}
        for key, term in self.terms.items():
            if term.factor % divisor == 0:
                quotient[key] = Term(term.atom, term.factor // divisor)
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


def atom_key(atom: Expr) -> AtomKey:
    """Return a value that is equal for equal atoms."""
    return id(atom) if isinstance(atom, Var) else structural_key(atom)


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
