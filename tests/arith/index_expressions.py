"""Random index expressions over a few variables of small ranges, and what they are at a point."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from hypothesis import strategies as st

from dlcompiler.arith import Interval
from dlcompiler.ir import (
    Binary,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Logical,
    Not,
    Select,
    Var,
    index_const,
)
from dlcompiler.ir.operations import fold_index

OPERATIONS = ("add", "sub", "mul", "floordiv", "floormod", "truncdiv", "truncmod", "min", "max")
COMPARISONS = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
MAX_POINTS = 400

VARIABLES = tuple(Var(name) for name in "ijk")
Ranges = dict[Var, Interval]


def ranges() -> st.SearchStrategy[Ranges]:
    """Small ranges, some of one value and some below zero."""
    interval = st.tuples(st.integers(-4, 4), st.integers(0, 6)).map(
        lambda pair: Interval(pair[0], pair[0] + pair[1])
    )
    return st.fixed_dictionaries(dict.fromkeys(VARIABLES, interval))


def constants() -> st.SearchStrategy[Expr]:
    return st.one_of(st.integers(-9, 16), st.sampled_from([2, 3, 4, 8])).map(index_const)


def leaves() -> st.SearchStrategy[Expr]:
    return st.one_of(st.sampled_from(VARIABLES), constants())


def extended(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    linear = st.builds(Binary, st.sampled_from(("add", "sub")), inner, inner)
    by_constant = st.builds(Binary, st.sampled_from(OPERATIONS), inner, constants())
    general = st.builds(Binary, st.sampled_from(OPERATIONS), inner, inner)
    choice = st.builds(
        lambda kind, c, a, b: kind(c, a, b),
        st.sampled_from((Select, IfThenElse)),
        conditions(inner),
        inner,
        inner,
    )
    return st.one_of(linear, by_constant, by_constant, general, choice)


def conditions(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    compare = st.builds(Compare, st.sampled_from(tuple(COMPARISONS)), inner, inner)
    joined = st.builds(Logical, st.sampled_from(("and", "or")), compare, compare)
    return st.one_of(compare, joined, st.builds(Not, compare))


def expressions(max_leaves: int = 8) -> st.SearchStrategy[Expr]:
    return st.recursive(leaves(), extended, max_leaves=max_leaves)


def split_like(max_leaves: int = 8) -> st.SearchStrategy[Expr]:
    """Sums, products and divisions by positive numbers: what splitting and fusing makes."""
    positive = st.integers(1, 12).map(index_const)

    def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        return st.one_of(
            st.builds(Binary, st.just("add"), inner, inner),
            st.builds(Binary, st.sampled_from(("mul", "floordiv", "floormod")), inner, positive),
        )

    return st.recursive(
        st.one_of(st.sampled_from(VARIABLES), positive), grow, max_leaves=max_leaves
    )


def points(ranges: Ranges, variables: tuple[Var, ...] = VARIABLES) -> Iterator[dict[Var, int]]:
    """Yield the points of a box, at most `MAX_POINTS` of them, spread out."""
    domains = [range(int(ranges[v].low), int(ranges[v].high) + 1) for v in variables]
    everything = itertools.product(*domains)
    size = 1
    for domain in domains:
        size *= len(domain)
    step = -(-size // MAX_POINTS)
    for values in itertools.islice(everything, 0, None, step):
        yield dict(zip(variables, values, strict=True))


def value_of(expr: Expr, point: Mapping[Var, int]) -> int:
    """Return the value of an index expression or a condition at a point."""
    match expr:
        case Const(value, _):
            return value
        case Var():
            return point[expr]
        case Binary(op, a, b):
            return fold_index(op, value_of(a, point), value_of(b, point))
        case Compare(op, a, b):
            return COMPARISONS[op](value_of(a, point), value_of(b, point))
        case Logical("and", a, b):
            return value_of(a, point) and value_of(b, point)
        case Logical("or", a, b):
            return value_of(a, point) or value_of(b, point)
        case Not(value):
            return not value_of(value, point)
        case Select(condition, a, b) | IfThenElse(condition, a, b):
            return value_of(a if value_of(condition, point) else b, point)
    raise AssertionError(expr)
