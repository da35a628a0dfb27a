"""Solve systems of equations between index expressions, where each unknown has an integer range.

``y*2 + r == h`` with y in [0, 8) and r in [0, 3) holds where ``y = h // 2 - q`` and
``r = h % 2 + q*2``, for the q in [0, 2) that leave y and r in their ranges.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dlcompiler.arith.affine import Affine, Term
from dlcompiler.arith.analyzer import Analyzer
from dlcompiler.arith.data import FALSE, TRUE
from dlcompiler.arith.interval import Interval
from dlcompiler.arith.laws import c, d, k, law, r, x, y
from dlcompiler.ir import (
    Binary,
    Compare,
    Const,
    Expr,
    Extent,
    TensorLoad,
    Var,
    compare,
    extent_binary,
    extent_expr,
    index_const,
    is_one,
    structural_key,
    substitute,
)
from dlcompiler.ir.operations import BinaryOp, CompareOp
from dlcompiler.ir.rewrite import Node, children

# Stands for a symbolic extent where the costs of elimination steps are compared.
LARGE = 2**20


@dataclass(frozen=True, eq=False)
class Solution:
    """The solutions of a system: one for each point of `free` where all `conditions` hold."""

    values: dict[Var, Expr]
    """Value of each unknown that is not free, in terms of `free` and the given variables."""
    free: dict[Var, Extent]
    """Unknowns and new variables to iterate over, from 0, with their extents."""
    conditions: tuple[Expr, ...]
    """Conditions in order: the loads in one are in bounds where the previous ones hold."""
    analyzer: Analyzer
    """An analyzer with the ranges of all variables, the new ones included."""

    def at(self, expr: Expr) -> Expr:
        """Return an expression with the unknowns replaced by their values, simplified."""
        return self.analyzer.simplify(substitute(expr, self.values))


@dataclass(frozen=True, eq=False)
class _Step:
    """The elimination of one or two unknowns, which may add a new one."""

    values: dict[Var, Affine]
    conditions: tuple[Compare, ...]
    new: tuple[Var, Extent] | None = None


def solve(
    equations: Sequence[tuple[Expr, Expr]],
    unknowns: Mapping[Var, Extent],
    given: Mapping[Var, Extent],
    symbols: Mapping[Var, Interval],
) -> Solution | None:
    """Find the points where index expressions are equal.

    Parameters
    ----------
    equations
        Pairs of index expressions.
    unknowns
        The variables to solve for; each runs from 0 to below its extent.
    given
        The other variables, with their extents.
    symbols
        The ranges of variables that have no extent.

    Returns
    -------
    Solution or None
        None if there is no solution. The solver eliminates unknowns that are terms of an equation,
        alone or times a number, as well as ``//`` and ``%`` by numbers. An equation with other
        uses of unknowns (``i*j``, ``min(i, j)``, ``A[i]``, ``i // n``) becomes a condition.

    Examples
    --------
    >>> y, r, h = Var("y"), Var("r"), Var("h")
    >>> found = solve([(y + r, h)], {y: 8, r: 3}, {h: 10}, {})
    >>> found.values, found.free
    ({Var(y): Binary(h - r)}, {Var(r): 3})
    >>> found.conditions
    (Compare(h >= r), Compare(h < r + 8))
    """
    sizes = {var: extent for var, extent in unknowns.items() if isinstance(extent, int)}
    if 0 in sizes.values():
        return None
    system = _System(symbols)
    for var, extent in given.items():
        system.declare(var, extent)
    for var, extent in unknowns.items():
        system.declare(var, extent)
        system.free[var] = extent
    for var in (var for var, size in sizes.items() if size == 1):
        system.eliminate(_Step({var: Affine.of_constant(0)}, ()))
    for a, b in equations:
        system.add(system.analyzer.affine(a).plus(system.analyzer.affine(b), -1))
    while (step := system.best_step()) is not None:
        system.eliminate(step)
    return system.solution()


@dataclass
class _System:
    symbols: Mapping[Var, Interval]
    free: dict[Var, Extent] = field(default_factory=dict)
    forms: list[Affine] = field(default_factory=list)
    """The left sides of the remaining equations ``form == 0``."""
    steps: list[_Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ranges = dict(self.symbols)
        self.extents: dict[Var, Expr] = {}
        self.analyzer = Analyzer(self.ranges, self.extents)
        self.digits: dict[Hashable, tuple[Affine, Affine] | None] = {}

    def declare(self, var: Var, extent: Extent) -> None:
        if isinstance(extent, int):
            self.ranges[var] = Interval(0, max(extent - 1, 0))
        else:
            self.extents[var] = extent

    def mentions_unknowns(self, expr: Expr) -> bool:
        return any(var in self.free for var in self.analyzer.vars_of(expr))

    # -- divisions -----------------------------------------------------------------------------

    def add(self, form: Affine) -> Affine:
        """Add the equation ``form == 0``, with new unknowns for quotients and remainders."""
        linear = Affine.of_constant(form.constant)
        for term in form.terms.values():
            linear = linear.plus(self.linear(term), term.factor)
        self.forms.append(linear)
        return linear

    def linear(self, term: Term) -> Affine:
        match term.parts:
            case (Binary("floordiv" | "floormod" as op, a, Const(divisor, _)) as part,) if (
                divisor > 0 and self.mentions_unknowns(part)
            ):
                digits = self.digits_of(a, int(divisor))
                if digits is not None:
                    return digits[op == "floormod"]
        return Affine.of_product(term.parts, 1)

    @law(
        compare("eq", x // d, c),
        compare("eq", x % d, r),
        when=(compare("eq", x, c * d + r), d > 0, r >= 0, r < d),
    )
    def digits_of(self, dividend: Expr, divisor: int) -> tuple[Affine, Affine] | None:
        """Return new unknowns for a quotient and its remainder; None for unbounded quotients."""
        key = structural_key(dividend), divisor
        if key not in self.digits:
            quotients = self.analyzer.interval(Binary("floordiv", dividend, index_const(divisor)))
            self.digits[key] = None
            if quotients.is_bounded:
                low, name = int(quotients.low), self.analyzer.vars_of(dividend)[0].name
                outer = self.unknown(f"{name}.outer", int(quotients.high) - low + 1)
                digits = outer.plus(Affine.of_constant(low)), self.unknown(f"{name}.inner", divisor)
                self.digits[key] = digits
                whole = digits[0].times(divisor).plus(digits[1])
                self.add(self.analyzer.affine(dividend).plus(whole, -1))
        return self.digits[key]

    def unknown(self, name: str, extent: int) -> Affine:
        if extent == 1:
            return Affine.of_constant(0)
        var = Var(name)
        self.declare(var, extent)
        self.free[var] = extent
        return Affine.of_atom(var)

    # -- elimination ---------------------------------------------------------------------------

    def best_step(self) -> _Step | None:
        """Return the elimination that saves most iterations; equations of few unknowns go first."""
        factors = [(form, self.factors(form)) for form in self.forms]
        fewest = min((len(found) for _, found in factors if found), default=0)
        ways = [
            (gain, form, found, chosen)
            for form, found in factors
            if found and len(found) == fewest
            for gain, chosen in self.ways(found)
        ]
        if not ways:
            return None
        _, form, found, chosen = max(ways, key=lambda way: way[0])
        self.forms.remove(form)
        return self.step(form, found, chosen)

    def factors(self, form: Affine) -> dict[Var, int]:
        """Return the unknowns that occur in a form only as separate terms, with their factors."""
        alone: dict[Var, int] = {}
        elsewhere: set[Var] = set()
        for term in form.terms.values():
            match term.parts:
                case (Var() as var,):
                    alone[var] = term.factor
                case parts:
                    elsewhere.update(v for part in parts for v in self.analyzer.vars_of(part))
        return {v: n for v, n in alone.items() if v in self.free and v not in elsewhere}

    def ways(self, factors: Mapping[Var, int]) -> Iterator[tuple[tuple[float, bool], list[Var]]]:
        """Yield sets of unknowns to eliminate together, each after the iterations that it saves."""
        common = math.gcd(*factors.values())
        sizes = {v: n if isinstance(n := self.free[v], int) else LARGE for v in factors}
        for var, factor in factors.items():
            is_exact = abs(factor) == common
            yield (sizes[var], is_exact), [var]
            for other, step in factors.items() if is_exact else ():
                count = abs(step) // common
                if count > 1:
                    saved = sizes[var] * sizes[other] / -(-sizes[var] // count)
                    yield (saved, False), [var, other]

    def step(self, form: Affine, factors: Mapping[Var, int], chosen: Sequence[Var]) -> _Step:
        """Return the step that eliminates the chosen unknowns."""
        common = math.gcd(*factors.values())
        rest = form.times(-1)
        for var, factor in factors.items():
            rest = rest.plus(Affine.of_atom(var), factor)
        rest, conditions = self.exact_quotient(rest, common)
        for var, factor in factors.items():
            if var not in chosen:
                rest = rest.plus(Affine.of_atom(var), -factor // common)
        numbers = [factors[var] // common for var in chosen]
        if len(chosen) == 2:
            return self.pair(chosen, numbers, rest.times(numbers[0]), conditions)
        (var,), (number,) = chosen, numbers
        total = rest if number > 0 else rest.times(-1)
        value, more = self.exact_quotient(total, abs(number))
        return _Step({var: value}, (*conditions, *more, *self.inside(var, total, abs(number))))

    @law(compare("eq", (c * x) // c, x), compare("eq", (c * x) % c, 0), when=(c > 0,))
    @law(compare("eq", r // c * c, r), when=(c > 0, compare("eq", r % c, 0)))
    def exact_quotient(self, form: Affine, divisor: int) -> tuple[Affine, tuple[Compare, ...]]:
        """Return ``form // divisor``, and the condition that the remainder is 0."""
        if divisor == 1:
            return form, ()
        rest = self.divided("floormod", form, divisor)
        return self.divided("floordiv", form, divisor), (_condition("eq", rest),)

    @law(
        compare("eq", (x + c * y) % c + c * ((x + c * y) // c - y), x),
        (x + c * y) // c - y >= 0,
        (x + c * y) // c - y <= (d - 1) // c,
        when=(c > 0, x >= 0, x < d),
    )
    @law(
        compare("eq", r % c + c * k + c * (r // c - k), r), r % c + c * k >= 0, when=(c > 0, k >= 0)
    )
    def pair(
        self,
        chosen: Sequence[Var],
        numbers: Sequence[int],
        total: Affine,
        conditions: tuple[Compare, ...],
    ) -> _Step:
        """Eliminate both unknowns of ``near + factor * far == total``.

        A new unknown counts the solutions: `near` is ``total % |factor|`` plus a multiple of it.
        """
        near, far = chosen
        factor = numbers[0] * numbers[1]
        size = abs(factor)
        extent = extent_binary("floordiv", extent_binary("add", self.free[near], size - 1), size)
        new = None if is_one(extent) else (Var(f"{near.name}.outer"), extent)
        count = Affine.of_constant(0) if new is None else Affine.of_atom(new[0])
        first = self.divided("floormod", total, size)
        last = self.divided("floordiv", total, size)
        values = {
            near: first.plus(count, size),
            far: last.plus(count, -1).times(1 if factor > 0 else -1),
        }
        inside = (
            condition for var, value in values.items() for condition in self.inside(var, value)
        )
        return _Step(values, (*conditions, *inside), new)

    def divided(self, op: BinaryOp, form: Affine, divisor: int) -> Affine:
        return self.analyzer.affine(Binary(op, form.to_expr(), index_const(divisor)))

    def inside(self, var: Var, value: Affine, factor: int = 1) -> tuple[Compare, Compare]:
        """Return ``0 <= value < factor * extent``, with the extent of the unknown `var`."""
        end = self.analyzer.affine(extent_expr(self.free[var]))
        return _condition("ge", value), _condition("lt", value.plus(end, -factor))

    def eliminate(self, step: _Step) -> None:
        """Substitute the values of a step for its unknowns in all equations."""
        if step.new is not None:
            self.declare(*step.new)
            self.free[step.new[0]] = step.new[1]
        for var in step.values:
            del self.free[var]
        values = {var: value.to_expr() for var, value in step.values.items()}
        self.forms = [self.analyzer.affine(substitute(f.to_expr(), values)) for f in self.forms]
        self.steps.append(step)

    def solution(self) -> Solution | None:
        """Return the values in terms of free unknowns, and the conditions not proved to hold."""
        values: dict[Var, Expr] = {}
        for step in reversed(self.steps):  # a value may contain unknowns that later steps eliminate
            known = values.copy()
            for var, value in step.values.items():
                values[var] = self.analyzer.simplify(substitute(value.to_expr(), known))
        conditions = [condition for step in self.steps for condition in step.conditions]
        conditions += [_condition("eq", form) for form in self.forms]
        found: dict[Hashable, Expr] = {}
        for condition in conditions:
            simple = self.analyzer.simplify(substitute(condition, values))
            if simple is FALSE:
                return None
            if simple is not TRUE:
                found.setdefault(structural_key(simple), simple)
        # The condition that keeps the index of a load in bounds has fewer nested loads than the
        # load, so the order by depth puts it first.
        ordered = sorted(found.values(), key=lambda condition: _reading_depth(condition, {}))
        return Solution(values, self.free, tuple(ordered), self.analyzer)


#: The methods that transform an equation; each has laws, which the tests prove.
RULES = (_System.digits_of, _System.exact_quotient, _System.pair)


def _condition(op: CompareOp, form: Affine) -> Compare:
    """Return ``form op 0``, with the negative terms on the right side."""
    above = {key: term for key, term in form.terms.items() if term.factor > 0}
    below = {key: term for key, term in form.terms.items() if term.factor < 0}
    left = Affine(above, max(form.constant, 0))
    right = Affine(below, min(form.constant, 0)).times(-1)
    return Compare(op, left.to_expr(), right.to_expr())


def _reading_depth(expr: Node, known: dict[int, int]) -> int:
    """Return how deeply reads are nested: ``A[B[i]]`` has depth 2."""
    if id(expr) not in known:
        below = (_reading_depth(child, known) for child in children(expr))
        known[id(expr)] = max(below, default=0) + isinstance(expr, TensorLoad)
    return known[id(expr)]
