"""The analyzer: simplifies expressions and bounds them, given the range of each variable."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.arith.affine import Affine, Term, atom_key
from dlcompiler.ir import (
    Binary,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Logical,
    Not,
    Select,
    Stmt,
    Var,
    structural_key,
)
from dlcompiler.ir.expr import BinaryOp, CompareOp, fold_index
from dlcompiler.ir.rewrite import Node, map_children

INFINITY = math.inf
TRUE, FALSE = Const(True, "bool"), Const(False, "bool")


@dataclass(frozen=True, slots=True)
class Interval:
    """All integers from `low` to `high`, both included; infinite ends are floats."""

    low: float
    high: float

    @property
    def is_bounded(self) -> bool:
        """Tell whether both ends are numbers."""
        return self.low > -INFINITY and self.high < INFINITY


EVERYTHING = Interval(-INFINITY, INFINITY)


class Analyzer:
    """Simplify and bound index expressions, and fold conditions.

    Parameters
    ----------
    ranges
        For a variable, the values it takes. Variables without a range may take any value. The
        mapping may grow while the analyzer is in use, but a range must not change.
    """

    def __init__(self, ranges: Mapping[Var, Interval]) -> None:
        self.ranges = ranges
        self._memo: dict[int, tuple[Expr, Expr]] = {}
        self._affine_memo: dict[int, tuple[Expr, Affine]] = {}

    # -- public ------------------------------------------------------------------------------

    def simplify(self, expr: Expr) -> Expr:
        """Return an equal, simpler expression; the same object when nothing got simpler.

        Index arithmetic is put into affine form; comparisons are decided where the ranges allow.
        Data arithmetic is only changed by rules that hold for wrapping integers and IEEE floats.
        """
        known = self._memo.get(id(expr))
        if known is not None:
            return known[1]
        result = self._simplify(expr)
        if result is not expr and is_same_sum(result, expr):
            result = expr
        self._memo[id(expr)] = (expr, result)
        return result

    def interval(self, expr: Expr) -> Interval:
        """Return bounds of an index expression."""
        return self._bounds(self.affine(expr))

    def can_prove(self, condition: Expr) -> bool:
        """Tell whether `condition` holds for all values in the ranges."""
        result = self.simplify(condition)
        return isinstance(result, Const) and bool(result.value)

    def affine(self, expr: Expr) -> Affine:
        """Return an index expression as a sum of atoms."""
        known = self._affine_memo.get(id(expr))
        if known is None:
            known = (expr, self._affine(expr))
            self._affine_memo[id(expr)] = known
        return known[1]

    # -- simplification ------------------------------------------------------------------------

    def _simplify(self, expr: Expr) -> Expr:
        match expr:
            case Const() | Var(_, "index"):
                return self.affine(expr).to_expr() if isinstance(expr, Var) else expr
            case Binary() if expr.dtype == "index":
                return self.affine(expr).to_expr()
        expr = map_children(expr, self._visit)
        match expr:
            case Binary(op, a, b):
                return simplify_data(expr, op, a, b)
            case Compare(op, a, b) if a.dtype == "index":
                return self._compare(expr, op, a, b)
            case Logical(op, a, b):
                return _fold_logical(expr, op == "or", a, b)
            case Not(Const(value, "bool")):
                return FALSE if value else TRUE
            case Select(Const(value, _), a, b) | IfThenElse(Const(value, _), a, b):
                return a if value else b
        return expr

    def _visit(self, node: Node) -> Node:
        assert not isinstance(node, Stmt)
        return self.simplify(node)

    def _compare(self, expr: Compare, op: CompareOp, a: Expr, b: Expr) -> Expr:
        bounds = self._bounds(self.affine(a).plus(self.affine(b), -1))
        verdict = _decide(op, bounds)
        return expr if verdict is None else TRUE if verdict else FALSE

    # -- affine forms --------------------------------------------------------------------------

    def _affine(self, expr: Expr) -> Affine:
        match expr:
            case Const(value, _):
                return Affine.of_constant(int(value))
            case Var():
                bounds = self.ranges.get(expr, EVERYTHING)
                if bounds.low == bounds.high:
                    return Affine.of_constant(int(bounds.low))
                return Affine.of_atom(expr)
            case Binary("add" | "sub" as op, a, b):
                return self._join(self.affine(a).plus(self.affine(b), 1 if op == "add" else -1))
            case Binary("mul", a, b):
                return self._product(self.affine(a), self.affine(b))
            case Binary("floordiv" | "floormod" as op, a, b):
                return self._division(op, self.affine(a), self.affine(b))
            case Binary("min" | "max" as op, a, b):
                return self._extremum(op, self.affine(a), self.affine(b))
            case Binary(op, a, b):
                return self._other(op, self.affine(a), self.affine(b))
        match map_children(expr, self._visit):
            case Select(Const(value, _), a, b) | IfThenElse(Const(value, _), a, b):
                return self.affine(a if value else b)
            case atom:
                return Affine.of_atom(atom)

    def _product(self, a: Affine, b: Affine) -> Affine:
        if b.is_constant:
            return a.times(b.constant)
        if a.is_constant:
            return b.times(a.constant)
        return Affine.of_atom(Binary("mul", a.to_expr(), b.to_expr()))

    def _other(self, op: BinaryOp, a: Affine, b: Affine) -> Affine:
        if a.is_constant and b.is_constant:
            return Affine.of_constant(fold_index(op, a.constant, b.constant))
        if b.is_constant and b.constant > 0 and self._bounds(a).low >= 0:
            # Nothing is negative: truncation and floor agree.
            return self._division("floordiv" if op == "truncdiv" else "floormod", a, b)
        return Affine.of_atom(Binary(op, a.to_expr(), b.to_expr()))

    def _division(self, op: BinaryOp, a: Affine, b: Affine) -> Affine:
        """Divide by a positive constant: pull out what it divides, drop what stays below it."""
        if b.is_constant and (a.is_constant or b.constant == 0):
            return Affine.of_constant(fold_index(op, a.constant, b.constant))
        if not b.is_constant or b.constant < 0:
            return Affine.of_atom(Binary(op, a.to_expr(), b.to_expr()))
        divisor = b.constant
        quotient, rest = a.split_by(divisor)
        bounds = self._bounds(rest)
        if bounds.low >= 0 and bounds.high < divisor:
            return quotient if op == "floordiv" else rest
        group, whole, part = self._grouped(rest, divisor)
        if group > 1:  # (g*x + r) // (g*d) == x // d, and (g*x + r) % (g*d) == g*(x % d) + r
            inner = self._division(op, whole, Affine.of_constant(divisor // group))
            return quotient.plus(inner) if op == "floordiv" else inner.times(group).plus(part)
        if op == "floormod":
            return Affine.of_atom(Binary("floormod", rest.to_expr(), b.to_expr()))
        return quotient.plus(self._floordiv_atom(rest, divisor))

    def _grouped(self, rest: Affine, divisor: int) -> tuple[int, Affine, Affine]:
        """Return (g, x, r) with ``rest == g*x + r``, r in [0, g), and g the largest possible.

        g divides `divisor`; it is 1 when there is no such form.
        """
        groups = {math.gcd(divisor, term.factor) for term in rest.terms.values()}
        for group in sorted(groups, reverse=True):
            whole, part = rest.split_by(group)
            bounds = self._bounds(part)
            if bounds.low >= 0 and bounds.high < group:
                return group, whole, part
        return 1, rest, Affine.of_constant(0)

    def _floordiv_atom(self, rest: Affine, divisor: int) -> Affine:
        match rest.to_expr():
            case Binary("floordiv", inner, Const(value, _)):
                inner_affine = self.affine(inner)
                divided = Const(int(value) * divisor, "index")
                return self._division("floordiv", inner_affine, self.affine(divided))
            case expr:
                return Affine.of_atom(Binary("floordiv", expr, Const(divisor, "index")))

    def _extremum(self, op: BinaryOp, a: Affine, b: Affine) -> Affine:
        bounds = self._bounds(a.plus(b, -1))
        if bounds.high <= 0:
            return a if op == "min" else b
        if bounds.low >= 0:
            return b if op == "min" else a
        return Affine.of_atom(Binary(op, a.to_expr(), b.to_expr()))

    def _join(self, affine: Affine) -> Affine:
        """Put together what divisions took apart.

        ``x // c * (k*c) + x % c * k`` is ``x * k``, and ``x // c % d * (k*c) + x % c * k`` is
        ``x % (c*d) * k``.
        """
        for term in affine.terms.values():
            match term.atom:
                case Binary("floormod", x, Const(c, _) as divisor):
                    inner = self.affine(x)
                    partner = self._division("floordiv", inner, self.affine(divisor))
                    rest = affine.plus(Affine({atom_key(term.atom): term}), -1)
                    wanted = partner.times(int(c) * term.factor)
                    if _contains(affine, wanted):
                        return self._join(rest.plus(wanted, -1).plus(inner, term.factor))
                    for other in rest.terms.values():
                        if other.factor == int(c) * term.factor and (d := _modulus(other, partner)):
                            joined = self._division(
                                "floormod", inner, Affine.of_constant(int(c) * d)
                            )
                            rest = rest.plus(Affine({atom_key(other.atom): other}), -1)
                            return self._join(rest.plus(joined, term.factor))
        return affine

    # -- bounds --------------------------------------------------------------------------------

    def _bounds(self, affine: Affine) -> Interval:
        low: float = affine.constant
        high: float = affine.constant
        for term in affine.terms.values():
            atom = self._atom_bounds(term.atom)
            ends = (atom.low * term.factor, atom.high * term.factor)
            low += min(ends)
            high += max(ends)
        return Interval(low, high)

    def _atom_bounds(self, atom: Expr) -> Interval:
        match atom:
            case Var():
                return self.ranges.get(atom, EVERYTHING)
            case Binary("floordiv", a, Const(c, _)) if c > 0:
                inner = self.interval(a)
                return Interval(_floor(inner.low, c), _floor(inner.high, c))
            case Binary("floormod", a, Const(c, _)) if c > 0:
                inner = self.interval(a)
                return Interval(0, min(c - 1, inner.high) if inner.low >= 0 else c - 1)
            case Binary("min", a, b):
                x, y = self.interval(a), self.interval(b)
                return Interval(min(x.low, y.low), min(x.high, y.high))
            case Binary("max", a, b):
                x, y = self.interval(a), self.interval(b)
                return Interval(max(x.low, y.low), max(x.high, y.high))
            case Binary("mul", a, b):
                return _product_bounds(self.interval(a), self.interval(b))
            case Select(_, a, b) | IfThenElse(_, a, b):
                x, y = self.interval(a), self.interval(b)
                return Interval(min(x.low, y.low), max(x.high, y.high))
        return EVERYTHING


def is_same_sum(a: Expr, b: Expr) -> bool:
    """Tell whether two expressions are equal, looking only into index arithmetic.

    The affine form is built anew each time; all else is the same object when it did not change.
    """
    if a is b:
        return True
    match a, b:
        case Binary(op, x, y), Binary(other, u, v) if a.dtype == "index":
            return op == other and is_same_sum(x, u) and is_same_sum(y, v)
        case Const(value, dtype), Const(other_value, other_dtype):
            return dtype == other_dtype == "index" and value == other_value
    return False


def _contains(affine: Affine, part: Affine) -> bool:
    """Tell whether subtracting `part` removes its terms entirely."""
    if part.is_constant:
        return False
    return all(
        key in affine.terms and affine.terms[key].factor == term.factor
        for key, term in part.terms.items()
    )


def _modulus(term: Term, dividend: Affine) -> int:
    """Return d when the term's atom is ``dividend % d``; 0 when it is not."""
    match term.atom:
        case Binary("floormod", x, Const(d, _)) if d > 0:
            if structural_key(x) == structural_key(dividend.to_expr()):
                return int(d)
    return 0


