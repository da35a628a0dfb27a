"""Symbolic bounds: eliminate variables from a form by the ends of their ranges.

The ends may be expressions. To prove ``i*m + j < n*m`` with i in [0, n) and j in [0, m), take the
difference ``i*m + j - n*m``. It grows with j, so j is replaced by ``m - 1``. The result grows with
i, so i is replaced by ``n - 1``. What remains is -1, which is negative.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from dlcompiler.arith.affine import Affine, Term, atom_key
from dlcompiler.arith.laws import c, d, k, law, x, y
from dlcompiler.ir import (
    Binary,
    Const,
    Expr,
    Logical,
    Var,
    binary,
    compare,
    index_const,
    substitute,
)

if TYPE_CHECKING:
    from dlcompiler.arith.analyzer import Analyzer

Sign: TypeAlias = Literal[-1, 1]

# Steps of one proof and of the proofs nested in it. Each step eliminates a variable or a division;
# few proofs need ten.
MAX_STEPS = 24


@dataclass(slots=True)
class ProofBudget:
    """The remaining steps of a proof, shared with the proofs nested in it."""

    depth: int = 0
    steps: int = MAX_STEPS

    @property
    def is_spent(self) -> bool:
        """Whether the current proof ran out of steps, so that its answer is not final."""
        return self.depth > 0 and self.steps < 0


def is_negative(form: Affine, analyzer: Analyzer) -> bool:
    """Tell whether `form` is proved to be below 0 for all values of its variables."""
    budget = analyzer.budget
    if budget.depth == 0:
        budget.steps = MAX_STEPS
    budget.depth += 1
    try:
        return _Proof(analyzer, _running(form, analyzer)).is_negative(form)
    finally:
        budget.depth -= 1


def bound(form: Affine, over: Collection[Var], analyzer: Analyzer, sign: Sign) -> Affine | None:
    """Return the greatest (`sign` 1) or least (-1) value over the ranges of the variables `over`.

    Returns
    -------
    Affine or None
        The result has none of these variables. None if a variable has no end, or if `form` is not
        monotonic in it.
    """
    proof = _Proof(analyzer, ())
    for _ in range(MAX_STEPS):
        left = [var for var in proof.variables(form) if var in over]
        if not left:
            return form
        ends = (proof.at_end(form, var, sign) for var in left)
        smaller = next((end for end in ends if end is not None), None)
        if smaller is None:
            return None
        form = smaller
    return None


class _Proof:
    """One attempt to show that a form is negative."""

    def __init__(self, analyzer: Analyzer, running: Collection[Var]) -> None:
        self.analyzer = analyzer
        self.running = running

    def is_negative(self, form: Affine) -> bool:
        if self.analyzer.bounds(form).high < 0:
            return True
        if any(value >= 0 for value in self.analyzer.samples.of_form(form)):
            return False
        for cases in self.reductions(form):
            self.analyzer.budget.steps -= 1
            if self.analyzer.budget.steps < 0:
                return False
            if all(self.is_negative(case) for case in cases):
                return True
        return False

    def reductions(self, form: Affine) -> Iterator[tuple[Affine, ...]]:
        """Yield tuples of simpler forms: if all forms of one tuple are negative, `form` is."""
        # Bounds of divisions lose precision, so loop variables are eliminated before them.
        for term in form.terms.values():
            for part in term.parts:
                if isinstance(part, Binary) and part.op in ("min", "max"):
                    yield from self.choices(form, term, part)
                    return
        variables = self.variables(form)
        for var in variables:
            if self.is_running(var) and (end := self.at_end(form, var, 1)) is not None:
                yield (end,)
                return
        yield from self.without_equal_divisors(form)
        yield from self.without_divisions(form)
        for var in variables:
            if not self.is_running(var) and (end := self.at_end(form, var, 1)) is not None:
                yield (end,)
                return

    # -- variables -----------------------------------------------------------------------------

    def variables(self, form: Affine) -> list[Var]:
        """Return the variables, each before those that its range depends on."""
        found = {v: None for t in form.terms.values() for p in t.parts for v in self.vars_of(p)}
        extents = self.analyzer.extents
        left = list(found)
        result: list[Var] = []
        while left:
            needed = {v for other in left if other in extents for v in self.vars_of(extents[other])}
            free = [v for v in left if v not in needed] or left
            result += free
            left = [v for v in left if v not in free]
        return result

    def vars_of(self, expr: Expr) -> tuple[Var, ...]:
        return (expr,) if isinstance(expr, Var) else self.analyzer.vars_of(expr)

    def is_running(self, var: Var) -> bool:
        """Tell whether both ends of a variable's range are known, as for a loop variable."""
        return var in self.analyzer.extents or self.analyzer.bounds_of(var).is_bounded

    def at_end(self, form: Affine, var: Var, sign: Sign) -> Affine | None:
        """Return `form` at the end of `var` where it is greatest (`sign` 1) or least (-1).

        None if `form` is not monotonic in `var`, or `var` has no such end.
        """
        direction = self.direction(form, var)
        if direction is None:
            return None
        end = self.end(var, direction * sign > 0)
        return None if end is None else self.with_value(form, var, end)

    def end(self, var: Var, last: bool) -> Affine | None:
        extent = self.analyzer.extents.get(var)
        numbers = self.analyzer.bounds_of(var)
        value = numbers.high if last else numbers.low
        if extent is not None and last:
            return self.analyzer.affine(extent).plus(Affine.of_constant(-1))
        return Affine.of_constant(int(value)) if abs(value) < float("inf") else None

    @law(c * x <= c * y, when=(c >= 0, x <= y))
    @law(c * x >= c * y, when=(c <= 0, x <= y))
    def with_value(self, form: Affine, var: Var, value: Affine) -> Affine:
        result = Affine.of_constant(form.constant)
        for term in form.terms.values():
            product = Affine.of_constant(term.factor)
            for part in term.parts:
                if part is var:
                    product = product.product(value)
                elif var in self.vars_of(part):
                    product = product.product(
                        self.analyzer.affine(substitute(part, {var: value.to_expr()}))
                    )
                else:
                    product = product.product(Affine.of_atom(part))
            result = result.plus(product)
        return result

    # -- directions ----------------------------------------------------------------------------

    def direction(self, form: Affine, var: Var) -> int | None:
        """Return 1 if `form` is non-decreasing in `var`, -1 if it is non-increasing, else None.

        0 if it does not depend on `var`.
        """
        factor = Affine.of_constant(0)
        directions: set[int | None] = set()
        for term in form.terms.values():
            moving = [part for part in term.parts if var in self.vars_of(part)]
            if len(moving) > 1:
                return None
            if not moving:
                continue
            others = term.without(moving[0])
            if moving[0] is var:
                factor = factor.plus(others)
            else:
                inner = self.part_direction(moving[0], var)
                directions.add(None if inner is None else _times(inner, self.sign(others)))
        directions.add(self.sign(factor))
        directions.discard(0)
        if len(directions) > 1:
            return None
        return directions.pop() if directions else 0

    @law(x // d <= y // d, when=(x <= y, d >= 0))
    @law(x // d >= y // d, when=(x <= y, d <= 0))
    @law(
        binary("min", x, c) <= binary("min", y, c),
        binary("max", x, c) <= binary("max", y, c),
        when=(x <= y,),
    )
    def part_direction(self, part: Expr, var: Var) -> int | None:
        match part:
            case Binary("floordiv", a, b) if var not in self.vars_of(b):
                inner = self.direction(self.analyzer.affine(a), var)
                return None if inner is None else _times(inner, self.sign(self.analyzer.affine(b)))
            case Binary("min" | "max", a, b):
                both = {self.direction(self.analyzer.affine(side), var) for side in (a, b)} - {0}
                return None if len(both) > 1 else both.pop() if both else 0
        return None

    def sign(self, form: Affine) -> int | None:
        """Return 1 if a form is never negative, -1 if never positive, 0 if it is 0, else None."""
        bounds = self.analyzer.bounds(form)
        if bounds.low >= 0:
            return 0 if bounds.high <= 0 else 1
        return -1 if bounds.high <= 0 else None

    # -- minima, maxima and divisions ----------------------------------------------------------

    @law(
        Logical("or", compare("eq", binary("min", x, y), x), compare("eq", binary("min", x, y), y)),
        Logical("or", compare("eq", binary("max", x, y), x), compare("eq", binary("max", x, y), y)),
        binary("min", x, y) <= x,
        binary("max", x, y) >= x,
    )
    def choices(self, form: Affine, term: Term, part: Binary) -> Iterator[tuple[Affine, ...]]:
        """Replace a minimum or maximum by one of its sides, or prove both cases.

        One case is enough if it bounds the form from above. A side is left out if a surrounding
        loop would then have no iterations, since the form is not evaluated there.
        """
        factor = term.without(part)
        sides = [side for side in (part.a, part.b) if not self.stops_a_loop(part, side)]
        cases = [_replaced(form, part, factor, self.analyzer.affine(side)) for side in sides]
        if len(cases) < 2:
            yield tuple(cases)
            return
        sign = self.sign(factor)
        if sign is not None and (sign > 0) == (part.op == "min"):
            yield from ((case,) for case in cases)
        else:
            yield tuple(cases)

    def stops_a_loop(self, part: Binary, side: Expr) -> bool:
        """Tell whether a loop has no iterations if `side` is the value of the min or max `part`."""
        value = self.analyzer.affine(side)
        key = atom_key(part)
        for loop in self.running:
            extent = self.analyzer.affine(self.analyzer.extents[loop])
            term = extent.terms.get(key)
            if term is not None:
                factor = Affine.of_constant(term.factor)
                if self.analyzer.bounds(_replaced(extent, part, factor, value)).high <= 0:
                    return True
        return False

    @law(x // d - y // d <= (k + d - 1) // d, when=(x - y <= k, d > 0))
    def without_equal_divisors(self, form: Affine) -> Iterator[tuple[Affine, ...]]:
        """Use ``x // d - y // d <= ceil(k / d)`` where ``x - y <= k``."""
        divisions = [item for item in map(_division_of, form.terms.values()) if item is not None]
        for factor, first, divisor in divisions:
            for other, second, same in divisions:
                if factor != -other or factor < 0 or divisor != same:
                    continue
                difference = self.analyzer.affine(first).plus(self.analyzer.affine(second), -1)
                most = bound(difference, self.variables(difference), self.analyzer, 1)
                if most is not None and most.is_constant:
                    by = index_const(divisor)
                    pair = Affine.of_atom(Binary("floordiv", first, by))
                    pair = pair.plus(Affine.of_atom(Binary("floordiv", second, by)), -1)
                    steps = Affine.of_constant(-(-most.constant // divisor))
                    yield (form.plus(pair.plus(steps, -1), -factor),)

    @law(x // d * d <= x, x // d * d >= x - (d - 1), x % d >= 0, x % d <= d - 1, when=(d > 0,))
    @law(x % d <= x, when=(x >= 0, d > 0))
    def without_divisions(self, form: Affine) -> Iterator[tuple[Affine, ...]]:
        """Use ``x - d < x // d * d <= x`` and ``0 <= x % d < d``, for d > 0.

        If x is not negative, also use ``x % d <= x``.
        """
        for term in form.terms.values():
            for part in term.parts:
                if not isinstance(part, Binary) or part.op not in ("floordiv", "floormod"):
                    continue
                dividend, divisor = self.analyzer.affine(part.a), self.analyzer.affine(part.b)
                factor = term.without(part)
                sign = self.sign(factor)
                if sign is None or self.analyzer.bounds(divisor).low < 1:
                    continue
                rest = form.plus(Affine.of_product(term.parts, term.factor), -1)
                most = divisor.plus(Affine.of_constant(-1))
                if part.op == "floordiv":
                    end = dividend if sign > 0 else dividend.plus(most, -1)
                    yield (rest.product(divisor).plus(factor.product(end)),)
                elif sign < 0:
                    yield (rest,)
                else:
                    yield (rest.plus(factor.product(most)),)
                    if self.analyzer.bounds(dividend).low >= 0:
                        yield (rest.plus(factor.product(dividend)),)


#: The methods that rewrite a form; each has a law.
RULES = (
    _Proof.with_value,
    _Proof.part_direction,
    _Proof.choices,
    _Proof.without_equal_divisors,
    _Proof.without_divisions,
)


def _running(form: Affine, analyzer: Analyzer) -> list[Var]:
    """Return the loop variables in a form, and those in the extents of their loops."""
    found = dict.fromkeys(var for var in index_vars(form) if var in analyzer.extents)
    left = list(found)
    while left:
        extent = analyzer.extents[left.pop()]
        new = [v for v in analyzer.vars_of(extent) if v in analyzer.extents and v not in found]
        found.update(dict.fromkeys(new))
        left += new
    return list(found)


def index_vars(form: Affine) -> Iterator[Var]:
    """Yield the variables of a form, except those inside reductions and loads."""
    parts = [part for term in form.terms.values() for part in term.parts]
    seen: set[int] = set()
    while parts:
        part = parts.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        match part:
            case Var() as var:
                yield var
            case Binary(_, a, b):
                parts += (a, b)


def _replaced(form: Affine, part: Expr, factor: Affine, value: Affine) -> Affine:
    """Return a form with ``factor * value`` in place of ``factor * part``."""
    return form.plus(factor.product(Affine.of_atom(part).plus(value, -1)), -1)


def _times(a: int, b: int | None) -> int | None:
    return 0 if a == 0 else None if b is None else a * b


def _division_of(term: Term) -> tuple[int, Expr, int] | None:
    """Return (factor, x, d) of a term ``factor * (x // d)`` with d a positive number."""
    match term.parts:
        case (Binary("floordiv", a, Const(value, _)),) if value > 0:
            return term.factor, a, int(value)
    return None
