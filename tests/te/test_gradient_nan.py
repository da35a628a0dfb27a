"""Gradients of maxima and minima where a value is NaN, which wins."""

import numpy as np
import pytest

from dlcompiler import te
from tests.te.gradients import run_everywhere


def tensor(name, *shape, dtype="float64"):
    return te.placeholder(shape, dtype, name=name)


NAN_ROWS = [
    ([1, np.nan, 3, 2, 0], 1),
    ([np.nan, 5, np.nan, 1, 9], 0),
    ([7, 8, 9, 1, np.nan], 4),
    ([np.inf, np.nan, -np.inf, np.inf, 1], 1),
    ([-np.inf, -np.inf, np.nan, np.nan, 1], 2),
    ([-np.inf, -np.inf, -np.inf, -np.inf, -np.inf], 0),
    ([np.inf, np.inf, np.inf, np.inf, np.inf], 0),
]


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize(
    "reducer",
    [te.max, te.min, te.comm_reducer(lambda x, y: te.maximum(y, x), te.min_value, name="own")],
)
def test_where_nan_wins_it_gets_all(reducer, dtype):
    n = len(NAN_ROWS)
    A, H = tensor("A", n, 5, dtype=dtype), tensor("H", n, dtype=dtype)
    k = te.reduce_axis((0, 5), name="k")
    C = te.compute((n,), lambda i: reducer(A[i, k], axis=k), name="C")
    found = te.gradient(C, [A], H)
    given = {A: np.array([row for row, _ in NAN_ROWS], dtype), H: np.ones(n, dtype)}
    (result,) = run_everywhere(found, given)
    assert result.sum(axis=1).tolist() == [1] * n
    assert result.argmax(axis=1).tolist() == [place for _, place in NAN_ROWS]


def test_nan_at_points_that_do_not_count():
    B, H = tensor("B", 5), tensor("H", 3)
    A, k = tensor("A", 3, 5), te.reduce_axis((0, 5), name="k")
    C = te.compute((3,), lambda i: te.max(A[i, k], axis=k, where=B[k] > 5), name="C")
    given = {B: np.array([0, 9, 9, 0, 9.0]), A: np.ones((3, 5)), H: np.ones(3)}
    given[A][0] = [np.nan, 1, 2, np.nan, 0]
    given[A][1] = [np.nan, 1, 2, np.nan, np.nan]
    (result,) = run_everywhere(te.gradient(C, [A], H), given)
    assert result.argmax(axis=1).tolist() == [2, 4, 1]


@pytest.mark.parametrize(
    ("combine", "data", "place"),
    [
        (lambda x, y: te.select(y > x, y, x), [1, np.nan, 3, 3, 0], 2),  # NaN never stays
        (lambda x, y: te.select(x > y, x, y), [9, np.nan, 3, 3, 0], 2),  # what follows it does
        (lambda x, y: te.select(x > y, x, y), [9, 1, 3, 3, np.nan], 4),
        (lambda x, y: te.if_then_else(y < x, x, y), [np.nan, 1, 3, 2, 3], 2),
    ],
)
def test_a_choice_by_a_comparison_keeps_its_order(combine, data, place):
    A, H, k = tensor("A", 1, 5), tensor("H", 1), te.reduce_axis((0, 5), name="k")
    own = te.comm_reducer(combine, te.min_value, name="own")
    C = te.compute((1,), lambda i: own(A[i, k], axis=k), name="C")
    given = {A: np.array([data]), H: np.ones(1)}
    (result,) = run_everywhere(te.gradient(C, [A], H), given)
    assert (result.sum(), result.argmax()) == (1, place)
    np.testing.assert_equal(te.evaluate(C, [given[A]])[0], data[place])


@pytest.mark.parametrize("op", [te.maximum, te.minimum])
def test_where_nan_wins_an_operand_gets_all(op):
    A, B, H = (tensor(name, 4) for name in "ABH")
    C = te.compute((4,), lambda i: op(A[i], B[i]), name="C")
    found = te.gradient(C, [A, B], H)
    nan = np.nan
    given = {A: np.array([nan, 1, nan, 2]), B: np.array([1, nan, nan, 2.0]), H: np.ones(4)}
    a, b = run_everywhere(found, given)
    assert (a.tolist(), b.tolist()) == ([1, 0, 1, 1], [0, 1, 0, 0])