def _floor(value: float, divisor: float) -> float:
    return value if math.isinf(value) else value // divisor


def _product_bounds(x: Interval, y: Interval) -> Interval:
    if not (x.is_bounded and y.is_bounded):
        return EVERYTHING
    ends = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    return Interval(min(ends), max(ends))


def _decide(op: CompareOp, difference: Interval) -> bool | None:
    """Decide ``a op b`` from the bounds of ``a - b``; None when they do not tell."""
    low, high = difference.low, difference.high
    yes, no = {
        "lt": (high < 0, low >= 0),
        "le": (high <= 0, low > 0),
        "gt": (low > 0, high <= 0),
        "ge": (low >= 0, high < 0),
        "eq": (low == high == 0, low > 0 or high < 0),
        "ne": (low > 0 or high < 0, low == high == 0),
    }[op]
    return True if yes else False if no else None


def _fold_logical(expr: Logical, absorbing: bool, a: Expr, b: Expr) -> Expr:
    """Fold ``and`` (`absorbing` False) or ``or`` (`absorbing` True) with a known operand."""
    if isinstance(a, Const):
        return (TRUE if absorbing else FALSE) if bool(a.value) == absorbing else b
    if isinstance(b, Const):
        return (TRUE if absorbing else FALSE) if bool(b.value) == absorbing else a
    return expr


def simplify_data(expr: Binary, op: BinaryOp, a: Expr, b: Expr) -> Expr:
    """Apply the identities that hold for wrapping integers and IEEE floats alike."""
    is_integer = not dtypes.is_float(dtypes.element(expr.dtype))
    if isinstance(b, Const):
        if b.value == 1 and op in ("mul", "div", "floordiv", "truncdiv"):
            return a
        if b.value == 0 and is_integer and op in ("add", "sub"):
            return a
    if isinstance(a, Const):
        if a.value == 1 and op == "mul":
            return b
        if a.value == 0 and is_integer and op == "add":
            return b
    return expr
