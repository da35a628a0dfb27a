"""Add a specialised body for shapes that fulfil conditions, chosen when the function is called.

*Before*::

    def main(A: float32[m], C: float32[m]):
        for i.outer in range((m + 3) // 4):
            for i.inner in vectorized(4):
                if i.outer*4 + i.inner < m:
                    C[i.outer*4 + i.inner] = A[i.outer*4 + i.inner] + 1.0

*After*::

    def main(A: float32[m], C: float32[m]):
        if m % 4 == 0:
            for i.outer in range(m // 4):
                for i.inner in vectorized(4):
                    C[i.outer*4 + i.inner] = A[i.outer*4 + i.inner] + 1.0
        else:
            for i.outer in range((m + 3) // 4):
                for i.inner in vectorized(4):
                    if i.outer*4 + i.inner < m:
                        C[i.outer*4 + i.inner] = A[i.outer*4 + i.inner] + 1.0

The condition is ``m % 4 == 0`` here. A condition compares a symbol with a number, or says which
number divides it: nothing else is of use to a proof. All of them together decide. A symbol that 4
divides is 4 times another one while the body is simplified, so that the analyzer needs no rules of
its own for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from dlcompiler.arith import NATURAL, Analyzer, Interval
from dlcompiler.arith.interval import EVERYTHING
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    Binary,
    Compare,
    Const,
    Expr,
    If,
    Logical,
    PrimFunc,
    Stmt,
    Var,
    binary,
    index_const,
    logical,
    rewrite,
    substitute,
)
from dlcompiler.ir.rewrite import Node
from dlcompiler.passes.simplify import simplify

FORMS = "n >= 128, n <= 7, n == 64, or m % 4 == 0, of symbols n and m"


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known about a symbol: its range, and a number that divides it."""

    range: Interval = EVERYTHING
    divisor: int = 1

    def both(self, other: Fact) -> Fact:
        """Return the conjunction of two facts."""
        low = max(self.range.low, other.range.low)
        high = min(self.range.high, other.range.high)
        return Fact(Interval(low, high), math.lcm(self.divisor, other.divisor))

    @property
    def multiples(self) -> Interval:
        """The range of the symbol, divided by its divisor."""
        low, high = self.range.low, self.range.high
        return Interval(
            low if math.isinf(low) else -(-low // self.divisor),
            high if math.isinf(high) else high // self.divisor,
        )

    def nearest(self, number: int) -> int:
        """Return a number that satisfies the fact, close to a given one."""
        low, high = self.multiples.low, self.multiples.high
        return int(min(max(-(-number // self.divisor), low), high)) * self.divisor


def specialize_conditions(func: PrimFunc, *, conditions: Sequence[Expr]) -> PrimFunc:
    """Give a function a body for sizes that fulfil conditions, beside the one for all.

    Parameters
    ----------
    func
        A function of simplified indices.
    conditions
        Comparisons of its symbols; all must hold.

    Raises
    ------
    ScheduleError
        If a condition is of another form, of another function's symbol, or no size fulfils all.
    """
    facts = facts_of(func, conditions)
    if not facts:
        return func
    test = logical("and", *(part for item in conditions for part in _conjuncts(item)))
    return func.with_body(If(test, _body_under(func, facts), func.body))


def facts_of(func: PrimFunc, conditions: Sequence[object]) -> dict[Var, Fact]:
    """Return the facts that conditions imply for the symbols of a function.

    Raises
    ------
    ScheduleError
        As of `specialize_conditions`.
    """
    where = f"specialize {func.name}"
    extents = (extent for buffer in func.buffers for extent in buffer.shape)
    sizes = {extent for extent in extents if isinstance(extent, Var)}
    facts: dict[Var, Fact] = {}
    for condition in conditions:
        if not isinstance(condition, Expr) or condition.dtype != "bool":
            _refuse(where, condition)
        for part in _conjuncts(condition):
            symbol, fact = _fact(part, where)
            if symbol not in func.variables:
                raise ScheduleError(
                    where, f"{symbol.name} is not a symbol of the function",
                    expected=", ".join(var.name for var in func.variables) or None,
                )  # fmt: skip
            known = facts.get(symbol, Fact(NATURAL if symbol in sizes else EVERYTHING))
            facts[symbol] = known.both(fact)
    for symbol, fact in facts.items():
        if fact.multiples.low > fact.multiples.high:
            raise ScheduleError(
                where, f"no {symbol.name} fulfils all conditions",
                got=", ".join(str(condition) for condition in conditions),
            )  # fmt: skip
    return facts


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    match condition:
        case Logical("and", a, b):
            yield from _conjuncts(a)
            yield from _conjuncts(b)
        case _:
            yield condition


def _refuse(where: str, condition: Any) -> NoReturn:
    raise ScheduleError(
        where, "a condition of this form is not supported", got=str(condition), expected=FORMS
    )


def _fact(condition: Expr, where: str) -> tuple[Var, Fact]:
    match condition:
        case Compare("eq", Binary("floormod", Var() as symbol, Const(by)), Const(0)):
            if symbol.dtype == "index" and by > 0:
                return symbol, Fact(divisor=int(by))
        case Compare(op, a, b) if a.dtype == "index":
            analyzer = Analyzer({})
            form = analyzer.affine(a).plus(analyzer.affine(b), -1)
            (term,) = form.terms.values() if len(form.terms) == 1 else (None,)
            if term is not None and isinstance(term.atom, Var) and abs(term.factor) == 1:
                symbol, number = term.atom, -form.constant * term.factor
                fact = _compared(op if term.factor > 0 else _TURNED[op], number)
                if fact is not None:
                    return symbol, fact
    _refuse(where, condition)


_TURNED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


def _compared(op: str, number: int) -> Fact | None:
    """Return the fact that ``symbol op number`` implies; None for other operators."""
    low, high = {
        "lt": (-math.inf, number - 1),
        "le": (-math.inf, number),
        "gt": (number + 1, math.inf),
        "ge": (number, math.inf),
        "eq": (number, number),
    }.get(op, (0, -1))
    return Fact(Interval(low, high)) if low <= high else None


def _body_under(func: PrimFunc, facts: Mapping[Var, Fact]) -> Stmt:
    """Return the body of a function, simplified where facts hold."""
    ranges: dict[Var, Interval] = {}
    quotients: dict[Var, Var] = {}
    values: dict[Var, Expr] = {}
    for symbol, fact in facts.items():
        if fact.multiples.low == fact.multiples.high:
            values[symbol] = index_const(int(fact.multiples.low) * fact.divisor)
        elif fact.divisor > 1:
            quotients[symbol] = Var(f"{symbol.name}.multiple")
            ranges[quotients[symbol]] = fact.multiples
            values[symbol] = binary("mul", quotients[symbol], fact.divisor)
        else:
            ranges[symbol] = fact.range
    body = simplify(func.with_body(substitute(func.body, values)), known=ranges).body
    back = {
        quotient: binary("floordiv", symbol, facts[symbol].divisor)
        for symbol, quotient in quotients.items()
    }

    def whole(node: Node) -> Node:
        """Rewrite ``m // 4 * 8`` as ``m*2`` where m is a multiple of 4."""
        match node:
            case Binary("mul", Binary("floordiv", Var() as symbol, Const(by)), Const(factor)):
                if symbol in quotients and by == facts[symbol].divisor and factor % by == 0:
                    times = int(factor // by)
                    return symbol if times == 1 else binary("mul", symbol, times)
        return node

    return rewrite(substitute(body, back), whole)
