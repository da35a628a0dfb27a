"""Symbolic bounds: what is proved holds at every point, and what schedules need is proved."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcompiler.arith import NATURAL, Analyzer, Interval
from dlcompiler.ir import Binary, Compare, Var, compare, index_const
from dlcompiler.ir.expr import binary
from tests.arith.index_expressions import COMPARISONS, extended, value_of

n, m = Var("n"), Var("m")
i, j, k, f = (Var(name) for name in "ijkf")
SIZES = (0, 1, 2, 3, 5, 8)


def ceildiv(a, b):
    return (a + (b - 1)) // b


def analyzer_of(extents, low=0):
    symbols = {n: Interval(low, math.inf), m: Interval(low, math.inf)}
    return Analyzer(symbols, extents)


# -- properties -----------------------------------------------------------------------------------

EXTENTS = (
    n, m, n * m, n + m - 1, ceildiv(n, 4), n // 4, n - 2, binary("min", n, 3), index_const(4),
    n * n, binary("max", n - m, 0), ceildiv(n, 2) * 2,
)  # fmt: skip
INNER_EXTENTS = (*EXTENTS, i, i + 1, n - i, binary("min", index_const(4), n - i * 4))


def nests():
    return st.tuples(st.sampled_from(EXTENTS), st.sampled_from(INNER_EXTENTS))


def symbolic_expressions(max_leaves=8):
    leaves = st.one_of(
        st.sampled_from((i, j, n, m)),
        st.sampled_from((n * m, i * m, i * n, i * 4, j * m)),
        st.integers(-3, 5).map(index_const),
    )
    divided = st.builds(
        Binary,
        st.sampled_from(("floordiv", "floormod")),
        st.sampled_from((i * m + j, i * 4 + j, i + n, i, i * m + n, n * m - 1, i - m)),
        st.sampled_from((n, m, index_const(4), m + 1, n * m)),
    )
    return st.recursive(st.one_of(leaves, divided), extended, max_leaves=max_leaves)


def symbolic_points(extents):
    outer, inner = extents
    for a, b in itertools.product(SIZES, SIZES):
        sizes = {n: a, m: b}
        for x in range(value_of(outer, sizes)):
            for y in range(min(value_of(inner, {**sizes, i: x}), 20)):
                yield {**sizes, i: x, j: y}


def sampled(extents):
    points = list(symbolic_points(extents))
    return points[:: max(len(points) // 150, 1)]


@given(
    symbolic_expressions(), symbolic_expressions(4), nests(), st.sampled_from(tuple(COMPARISONS))
)
def test_what_is_proved_holds_everywhere(a, b, extents, op):
    condition = Compare(op, a, b)
    known = Analyzer(analyzer_of({}).ranges, {i: extents[0], j: extents[1]})
    verdict = known.simplify(condition)
    simple = known.simplify(a)
    for point in sampled(extents):
        assert bool(value_of(condition, point)) == bool(value_of(verdict, point)), point
        assert value_of(a, point) == value_of(simple, point), f"{a} -> {simple} at {point}"


@given(symbolic_expressions(), nests())
def test_simplify_is_idempotent(expr, extents):
    ranges = analyzer_of({}).ranges
    once = Analyzer(ranges, {i: extents[0], j: extents[1]}).simplify(expr)
    assert Analyzer(ranges, {i: extents[0], j: extents[1]}).simplify(once) is once


@given(symbolic_expressions(), nests(), st.sets(st.sampled_from((i, j))))
def test_bounds_hold_and_stand_still(expr, extents, moving):
    known = analyzer_of({i: extents[0], j: extents[1]})
    interval = known.interval(expr)
    low, high = known.lower_bound(expr, moving), known.upper_bound(expr, moving)
    for point in sampled(extents):
        value = value_of(expr, point)
        assert interval.low <= value <= interval.high
        for end, sign in ((low, 1), (high, -1)):
            if end is not None:
                assert not moving & set(known.vars_of(end.to_expr()))
                assert sign * value_of(end.to_expr(), point) <= sign * value


# -- what must be proved --------------------------------------------------------------------------

PROVED = [
    ({i: n}, i < n),
    ({i: n}, i <= n),
    ({i: n}, i >= 0),
    ({i: n}, n > 0 + i),
    ({i: n}, compare("ne", i, n)),
    ({i: n, j: m}, i + j < n + m - 1),
    ({i: n + m - 1}, i < n + m),
    ({i: n // 32, j: index_const(32)}, i * 32 + j < n),
    ({i: ceildiv(n, 32), j: binary("min", index_const(32), n - i * 32)}, i * 32 + j < n),
    ({i: ceildiv(n, 32), j: index_const(32)}, i * 32 + j < n + 31),
    ({i: ceildiv(n, 32)}, i * 32 < n),
    ({i: ceildiv(n, 32)}, i * 32 < ceildiv(n, 32) * 32),
    ({i: n, j: m}, i * m + j < n * m),
    ({i: n, j: m}, i * m + j >= 0),
    ({i: n, j: m, k: index_const(4)}, (i * m + j) * 4 + k < n * m * 4),
    ({f: n * m}, f // m < n),
    ({f: n * m}, f % m < m),
    ({f: n * m}, f % m >= 0),
    ({f: n * m * 4}, f // (m * 4) < n),
    ({f: n * m * 4}, f // 4 % m < m),
    ({f: n * m * 4}, f // 4 // m < n),
    ({f: ceildiv(n * m, 8), j: index_const(8)}, f * 8 + j < n * m + 7),
    ({i: binary("min", n, 8)}, i < 8),
    ({i: binary("min", n, 8)}, i < n),
    ({i: n}, i < binary("max", n, m)),
    ({i: n, j: i}, j < n - 1),
    ({i: n, j: n - i}, i + j < n),
    ({i: n}, i // 4 < ceildiv(n, 4)),
    ({i: n}, (i + 3) // 4 <= ceildiv(n, 4)),
    ({i: n - 2}, i + 2 < n),
    (
        {i: ceildiv(n, 32), j: 32 - binary("min", 32, n - i * 32)},
        i * 32 + j + binary("min", 32, n - i * 32) >= n,
    ),
    ({}, n * m >= 0),
    ({}, n // 32 * 32 <= n),
    ({}, ceildiv(n, 32) * 32 >= n),
    ({}, binary("min", n, m) <= n),
    ({}, binary("max", n, m) >= binary("min", n, m)),
    ({}, ceildiv(n, 4) >= n // 4),
]


@pytest.mark.parametrize(("extents", "condition"), PROVED, ids=[str(c) for _, c in PROVED])
def test_proved(extents, condition):
    assert analyzer_of(extents).can_prove(condition)


NOT_PROVED = [
    ({i: ceildiv(n, 32), j: index_const(32)}, i * 32 + j < n),
    ({i: n}, i < n - 1),
    ({i: n, j: m}, i < n * m),  # m may be 0: nothing says that j runs
    ({i: n}, i > 0),
    ({}, n > 0),
    ({}, n < m),
    ({}, n * m >= n),
    ({i: n}, i < m),
    ({i: n, j: m}, i * n + j < n * m),
    ({f: n * m}, f // n < n),
    ({i: n, j: m}, i + j < n + m - 2),
]


@pytest.mark.parametrize(("extents", "condition"), NOT_PROVED, ids=[str(c) for _, c in NOT_PROVED])
def test_neither_proved_nor_refuted(extents, condition):
    assert analyzer_of(extents).simplify(condition) is condition


@pytest.mark.parametrize(
    ("extents", "expr", "expected"),
    [
        ({}, n * m // n, "n*m // n"),
        ({i: n}, (i + n * m) // n, "m"),
        ({i: n}, (i + n * m) % n, "i"),
        ({i: n, j: m}, (i * m + j) // m, "i"),
        ({i: n, j: m}, (i * m + j) % m, "j"),
        ({f: n * m}, f // m * m + f % m, "f"),
        ({f: n * m}, (f + m) // m, "f // m + 1"),
        ({}, f // m * m + f % m, "f // m*m + f % m"),
        ({}, (n * 32 + 31) // 32, "n"),
        ({}, (ceildiv(n, 32) * 32 + 31) // 32, "(n + 31) // 32"),
        ({}, binary("min", n, ceildiv(n, 32) * 32), "n"),
        ({i: n}, binary("max", i + 1, n), "n"),
        ({}, (n + 1) * m - n * m, "m"),
        ({}, n * m - m * n, "0"),
        ({}, (n + m) * (n - m) - n * n + m * m, "0"),
    ],
)
def test_simpler_forms(extents, expr, expected):
    assert str(analyzer_of(extents).simplify(expr)) == expected


def test_division_by_a_symbol_that_is_not_zero():
    known = analyzer_of({}, low=1)
    assert str(known.simplify(n * m // n)) == "m"
    assert str(known.simplify(n * m % n)) == "0"
    assert str(known.simplify((n * m - 1) // n)) == "m - 1"


@pytest.mark.parametrize(
    ("expr", "over", "low", "high"),
    [
        (i * 32 + j, {i, j}, "0", "n*32 + m - 33"),
        (i * 32 + j, {j}, "i*32", "i*32 + m - 1"),
        (n - 1 - i, {i}, "0", "n - 1"),
        (i * m + j, {i, j}, "0", "n*m - 1"),
        ((i + 3) // 4, {i}, "0", "(n + 2) // 4"),
        (i % 4, {i}, None, None),
        (k, {k}, None, None),
    ],
)
def test_ends(expr, over, low, high):
    known = analyzer_of({i: n, j: m})
    ends = known.lower_bound(expr, over), known.upper_bound(expr, over)
    assert tuple(None if end is None else str(end.to_expr()) for end in ends) == (low, high)


def test_a_long_product_is_not_multiplied_out():
    expr = index_const(1)
    for number in range(40):
        expr = expr * (Var(f"x{number}") + 1)
    simple = Analyzer({}).simplify(expr)
    assert Analyzer({}).simplify(simple) is simple


def test_an_extent_bounds_its_variable_beside_a_range():
    known = Analyzer({n: NATURAL, i: NATURAL, j: Interval(2, 9)}, {i: binary("min", n, 8), j: n})
    assert known.interval(i) == Interval(0, 7)
    assert known.interval(j) == Interval(2, 9)
