"""Accesses as sums of loop variables under bounds: what counting their elements starts from."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from dlcompiler.analysis.accesses import Access
from dlcompiler.arith import Affine, Analyzer
from dlcompiler.ir import Call, Compare, Const, Expr, Not, Var

_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


@dataclass(frozen=True, slots=True)
class Sum:
    """``sum(factor * var) + constant``."""

    factors: Mapping[Var, int]
    constant: int

    def at(self, values: Mapping[Var, int]) -> int:
        """Return the constant and what the variables that have a value add to it."""
        return self.constant + sum(
            factor * values[var] for var, factor in self.factors.items() if var in values
        )


@dataclass(frozen=True, slots=True)
class Bound:
    """What a condition says: `sum` without its constant stays between two ends."""

    sum: Sum
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """An access, read as far as it is affine."""

    access: Access
    extents: Mapping[Var, int]
    """Of the loops around it."""
    indices: tuple[Sum | None, ...]
    """None: not a sum of loop variables."""
    bounds: tuple[Bound, ...]
    is_known: bool
    """Whether `bounds` says all that the conditions and the extents of the loops do."""
    variables: frozenset[Var]
    """Loop variables in the indices and conditions."""

    @property
    def place(self) -> Hashable:
        """What is equal for accesses with the same affine indices of one buffer."""
        return self.access.buffer, tuple(
            self if sum_ is None else (tuple(sum_.factors.items()), sum_.constant)
            for sum_ in self.indices
        )

    @property
    def is_affine(self) -> bool:
        """Tell whether all indices are sums."""
        return None not in self.indices

    def fixed(self, depth: int) -> list[Var]:
        """Return the variables of the loops outside the one at `depth`."""
        return [loop.var for loop in self.access.loops[:depth]]


class Reader:
    """Reads accesses of one program."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer

    def read(self, access: Access) -> Reference | None:
        """Return an access as sums, or None if a loop around it has no number of iterations."""
        extents: dict[Var, int] = {}
        is_known = True
        for loop in access.loops:
            if loop.size is None:
                high = self.analyzer.interval(loop.extent).high
                if high == math.inf:
                    return None
                extents[loop.var], is_known = max(int(high), 0), False
            else:
                extents[loop.var] = loop.size
        indices = tuple(self.sum(self.analyzer.affine(index), extents) for index in access.indices)
        bounds: dict[tuple[tuple[Var, int], ...], Bound] = {}
        for condition in access.conditions:
            found = self.bound(condition, extents)
            if found is None:
                is_known = False
                continue
            key = tuple(found.sum.factors.items())
            old = bounds.get(key)
            if old is not None:
                found = Bound(found.sum, max(old.low, found.low), min(old.high, found.high))
            bounds[key] = found
        variables = frozenset(
            var for expr in (*access.indices, *access.conditions)
            for var in self.analyzer.vars_of(expr) if var in extents
        )  # fmt: skip
        return Reference(access, extents, indices, tuple(bounds.values()), is_known, variables)

    def sum(self, form: Affine, extents: Mapping[Var, int]) -> Sum | None:
        """Return an affine form as a sum of the variables that have an extent, if it is one."""
        factors: dict[Var, int] = {}
        for term in form.terms.values():
            match term.parts:
                case (Var() as var,) if var in extents:
                    factors[var] = term.factor
                case _:
                    return None
        return Sum({var: factors[var] for var in extents if var in factors}, form.constant)

    def bound(self, condition: Expr, extents: Mapping[Var, int]) -> Bound | None:
        """Return what a condition says of a sum of loop variables, if it is about one."""
        if isinstance(condition, Const):
            return Bound(Sum({}, 0), 0 if condition.value else 1, 0)
        for op, a, b in _comparisons(condition):
            sum_ = self.sum(self.analyzer.affine(a).plus(self.analyzer.affine(b), -1), extents)
            if sum_ is None or op == "ne":
                return None
            return _bound(op, sum_)
        return None


def _comparisons(condition: Expr) -> Iterator[tuple[str, Expr, Expr]]:
    match condition:
        case Compare(op, a, b) if a.dtype == "index":
            yield op, a, b
        case Not(Compare(op, a, b)) if a.dtype == "index":
            yield _NEGATED[op], a, b
        case Call("likely", (inner,), _):
            yield from _comparisons(inner)


def _bound(op: str, sum_: Sum) -> Bound:
    """Return what ``sum op 0`` says of the sum divided by the common factor of its terms.

    Its first factor is positive, so that equal sums are found equal.
    """
    edge: float = -sum_.constant
    low, high = {
        "lt": (-math.inf, edge - 1), "le": (-math.inf, edge), "eq": (edge, edge),
        "gt": (edge + 1, math.inf), "ge": (edge, math.inf),
    }[op]  # fmt: skip
    common = math.gcd(*sum_.factors.values())
    if not common:
        return Bound(Sum({}, 0), low, high)
    if next(iter(sum_.factors.values())) < 0:
        common, low, high = -common, -high, -low
    low = low if low == -math.inf else -(-int(low) // abs(common))
    high = high if high == math.inf else int(high) // abs(common)
    return Bound(Sum({var: factor // common for var, factor in sum_.factors.items()}, 0), low, high)
