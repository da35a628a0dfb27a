"""Whether the order of a reduction matters: known forms, and what samples find."""

import re

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.te.reducers.laws import (
    grouping_violation,
    identity_violation,
    is_argmax,
    is_regroupable,
    order_violation,
)
from dlcompiler.te.reducers.reductions import with_reducer


def _zero(dtype):
    return te.const(0, dtype)


def _one(dtype):
    return te.const(1, dtype)


def head(combine, identity=_zero, dtype="int32", values=None, **options):
    """Return a reduction of 16 elements of A, or of `values` of A and the axis."""
    k = te.reduce_axis((0, 16), name="k")
    A = te.placeholder((16,), dtype, name="A")
    value = A[k] if values is None else values(A, k)
    found = te.comm_reducer(combine, identity, name="own")(value, axis=k, **options)
    return found[0] if isinstance(found, tuple) else found


def laws(reduction):
    """Return the laws that do not hold."""
    asked = (grouping_violation, order_violation, identity_violation)
    return [found.law for ask in asked if (found := ask(reduction))]


def larger_magnitude(x, y):
    return te.select(te.abs(x) >= te.abs(y), x, y)


def saturating(x, y):
    wide = x.astype("int32") + y.astype("int32")
    return te.maximum(te.minimum(wide, 127), -128).astype("int8")


def argmax(x, y):
    return te.select(x[1] >= y[1], x[0], y[0]), te.select(x[1] >= y[1], x[1], y[1])


def argmax_of_ties(x, y):
    wins = te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0]))
    return te.select(wins, x[0], y[0]), te.select(wins, x[1], y[1])


def nothing(i, v):
    return te.const(-1, i), te.min_value(v)


def position_and_value(A, k):
    return k, A[k]


def nan_wins(x, y):
    larger = te.select(x > y, x, y)
    return te.select(te.isnan(x), x, te.select(te.isnan(y), y, larger))


def welford(x, y):
    count, delta = x[0] + y[0], y[1] - x[1]
    safe = te.select(count == 0.0, 1.0, count)
    return count, x[1] + delta * y[0] / safe, x[2] + y[2] + delta * delta * x[0] * y[0] / safe


def softmax(x, y):
    top = te.maximum(x[0], y[0])
    return top, x[1] * te.exp(x[0] - top) + y[1] * te.exp(y[0] - top)


# -- what the order decides -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_the_larger_magnitude_is_not_commutative(dtype):
    assert laws(head(larger_magnitude, dtype=dtype)) == ["commutative"]


def test_a_witness_is_shown():
    found = order_violation(head(larger_magnitude))
    assert found.witness in {
        f"f({x}, {-x}) is {x}, but f({-x}, {x}) is {-x}" for x in (1, -1, 2, -2)
    }


def test_saturating_addition_is_not_associative():
    assert laws(head(saturating, dtype="int8")) == ["associative", "commutative"]
    witness = grouping_violation(head(saturating, dtype="int8")).witness
    assert witness.startswith("f(f(")


ALL = ["associative", "commutative", "identity"]


@pytest.mark.parametrize(
    ("combine", "identity", "dtype", "expected"),
    [
        (lambda x, y: (x + y) // 2, _zero, "int32", ALL),
        (lambda x, y: x - y, _zero, "int32", ["associative"]),
        (lambda x, y: x - y, _zero, "float32", ["associative"]),
        (lambda x, y: y, _zero, "int32", ["commutative", "identity"]),
        (lambda x, y: ~(x & y), lambda t: te.const(True, t), "bool", ALL),
        (lambda x, y: te.minimum(x + y, 1.0), _zero, "float32", ["associative", "commutative"]),
        (lambda x, y: te.select(x > y, x, y), te.min_value, "float32", ALL),
    ],
)
def test_other_orders(combine, identity, dtype, expected):
    assert laws(head(combine, identity, dtype)) == expected


@pytest.mark.parametrize(
    ("combine", "wrong", "dtype"),
    [
        (lambda x, y: x + y, _one, "int32"),
        (lambda x, y: x + y, lambda t: te.const(1e-4, t), "float16"),
        (lambda x, y: x * y, _zero, "int8"),
        (lambda x, y: x ^ y, _one, "uint8"),
        (lambda x, y: x ^ y, lambda t: te.const(True, t), "bool"),
        (lambda x, y: te.sqrt(x * x + y * y), _one, "float32"),
    ],
)
def test_an_identity_that_is_none(combine, wrong, dtype):
    if wrong is _zero:  # 0 * 0 is 0: what starts from it stays there, in any order
        assert laws(head(combine, wrong, dtype)) == []
        assert laws(head(combine, wrong, dtype, init=te.const(1, dtype))) == ["identity"]
        return
    assert laws(head(combine, wrong, dtype)) == ["identity"]


def test_the_identity_that_a_sum_does_not_have():
    witness = identity_violation(head(lambda x, y: x + y, _one)).witness
    found = re.fullmatch(r"f\((-?\d+), 1\) is (-?\d+), and not \1", witness)
    assert int(found[2]) == int(found[1]) + 1


def test_an_identity_counts_only_where_something_else_starts():
    larger = head(te.maximum, lambda t: te.const(5, t))
    assert laws(larger) == []  # what starts from 5 is never less
    assert laws(head(te.maximum, lambda t: te.const(5, t), init=te.const(2))) == ["identity"]


# -- what it does not -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize(
    ("combine", "identity"),
    [
        (lambda x, y: x + y, _zero),
        (lambda x, y: y + x, _zero),
        (lambda x, y: x * y, _one),
        (te.maximum, te.min_value),
        (lambda x, y: te.minimum(y, x), te.max_value),
    ],
)
def test_known_forms(combine, identity, dtype):
    assert laws(head(combine, identity, dtype)) == []


