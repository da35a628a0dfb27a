"""Test whether a condition on the lanes of a loop holds in all lanes, or in some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dlcompiler.arith import Analyzer
from dlcompiler.ir import (
    Binary,
    Call,
    Compare,
    Expr,
    Load,
    Logical,
    Var,
    free_vars,
    index_const,
    logical,
    substitute,
    walk,
)


class LaneTest(NamedTuple):
    """Scalar tests of a vector of conditions: whether it holds in all lanes, or in any."""

    in_all: Expr
    """It holds if the condition holds in every lane."""
    in_some: Expr
    """It holds if the condition holds in at least one lane, and perhaps in other cases."""
    is_exact: bool
    """Whether `in_some` is exact, because the lanes that pass are the first or the last ones."""


def lane_test(condition: Expr, var: Var, first: int, last: int) -> LaneTest | None:
    """Test a condition on the lanes `first` to `last` of `var` together.

    A comparison of sums is monotone in the lane, so that it suffices to test the two end lanes.

    Parameters
    ----------
    condition
        A condition.
    var
        The variable of the lanes.
    first, last
        The lanes at the ends.

    Returns
    -------
    LaneTest or None
        None where the condition is no conjunction of comparisons of sums.
    """
    in_all, in_some, slopes = [], [], set()
    for part in conjuncts(condition):
        if has_loads(part):
            return None
        if var not in free_vars(part):
            in_all.append(part)
            in_some.append(part)
            continue
        rises = _is_easier_later(part, var)
        if rises is None:
            return None
        slopes.add(rises)
        ends = [substitute(part, {var: index_const(lane)}) for lane in (first, last)]
        worst, best = ends if rises else reversed(ends)
        in_all.append(worst)
        in_some.append(best)
    every = logical("and", *in_all)
    if isinstance(condition, Call):
        every = Call("likely", (every,), every.dtype)
    return LaneTest(every, logical("and", *in_some), len(slopes) < 2)


def conjuncts(condition: Expr) -> Sequence[Expr]:
    """Return the conditions that `condition` joins with ``and``."""
    match condition:
        case Logical("and", a, b):
            return (*conjuncts(a), *conjuncts(b))
        case Call("likely", (inner,), _):
            return conjuncts(inner)
    return (condition,)


def has_loads(expr: Expr) -> bool:
    """Tell whether an expression reads memory."""
    return any(isinstance(node, Load) for node in walk(expr))


def _is_easier_later(condition: Expr, var: Var) -> bool | None:
    """Tell whether a comparison that holds in one lane also holds in all later lanes.

    False means all earlier lanes; None means that neither is known.
    """
    match condition:
        case Compare("lt" | "le" | "gt" | "ge" as op, a, b) if a.dtype == "index":
            difference = Analyzer({}).affine(Binary("sub", a, b))
        case _:
            return None
    slope = 0
    for term in difference.terms.values():
        if term.atom is var:
            slope = term.factor
        elif var in free_vars(term.atom):
            return None
    return (slope < 0) == (op in ("lt", "le"))
