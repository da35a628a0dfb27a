"""Evaluate expressions at a few points, to reject a false claim before trying to prove it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from dlcompiler.arith.affine import Affine
from dlcompiler.ir import Binary, Const, Expr, Var
from dlcompiler.ir.operations import fold_index

if TYPE_CHECKING:
    from dlcompiler.arith.analyzer import Analyzer

Values: TypeAlias = "tuple[int | None, ...]"

# For each point: the values of symbols, and where loops are as a fraction (a, b) of their range.
POINTS = (
    ((40, 33, 70, 52), (0, 1)),
    ((41, 64, 37, 96), (1, 1)),
    ((5, 3, 9, 1), (1, 1)),
    ((100, 7, 1, 130), (1, 2)),
    ((1, 65, 40, 8), (1, 1)),
)
LONGEST = 1 << 256
NOWHERE: Values = (None,) * len(POINTS)


class Samples:
    """Values of expressions at sample points; variables stay in the ranges of an analyzer."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self._vars: dict[Var, Values] = {}
        self._memo: dict[int, tuple[Expr, Values]] = {}
        self._symbols = 0

    def of_form(self, form: Affine) -> list[int]:
        """Return the values of a sum of atoms."""
        totals: list[int | None] = [form.constant] * len(POINTS)
        for term in form.terms.values():
            products: list[int | None] = [term.factor] * len(POINTS)
            for part in term.parts:
                values = self.of(part)
                products = [
                    None if a is None or b is None else a * b
                    for a, b in zip(products, values, strict=True)
                ]
            totals = [
                None if a is None or b is None else a + b
                for a, b in zip(totals, products, strict=True)
            ]
        return [value for value in totals if value is not None]

    def of(self, expr: Expr) -> Values:
        """Return the value of an expression at each point; None where it is unknown."""
        if isinstance(expr, Var):
            values = self._vars.get(expr)
            if values is None:
                values = self._vars[expr] = self._of_var(expr)
            return values
        known = self._memo.get(id(expr))
        if known is None:
            known = self._memo[id(expr)] = (expr, self._compute(expr))
        return known[1]

    def _compute(self, expr: Expr) -> Values:
        match expr:
            case Const(value, _):
                return (int(value),) * len(POINTS)
            case Binary(op, a, b):
                pairs = zip(self.of(a), self.of(b), strict=True)
                return tuple(
                    None if x is None or y is None else _short(fold_index(op, x, y))
                    for x, y in pairs
                )
        return NOWHERE

    def _of_var(self, var: Var) -> Values:
        extent = self.analyzer.extents.get(var)
        bounds = self.analyzer.bounds_of(var)
        low = int(bounds.low) if bounds.low > float("-inf") else 0
        if extent is not None:
            lasts: Values = tuple(None if e is None else e - 1 for e in self.of(extent))
        elif bounds.is_bounded:
            lasts = (int(bounds.high),) * len(POINTS)
        else:
            number, self._symbols = self._symbols, self._symbols + 1
            most = bounds.high
            sizes = [max(point[0][number % len(point[0])], low) for point in POINTS]
            return tuple(None if size > most else size for size in sizes)
        steps = (point[1] for point in POINTS)
        return tuple(
            None if last is None or last < low else low + (last - low) * part // whole
            for last, (part, whole) in zip(lasts, steps, strict=True)
        )


def _short(value: int) -> int | None:
    """Return a number that is not too long to compute with."""
    return value if -LONGEST < value < LONGEST else None
