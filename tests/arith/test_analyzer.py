"""The analyzer: simplified expressions keep their value, bounds hold, and some must be found."""

import pytest
from hypothesis import given

from dlcompiler.arith import Analyzer, Interval
from dlcompiler.ir import (
    Binary,
    Broadcast,
    Cast,
    Compare,
    Const,
    Logical,
    Not,
    Select,
    Var,
    compare,
    index_const,
    structural_key,
)
from dlcompiler.ir.expr import binary, const
from tests.arith.index_expressions import (
    conditions,
    expressions,
    leaves,
    points,
    ranges,
    split_like,
    value_of,
)

# -- properties -----------------------------------------------------------------------------------


@given(expressions(), ranges())
def test_simplify_keeps_the_value_at_every_point(expr, domain):
    check_value(expr, domain)


@given(split_like(), ranges())
def test_simplify_keeps_the_value_of_what_schedules_make(expr, domain):
    check_value(expr, domain)


def check_value(expr, domain):
    simple = Analyzer(domain).simplify(expr)
    for point in points(domain):
        assert value_of(simple, point) == value_of(expr, point), f"{expr} -> {simple} at {point}"


@given(conditions(expressions(4)), ranges())
def test_simplify_keeps_conditions(condition, domain):
    simple = Analyzer(domain).simplify(condition)
    for point in points(domain):
        assert bool(value_of(simple, point)) == bool(value_of(condition, point))


@given(conditions(expressions(4)), ranges())
def test_what_is_proved_holds_everywhere(condition, domain):
    if Analyzer(domain).can_prove(condition):
        assert all(value_of(condition, point) for point in points(domain))


@given(expressions(), ranges())
def test_simplify_is_idempotent(expr, domain):
    once = Analyzer(domain).simplify(expr)
    assert Analyzer(domain).simplify(once) is once


@given(split_like(), ranges())
def test_simplify_is_idempotent_on_what_schedules_make(expr, domain):
    once = Analyzer(domain).simplify(expr)
    assert Analyzer(domain).simplify(once) is once


@given(expressions(), ranges())
def test_simplify_returns_the_same_object_when_nothing_got_simpler(expr, domain):
    simple = Analyzer(domain).simplify(expr)
    assert (simple is expr) == (structural_key(simple) == structural_key(expr))


@given(expressions(), ranges())
def test_an_interval_contains_every_value(expr, domain):
    interval = Analyzer(domain).interval(expr)
    for point in points(domain):
        assert interval.low <= value_of(expr, point) <= interval.high, f"{expr} at {point}"


@given(expressions(), ranges())
def test_affine_forms_are_equal(expr, domain):
    affine = Analyzer(domain).affine(expr)
    for point in points(domain):
        total = sum(t.factor * value_of(t.atom, point) for t in affine.terms.values())
        assert total + affine.constant == value_of(expr, point)


@given(expressions())
def test_without_ranges_only_what_always_holds_is_used(expr):
    simple = Analyzer({}).simplify(expr)
    for value in (-7, -1, 0, 5):
        point = dict.fromkeys((v for v in _variables(expr)), value)
        assert value_of(simple, point) == value_of(expr, point)


def _variables(expr):
    from dlcompiler.ir import free_vars

    return free_vars(expr)


@given(leaves(), ranges())
def test_leaves_are_simple_already_unless_they_have_one_value(leaf, domain):
    simple = Analyzer(domain).simplify(leaf)
    bounds = domain.get(leaf)
    if bounds is None or bounds.low != bounds.high:
        assert simple is leaf
    else:
        assert simple.value == bounds.low


# -- what must be found ---------------------------------------------------------------------------