@pytest.mark.parametrize(
    ("combine", "identity", "dtype", "values"),
    [
        (nan_wins, te.min_value, "float32", None),
        (lambda x, y: te.select(y > x, y, x), te.min_value, "float32", None),  # NaN never stays
        (lambda x, y: te.select(x > y, x, y), te.min_value, "int32", None),
        (lambda x, y: te.sqrt(x * x + y * y), _zero, "float32", None),
        (lambda x, y: x + y - x * y, _zero, "float64", None),
        (te.all, lambda t: te.const(True, t), "bool", None),
        (argmax_of_ties, nothing, "int32", position_and_value),
        (
            lambda x, y: (x[0] + y[0], te.maximum(x[1], y[1])),
            lambda a, b: (te.const(0, a), te.min_value(b)),
            "int8",
            lambda A, k: (A[k].astype("int32"), A[k].astype("float32")),
        ),
        (
            welford,
            lambda *kinds: tuple(map(_zero, kinds)),
            "float32",
            lambda A, k: (te.const(1.0), A[k], te.const(0.0)),
        ),
        (
            softmax,
            lambda a, b: (te.const(-3e38, a), te.const(0, b)),
            "float32",
            lambda A, k: (A[k], te.const(1.0)),
        ),
    ],
)
def test_reducers_of_which_the_order_does_not_matter(combine, identity, dtype, values):
    assert laws(head(combine, identity, dtype, values)) == []


@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
@pytest.mark.parametrize("reduce", [te.argmax, te.argmin])
def test_positions_are_those_of_an_axis(reduce, dtype):
    k = te.reduce_axis((0, 16), name="k")
    A = te.placeholder((16,), dtype, name="A")
    assert laws(reduce(A[k], k)[0]) == []


def test_an_argmax_that_takes_the_first_of_equals():
    assert laws(head(argmax, nothing, "int32", position_and_value)) == ["commutative"]


@pytest.mark.parametrize("combine", [argmax, argmax_of_ties])
def test_an_argmax_by_hand_is_one_of_ordered_values(combine):
    found = head(combine, nothing, "float32", position_and_value)
    assert is_argmax(found.reducer)
    assert grouping_violation(found) is not None
    assert grouping_violation(found, is_ordered=True) is None
    assert identity_violation(found, is_ordered=True) is None
    has_ties = combine is argmax
    assert (order_violation(found, is_ordered=True) is not None) == has_ties
    assert not is_argmax(head(lambda x, y: te.select(x > y, x, y), te.min_value).reducer)


def test_nan_in_an_argmax_is_evaluated_as_in_a_loop():
    A, k = te.placeholder((5,), name="A"), te.reduce_axis((0, 5), name="k")
    own = te.comm_reducer(argmax, nothing, name="own")
    M, V = te.compute((), lambda: own((k, A[k]), axis=k), name="M")
    place, value = te.evaluate([M, V], [np.array([5, np.nan, 1, 3, 2], "float32")])
    assert (place, value) == (3, 3)


def test_nan_moves_an_argmax_of_floats():
    found = grouping_violation(head(argmax, nothing, "float32", position_and_value))
    assert (found.law, "nan" in found.witness) == ("associative", True)


def test_a_maximum_that_starts_from_minus_infinity_twice():
    """Of two groups without points, exp(-inf + inf) is NaN."""
    found = grouping_violation(
        head(
            softmax,
            lambda a, b: (te.min_value(a), te.const(0, b)),
            "float32",
            lambda A, k: (A[k], te.const(1.0)),
        )
    )
    assert (found.law, "nan" in found.witness) == ("associative", True)


def test_values_on_the_way_are_looked_into():
    """Positive values, one stage earlier: their magnitudes have no ties of two signs."""
    A = te.placeholder((16,), "int8", name="A")
    B = te.compute((16,), lambda i: te.abs(A[i].astype("int32")), name="B")
    k = te.reduce_axis((0, 16), name="k")
    own = te.comm_reducer(larger_magnitude, _zero, name="own")
    assert laws(own(B[k], axis=k)) == []
    assert laws(own(A[k], axis=k)) == ["commutative"]


