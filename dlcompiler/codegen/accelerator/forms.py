"""Index expressions as a base plus multiples of loop variables, and conditions as bounds of loops.

The loops that an instruction runs by itself are its *inner* loops. All others are loops of the
host, which makes one instruction after another: what depends on them is a number each time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from dlcompiler.arith import Affine, Analyzer
from dlcompiler.errors import InternalError, ScheduleError
from dlcompiler.ir import (
    Binary,
    Buffer,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Load,
    Logical,
    Not,
    Select,
    Var,
    free_vars,
    index_const,
    walk,
)
from dlcompiler.ir.operations import COMPARISONS, fold_index

Slots: TypeAlias = Mapping[Var, int]
"""Loop variable -> its place in the list of the host's numbers."""
Number: TypeAlias = Callable[[Sequence[int]], int]
"""Returns the value of an expression for the numbers of the host."""


def host_number(expr: Expr, slots: Slots) -> Number:
    """Return a function that computes an index expression or a condition.

    Parameters
    ----------
    expr
        An expression of the host's loop variables.
    slots
        Where the number of each variable is.
    """
    if expr.dtype == "index" and not isinstance(expr, Const | Var):
        return _sum(Analyzer({}).affine(expr), slots)
    return _number(expr, slots)


def _sum(affine: Affine, slots: Slots) -> Number:
    """Return the function of a sum, which is most of what the host computes."""
    linear, others = [], []
    for term in affine.terms.values():
        if isinstance(term.atom, Var):
            linear.append((slots[term.atom], term.factor))
        else:
            others.append((_number(term.atom, slots), term.factor))
    constant = affine.constant

    def total(numbers: Sequence[int]) -> int:
        value = constant
        for slot, factor in linear:
            value += numbers[slot] * factor
        for other, factor in others:
            value += other(numbers) * factor
        return value

    return total


def _number(expr: Expr, slots: Slots) -> Number:
    match expr:
        case Const(value):
            number = int(value)
            return lambda _: number
        case Var():
            return operator.itemgetter(slots[expr])
        case Binary(op, a, b):
            return _applied(partial(fold_index, op), a, b, slots)
        case Compare(op, a, b):
            return _applied(COMPARISONS[op].numbers, a, b, slots)
        case Logical(op, a, b):
            return _applied(_LOGICAL[op], a, b, slots)
        case Not(value):
            return _applied(lambda x, _: not x, value, value, slots)
        case Select(condition, a, b) | IfThenElse(condition, a, b):
            which, first, second = (host_number(part, slots) for part in (condition, a, b))
            return lambda v: first(v) if which(v) else second(v)
        case Cast(value):
            return host_number(value, slots)
    if any(isinstance(node, Load) for node in walk(expr)):
        raise ScheduleError(
            "make instructions", "what they access depends on the contents of a tensor",
            got=str(expr), because="the host makes all instructions beforehand",
            hint="let a stage in DRAM gather the elements; the host computes it",
        )  # fmt: skip
    raise InternalError("make instructions", "the host has no such expression", got=str(expr))


_LOGICAL: Mapping[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}


def _applied(operation: Callable[[int, int], int], a: Expr, b: Expr, slots: Slots) -> Number:
    first, second = host_number(a, slots), host_number(b, slots)
    return lambda v: operation(first(v), second(v))


@dataclass(frozen=True, slots=True)
class Form:
    """``base + sum(factor * variable)`` over the inner loops."""

    factors: Mapping[Var, int]
    base: Expr
    """Depends on loops of the host only."""

    def factor(self, var: Var) -> int:
        """Return the factor of an inner variable; 0 if the form does not depend on it."""
        return self.factors.get(var, 0)


def form_of(expr: Expr | Affine, inner: Iterable[Var], analyzer: Analyzer) -> Form | Var:
    """Return an index as a form over inner loops, or a variable in which it is none.

    Parameters
    ----------
    expr
        The index.
    inner
        The variables of the inner loops.
    analyzer
        Knows the ranges of all loops.
    """
    affine = expr if isinstance(expr, Affine) else analyzer.affine(expr)
    running, factors = frozenset(inner), {}
    rest = Affine.of_constant(affine.constant)
    for term in affine.terms.values():
        mine = [var for part in term.parts for var in free_vars(part) if var in running]
        if not mine:
            rest = rest.plus(Affine.of_product(term.parts, term.factor))
        elif len(term.parts) == 1 and isinstance(term.parts[0], Var):
            factors[term.parts[0]] = term.factor
        else:
            return mine[0]
    return Form(factors, rest.to_expr())


def flat_index(buffer: Buffer, indices: Sequence[Expr], analyzer: Analyzer) -> Affine:
    """Return the place of an element in its buffer as a sum; [numbers]."""
    total = Affine.of_constant(0)
    for index, stride in zip(indices, buffer.static_strides, strict=True):
        total = total.plus(analyzer.affine(index), stride)
    return total


@dataclass(frozen=True, slots=True)
class Bound:
    """A condition ``factor * var + base >= 0`` on an inner loop; without `var`, on the host."""

    base: Any
    """An `Expr`, or the `Number` of it."""
    var: Var | None = None
    factor: int = 0

    def limits(self, base: int, extent: int) -> tuple[int, int]:
        """Return the iterations from which and below which it holds, within an extent."""
        if self.factor > 0:
            return min(max(-(base // self.factor), 0), extent), extent
        return 0, max(min(base // -self.factor + 1, extent), 0)


def conjuncts(condition: Expr) -> list[Expr]:
    """Return the conditions that hold together where `condition` does."""
    if isinstance(condition, Logical) and condition.op == "and":
        return [*conjuncts(condition.a), *conjuncts(condition.b)]
    return [condition]


def bounds_of(condition: Expr, inner: Iterable[Var], analyzer: Analyzer) -> list[Bound] | Var:
    """Return a condition as bounds, or an inner variable that must run on the host for that."""
    running = frozenset(inner)
    mine = [var for var in free_vars(condition) if var in running]
    if not mine:
        return [Bound(condition)]
    if not isinstance(condition, Compare) or condition.op == "ne":
        return mine[0]
    a, b = analyzer.affine(condition.a), analyzer.affine(condition.b)
    less, more = b.plus(a, -1), a.plus(b, -1)  # both are at least 0 where a == b
    one = Affine.of_constant(1)
    differences = {
        "lt": [less.plus(one, -1)], "le": [less], "gt": [more.plus(one, -1)], "ge": [more],
        "eq": [less, more],
    }[condition.op]  # fmt: skip
    found: list[Bound] = []
    for difference in differences:
        form = form_of(difference, running, analyzer)
        if isinstance(form, Var):
            return form
        if len(form.factors) > 1:  # the shortest loop makes the fewest instructions
            return min(form.factors, key=lambda var: analyzer.interval(var).high)
        for var, factor in form.factors.items():
            found.append(Bound(form.base, var, factor))
        if not form.factors:
            found.append(Bound(Compare("ge", form.base, index_const(0))))
    return found
