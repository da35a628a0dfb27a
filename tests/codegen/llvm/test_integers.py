"""Integer arithmetic against Python's: wrapping, all divisions, and nothing that traps."""

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcompiler import dtypes
from dlcompiler.codegen import emit
from dlcompiler.ir import (
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    For,
    PrimFunc,
    Store,
    Var,
    const,
    index_const,
)
from tests.share import share_of

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")
OPERATIONS = ("add", "sub", "mul", "min", "max", *DIVISIONS)
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def _truncdiv(a, b):
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


EXACT = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "min": min,
    "max": max,
    "floordiv": lambda a, b: a // b if b else 0,
    "floormod": lambda a, b: a % b if b else 0,
    "truncdiv": lambda a, b: _truncdiv(a, b) if b else 0,
    "truncmod": lambda a, b: a - _truncdiv(a, b) * b if b else 0,
}


def _wrap(value, dtype):
    bits = dtypes.bits(dtype)
    value &= (1 << bits) - 1
    negative = not dtypes.is_unsigned(dtype) and value >> (bits - 1)
    return value - (1 << bits) if negative else value


def _expected(op, a, b, dtype):
    return [_wrap(EXACT[op](int(x), int(y)), dtype) for x, y in zip(a, b, strict=True)]


def _corners(dtype):
    low, high = dtypes.min_value(dtype), dtypes.max_value(dtype)
    near = {0, 1, 2, 3, 7, 8, 100, -1, -2, -3, -7, -8, -100}
    values = {low, low + 1, high, high - 1, high // 2, low // 2} | near
    return [value for value in sorted(values) if low <= value <= high]


def _pairs(dtype):
    """All pairs of 8-bit values; of larger types, all pairs of unusual ones."""
    low, high = dtypes.min_value(dtype), dtypes.max_value(dtype)
    values = range(low, high + 1) if dtypes.bits(dtype) == 8 else _corners(dtype)
    numpy_dtype = dtypes.to_numpy(dtype)
    a, b = np.meshgrid(np.array(values, numpy_dtype), np.array(values, numpy_dtype))
    return a.ravel(), b.ravel()


@pytest.mark.campaign
@pytest.mark.parametrize("lanes", [2])  # tests/scalars has 1 and 8
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", OPERATIONS)
def test_operations(elementwise, op, dtype, lanes):
    a, b = _pairs(dtype)
    run = elementwise(
        lambda x, y: Binary(op, x, y), dtype, dtype, dtype=dtype, lanes=lanes, size=len(a)
    )
    assert run(a, b).tolist() == _expected(op, a, b, dtype)


@pytest.mark.campaign
@pytest.mark.parametrize("op", OPERATIONS)
def test_operations_on_random_numbers(elementwise, op):
    runs = {
        dtype: elementwise(lambda x, y: Binary(op, x, y), dtype, dtype, dtype=dtype, size=1)
        for dtype in INTEGERS
    }

    @settings(max_examples=share_of(200))
    @given(st.data())
    def check(data):
        dtype = data.draw(st.sampled_from(INTEGERS))
        values = st.integers(dtypes.min_value(dtype), dtypes.max_value(dtype))
        a, b = [data.draw(values)], [data.draw(values)]
        assert runs[dtype](a, b).tolist() == _expected(op, a, b, dtype)

    check()


@pytest.mark.campaign
@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("op", DIVISIONS)
@pytest.mark.parametrize(
    ("dtype", "divisor"),
    [
        (dtype, divisor)
        for dtype in ("int8", "uint8", "int64", "index")
        for divisor in (0, 1, 2, 3, 7, 8, 64, 127, -1, -2, -3, -8, -128)
        if divisor >= dtypes.min_value(dtype)
    ],
)
def test_division_by_a_constant(elementwise, op, dtype, divisor, lanes):
    constant = const(divisor, dtype)
    constant = constant if lanes == 1 else Broadcast(constant, lanes)
    stored = "int64" if dtype == "index" else dtype
    vector = dtypes.with_lanes(dtype, lanes)

    def divide(x):
        x = x if stored == dtype else Cast(x, vector)
        result = Binary(op, x, constant)
        return result if stored == dtype else Cast(result, dtypes.with_lanes(stored, lanes))

    values = range(-128, 128) if dtype == "int8" else range(256) if dtype == "uint8" else ()
    values = np.array(values or _corners("int64"), dtypes.to_numpy(dtype))
    run = elementwise(divide, stored, dtype=stored, lanes=lanes, size=len(values))
    assert run(values).tolist() == _expected(op, values, [divisor] * len(values), stored)


@pytest.mark.parametrize("dtype", ["int64", "index"])
def test_division_by_a_power_of_two_is_a_shift(target, dtype):
    out, i = Buffer("Y", (64,), "int64"), Var("i")
    x = i if dtype == "index" else Cast(i, "int64")
    value = Cast(x // const(8, dtype) + x % const(8, dtype), "int64")
    loop = For(i, index_const(64), "serial", Store(out, (i,), value))
    text = emit(PrimFunc("f", (out,), (out,), loop), target).text
    assert "ashr i64 %i, 3" in text
    assert "and i64 %i, 7" in text
    assert "div" not in text


@pytest.mark.campaign
@pytest.mark.parametrize("lanes", [2])  # tests/scalars has 1 and 8
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons(elementwise, op, dtype, lanes):
    a, b = _pairs(dtype)
    run = elementwise(
        lambda x, y: Compare(op, x, y), dtype, dtype, dtype="bool", lanes=lanes, size=len(a)
    )
    np.testing.assert_array_equal(run(a, b), getattr(operator, op)(a, b))


@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons_of_bools(elementwise, op):
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    run = elementwise(lambda x, y: Compare(op, x, y), "bool", "bool", dtype="bool", size=4)
    np.testing.assert_array_equal(run(a, b), getattr(operator, op)(a, b))


@pytest.mark.parametrize("lanes", [2])  # tests/scalars has 1 and 8
@pytest.mark.parametrize("dtype", INTEGERS)
def test_abs(elementwise, dtype, lanes):
    values = np.array(_corners(dtype), dtypes.to_numpy(dtype))
    vector = dtypes.with_lanes(dtype, lanes)
    run = elementwise(
        lambda x: Call("abs", (x,), vector), dtype, dtype=dtype, lanes=lanes, size=len(values)
    )
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run(values), np.abs(values))