i, j, k = Var("i"), Var("j"), Var("k")
RANGES = {i: Interval(0, 15), j: Interval(0, 7), k: Interval(0, 3)}


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (i * 8 + j - i * 8, "j"),
        ((i * 8 + j) // 8, "i"),
        ((i * 8 + j) % 8, "j"),
        ((i * 8 + j + 8) // 8, "i + 1"),
        ((i * 8 + j) // 4, "i*2 + j // 4"),
        ((i * 4 + k) // 8, "i // 2"),
        ((i * 4 + k) % 8, "i % 2*4 + k"),
        (i // 4 * 4 + i % 4, "i"),
        (i // 4 * 8 + i % 4 * 2, "i*2"),
        (i // 2 // 4, "i // 8"),
        (i // 4 % 2 * 4 + i % 4, "i % 8"),
        (j % 8, "j"),
        (j // 8, "0"),
        (binary("min", j, 7), "j"),
        (binary("max", j, -1), "j"),
        (binary("truncdiv", i, 4), "i // 4"),
        (0 - i, "-i"),
        (3 - i + j, "j - i + 3"),
        ((i + j) * 2 - j * 2, "i*2"),
        (i * 0 + 5, "5"),
    ],
)
def test_simpler_forms(expr, expected):
    assert str(Analyzer(RANGES).simplify(expr)) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (i * 8 + j < 128, "True"),
        (i * 8 + j < 127, "i*8 + j < 127"),
        (i < 0, "False"),
        (compare("eq", i - i, 0), "True"),
        (Logical("and", i < 16, j < 4), "j < 4"),
        (Logical("or", j < 4, i < 16), "True"),
        (Logical("and", j < 4, i < 0), "False"),
        (Not(i < 16), "False"),
        (Select(i < 16, i, j), "i"),
    ],
)
def test_decided_conditions(condition, expected):
    assert str(Analyzer(RANGES).simplify(condition)) == expected


def test_a_variable_of_one_value_is_that_value():
    assert str(Analyzer({i: Interval(3, 3)}).simplify(i + j)) == "j + 3"


# -- data arithmetic ------------------------------------------------------------------------------

X = Var("x", "int8")
F = Var("f", "float32")
FOURS = Broadcast(Const(4, "int8"), 4)


@pytest.mark.parametrize(
    "expr",
    [
        Binary("floordiv", Binary("mul", X, Const(4, "int8")), Const(4, "int8")),  # may wrap
        Binary("floordiv", X, X),  # 0 // 0 is 0
        Binary("floormod", Binary("mul", X, Const(4, "int8")), Const(4, "int8")) < Const(1, "int8"),
        Compare("lt", Binary("add", X, Const(1, "int8")), Const(9, "int8")),
        Binary("sub", F, F),  # NaN, infinities
        Binary("mul", F, const(0, "float32")),
        Binary("add", F, const(0, "float32")),  # -0.0 + 0.0 is 0.0
        Binary("div", F, F),
        Compare("eq", F, F),
        Cast(Cast(F, "int8"), "float32"),
        Not(Compare("lt", F, const(0, "float32"))),  # true for a NaN
        Cast(Cast(X, "float32"), "uint8"),  # saturates, where a direct conversion wraps
        Cast(Cast(X, "uint8"), "int32"),
    ],
)
def test_data_is_left_alone_where_wrapping_or_rounding_counts(expr):
    assert Analyzer({}).simplify(expr) is expr


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (Binary("mul", F, const(1, "float32")), "f"),
        (Binary("mul", const(1, "float32"), F), "f"),
        (Binary("div", F, const(1, "float32")), "f"),
        (Binary("add", X, Const(0, "int8")), "x"),
        (Binary("sub", X, Const(0, "int8")), "x"),
        (Binary("floordiv", X, Const(1, "int8")), "x"),
        (Binary("sub", Binary("add", X, Const(1, "int8")), Const(1, "int8")), "x"),
        (Binary("add", Binary("add", X, Const(100, "int8")), Const(100, "int8")), "x + -56"),
        (Binary("mul", X, Const(0, "int8")), "0"),
        (Binary("sub", X, X), "0"),
        (Binary("min", X, Const(127, "int8")), "x"),
        (Compare("lt", X, Const(-128, "int8")), "False"),
        (Compare("gt", Const(3, "int8"), X), "x < 3"),
        (Compare("eq", Binary("add", X, Const(100, "int8")), Const(-100, "int8")), "x == 56"),
        (Not(Compare("lt", X, Const(3, "int8"))), "x >= 3"),
        (Not(Compare("eq", F, F)), "f != f"),
        (Cast(Cast(X, "int32"), "int8"), "x"),
        (Cast(Cast(X, "int32"), "uint8"), "uint8(x)"),
        (Cast(Const(300, "int32"), "uint8"), "44"),
        (Cast(const(-1.5, "float32"), "uint8"), "0"),
        (Binary("add", const(0.5, "float32"), const(0.25, "float32")), "0.75"),
        (Binary("truncdiv", Const(-128, "int8"), Const(-1, "int8")), "-128"),
        (Binary("floormod", Const(5, "uint8"), Const(0, "uint8")), "0"),
        (
            Binary("sub", Broadcast(Const(3, "int8"), 4), Broadcast(Const(3, "int8"), 4)),
            "broadcast(0, 4)",
        ),
    ],
)
def test_data_identities_that_always_hold(expr, expected):
    assert str(Analyzer({}).simplify(expr)) == expected


def test_indices_inside_data_are_simplified():
    value = Cast(Binary("add", i, index_const(0)), "float32")
    assert str(Analyzer(RANGES).simplify(Binary("add", value, F))) == "float32(i) + f"
