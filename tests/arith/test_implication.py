"""`implies`: what conditions prove of an index, and that nothing false is proved."""

import math
import random

import pytest

from dlcompiler.arith import Analyzer, Interval
from dlcompiler.arith.data_ranges import data_range
from dlcompiler.arith.implication import implies
from dlcompiler.arith.inequalities import is_infeasible
from dlcompiler.arith.overflow import limits_of_data
from dlcompiler.ir import (
    Buffer,
    Call,
    Compare,
    Load,
    Logical,
    Not,
    Select,
    Var,
    binary,
    cast,
    compare,
    const,
)
from tests.arith import random_expressions as make
from tests.arith.evaluation import value_of

i, j, k, n, m, w = (Var(name) for name in "ijknmw")
RANGES = {i: Interval(0, 99), j: Interval(0, 9), k: Interval(0, 2), n: Interval(0, math.inf)}
I = Buffer("I", (100,), "int32")  # noqa: E741  the array of indices
AT = cast(Load(I, (i,)), "index")
BYTE = cast(Load(Buffer("U", (100,), "uint8"), (i,)), "index")

PROVED = {
    "padding, below": ([i >= 1, i < n + 1], i - 1 >= 0),
    "padding, above": ([i >= 1, i < n + 1], i - 1 < n),
    "a window": ([i * 2 + k >= 1, i * 2 + k - 1 < 150], i * 2 + k - 1 < 150),
    "a quotient": ([i - k >= 0, (i - k) < n * 2], (i - k) // 2 < n),
    "a quotient, below": ([i - k >= 0], (i - k) // 2 >= 0),
    "a quotient in a condition": ([i // 4 < 3], i < 12),
    "quotient and remainder": ([i % 4 + i // 4 * 4 < 12], i < 12),
    "integers are tightened": ([i * 2 + k < 10], i < 5),
    "not 0": ([compare("ne", i, 0)], i - 1 >= 0),
    "not one of two": ([Not(Logical("or", i < 1, i > n))], i - 1 < n),
    "one of two": ([Logical("or", i < 5, j < 5)], binary("min", i, j) < 5),
    "a clamp": ([n >= 1], binary("max", binary("min", i + j - 5, n - 1), 0) < n),
    "a choice": ([], Select(i < 50, i, i - 50) < 50),
    "equal": ([compare("eq", i, j + 3)], i < 13),
    "likely": ([Call("likely", (i < 7,), "bool")], i < 7),
    "data in an index": ([Load(I, (i,)) >= 0, Load(I, (i,)) < 10], AT < 10),
    "a byte": ([], BYTE < 256),
    "a clamp of data": ([], cast(binary("min", Load(I, (i,)), const(9, "int32")), "index") < 10),
    "a symbol of any size": ([i + w >= 0, i + w < n], i + w < n),
}
OPEN = {
    "one side only": ([i >= 1], i - 1 < n),
    "one too many": ([i < n + 1], i < n),
    "not enough": ([i * 2 + k < 10], i < 4),
    "another element": ([Load(I, (j,)) < 10], AT < 10),
    "what data wraps to": ([], cast(Load(I, (i,)) + 1, "index") >= -(2**31) + 1),
    "either": ([Logical("or", i < 5, j < 5)], i < 5),
    "NaN-like: no integers": ([Compare("lt", const(0.5, "float32"), const(1.0, "float32"))], i < 5),
}


@pytest.mark.parametrize("name", PROVED)
def test_proved(name):
    conditions, bound = PROVED[name]
    assert implies(conditions, bound, Analyzer(RANGES))


@pytest.mark.parametrize("name", OPEN)
def test_not_proved(name):
    conditions, bound = OPEN[name]
    assert not implies(conditions, bound, Analyzer(RANGES))


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_what_is_proved_holds_at_all_points(first):
    proved = 0
    for seed in range(first, first + 100):
        rng = random.Random(seed)
        ranges, extents, points = make.static(rng) if rng.random() < 0.5 else make.symbolic(rng)
        if not points:
            continue
        variables = tuple(points[0])
        conditions = [make.condition(rng, variables, 2) for _ in range(rng.randint(0, 3))]
        index = make.index_expr(rng, variables, rng.randint(1, 3))
        end = make.index_expr(rng, variables, 1)
        bound = Compare(rng.choice(("lt", "le", "gt", "ge")), index, end)
        if not implies(conditions, bound, Analyzer(ranges, extents)):
            continue
        proved += 1
        for point in points:
            if all(value_of(condition, point) for condition in conditions):
                assert value_of(bound, point), f"seed {seed}: {bound} at {point}"
    assert proved > 5


@pytest.mark.parametrize("first", range(0, 2000, 500))
def test_ranges_of_data_hold_at_all_points(first):
    for seed in range(first, first + 500):
        rng = random.Random(seed)
        variables = make.data_variables(rng)
        expr = make.data_expr(rng, variables, rng.choice(variables).dtype, rng.randint(1, 4))
        found = data_range(expr, Analyzer({}).interval)
        for point in make.data_points(rng, variables):
            assert found.low <= value_of(expr, point) <= found.high, f"seed {seed}: {expr}"


def test_systems():
    assert is_infeasible([({}, -1)])
    assert not is_infeasible([({}, 0)])
    assert is_infeasible([({"x": 3}, -1), ({"x": -3}, 2)])  # 1 <= 3*x <= 2
    assert not is_infeasible([({"x": 3}, -1), ({"x": -3}, 3)])
    assert is_infeasible([({"x": 1, "y": -1}, -1), ({"y": 1, "z": -1}, 0), ({"z": 1, "x": -1}, 0)])


def test_a_system_that_grows_is_given_up():
    rng = random.Random(0)
    rows = [({v: rng.choice((-3, -2, 2, 3)) for v in range(9)}, 5) for _ in range(60)]
    assert not is_infeasible(rows)


def test_data_alone_cannot_overflow_an_index():
    wide = cast(Load(Buffer("L", (8,), "int64"), (i,)), "index")
    assert limits_of_data(wide, Analyzer({}).interval) == []
    assert limits_of_data(i * 3, Analyzer({}).interval) == []
    assert limits_of_data(AT * 3 + i, Analyzer({}).interval) == []  # 32 bits stay far below 64
    assert len(limits_of_data(wide * 3, Analyzer({}).interval)) == 2
    (low, _) = limits_of_data(wide * wide, Analyzer({}).interval)[:2]
    assert str(low) == f"index(L[i]) >= {-(2**31)}"
