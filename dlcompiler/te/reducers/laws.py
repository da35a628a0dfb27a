"""Does the order matter in which a reduction combines its values? Answered with a witness.

A reduction ``r`` of the values v1, v2, … goes ``e ∘ v1 ∘ v2 ∘ …`` from the left, from the identity
e or from what ``init=`` gives. Call what stands so far a partial result. Two laws let a schedule
group the values otherwise and combine the groups (p and q are partial results, v is a value)::

    grouping   p ∘ (q ∘ v) = (p ∘ q) ∘ v        p ∘ e = p

Then ``p ∘ (e ∘ v1 ∘ v2)`` is ``p ∘ v1 ∘ v2``, by induction. One more lets values change places::

    order      (p ∘ v) ∘ w = (p ∘ w) ∘ v

The laws are asked of partial results and values that can occur, and of no others: the position that
an argmax keeps is a number of its axis, and the count that a mean keeps is positive.

They hold for an operation such as `x + y`, by proof: floats are taken for real numbers there, since
a schedule may add them in any order. Of other reducers they are tried on samples. Where a reducer
rounds, rounding may bring two sides apart, and infinities and NaN are left out; where it only
compares and chooses, two sides are equal, and infinities and NaN are among the samples. A schedule
leaves NaN out for an argmax that is written by hand (`is_argmax`), as it may round sums otherwise:
of values with a NaN, its result depends on the schedule. `te.argmax` gives one result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from dlcompiler import dtypes
from dlcompiler.ir import (
    Binary,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Logical,
    Not,
    Reduce,
    Reducer,
    Select,
    Var,
    walk,
)
from dlcompiler.ir.operations import REORDERED
from dlcompiler.te.reducers.samples import Samples

Law: TypeAlias = Literal["associative", "commutative", "identity"]


@dataclass(frozen=True)
class Violation:
    """A law that does not hold."""

    law: Law
    witness: str
    """Partial results and values for which two sides differ."""


@lru_cache(maxsize=256)
def grouping_violation(head: Reduce, *, is_ordered: bool = False) -> Violation | None:
    """Return why neighbours among the values cannot be combined first; None if they can.

    With `is_ordered`, among values of which none is NaN.
    """
    if head.reducer.op is not None or _is_proved(head.reducer):
        return None
    samples = Samples(head, is_ordered=is_ordered)
    merge = samples.merge
    p, q, (v, _) = samples.partials, samples.others, samples.values
    text = "f(f({0}, {1}), {2}) is {3}, but f({0}, f({1}, {2})) is {4}"
    sides = merge(merge(p, q), v), merge(p, merge(q, v))
    found = samples.difference(sides, text, (p, q, v))
    return Violation("associative", found) if found else None


@lru_cache(maxsize=256)
def identity_violation(head: Reduce, *, is_ordered: bool = False) -> Violation | None:
    """Return what the result over no points changes; None if it is an identity.

    With `is_ordered`, of values of which none is NaN. A group may have no points: what a split that
    does not divide leaves over, and points where the condition of a reduction fails.
    """
    if head.reducer.op is not None:
        return None
    samples = Samples(head, is_ordered=is_ordered)
    p, e = samples.partials, samples.nothing
    text = "f({0}, {1}) is {2}, and not {0}"
    is_exact = _is_proved(head.reducer)
    found = samples.difference((samples.merge(p, e), p), text, (p, e), is_exact=is_exact)
    return Violation("identity", found) if found else None


def is_regroupable(head: Reduce, *, is_ordered: bool = False) -> bool:
    """Tell whether values (of which none is NaN) may be combined in groups, in their order."""
    return not (
        grouping_violation(head, is_ordered=is_ordered)
        or identity_violation(head, is_ordered=is_ordered)
    )


@lru_cache(maxsize=256)
def order_violation(head: Reduce, *, is_ordered: bool = False) -> Violation | None:
    """Return why the values of a reduction cannot change places; None if they can.

    With `is_ordered`, those of which none is NaN.
    """
    if head.reducer.op is not None or _is_proved(head.reducer):
        return None
    samples = Samples(head, is_ordered=is_ordered)
    merge, e = samples.merge, samples.nothing
    p, (v, w) = samples.partials, samples.values
    text = "f(f({0}, {1}), {2}) is {3}, but f(f({0}, {2}), {1}) is {4}"
    sides = merge(merge(p, v), w), merge(merge(p, w), v)
    found = samples.difference(sides, text, (p, v, w))
    if not found:
        return None
    a, b = merge(e, v), merge(e, w)
    text = "f({0}, {1}) is {2}, but f({1}, {0}) is {3}"
    return Violation(
        "commutative", samples.difference((merge(a, b), merge(b, a)), text, (a, b)) or found
    )


def is_argmax(reducer: Reducer) -> bool:
    """Tell whether a reducer takes one of two tuples by comparisons of their values.

    NaN has no place in such an order: in an argmax as classic code writes it, it may drop what came
    before it.
    """
    triples = list(zip(reducer.results, reducer.lhs, reducer.rhs, strict=True))
    return len(triples) > 1 and all(_is_choice(*triple) for triple in triples)


def _is_choice(result: Expr, x: Var, y: Var) -> bool:
    match result:
        case Select(condition, a, b) | IfThenElse(condition, a, b):
            kinds = Compare | Logical | Not | Const | Var
            return {id(a), id(b)} == {id(x), id(y)} and all(
                isinstance(node, kinds) for node in walk(condition)
            )
    return False


def _is_proved(reducer: Reducer) -> bool:
    """Tell whether each result is an associative and commutative operation on its own values."""
    triples = zip(reducer.results, reducer.lhs, reducer.rhs, strict=True)
    return all(_is_known(result, x, y) for result, x, y in triples)


def _is_known(result: Expr, x: Var, y: Var) -> bool:
    match result:
        case Binary(op, a, b) if op in REORDERED:
            operands = a, b
        case Logical(_, a, b):
            operands = a, b
        case Compare("eq" | "ne", a, b) if dtypes.is_bool(a.dtype):
            operands = a, b
        case _:
            return False
    return {id(operand) for operand in operands} == {id(x), id(y)}
