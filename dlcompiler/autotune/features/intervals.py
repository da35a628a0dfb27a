"""Ranges of index expressions, with formulas of knobs for ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dlcompiler.autotune.features.numbers import (
    Num,
    add,
    equal,
    floordiv,
    high,
    least,
    low,
    mod,
    most,
    multiply,
    select,
    subtract,
)
from dlcompiler.ir import Binary, Cast, Const, Expr, IfThenElse, Select, Var


class NotAffineError(Exception):
    """An expression whose values do not follow from the loops: it reads a tensor."""


@dataclass(frozen=True, slots=True)
class Range:
    """The values from `first` to `last`, both included."""

    first: Num
    last: Num

    @property
    def is_point(self) -> bool:
        """Whether it is one value."""
        return self.first is self.last or (
            isinstance(self.first, int | float) and self.first == self.last
        )

    @property
    def width(self) -> Num:
        """How many values there are; [1]."""
        return add(subtract(self.last, self.first), 1)


ZERO = Range(0, 0)
ONE = Range(1, 1)


def point(value: Num) -> Range:
    """Return the range of one value."""
    return Range(value, value)


def range_of(expr: Expr, values: Mapping[Var, Range]) -> Range:
    """Return the range of an index expression.

    Parameters
    ----------
    expr : Expr
        Index arithmetic.
    values : mapping of Var to Range
        Of its variables, symbols among them.

    Raises
    ------
    NotAffineError
        If it is more than index arithmetic.
    """
    match expr:
        case Const():
            return point(int(expr.value))
        case Var():
            if expr not in values:
                raise NotAffineError
            return values[expr]
        case Cast():
            return range_of(expr.value, values)
        case Binary():
            return _combined(expr.op, range_of(expr.a, values), range_of(expr.b, values))
        case Select() | IfThenElse():
            a, b = range_of(expr.a, values), range_of(expr.b, values)
            return Range(least(a.first, b.first), most(a.last, b.last))
    raise NotAffineError


def _combined(op: str, a: Range, b: Range) -> Range:
    match op:
        case "add":
            return Range(add(a.first, b.first), add(a.last, b.last))
        case "sub":
            return Range(subtract(a.first, b.last), subtract(a.last, b.first))
        case "mul":
            return _product(a, b)
        case "floordiv" | "truncdiv" if b.is_point and low(b.first) >= 0:
            return Range(floordiv(a.first, b.first), floordiv(a.last, b.first))
        case "floormod" | "truncmod" if b.is_point and low(b.first) >= 0:
            return _remainder(a, b.first)
        case "min":
            return Range(least(a.first, b.first), least(a.last, b.last))
        case "max":
            return Range(most(a.first, b.first), most(a.last, b.last))
    raise NotAffineError


def _product(a: Range, b: Range) -> Range:
    if not b.is_point:
        a, b = b, a
    if not b.is_point:
        raise NotAffineError
    if low(b.first) >= 0:
        return Range(multiply(a.first, b.first), multiply(a.last, b.first))
    if high(b.first) <= 0:
        return Range(multiply(a.last, b.first), multiply(a.first, b.first))
    raise NotAffineError


def _remainder(a: Range, by: Num) -> Range:
    if a.is_point:
        return point(mod(a.first, by))
    # Within one period the remainders are in order; otherwise all may occur.
    is_ordered = equal(floordiv(a.first, by), floordiv(a.last, by))
    first = select(is_ordered, mod(a.first, by), 0)
    return Range(first, select(is_ordered, mod(a.last, by), subtract(by, 1)))
