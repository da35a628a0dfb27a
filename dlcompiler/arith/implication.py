"""Prove that conditions imply a bound: ``1 <= i`` and ``i < n + 1`` imply ``0 <= i - 1 < n``.

The negated bound, the conditions, the ranges of the variables and the definition of each atom
(``q = a // 4`` is ``4*q <= a < 4*q + 4``) become linear inequalities. If these contradict each
other, the bound is proved. A disjunction, a minimum, a maximum and a choice are split into cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dlcompiler import dtypes
from dlcompiler.arith.affine import Affine, AtomKey, Term
from dlcompiler.arith.analyzer import Analyzer
from dlcompiler.arith.data_ranges import data_range
from dlcompiler.arith.inequalities import Row, is_infeasible
from dlcompiler.arith.interval import EVERYTHING, Interval
from dlcompiler.ir import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Logical,
    Not,
    Select,
    Var,
    cast,
    index_const,
)
from dlcompiler.ir.operations import CompareOp

MAX_SPLITS = 4
"""Depth of nested case splits in one proof: at most 2**4 systems; [1]."""
MAX_ATOMS = 24
"""Expressions with more nodes are not analysed; [1]."""
NEGATION: dict[CompareOp, CompareOp] = {
    "eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"
}  # fmt: skip


def implies(conditions: Sequence[Expr], bound: Compare, analyzer: Analyzer) -> bool:
    """Tell whether it is proved that `bound` holds wherever all `conditions` do.

    Parameters
    ----------
    conditions
        Conditions of any form; conditions that do not compare integers are ignored.
    bound
        A comparison of index expressions: ``<``, ``<=``, ``>`` or ``>=``.
    analyzer
        An analyzer with the ranges of the variables.

    Examples
    --------
    >>> from dlcompiler.arith import Interval
    >>> from dlcompiler.ir import Var
    >>> i, n = Var("i"), Var("n")
    >>> implies([i >= 1, i < n + 1], i - 1 < n, Analyzer({i: Interval(0, 99)}))
    True
    >>> implies([i >= 1], i - 1 < n, Analyzer({i: Interval(0, 99)}))
    False
    """
    if analyzer.can_prove(bound):
        return True
    case = _Case(analyzer)
    for condition in conditions:
        case.assume(condition)
    form = analyzer.affine(bound.a).plus(analyzer.affine(bound.b), -1)
    match bound.op:
        case "lt" | "le":
            form = form.times(-1)
    if bound.op in ("lt", "gt"):
        form = form.plus(Affine.of_constant(-1))
    return case.proves(form, MAX_SPLITS)


@dataclass
class _Case:
    """The facts of one case: sums that are at least 0, and disjunctions not yet split."""

    analyzer: Analyzer
    known: list[Affine] = field(default_factory=list)
    """Sums that are at least 0."""
    alternatives: list[tuple[Expr, ...]] = field(default_factory=list)
    """Disjunctions: in each tuple, at least one condition holds."""

    def with_(self, *conditions: Expr) -> _Case:
        """Return this case with more conditions."""
        case = _Case(self.analyzer, list(self.known), list(self.alternatives))
        for condition in conditions:
            case.assume(condition)
        return case

    # -- conditions ----------------------------------------------------------------------------

    def assume(self, condition: Expr, is_true: bool = True) -> None:
        """Add the facts of a condition, or of its negation."""
        match condition:
            case Logical(op, a, b):
                if (op == "and") == is_true:
                    self.assume(a, is_true)
                    self.assume(b, is_true)
                else:
                    self.alternatives.append((a, b) if is_true else (Not(a), Not(b)))
            case Not(value):
                self.assume(value, not is_true)
            case Call("likely", (value,)):
                self.assume(value, is_true)
            case Compare(op, a, b):
                self.compare(op if is_true else NEGATION[op], as_index(a), as_index(b))

    def compare(self, op: CompareOp, a: Expr | None, b: Expr | None) -> None:
        if a is None or b is None:
            return
        less = self.analyzer.affine(b).plus(self.analyzer.affine(a), -1)  # b - a
        one = Affine.of_constant(1)
        match op:
            case "lt":
                self.known.append(less.plus(one, -1))
            case "le":
                self.known.append(less)
            case "gt":
                self.known.append(less.times(-1).plus(one, -1))
            case "ge":
                self.known.append(less.times(-1))
            case "eq":
                self.known += (less, less.times(-1))
            case "ne":
                self.alternatives.append((Compare("lt", a, b), Compare("gt", a, b)))

    # -- proofs --------------------------------------------------------------------------------

    def proves(self, form: Affine, splits: int) -> bool:
        """Tell whether `form` is proved to be at least 0."""
        denied = form.times(-1).plus(Affine.of_constant(-1))
        rows = self.rows(denied)
        if rows is None:
            return False
        if is_infeasible(rows):
            return True
        if splits == 0:
            return False
        for cases in self.splits(form):
            if all(case.proves(part, splits - 1) for case, part in cases):
                return True
        return False

    def splits(self, form: Affine) -> Iterator[list[tuple[_Case, Affine]]]:
        """Yield case distinctions; the form is proved if all cases of any one are proved."""
        for term in form.terms.values():
            for part in term.parts:
                if len(term.parts) == 1 and (sides := _sides(part)):
                    rest = form.plus(Affine.of_atom(part), -term.factor)
                    yield [
                        (
                            self.with_(*conditions),
                            rest.plus(self.analyzer.affine(value), term.factor),
                        )
                        for conditions, value in sides
                    ]
                    return
        if self.alternatives:
            chosen, *left = self.alternatives
            plain = _Case(self.analyzer, self.known, left)
            yield [(plain.with_(condition), form) for condition in chosen]

    def rows(self, denied: Affine) -> list[Row] | None:
        """Return the inequalities `denied`, the known facts, and those that define their atoms."""
        forms = [denied, *self.known]
        found: dict[AtomKey, Term] = {}
        for form in forms:  # grows: definitions have atoms of their own
            for key, term in form.terms.items():
                if key not in found:
                    found[key] = term
                    forms += self.definition(Affine({key: Term(term.parts, 1)}), term.parts)
            if len(found) > MAX_ATOMS:
                return None
        return [
            ({key: term.factor for key, term in form.terms.items()}, form.constant)
            for form in forms
        ]

    def definition(self, atom: Affine, parts: tuple[Expr, ...]) -> Iterator[Affine]:
        """Yield sums that contain an atom and are at least 0, from its range and its operation."""
        bounds = self.range_of(atom, parts)
        if bounds.low > -math.inf:
            yield atom.plus(Affine.of_constant(int(bounds.low)), -1)
        if bounds.high < math.inf:
            yield Affine.of_constant(int(bounds.high)).plus(atom, -1)
        if len(parts) == 1:
            yield from self.meaning(atom, parts[0])

    def range_of(self, atom: Affine, parts: tuple[Expr, ...]) -> Interval:
        """Return bounds of an atom; for data, from its dtype and how it is computed."""
        match parts:
            case (Cast(value),):
                found = data_range(value, self.analyzer.interval)
                return found if found.high <= dtypes.max_value("int64") else EVERYTHING
        return self.analyzer.bounds(atom)

    def meaning(self, atom: Affine, part: Expr) -> Iterator[Affine]:
        """Yield sums that are at least 0 because of the operation that computes an atom."""
        affine = self.analyzer.affine
        match part:
            case Var() as var if (extent := self.analyzer.extents.get(var)) is not None:
                yield affine(extent).plus(atom, -1).plus(Affine.of_constant(-1))
            case Binary("floordiv", a, Const(int(divisor))) if divisor > 0:
                rest = affine(a).plus(atom, -divisor)
                yield rest
                yield Affine.of_constant(divisor - 1).plus(rest, -1)
            case Binary("floormod", a, Const(int(divisor)) as by) if divisor > 0:
                quotient = Affine.of_atom(Binary("floordiv", a, by))
                same = affine(a).plus(quotient, -divisor).plus(atom, -1)
                yield same
                yield same.times(-1)
            case Binary("min" | "max" as op, a, b) | Cast(Binary("min" | "max" as op, a, b)):
                for side in map(as_index, (a, b)):  # of data: casting keeps the order
                    if side is not None:
                        yield affine(side).plus(atom, -1).times(1 if op == "min" else -1)


def _sides(part: Expr) -> list[tuple[tuple[Expr, ...], Expr]]:
    """Return the cases of an atom: the conditions of each, and the value of the atom there."""
    match part:
        case Cast(Binary("min" | "max" as op, a, b)):
            first, second = as_index(a), as_index(b)
            if first is None or second is None:
                return []
            return _sides(Binary(op, first, second))
        case Binary("min", a, b):
            return [((Compare("le", a, b),), a), ((Compare("gt", a, b),), b)]
        case Binary("max", a, b):
            return [((Compare("ge", a, b),), a), ((Compare("lt", a, b),), b)]
        case Select(condition, a, b) | IfThenElse(condition, a, b):
            return [((condition,), a), ((Not(condition),), b)]
    return []


def as_index(expr: Expr) -> Expr | None:
    """Return an integer as an index of the same value; None if the value may not fit."""
    if expr.dtype == "index":
        return expr
    if not dtypes.is_int(expr.dtype) or expr.dtype == "uint64":
        return None
    if isinstance(expr, Const):
        return index_const(int(expr.value))
    if isinstance(expr, Cast) and expr.value.dtype == "index" and expr.dtype == "int64":
        return expr.value  # every index fits
    return cast(expr, "index")
