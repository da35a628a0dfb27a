"""Small systems of integer constraints, and a search for a solution.

Bounds are propagated through the linear constraints until nothing changes; what is left open is
split and searched depth first. An equation without a solution by its bounds is the test of
Banerjee, one whose coefficients' divisor does not divide its constant the GCD test; both are made
anew at every node. The search ends because every variable is bounded, and is cut off by a budget.

**Source:** U. Banerjee, *Dependence Analysis for Supercomputing*, 1988, chapters 4 and 5; W. Pugh,
"The Omega test: a fast and practical integer programming algorithm for dependence analysis",
Supercomputing 1991, whose exact elimination the search replaces: our systems are tiny, and a
witness is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

LIMIT = 2**60
"""Bound on every index: extents stay below 2**48."""
HUGE = 2**16
MAX_NODES = 600
MAX_SWEEPS = 60


@dataclass(frozen=True, slots=True)
class Linear:
    """``sum(factor * variable) + constant``; variables are numbers of a `System`."""

    terms: dict[int, int]
    constant: int = 0

    def plus(self, other: Linear, factor: int = 1) -> Linear:
        """Return ``self + factor * other``."""
        terms = dict(self.terms)
        for variable, own in other.terms.items():
            total = terms.get(variable, 0) + factor * own
            if total:
                terms[variable] = total
            else:
                terms.pop(variable, None)
        return Linear(terms, self.constant + factor * other.constant)

    def bounds(self, low: Sequence[int], high: Sequence[int]) -> tuple[int, int]:
        """Return the least and the greatest value in a box."""
        least = most = self.constant
        for variable, factor in self.terms.items():
            if factor > 0:
                least += factor * low[variable]
                most += factor * high[variable]
            else:
                least += factor * high[variable]
                most += factor * low[variable]
        return least, most


@dataclass(frozen=True, slots=True)
class AtLeast:
    """``linear >= 0``."""

    linear: Linear


@dataclass(frozen=True, slots=True)
class Zero:
    """``linear == 0``."""

    linear: Linear


@dataclass(frozen=True, slots=True)
class All:
    """The conjunction of `parts`; true if there are none."""

    parts: tuple[Formula, ...] = ()


@dataclass(frozen=True, slots=True)
class Any:
    """The disjunction of `parts`; false if there are none."""

    parts: tuple[Formula, ...] = ()


Box: TypeAlias = tuple[list[int], list[int]]
"""The least and the greatest value of each variable."""
Formula: TypeAlias = AtLeast | Zero | All | Any
TRUE, FALSE = All(), Any()


@dataclass(frozen=True, slots=True)
class Function:
    """``result == apply(*arguments)``, known once the arguments are numbers."""

    result: int
    arguments: tuple[Linear, ...]
    apply: Callable[..., int]


_Rule: TypeAlias = AtLeast | Zero | Function


@dataclass(frozen=True, slots=True)
class OutOfBudget:
    """The search exceeded its budget: it is unknown whether there is a solution."""


class _ContradictionError(Exception):
    """No point of the box is a solution."""


class System:
    """A system of bounded integer variables and constraints."""

    def __init__(self) -> None:
        self.low: list[int] = []
        self.high: list[int] = []
        self.linears: list[AtLeast | Zero] = []
        self.clauses: list[All | Any] = []
        self.functions: list[Function] = []

    def variable(self, low: float, high: float) -> Linear:
        """Add a variable with its bounds, both included."""
        self.low.append(int(max(low, -LIMIT)))
        self.high.append(int(min(high, LIMIT)))
        return Linear({len(self.low) - 1: 1})

    def require(self, formula: Formula) -> None:
        """Add a constraint."""
        match formula:
            case AtLeast() | Zero():
                self.linears.append(formula)
            case All(parts):
                for part in parts:
                    self.require(part)
            case Any():
                self.clauses.append(formula)

    def solve(self, max_nodes: int = MAX_NODES) -> list[int] | OutOfBudget | None:
        """Return the values of a solution; None when there is provably none."""
        if any(a > b for a, b in zip(self.low, self.high, strict=True)):
            return None
        rules = (*self.linears, *self._consequences(), *self.functions)
        readers = self._readers(rules)
        stack = [((list(self.low), list(self.high)), bytearray(b"\1" * len(rules)))]
        for _ in range(max_nodes):
            if not stack:
                return None
            (low, high), pending = stack.pop()
            try:
                _propagate(rules, readers, pending, low, high)
                variable = self._open_variable(low, high)
            except _ContradictionError:
                continue
            if variable is None:
                return low
            for number in readers[variable]:
                pending[number] = 1
            below, above = _halves(low, high, variable)
            is_negative = high[variable] <= 0
            # Smaller numbers first: they make a witness easier to read.
            both = (below, above) if is_negative else (above, below)
            stack += [(half, bytearray(pending)) for half in both]
        return OutOfBudget()

    def solve_with(self, *formulas: Formula) -> list[int] | OutOfBudget | None:
        """Return a solution that also satisfies `formulas`, which are not kept."""
        kept = self.linears, self.clauses
        self.linears, self.clauses = list(kept[0]), list(kept[1])
        try:
            for formula in formulas:
                self.require(formula)
            return self.solve()
        finally:
            self.linears, self.clauses = kept

    def _readers(self, rules: Sequence[_Rule]) -> list[list[int]]:
        """Return, for each variable, the numbers of the rules that read its bounds."""
        readers: list[list[int]] = [[] for _ in self.low]
        for number, rule in enumerate(rules):
            for variable in _read_by(rule):
                readers[variable].append(number)
        return readers

    def _consequences(self) -> Iterator[AtLeast | Zero]:
        """Yield constraints in which equations eliminate variables of huge ranges.

        Bound propagation alone would converge too slowly: each round on ``x == n`` and ``x < n``
        moves a bound only by one.
        """
        for equation in self.linears:
            if not isinstance(equation, Zero):
                continue
            terms = equation.linear.terms
            for variable, unit in terms.items():
                if abs(unit) != 1 or self.high[variable] - self.low[variable] < HUGE:
                    continue
                for other in self.linears:
                    factor = other.linear.terms.get(variable)
                    if factor and other is not equation:
                        yield type(other)(other.linear.plus(equation.linear, -factor * unit))

    def _open_variable(self, low: list[int], high: list[int]) -> int | None:
        """Return the variable to split next; None when every point of the box is a solution."""
        open_: set[int] = set()
        for constraint in self.linears:
            if _truth(constraint, low, high) is None:
                open_.update(constraint.linear.terms)
        for clause in self.clauses:
            match _truth(clause, low, high):
                case False:
                    raise _ContradictionError
                case None:
                    open_.update(_variables(clause))
        for function in self.functions:
            for argument in function.arguments:
                open_.update(argument.terms)
        candidates = [v for v in open_ if low[v] < high[v]]
        return min(candidates, key=lambda v: (high[v] - low[v], v), default=None)


def _halves(low: list[int], high: list[int], variable: int) -> tuple[Box, Box]:
    """Split the range of a variable: in the middle, or near 0 if the range is huge."""
    least, most = low[variable], high[variable]
    middle = least + (most - least) // 2
    if most - least >= HUGE:
        if least >= 0:
            middle = min(max(2 * least, 15), middle)
        elif most > 0:
            middle = -1
        else:
            middle = max(min(2 * most, -15), middle)
    below, above = list(high), list(low)
    below[variable], above[variable] = middle, middle + 1
    return (list(low), below), (above, high)


def _propagate(
    rules: Sequence[_Rule],
    readers: list[list[int]],
    pending: bytearray,
    low: list[int],
    high: list[int],
) -> None:
    """Narrow a box by its rules until no rule changes a bound.

    Only rules that are `pending` are applied: a rule reads nothing but the bounds of its variables,
    so it changes nothing until one of these has changed. After `MAX_SWEEPS`, some may be left.
    """
    for _ in range(MAX_SWEEPS):
        if 1 not in pending:
            return
        for number, rule in enumerate(rules):
            if not pending[number]:
                continue
            pending[number] = 0
            if isinstance(rule, Function):
                changed = _apply(rule, low, high)
            else:
                changed = _tighten(rule, low, high)
            for variable in changed:
                for reader in readers[variable]:
                    pending[reader] = 1


def _read_by(rule: _Rule) -> set[int]:
    """Return the variables whose bounds a rule reads."""
    if isinstance(rule, Function):
        return {rule.result}.union(*(argument.terms for argument in rule.arguments))
    return set(rule.linear.terms)


def _tighten(constraint: AtLeast | Zero, low: list[int], high: list[int]) -> list[int]:
    """Narrow the bounds of the variables of a constraint; return those that changed."""
    linear = constraint.linear
    least, most = linear.bounds(low, high)
    if most < 0 or (least > 0 and isinstance(constraint, Zero)):
        raise _ContradictionError
    changed = _raise_bounds(linear, 1, most, low, high)
    if isinstance(constraint, Zero):
        least, _ = linear.bounds(low, high)
        if least > 0:
            raise _ContradictionError
        changed += _raise_bounds(linear, -1, -least, low, high)
        _check_divisor(linear, low, high)
    return changed


def _raise_bounds(
    linear: Linear, sign: int, most: int, low: list[int], high: list[int]
) -> list[int]:
    """Narrow bounds by ``sign * linear >= 0``, whose left side is at most `most`."""
    changed = []
    for variable, own in linear.terms.items():
        factor = sign * own
        width = high[variable] - low[variable]
        if abs(factor) * width <= most:
            continue
        slack = most // abs(factor)
        if factor > 0:
            low[variable] = high[variable] - slack
        else:
            high[variable] = low[variable] + slack
        changed.append(variable)
    return changed


def _check_divisor(linear: Linear, low: list[int], high: list[int]) -> None:
    rest, divisor = linear.constant, 0
    for variable, factor in linear.terms.items():
        if low[variable] == high[variable]:
            rest += factor * low[variable]
        else:
            divisor = math.gcd(divisor, factor)
    if rest % divisor if divisor else rest:
        raise _ContradictionError


def _apply(function: Function, low: list[int], high: list[int]) -> list[int]:
    """Evaluate a function whose arguments are numbers; return its result variable if it changed."""
    values = []
    for argument in function.arguments:
        least, most = argument.bounds(low, high)
        if least != most:
            return []
        values.append(least)
    value, result = function.apply(*values), function.result
    if not low[result] <= value <= high[result]:
        raise _ContradictionError
    changed = [result] if low[result] < high[result] else []
    low[result] = high[result] = value
    return changed


def _truth(formula: Formula, low: list[int], high: list[int]) -> bool | None:
    """Return True if a formula holds in a whole box, False if nowhere in it, None if undecided."""
    match formula:
        case AtLeast(linear):
            least, most = linear.bounds(low, high)
            return True if least >= 0 else False if most < 0 else None
        case Zero(linear):
            least, most = linear.bounds(low, high)
            return True if least == most == 0 else False if least > 0 or most < 0 else None
        case All(parts):
            truths = [_truth(part, low, high) for part in parts]
            return False if False in truths else None if None in truths else True
        case Any(parts):
            truths = [_truth(part, low, high) for part in parts]
            return True if True in truths else None if None in truths else False


def _variables(formula: Formula) -> set[int]:
    match formula:
        case AtLeast(linear) | Zero(linear):
            return set(linear.terms)
        case All(parts) | Any(parts):
            return set().union(*(_variables(part) for part in parts))