def test_points_that_do_not_count_are_left_out():
    positive = head(larger_magnitude, dtype="int32", values=lambda A, k: A[k])
    assert laws(positive) == ["commutative"]
    k = te.reduce_axis((0, 16), name="k")
    A = te.placeholder((16,), "int32", name="A")
    own = te.comm_reducer(larger_magnitude, _zero, name="own")
    assert laws(own(A[k], axis=k, where=A[k] > 0)) == []


def test_a_partial_result_is_one_of_an_earlier_stage():
    """The counts of groups are positive, which a number of their dtype need not be."""
    A = te.placeholder((4, 4), name="A")
    k, j = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 4), name="j")
    own = te.comm_reducer(welford, lambda *kinds: tuple(map(_zero, kinds)), name="welford")
    parts = te.compute((4,), lambda i: own((te.const(1.0), A[i, k], te.const(0.0)), axis=k))
    reducer = parts[0].op.body.reducer
    assert laws(with_reducer(reducer)(tuple(p[j] for p in parts), axis=j)[0]) == []


# -- the evaluation with NumPy relies on them -----------------------------------------------------


@pytest.mark.parametrize(
    ("combine", "identity", "dtype", "data", "expected"),
    [
        (larger_magnitude, _zero, "int32", [5, -5, 3, -5], 5),
        (saturating, _zero, "int8", [100, 100, -100, -74], -47),
        (lambda x, y: x + y, _one, "int32", [7, 7, 7, 7], 29),
        (lambda x, y: x - y, _zero, "int32", [1, 2, 3, 4], -10),
        (lambda x, y: te.select(y > x, y, x), te.min_value, "float32", [5, np.nan, 1, 2], 5),
        (lambda x, y: te.select(x > y, x, y), te.min_value, "float32", [5, np.nan, 1, 2], 2),
    ],
)
def test_values_are_combined_as_in_a_loop(combine, identity, dtype, data, expected):
    array = np.array(data, dtype)
    A = te.placeholder((4,), dtype, name="A")
    k = te.reduce_axis((0, 4), name="k")
    own = te.comm_reducer(combine, identity, name="own")
    C = te.compute((), lambda: own(A[k], axis=k), name="C")
    assert te.evaluate(C, [array]) == expected


def test_a_wrong_identity_is_not_combined_where_a_condition_fails():
    A = te.placeholder((8,), "int32", name="A")
    k = te.reduce_axis((0, 8), name="k")
    own = te.comm_reducer(lambda x, y: x + y, _one, name="own")
    C = te.compute((), lambda: own(A[k], axis=k, where=k < 3), name="C")
    assert te.evaluate(C, [np.full(8, 7, "int32")]) == 22
    assert not is_regroupable(C.op.body)


def capped(limit):
    return lambda x, y: te.minimum(x + y, te.const(limit, x.dtype))


def clipped(limit):
    return lambda x, y: te.maximum(te.minimum(x + y, limit), -limit)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int16", "int64"])
@pytest.mark.parametrize("combine", [capped(100), clipped(100), capped(-3000)])
def test_a_limit_of_partial_results_is_reached(combine, dtype):
    assert grouping_violation(head(combine, dtype=dtype)).law == "associative"


@pytest.mark.parametrize("limit", [1e10, 1e30])
def test_a_limit_of_large_floats_is_reached(limit):
    assert grouping_violation(head(capped(limit), dtype="float32"))


@pytest.mark.parametrize("dtype", ["int16", "int32", "uint32", "int64", "float32", "float64"])
def test_a_value_that_the_combination_names_is_tried(dtype):
    def ignored(x, y):
        return te.select(y == te.const(12345, dtype), x, x + y)

    assert grouping_violation(head(ignored, dtype=dtype)).law == "associative"


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64"])
def test_integers_that_are_rounded_on_the_way_are_compared_as_integers(dtype):
    def as_floats(x, y):
        return (x.astype("float32") + y.astype("float32")).astype(dtype)

    assert grouping_violation(head(as_floats, dtype=dtype)).law == "associative"


@pytest.mark.parametrize(
    ("combine", "identity", "expected"),
    [
        (lambda x, y: x + te.placeholder((2,), "int32", name="P")[0], _zero, "more than the two"),
        (lambda x, y: x + y, "0", "not a function"),
        (
            lambda x, y: x + y,
            lambda dtype: te.placeholder((2,), dtype, name="P")[0],
            "the identity is not a constant",
        ),
    ],
)
def test_what_a_reducer_cannot_be(combine, identity, expected):
    with pytest.raises(ExpressionError, match=expected):
        head(combine, identity)
