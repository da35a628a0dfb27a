"""Formulas of knobs: evaluated as vectors they are what Python computes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcompiler.autotune.features import numbers as n
from dlcompiler.autotune.features.evaluation import Program
from dlcompiler.autotune.features.numbers import Graph, Number

TABLES = ((1, 2, 4, 8), (3, 5, 7), (2, 16))
GRID = np.indices([len(table) for table in TABLES]).reshape(len(TABLES), -1).T

# Numbers above 256 are different objects each time that they are computed.
NUMBERS = st.one_of(st.integers(-20, 60), st.sampled_from([1000, 4096]))
LEAVES = st.one_of(NUMBERS, st.sampled_from(["k0", "k1", "k2"]))
TREES = st.recursive(
    LEAVES,
    lambda below: st.tuples(
        st.sampled_from(["add", "sub", "mul", "floordiv", "mod", "min", "max", "le", "eq",
                         "ceildiv", "select"]),
        below, below,
    ),
    max_leaves=12,
)  # fmt: skip


def built(tree, leaves):
    if not isinstance(tree, tuple):
        return leaves[tree] if isinstance(tree, str) else tree
    op, left, right = tree
    a, b = built(left, leaves), built(right, leaves)
    if op in ("floordiv", "mod", "ceildiv"):
        b = n.add(n.most(b, n.subtract(0, b)), 1)
    if op == "select":
        return n.select(n.at_most(a, b), a, n.multiply(b, 2))
    functions = {"add": n.add, "sub": n.subtract, "mul": n.multiply, "floordiv": n.floordiv,
                 "mod": n.mod, "min": n.least, "max": n.most, "le": n.at_most, "eq": n.equal,
                 "ceildiv": n.ceildiv}  # fmt: skip
    return functions[op](a, b)


@given(TREES)
def test_vectors_are_what_numbers_are(tree):
    graph = Graph()
    formula = built(tree, {f"k{i}": graph.knob(i, table) for i, table in enumerate(TABLES)})
    (values,) = Program([formula]).evaluate(GRID)
    values = np.broadcast_to(np.asarray(values), len(GRID))
    for digits, value in zip(GRID, values, strict=True):
        leaves = {f"k{i}": TABLES[i][digit] for i, digit in enumerate(digits)}
        assert built(tree, leaves) == value
    assert n.low(formula) <= values.min()
    assert values.max() <= n.high(formula)


def test_equal_formulas_are_one():
    graph = Graph()
    tile, other = graph.knob(0, (1, 2, 4)), graph.knob(1, (3, 5))
    assert n.add(tile, other) is n.add(other, tile)
    assert n.multiply(n.add(tile, 1), 2) is n.multiply(2, n.add(tile, 1))
    assert n.subtract(tile, tile) == 0
    assert n.floordiv(n.multiply(tile, other), other) is tile
    large = [int("1000") for _ in range(4)]
    assert n.subtract(n.add(tile, large[0]), large[1]) is tile
    assert n.floordiv(n.multiply(tile, large[2]), large[3]) is tile


def test_what_cannot_vary_is_a_number():
    graph = Graph()
    tile = graph.knob(0, (1, 2, 4))
    assert graph.knob(0, (3, 3)) == 3
    assert n.least(tile, 8) is tile
    assert n.at_most(tile, 4) == 1
    assert n.at_most(5, tile) == 0
    assert n.select(n.at_most(tile, 4), 1, tile) == 1
    assert isinstance(n.least(tile, 2), Number)


@pytest.mark.parametrize(("a", "b"), [(7, 2), (1_000_000_007, 3), (-7, 2), (2**45 + 1, 2**20)])
def test_division_is_exact(a, b):
    graph = Graph()
    top = graph.knob(0, (a, a + 1))
    quotient, rest = Program([n.floordiv(top, b), n.mod(top, b)]).evaluate(np.array([[0]]))
    assert quotient == a // b
    assert rest == a % b
