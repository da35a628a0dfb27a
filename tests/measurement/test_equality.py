"""The comparison of a verification: what is wrong is refused, whatever its dtype, and no more."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcompiler import dtypes, te
from dlcompiler.errors import InternalError, VerificationError
from dlcompiler.measurement.equality import differences, poison_for, unwritten
from dlcompiler.measurement.oracle import oracle_of
from dlcompiler.measurement.verification import _compare

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
SHAPES = [(), (1,), (7,), (3, 5), (2, 3, 4)]


def numpy_dtype(dtype):
    return np.dtype(dtypes.to_numpy(dtype))


def random_result(dtype, shape, seed):
    """Return a right result, its values as an oracle has them, and a bound."""
    generator = np.random.default_rng(seed)
    kind = numpy_dtype(dtype)
    if dtypes.is_float(dtype):
        wide = generator.normal(size=shape) * 2.0 ** generator.integers(-8, 8, shape)
        right = np.asarray(wide).astype(kind)
        expected = right.astype(np.float64)
        units = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-24, "float64": 2**-53}
        return right, expected, np.abs(expected) * 4 * units[dtype]
    bits = generator.integers(0, 256, (*shape, kind.itemsize), np.uint8)
    if dtypes.is_bool(dtype):
        bits %= 2
    right = np.ascontiguousarray(bits).view(kind).reshape(shape)
    return right, right.copy(), np.zeros(shape)


def places(shape):
    """Return the first, the last and a place between."""
    size = int(np.prod(shape))
    return {np.unravel_index(n, shape) for n in (0, size // 2, size - 1)}


def refused(got, expected, bound, index):
    found = differences(got, expected, bound)
    assert found.wrong.sum() == 1
    assert found.first == tuple(int(i) for i in index)


@given(st.sampled_from([*INTEGERS, *FLOATS, "bool"]), st.sampled_from(SHAPES), st.integers(0, 999))
def test_a_right_result_is_accepted(dtype, shape, seed):
    right, expected, bound = random_result(dtype, shape, seed)
    found = differences(right, expected, bound)
    assert found.first is None
    assert found.worst <= 1


@given(st.sampled_from(INTEGERS), st.sampled_from(SHAPES), st.integers(0, 999))
def test_an_integer_that_is_off_by_one_is_refused(dtype, shape, seed):
    right, expected, bound = random_result(dtype, shape, seed)
    ends = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
    for index in places(shape):
        for value in (int(right[index]), *ends, 0, ends[1] // 2 + 1):
            expected[index] = value
            for step in (-1, 1):
                if ends[0] <= value + step <= ends[1]:
                    got = expected.copy()
                    got[index] = value + step
                    refused(got, expected, bound, index)
        expected[index] = right[index]


@given(
    st.sampled_from([*INTEGERS, *FLOATS]), st.sampled_from(SHAPES), st.integers(0, 999),
    st.integers(0, 63),
)  # fmt: skip
def test_a_bit_that_is_flipped_is_refused(dtype, shape, seed, bit):
    right, expected, bound = random_result(dtype, shape, seed)
    kind = numpy_dtype(dtype)
    for index in places(shape):
        got = right.copy()
        bits = got.view(f"u{kind.itemsize}")
        bits[index] ^= np.array(1 << bit % (8 * kind.itemsize), bits.dtype)
        with np.errstate(all="ignore"):
            distance = np.abs(got.astype(np.float64) - expected)[index]
        is_float = dtypes.is_float(dtype)
        if is_float and distance <= bound[index]:  # as small as what rounding does
            assert differences(got, expected, bound).first is None
        else:
            refused(got, expected, bound, index)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_not_finite_must_be_the_same(dtype, shape):
    right, expected, bound = random_result(dtype, shape, 3)
    special = [np.nan, np.inf, -np.inf, 0.0, 1.5]
    for index in places(shape):
        for wanted in special:
            for value in special:
                got, aim = right.copy(), expected.copy()
                got[index], aim[index] = value, wanted
                is_same = value == wanted or (np.isnan(value) and np.isnan(wanted))
                if is_same or abs(value - wanted) <= bound[index]:
                    assert differences(got, aim, bound).first is None
                else:
                    refused(got, aim, bound, index)


@pytest.mark.parametrize("dtype", FLOATS)
def test_without_a_bound_everything_is_right_but_a_number_for_nan(dtype):
    kind = numpy_dtype(dtype)
    values = np.array([1.0, np.nan, np.inf, -np.inf], kind)
    for value in values:
        got = np.full(4, value, kind)
        assert differences(got, np.ones(4), np.full(4, np.inf)).first is None
        assert differences(got, np.ones(4), np.full(4, np.nan)).first is None
        of_nan = differences(got, np.full(4, np.nan), np.full(4, np.nan))
        assert (of_nan.first is None) == np.isnan(value)


def test_a_truth_value_is_one_byte():
    expected = np.array([False, True])
    for byte in (2, 0x80, 0xFF):
        for index in (0, 1):
            got = np.array([0, 1], np.uint8)
            got[index] = byte
            refused(got.view(np.bool_), expected, np.zeros(2), (index,))
    refused(np.array([True, True]), expected, np.zeros(2), (0,))


@given(st.sampled_from([*INTEGERS, *FLOATS, "bool"]), st.sampled_from(SHAPES), st.integers(0, 999))
def test_what_is_left_unwritten_is_refused(dtype, shape, seed):
    right, expected, bound = random_result(dtype, shape, seed)
    if dtypes.is_float(dtype):
        expected.flat[0] = right.flat[0] = np.nan
    poison = poison_for(expected, right.dtype)
    assert isinstance(poison, np.ndarray)
    assert differences(poison, expected, bound).wrong.all()
    assert unwritten(poison, poison).all()
    assert not unwritten(right, poison).any()
    for index in places(shape):
        got = right.copy()
        bits = f"u{right.itemsize}"  # NumPy would make a truth value of a byte that is none
        got.view(bits)[index] = poison.view(bits)[index]
        refused(got, expected, bound, index)


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_right_integers_in_float64_must_be_exact(dtype):
    got = np.ones(2, numpy_dtype(dtype))
    assert differences(got, np.ones(2), 0.0).first is None
    for wrong in (0.5, 2.0**60 if "64" in dtype else -1.5, np.nan):
        with pytest.raises(InternalError, match="floats, which do not hold them"):
            differences(got, np.array([1.0, wrong]), 0.0)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, "bool"])
def test_verify_names_the_first_wrong_element(dtype):
    A = te.placeholder((4, 3), dtype, name="A")
    C = te.compute((4, 3), lambda i, j: A[3 - i, j], name="C")
    oracle = oracle_of(te.create_schedule(C.op), 0)
    right = oracle.expected[C].astype(numpy_dtype(dtype))
    assert _compare("numpy", C, right, oracle) == 0
    wrong = right.copy()
    wrong[3, 2] = not right[3, 2] if dtype == "bool" else right[3, 2] / 2
    with pytest.raises(VerificationError, match="1 of 12 elements differ") as caught:
        _compare("numpy", C, wrong, oracle)
    assert caught.value.index == (3, 2)
    assert "it was never written" not in str(caught.value)
    bits, poison = f"u{right.itemsize}", poison_for(oracle.expected[C], right.dtype)
    wrong.view(bits)[3, 2] = poison.view(bits)[3, 2]
    with pytest.raises(VerificationError, match="it was never written: it has the value"):
        _compare("numpy", C, wrong, oracle)
