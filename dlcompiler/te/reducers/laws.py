"""Tests of whether a reducer is associative and commutative, with a counterexample if it is not.

A reduction of the values v1, v2, … computes ``e ∘ v1 ∘ v2 ∘ …`` from the left. It starts from the
identity e, or from the value of ``init=``. The result after some values is a *partial result*. A
schedule may combine the values in groups, and then the groups, if two laws hold (p and q are
partial results, v is a value)::

    associative   p ∘ (q ∘ v) = (p ∘ q) ∘ v
    identity      p ∘ e = p

Then ``p ∘ (e ∘ v1 ∘ v2) = p ∘ v1 ∘ v2``, by induction. It may change the order of values if a third
law holds::

    commutative   (p ∘ v) ∘ w = (p ∘ w) ∘ v

Only partial results and values that can occur are tried. For example, the position that an argmax
keeps is a number of its axis, and the count that a mean keeps is positive.

How a law is tested depends on the reducer:

- An operation such as ``x + y`` satisfies the laws by proof. Floats count as real numbers there:
  a schedule may add them in any order.
- A reducer that rounds is tried on samples. The two sides may differ by rounding errors, and the
  samples contain no infinities and no NaN.
- A reducer that only compares and chooses is also tried on samples. There the two sides must be
  equal, and the samples contain infinities and NaN.
- For an argmax that is written by hand (`is_argmax`), a schedule asks for samples without NaN. If
  a value is NaN, its result depends on the schedule. That of `te.argmax` does not.
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
    """A law that a reducer does not satisfy, with a counterexample."""

    law: Law
    witness: str
    """Partial results and values for which the two sides of the law differ, as text."""


@lru_cache(maxsize=8)
def _samples(head: Reduce, is_ordered: bool) -> Samples:
    """Return the samples of a reduction; its laws are usually tried one after another."""
    return Samples(head, is_ordered=is_ordered)


@lru_cache(maxsize=256)
def grouping_violation(head: Reduce, *, is_ordered: bool = False) -> Violation | None:
    """Return a counterexample to the associative law; None if the reducer seems associative.

    Parameters
    ----------
    head : Reduce
        The reduction.
    is_ordered : bool
        Try only values that are not NaN.
    """
    if head.reducer.op is not None or _is_proved(head.reducer):
        return None
    samples = _samples(head, is_ordered)
    merge = samples.merge
    p, q, (v, _) = samples.partials, samples.others, samples.values
    text = "f(f({0}, {1}), {2}) is {3}, but f({0}, f({1}, {2})) is {4}"
    sides = merge(merge(p, q), v), merge(p, merge(q, v))
    found = samples.difference(sides, text, (p, q, v))
    return Violation("associative", found) if found else None


@lru_cache(maxsize=256)
def identity_violation(head: Reduce, *, is_ordered: bool = False) -> Violation | None:
    """Return a counterexample to the identity law; None if the identity seems right.

    The law matters because a group may have no points: if a split does not divide the extent, or
    if the condition of the reduction fails at all points of a group.

    Parameters
    ----------
    head : Reduce
        The reduction.
    is_ordered : bool
        Try only values that are not NaN.
    """
    if head.reducer.op is not None:
        return None
    samples = _samples(head, is_ordered)
    p, e = samples.partials, samples.nothing
    text = "f({0}, {1}) is {2}, and not {0}"
    is_exact = _is_proved(head.reducer)
    found = samples.difference((samples.merge(p, e), p), text, (p, e), is_exact=is_exact)
    return Violation("identity", found) if found else None


def is_regroupable(head: Reduce, *, is_ordered: bool = False) -> bool:
    """Tell whether values may be combined in groups without a change of order."""
    return not (
        grouping_violation(head, is_ordered=is_ordered)
        or identity_violation(head, is_ordered=is_ordered)
    )


@lru_cache(maxsize=256)
def order_violation(head: Reduce, *, is_ordered: bool = False) -> Violation | None:
    """Return a counterexample to the commutative law; None if the reducer seems commutative.

    Parameters
    ----------
    head : Reduce
        The reduction.
    is_ordered : bool
        Try only values that are not NaN.
    """
    if head.reducer.op is not None or _is_proved(head.reducer):
        return None
    samples = _samples(head, is_ordered)
    merge, e = samples.merge, samples.nothing
    p, (v, w) = samples.partials, samples.values
    text = "f(f({0}, {1}), {2}) is {3}, but f(f({0}, {2}), {1}) is {4}"
    sides = merge(merge(p, v), w), merge(merge(p, w), v)
    found = samples.difference(sides, text, (p, v, w))
    if not found:
        return None
    # A user expects commutativity as f(a, b) = f(b, a): show that if it fails for the same values.
    a, b = merge(e, v), merge(e, w)
    text = "f({0}, {1}) is {2}, but f({1}, {0}) is {3}"
    return Violation(
        "commutative", samples.difference((merge(a, b), merge(b, a)), text, (a, b)) or found
    )


def is_argmax(reducer: Reducer) -> bool:
    """Tell whether a reducer chooses one of two tuples by comparing their values.

    Comparisons with NaN are false. So a NaN may replace the result so far in an argmax as classic
    code writes it.
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
    """Tell whether each result is an associative and commutative operation on its two values."""
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
