"""Float arithmetic, comparisons and functions against NumPy's, NaN and infinities included."""

import operator

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.codegen import emit
from dlcompiler.ir import Binary, Broadcast, Buffer, Call, Compare, Load, PrimFunc, Store, const

FLOATS = ("float16", "float32", "float64")
NUMPY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def _odd_values(dtype):
    info = np.finfo(dtype)
    positive = [0.0, info.smallest_subnormal, info.tiny, 1 / 3, 1.0, 1.5, 2.5, 3.0, 1000.1]
    positive += [float(info.max), np.inf]
    return np.array([*positive, *(-x for x in positive), np.nan], dtype)


def _pairs(dtype):
    values = _odd_values(dtype)
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


@pytest.mark.parametrize("lanes", [2])  # tests/scalars has 1 and 8
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", NUMPY)
def test_operations(elementwise, op, dtype, lanes):
    a, b = _pairs(dtype)
    run = elementwise(
        lambda x, y: Binary(op, x, y), dtype, dtype, dtype=dtype, lanes=lanes, size=len(a)
    )
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(a, b), NUMPY[op](a, b))


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("constant_first", [False, True])
def test_extremum_with_a_constant_propagates_nan(elementwise, op, lanes, constant_first):
    zero = const(0.0, "float32") if lanes == 1 else Broadcast(const(0.0, "float32"), lanes)

    def make(x):
        return Binary(op, zero, x) if constant_first else Binary(op, x, zero)

    values = _odd_values("float32")
    run = elementwise(make, "float32", dtype="float32", lanes=lanes, size=len(values))
    np.testing.assert_array_equal(run(values), NUMPY[op](values, np.float32(0)))


def test_relu_is_one_instruction(target, assembly):
    a = Buffer("A", (8,), "float32")
    from dlcompiler.ir import Ramp, index_const

    index = Ramp(index_const(0), index_const(1), 8)
    value = Binary("max", Load(a, (index,)), Broadcast(const(0.0, "float32"), 8))
    text = assembly(emit(PrimFunc("relu", (a,), (a,), Store(a, (index,), value)), target))
    if "avx" in text or target.has("avx"):
        assert "vmaxps" in text
        assert "vcmp" not in text


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons(elementwise, op, dtype):
    a, b = _pairs(dtype)
    for lanes in (1, 8):
        run = elementwise(
            lambda x, y: Compare(op, x, y), dtype, dtype, dtype="bool", lanes=lanes, size=len(a)
        )
        np.testing.assert_array_equal(run(a, b), getattr(operator, op)(a, b))


def test_float16_rounds_after_each_operation(elementwise):
    generator = np.random.default_rng(1)
    a, b, c = generator.normal(scale=30, size=(3, 4096)).astype("float16")
    for lanes in (1, 8):
        run = elementwise(
            lambda x, y, z: x * y + z, *["float16"] * 3, dtype="float16", lanes=lanes, size=4096
        )
        np.testing.assert_array_equal(run(a, b, c), a * b + c)


def test_subnormal_numbers_are_kept(elementwise):
    tiny = np.finfo("float32").smallest_subnormal
    run = elementwise(lambda x, y: x + y, "float32", "float32", dtype="float32", lanes=8, size=8)
    assert run([tiny] * 8, [tiny] * 8).tolist() == [2 * float(tiny)] * 8


EXACT_FUNCTIONS = {
    "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint,
    "abs": np.abs,
}  # fmt: skip


@pytest.mark.parametrize("lanes", [2])  # tests/scalars has 1 and 8
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", EXACT_FUNCTIONS)
def test_exact_functions(elementwise, name, dtype, lanes):
    values = np.concatenate([_odd_values(dtype), np.arange(-5, 5, 0.25, dtype)])
    vector = dtypes.with_lanes(dtype, lanes)
    run = elementwise(
        lambda x: Call(name, (x,), vector), dtype, dtype=dtype, lanes=lanes, size=len(values)
    )
    with np.errstate(all="ignore"):
        expected = EXACT_FUNCTIONS[name](values)
    np.testing.assert_array_equal(run(values), expected)
    if name != "sqrt":  # the sign of a NaN is nobody's
        np.testing.assert_array_equal(np.signbit(run(values))[:-1], np.signbit(expected)[:-1])


def _erf(values):
    from math import erf

    return np.array([erf(value) for value in values])


FUNCTIONS = {
    "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh,
    "erf": _erf,
}  # fmt: skip


@pytest.mark.parametrize("lanes", [2])  # tests/scalars has 1 and 8
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(elementwise, name, dtype, lanes):
    values = np.array([*np.linspace(-4, 4, 37), 0.0, -0.0, np.inf, -np.inf, np.nan], dtype)
    vector = dtypes.with_lanes(dtype, lanes)
    run = elementwise(
        lambda x: Call(name, (x,), vector), dtype, dtype=dtype, lanes=lanes, size=len(values)
    )
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name](values.astype("float64"))
    # float64's own results are the yardstick: a few units in the last place of the dtype.
    np.testing.assert_allclose(run(values), expected, rtol=4 * np.finfo(dtype).eps, atol=1e-300)


@pytest.mark.parametrize("dtype", FLOATS)
def test_pow(elementwise, dtype):
    a, b = np.array([0, 1, 2, 3, 10, 0.5, np.inf]), np.array([0, 1, 0.5, -1, 2, 3, np.nan])
    a, b = (x.ravel().astype(dtype) for x in np.meshgrid(a, b))
    for lanes in (1, 4):
        vector = dtypes.with_lanes(dtype, lanes)
        run = elementwise(
            lambda x, y: Call("pow", (x, y), vector),  # noqa: B023 - called at once
            *(dtype, dtype), dtype=dtype, lanes=lanes, size=len(a),
        )  # fmt: skip
        with np.errstate(all="ignore"):
            expected = a.astype("float64") ** b.astype("float64")
        np.testing.assert_allclose(run(a, b), expected, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("value", [0.1, -0.0, 1e300, np.inf, -np.inf, np.nan, 5e-324, 65504.0])
def test_constants(elementwise, dtype, value):
    from dlcompiler.ir import Const

    run = elementwise(lambda x: Binary("mul", x, Const(value, dtype)), dtype, dtype=dtype, size=1)
    with np.errstate(all="ignore"):
        expected = np.array([value]).astype(dtype)
    np.testing.assert_array_equal(run([1.0]), expected)
    np.testing.assert_array_equal(np.signbit(run([1.0])), np.signbit(expected))
