"""Decide whether linear inequalities over integers contradict each other.

**Source:** J. Fourier (1826) and T. Motzkin (1936), elimination of a variable by adding each lower
bound of it to each upper bound; W. Pugh, "The Omega test: a fast and practical integer programming
algorithm for dependence analysis", Supercomputing 1991, section 2.1, for the tightening of
constants by the common divisor of the factors.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeAlias

Terms: TypeAlias = Mapping[Hashable, int]
Row: TypeAlias = tuple[Terms, int]
"""``sum(factor * variable) + constant >= 0``; no factor is 0."""

MAX_ROWS = 160
"""A system that grows beyond is given up: the proofs that we need stay below 60 rows; [1]."""


def is_infeasible(rows: Iterable[Row]) -> bool:
    """Tell whether it is proved that no integers satisfy all inequalities.

    Examples
    --------
    >>> below, above = ({"i": -2}, 9), ({"i": 2}, -9)  # 2*i <= 9 and 2*i >= 9
    >>> is_infeasible([below, above])
    True
    """
    system = _System()
    for terms, constant in rows:
        if system.add(dict(terms), constant):
            return True
    while system.rows:
        if len(system.rows) > MAX_ROWS:
            return False
        if system.eliminate():
            return True
    return False


class _System:
    """A set of inequalities; if several have the same factors, only the strongest is kept."""

    def __init__(self) -> None:
        self.rows: dict[frozenset[tuple[Hashable, int]], int] = {}

    def add(self, terms: dict[Hashable, int], constant: int) -> bool:
        """Add an inequality; tell whether it contradicts itself or its opposite."""
        if not terms:
            return constant < 0
        divisor = math.gcd(*terms.values())
        key = frozenset((variable, factor // divisor) for variable, factor in terms.items())
        known = self.rows.get(key)
        least = constant // divisor  # integers: the sum is a multiple of the divisor
        if known is None or least < known:
            self.rows[key] = least
        return False

    def eliminate(self) -> bool:
        """Replace the rows of the cheapest variable by their sums without it.

        Returns
        -------
        bool
            Whether a sum is a contradiction.
        """
        lower: dict[Hashable, int] = {}
        upper: dict[Hashable, int] = {}
        for key in self.rows:
            for variable, factor in key:
                side = lower if factor > 0 else upper
                side[variable] = side.get(variable, 0) + 1
        variables = dict.fromkeys((*lower, *upper))
        chosen = min(variables, key=lambda v: lower.get(v, 0) * upper.get(v, 0))
        below: list[tuple[dict[Hashable, int], int]] = []
        above: list[tuple[dict[Hashable, int], int]] = []
        for key, constant in list(self.rows.items()):
            terms = dict(key)
            if chosen in terms:
                del self.rows[key]
                (below if terms[chosen] > 0 else above).append((terms, constant))
        return any(self.add(*_sum(a, b, chosen)) for a in below for b in above)


def _sum(
    a: tuple[dict[Hashable, int], int], b: tuple[dict[Hashable, int], int], gone: Hashable
) -> tuple[dict[Hashable, int], int]:
    """Return the sum of multiples of two rows in which a variable cancels."""
    scale_a, scale_b = -b[0][gone], a[0][gone]
    terms = {variable: factor * scale_a for variable, factor in a[0].items()}
    for variable, factor in b[0].items():
        total = terms.get(variable, 0) + factor * scale_b
        if total:
            terms[variable] = total
        else:
            terms.pop(variable, None)
    return terms, a[1] * scale_a + b[1] * scale_b
