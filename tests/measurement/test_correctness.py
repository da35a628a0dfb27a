"""Between which values a result must be, in the dtype of the result."""

import numpy as np
import pytest

from dlcompiler import dtypes, ops
from dlcompiler.autotune.pools.correctness import correctness_test
from dlcompiler.measurement.correctness import Case, CorrectnessTest, Limits
from dlcompiler.target import resolve

CPU = resolve("cpu")
FLOATS = ["float16", "float32", "float64"]


def limits(expected, bound, dtype):
    right = np.asarray(expected, np.float64 if dtypes.is_float(dtype) else dtypes.to_numpy(dtype))
    return Limits.around(right, np.broadcast_to(np.asarray(bound, np.float64), right.shape), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_limits_are_as_strict_as_the_difference_in_float64(dtype):
    generator = np.random.default_rng(0)
    expected = generator.uniform(-2, 2, 500)
    bound = np.abs(generator.uniform(0, 4e-3, 500))
    allowed = limits(expected, bound, dtype)
    kind = dtypes.to_numpy(dtype)
    for step in (-6, -1, 0, 1, 6):
        got = (expected + step * bound / 5).astype(kind)
        is_right = np.abs(got.astype(np.float64) - expected) <= bound
        for value, low, high, right in zip(got, allowed.low, allowed.high, is_right, strict=True):
            assert (low <= value <= high) == right


def test_the_first_difference_is_told():
    allowed = limits([[1, 2], [3, 4]], 0.0, "float32")
    assert allowed.difference("C", np.array([[1, 2], [3, 4]], np.float32)) == ""
    assert allowed.difference("C", np.array([[1, 2.5], [3, np.nan]], np.float32)) == (
        "C[0, 1] is 2.5, expected 2; 2 of 4 elements are wrong"
    )
    wider = limits([1.0], 0.5, "float64")
    assert wider.difference("C", np.array([2.0])) == (
        "C[0] is 2, expected 0.5 to 1.5; 1 of 1 elements are wrong"
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_and_infinity_are_right_only_where_they_are_expected(dtype):
    kind = dtypes.to_numpy(dtype)
    special = np.array([np.nan, np.inf, -np.inf, 1.0], kind)
    allowed = limits(special, [0.0, 1.0, 1.0, 1.0], dtype)
    assert allowed.difference("C", special) == ""
    for place in range(4):
        for wrong in (np.nan, np.inf, -np.inf, 1e4):
            got = special.copy()
            got[place] = wrong
            is_same = np.array_equal(got, special, equal_nan=True)
            assert (allowed.difference("C", got) == "") == is_same
    anything = limits([1.0], np.inf, dtype)
    assert anything.difference("C", np.array([np.nan], kind)) == ""


@pytest.mark.parametrize(
    "dtype", [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
def test_integers_are_compared_exactly_and_limits_stay_in_range(dtype):
    low, high = (int(value) for value in (dtypes.min_value(dtype), dtypes.max_value(dtype)))
    kind = dtypes.to_numpy(dtype)
    right = np.array([low, high, 0, high // 2 + 1], kind)
    allowed = limits(right, 0.0, dtype)
    assert allowed.difference("C", right) == ""
    for place in range(4):
        for step in (1, -1):
            if not low <= int(right[place]) + step <= high:
                continue
            wrong = right.copy()
            wrong[place] = int(right[place]) + step
            assert allowed.difference("C", wrong) == (
                f"C[{place}] is {wrong[place]}, expected {right[place]}; 1 of 4 elements are wrong"
            )
    near = limits([low, high], 2.5, dtype)
    assert near.low.dtype == near.high.dtype == kind
    assert near.low.tolist() == [low, high - 2]
    assert near.high.tolist() == [low + 2, high]


def test_a_bool_that_is_neither_is_wrong():
    allowed = limits([False, True], 0.0, "bool")
    assert allowed.difference("C", np.array([False, True])) == ""
    poisoned = np.array([0, 0xFF], np.uint8).view(np.bool_)
    assert allowed.difference("C", poisoned).startswith("C[1] is 255, expected 1")


def test_a_test_goes_through_its_arrays():
    case = Case.of({"A": np.arange(3)}, {"C": np.arange(3.0)}, {"C": np.zeros(3)}, {"C": "float32"})
    again = CorrectnessTest.from_arrays(CorrectnessTest([case, case]).arrays())
    assert len(again.cases) == 2
    np.testing.assert_array_equal(again.cases[1].inputs["A"], np.arange(3))
    np.testing.assert_array_equal(again.cases[0].outputs["C"].high, np.arange(3.0))


WORKS = {
    "matmul": {"m": 50, "n": 37, "k": 29},
    "dense": {"m": 5, "n": 9, "k": 40},
    "conv2d_direct": {"n": 1, "c": 8, "h": 6, "w": 6, "o": 8, "kernel": 3, "padding": 1},
    "conv2d_winograd": {"n": 1, "c": 8, "h": 6, "w": 6, "o": 8, "kernel": 3, "padding": 1},
    "softmax": {"shape": (6, 100)},
    "layer_norm": {"shape": (6, 100)},
    "pool2d": {"kind": "max", "n": 1, "c": 4, "h": 12, "w": 12, "kernel": 3, "stride": 2},
    "reduction": {"function": "max", "shape": (10, 300), "axes": 1},
    "elementwise": {"function": "exp", "shapes": ((10, 30),)},
}


@pytest.mark.parametrize("name", WORKS)
def test_the_second_inputs_are_adversarial_and_numpy_finds_the_results_right(name):
    operator = ops.operator(name)
    workload = operator.workload(**WORKS[name])
    ordinary, adversarial, *more = correctness_test(operator, workload).cases
    first = next(iter(adversarial.inputs.values()))
    assert (first < 0).all()
    assert (np.abs(first) >= 0.5).all()
    (output,) = adversarial.outputs.values()
    assert np.isfinite(output.low).all()
    assert (output.low <= output.high).all()
    assert len(more) <= 22
    assert ordinary.inputs.keys() == adversarial.inputs.keys()


def test_what_rounding_may_decide_gets_random_inputs():
    operator = ops.operator("elementwise")
    workload = operator.workload(function="floor", shapes=((10, 30),))
    _, second, *_ = correctness_test(operator, workload).cases
    np.testing.assert_array_equal(
        second.inputs["data"], operator.reference(workload, 1).inputs["data"]
    )
