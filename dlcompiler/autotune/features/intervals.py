"""Ranges of index expressions whose ends are formulas of knobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

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
    """Raised for an index expression that reads a tensor: its range is unknown."""


@dataclass(frozen=True, slots=True)
class Digit:
    """Records that a range is ``whole // by``, ``whole // by * by`` or ``whole % by``."""

    kind: Literal["quotient", "scaled", "rest"]
    whole: Range
    by: Num


@dataclass(frozen=True, slots=True)
class Range:
    """The values from `first` to `last`, both included."""

    first: Num
    last: Num
    digit: Digit | None = None
    """Set for a quotient and its remainder, so that ``x // c * c + x % c`` becomes ``x`` again."""
    parts: tuple[Range, Range, Num] | None = None
    """Set for ``outer * by + inner``, as (outer, inner, by), so that division splits it exactly."""

    @property
    def is_point(self) -> bool:
        """Whether the range has exactly one value."""
        return _same(self.first, self.last)

    @property
    def width(self) -> Num:
        """Number of values in the range; [1]."""
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
        Ranges of its variables and symbols.

    Raises
    ------
    NotAffineError
        If it has anything but index arithmetic.
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
            return _whole(a, b) or Range(add(a.first, b.first), add(a.last, b.last))
        case "sub":
            return Range(subtract(a.first, b.last), subtract(a.last, b.first))
        case "mul":
            return _product(a, b)
        case "floordiv" | "truncdiv" if b.is_point and low(b.first) >= 0:
            return quotient(a, b.first)
        case "floormod" | "truncmod" if b.is_point and low(b.first) >= 0:
            return rest(a, b.first)
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
        digit = a.digit
        is_scaled = digit is not None and digit.kind == "quotient" and _same(digit.by, b.first)
        scaled = replace(digit, kind="scaled") if is_scaled and digit is not None else None
        return Range(multiply(a.first, b.first), multiply(a.last, b.first), scaled)
    if high(b.first) <= 0:
        return Range(multiply(a.last, b.first), multiply(a.first, b.first))
    raise NotAffineError


def _whole(a: Range, b: Range) -> Range | None:
    """Return the range of ``x`` if `a` and `b` are ``x // c * c`` and ``x % c``; else None."""
    for scaled, remaining in ((a.digit, b.digit), (b.digit, a.digit)):
        if scaled is None or remaining is None:
            continue
        if (scaled.kind, remaining.kind) != ("scaled", "rest"):
            continue
        whole, other = scaled.whole, remaining.whole
        is_same = _same(whole.first, other.first) and _same(whole.last, other.last)
        if is_same and _same(scaled.by, remaining.by):
            return whole
    return None


def _same(a: Num, b: Num) -> bool:
    """Tell whether two numbers are the same for all configs; equal formulas are one object."""
    return a is b or (isinstance(a, int | float) and isinstance(b, int | float) and a == b)


def joined(outer: Range, inner: Range, by: Num) -> Range:
    """Return the range of ``outer * by + inner``, where `inner` is below `by`."""
    if outer is ZERO:
        return inner
    first = add(multiply(outer.first, by), inner.first)
    if outer.is_point and inner.is_point:
        return Range(first, first, parts=(outer, inner, by))
    return Range(first, add(multiply(outer.last, by), inner.last), parts=(outer, inner, by))


def quotient(a: Range, by: Num) -> Range:
    """Return the range of ``a // by``."""
    if a is ZERO:
        return a
    if a.parts is not None and _same(a.parts[2], by):
        return a.parts[0]
    digit = Digit("quotient", a, by)
    return Range(floordiv(a.first, by), floordiv(a.last, by), digit)


def rest(a: Range, by: Num) -> Range:
    """Return the range of ``a % by``."""
    if a is ZERO:
        return a
    if a.parts is not None and _same(a.parts[2], by):
        return a.parts[1]
    if a.is_point:
        return point(mod(a.first, by))
    # Within one period the remainders are in order; otherwise all may occur.
    is_ordered = equal(floordiv(a.first, by), floordiv(a.last, by))
    first = select(is_ordered, mod(a.first, by), 0)
    last = select(is_ordered, mod(a.last, by), subtract(by, 1))
    return Range(first, last, Digit("rest", a, by))
