"""solve: the points where equations hold, each once."""

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcompiler.arith import Interval, solve
from dlcompiler.ir import TensorLoad, Var, binary, format_expr, index_const
from dlcompiler.te import placeholder
from tests.arith.index_expressions import value_of

X, Y, Z = (Var(name) for name in "ijk")
A0, A1, A2 = (Var(f"a{n}") for n in range(3))


def check(indices, unknowns, limits):
    """Compare a solution, at each point that is given, with trying all points."""
    targets = (A0, A1, A2)[: len(indices)]
    shape = dict(zip(targets, limits, strict=False))
    found = solve(list(zip(indices, targets, strict=True)), unknowns, shape, {})
    for given_ in points(shape):
        expected = Counter(
            tuple(point.values())
            for point in points(unknowns)
            if all(value_of(e, point) == given_[t] for e, t in zip(indices, targets, strict=True))
        )
        assert Counter(solutions(found, unknowns, given_)) == expected, given_


def points(extents):
    for values in itertools.product(*map(range, extents.values())):
        yield dict(zip(extents, values, strict=True))


def solutions(found, unknowns, given_):
    for point in points(found.free) if found is not None else ():
        known = {**given_, **point}
        if all(value_of(condition, known) for condition in found.conditions):
            yield tuple(
                known[var] if var in known else value_of(found.values[var], known)
                for var in unknowns
            )


@st.composite
def sums(draw):
    """An index such as those of a convolution: a sum of the variables times numbers."""
    result = index_const(draw(st.integers(-3, 3)))
    for var in (X, Y, Z):
        result = result + var * draw(st.sampled_from([0, 0, 1, 1, -1, 2, 3, 4, 6]))
    return result


@st.composite
def divided(draw):
    """A sum, or what a division makes of it, as where shapes change."""
    value = draw(sums())
    for _ in range(draw(st.integers(0, 2))):
        op = draw(st.sampled_from(["floordiv", "floormod"]))
        value = binary(op, value, draw(st.sampled_from([2, 3, 4])))
    return value


extents = st.fixed_dictionaries({var: st.integers(1, 4) for var in (X, Y, Z)})


@given(st.lists(sums(), min_size=1, max_size=3), extents)
def test_sums_are_inverted(indices, unknowns):
    check(indices, unknowns, (6, 4, 3))


@pytest.mark.campaign
@given(st.lists(divided(), min_size=1, max_size=3), extents)
def test_quotients_and_remainders_are_inverted(indices, unknowns):
    check(indices, unknowns, (5, 4, 3))


@given(st.lists(sums(), min_size=1, max_size=2), extents)
def test_what_is_no_sum_becomes_a_condition(indices, unknowns):
    check([*indices, binary("min", X * Y, Z)], unknowns, (5, 3, 4))


def shown(equations, unknowns, given_, symbols=None):
    found = solve(equations, unknowns, given_, symbols or {})
    names = {var.name: format_expr(found.values[var]) for var in unknowns if var in found.values}
    free = {var.name: extent for var, extent in found.free.items()}
    return names, free, [format_expr(condition) for condition in found.conditions]


def test_a_stride_leaves_the_windows_that_overlap():
    assert shown([(X * 2 + Y, A0)], {X: 8, Y: 3}, {A0: 17}) == (
        {"i": "a0 // 2 - j.outer", "j": "a0 % 2 + j.outer*2"},
        {"j.outer": 2},
        ["a0 % 2 + j.outer*2 < 3", "a0 // 2 >= j.outer", "a0 // 2 < j.outer + 8"],
    )


def test_windows_side_by_side_leave_nothing():
    assert shown([(X * 4 + Y, A0)], {X: 5, Y: 4}, {A0: 20}) == (
        {"i": "a0 // 4", "j": "a0 % 4"},
        {},
        [],
    )


def test_the_unknown_of_more_values_is_expressed():
    assert shown([(X + Y * 2, A0)], {X: 50, Y: 3}, {A0: 54})[1] == {"j": 3}
    assert shown([(X + Y * 2, A0)], {X: 3, Y: 50}, {A0: 101})[1] == {"i.outer": 2}


def test_a_reshape_leaves_nothing():
    flat = X * 8 + Y
    equations = [(flat // 6, A0), (flat % 6, A1)]
    values = {"i": "(a0*6 + a1) // 8", "j": "(a0*6 + a1) % 8"}
    assert shown(equations, {X: 3, Y: 8}, {A0: 4, A1: 6}) == (values, {}, [])


def test_digits_are_put_together():
    equations = [(X // 12, A0), (X // 4 % 3, A1), (X % 4, A2)]
    names, free, conditions = shown(equations, {X: 24}, {A0: 2, A1: 3, A2: 4})
    assert (names, free, conditions) == ({"i": "a0*12 + a2 + a1*4"}, {}, [])


def test_steps_that_miss_are_conditions():
    assert shown([(X * 2, A0)], {X: 4}, {A0: 9}) == (
        {"i": "a0 // 2"},
        {},
        ["a0 % 2 == 0", "a0 // 2 < 4"],
    )
    assert shown([(X * 2 + Y * 3, A0)], {X: 9, Y: 3}, {A0: 23}) == (
        {"i": "(a0 - j*3) // 2"},
        {"j": 3},
        ["(a0 - j*3) % 2 == 0", "a0 >= j*3", "a0 < j*3 + 18"],
    )


def test_one_unknown_in_two_equations():
    names, free, conditions = shown([(X, A0), (X, A1)], {X: 4}, {A0: 4, A1: 4})
    assert (names, free, conditions) == ({"i": "a0"}, {}, ["a0 == a1"])


def test_an_unknown_of_one_value_is_not_run_through():
    assert shown([(Y, A0)], {X: 1, Y: 4}, {A0: 4}) == ({"i": "0", "j": "a0"}, {}, [])


@pytest.mark.parametrize(
    ("equations", "unknowns"),
    [([(X, A0)], {X: 4, Y: 0}), ([(X, X + 1)], {X: 4}), ([(X * 2, A0 * 2 + 1)], {X: 4})],
    ids=["an unknown of no values", "never equal", "even and odd"],
)
def test_no_point(equations, unknowns):
    assert solve(equations, unknowns, {A0: 4}, {}) is None


def test_symbols_are_extents():
    n = Var("n", is_symbol=True)
    natural = {n: Interval(0, float("inf"))}
    assert shown([(X, A0), (Y, A1)], {X: n, Y: n}, {A0: n, A1: n}, natural) == (
        {"i": "a0", "j": "a1"},
        {},
        [],
    )
    assert shown([(X + Z, A0)], {X: n, Z: 3}, {A0: n + 2}, natural) == (
        {"i": "a0 - k"},
        {"k": 3},
        ["a0 >= k", "a0 < k + n"],
    )


def test_conditions_are_checked_before_what_they_guard():
    """B is read only where y is inside, and C, at x, only where x is."""
    B, C = (placeholder((4,), "int32", name=name) for name in "BC")
    first, second = (TensorLoad(tensor, (at,)).astype("index") for tensor, at in ((B, Y), (C, X)))
    equations = [(Z + second, A2), (X + first, A0), (Y + 1, A1)]
    for order in itertools.permutations(equations):
        found = solve(order, {X: 4, Y: 4, Z: 4}, {A0: 9, A1: 6, A2: 9}, {})
        depths = [text.count("[") for text in map(format_expr, found.conditions)]
        assert depths == [0, 0, 1, 1, 2, 2]
