"""Narrow the ranges of sums in an index by the conditions of the access."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from dlcompiler.arith import Affine, Analyzer, Interval
from dlcompiler.ir import Binary, Compare, Const, Expr


class Guards:
    """The sums that conditions bound: ``i*4 + j < 10`` bounds ``i*4 + j``."""

    def __init__(self, conditions: Sequence[Expr], analyzer: Analyzer) -> None:
        self.conditions = conditions
        self.analyzer = analyzer

    @cached_property
    def bounds(self) -> list[tuple[Affine, Interval]]:
        """The bounded sums, without their constants, with their ranges."""
        return list(_bounds(self.conditions, self.analyzer))

    def narrow(self, part: Affine, plain: Interval) -> Interval:
        """Return the range of `part` under the conditions; `plain` is its range without them."""
        best = plain
        for known, interval in self.bounds if self.conditions else ():
            key, first = next(iter(known.terms.items()))
            if key not in part.terms or part.terms[key].factor % first.factor:
                continue
            scale = part.terms[key].factor // first.factor
            rest = part.plus(known, -scale)
            if len(rest.terms) != len(part.terms) - len(known.terms):
                continue
            other, own = self.analyzer.bounds(rest), self.analyzer.bounds(known)
            ends = (
                max(own.low, interval.low) * scale,
                min(own.high, interval.high) * scale,
            )
            low, high = min(ends) + other.low, max(ends) + other.high
            best = Interval(max(best.low, low), min(best.high, high))
        by_terms = self._sum_of_terms(part) if self.conditions else plain
        return Interval(max(best.low, by_terms.low), min(best.high, by_terms.high))

    def _sum_of_terms(self, part: Affine) -> Interval:
        """Return the range of a sum from those of its terms: ``f < 112`` bounds ``f // 7``."""
        total = Interval(part.constant, part.constant)
        for key, term in part.terms.items():
            own = self.analyzer.bounds(Affine({key: term}))
            match term.parts:
                case (Binary("floordiv", x, Const(divisor, _)),) if int(divisor) > 0:
                    form = self.analyzer.affine(x)
                    inside = self.narrow(form, self.analyzer.bounds(form))
                    if inside.is_bounded and inside.low <= inside.high:
                        ends = [int(end) // int(divisor) * term.factor for end in
                                (inside.low, inside.high)]  # fmt: skip
                        own = Interval(max(own.low, min(ends)), min(own.high, max(ends)))
            total = Interval(total.low + own.low, total.high + own.high)
        return total


def _bounds(conditions: Iterable[Expr], analyzer: Analyzer) -> Iterator[tuple[Affine, Interval]]:
    """Yield each sum that a condition bounds, without its constant, with its range."""
    for condition in conditions:
        match condition:
            case Compare("lt" | "le" | "gt" | "ge" as op, a, b) if a.dtype == "index":
                sum_ = analyzer.affine(a).plus(analyzer.affine(b), -1)
                if not sum_.terms:
                    continue
                edge = -sum_.constant
                below = Interval(-math.inf, edge - (op == "lt"))
                above = Interval(edge + (op == "gt"), math.inf)
                yield Affine(sum_.terms), below if op in ("lt", "le") else above
