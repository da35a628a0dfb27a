"""Functions of every dtype: four evaluations agree, and are near what float64 gives."""

import math

import numpy as np
import pytest

from dlcompiler import dtypes, te
from dlcompiler.errors import ExpressionError
from dlcompiler.ir.functions import FUNCTIONS
from tests.scalars.agreement import FLOATS, INTEGERS, agree, assert_same, edge_values, pairs

ROUNDED = [
    name
    for name, signature in FUNCTIONS.items()
    if signature.domain == "float" and signature.arity == 1 and not signature.is_exact
]
EXACT = {
    "abs": np.abs, "ceil": np.ceil, "floor": np.floor, "round": np.rint, "trunc": np.trunc,
    "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan,
}  # fmt: skip
NUMPY = {
    **{f"a{x}": getattr(np, f"arc{x}") for x in ("cos", "cosh", "sin", "sinh", "tan", "tanh")},
    "exp10": lambda x: 10.0**x,
    "erf": lambda x: np.array([math.erf(value) for value in x]),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))),
}  # fmt: skip
MACHINE = ("scalar", "vectorized")


def _reference(name):
    return NUMPY.get(name) or getattr(np, name)


def _all(dtype):
    return np.arange(2**16, dtype=np.uint16).view(dtypes.to_numpy(dtype))


def values_of(dtype):
    spread = np.concatenate(
        [np.linspace(-20, 20, 161), np.linspace(-1, 1, 41), 2.0 ** np.arange(-20, 40)]
    )
    with np.errstate(all="ignore"):
        return np.concatenate([edge_values(dtype), spread.astype(dtypes.to_numpy(dtype))])


def _check_near(got, name, values, dtype, ulps):
    """Compare with float64's result, itself within a unit of float64, rounded to the dtype."""
    with np.errstate(all="ignore"):
        wide = _reference(name)(values.astype("float64"))
        right = np.asarray(wide).astype(dtypes.to_numpy(dtype))
        assert_same(got, right, [values], name, ulps)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_all_values_of_16_bits(dtype):
    values = _all(dtype)
    functions = {name: getattr(te, name) for name in ROUNDED}
    got = agree(functions, [values], ulps=1, ways=MACHINE)
    for name in functions:
        _check_near(got[name], name, values, dtype, ulps=1)
    got = agree({name: getattr(te, name) for name in EXACT}, [values], ways=MACHINE)
    for name, function in EXACT.items():
        with np.errstate(all="ignore"):
            right = function(values.astype("float32")).astype(got[name].dtype)
        assert_same(got[name], right, [values], name)


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", FLOATS)
def test_functions(dtype):
    values = values_of(dtype)
    ulps = 1 if dtypes.bits(dtype) == 16 else 4
    got = agree({name: getattr(te, name) for name in ROUNDED}, [values], ulps=ulps)
    for name in ROUNDED:
        _check_near(got[name], name, values, dtype, ulps=ulps)
    got = agree({name: getattr(te, name) for name in EXACT}, [values])
    for name, function in EXACT.items():
        with np.errstate(all="ignore"):
            assert_same(got[name], function(values).astype(got[name].dtype), [values], name)


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_of_two(dtype):
    a, b = pairs(dtype, dtype)
    rounded = {"atan2": te.atan2, "hypot": te.hypot, "pow": te.power}
    ulps = 1 if dtypes.bits(dtype) == 16 else 4
    got = agree(rounded, [a, b], ulps=ulps)
    with np.errstate(all="ignore"):
        x, y = a.astype("float64"), b.astype("float64")
        for name, function in (("atan2", np.arctan2), ("hypot", np.hypot), ("pow", np.power)):
            assert_same(got[name], function(x, y).astype(got[name].dtype), [a, b], name, ulps)
        exact = {"copysign": te.copysign, "fmod": te.fmod, "nextafter": te.nextafter}
        got = agree(exact, [a, b])
        for name in exact:
            right = getattr(np, name)(a, b)
            right = np.where((a == b) & (name == "nextafter"), b, right)
            assert_same(got[name], right, [a, b], name)


def test_tf32():
    bits = np.random.default_rng(4).integers(0, 2**32, 2000, dtype=np.uint32)
    ties = bits & ~np.uint32(0xFFF) | np.uint32(0x1000)
    values = np.concatenate([edge_values("float32"), bits.view("f4"), ties.view("f4")])
    with np.errstate(all="ignore"):
        got = agree({"tf32": te.tf32}, [values])["tf32"]
        high = values.view("u4") & np.uint32(0xFFFFE000)
        rest = values.view("u4") & np.uint32(0x1FFF)
        right = (high + np.uint32(0x2000) * (rest >= 0x1000)).view("f4")
        assert_same(got, np.where(np.isfinite(values), right, values), [values], "tf32")


def test_sort_key():
    bits = np.random.default_rng(4).integers(0, 2**32, 300, dtype=np.uint32)
    values = np.concatenate([edge_values("float32"), bits.view("f4"), -edge_values("float32")])
    keys = agree({"sort_key": te.sort_key}, [values])["sort_key"]
    assert keys.dtype == np.int32
    order = np.argsort(values, kind="stable")  # NaN last
    np.testing.assert_array_equal(np.argsort(keys, kind="stable"), order)
    numbers, sorted_keys = values[order], keys[order]
    is_same = (numbers[1:] == numbers[:-1]) | (np.isnan(numbers[1:]) & np.isnan(numbers[:-1]))
    np.testing.assert_array_equal(sorted_keys[1:] == sorted_keys[:-1], is_same)


@pytest.mark.parametrize("dtype", FLOATS)
def test_bits_of_floats(dtype):
    values = edge_values(dtype)
    values = values[~np.isnan(values)]  # each way may have other bits of NaN
    got = agree({"to_bits": te.to_bits}, [values])["to_bits"]
    assert got.dtype == np.dtype(f"i{values.itemsize}")
    np.testing.assert_array_equal(got.view(values.dtype), values)


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "uint64", "int64"])
def test_floats_of_bits(dtype):
    values = np.concatenate([edge_values(dtype), np.arange(0, 2**15, 97).astype(dtype)])
    got = agree({"from_bits": te.from_bits}, [values])["from_bits"]
    np.testing.assert_array_equal(got, values.view(f"f{values.itemsize}"))


@pytest.mark.parametrize("dtype", FLOATS)
def test_ldexp(dtype):
    a, n = pairs(dtype, "int32")
    small = np.resize(np.arange(-160, 160, dtype="int32"), len(a))
    for exponents in (n, small):
        got = agree({"ldexp": te.ldexp}, [a, exponents])["ldexp"]
        clipped = np.clip(exponents, -3000, 3000)
        with np.errstate(all="ignore"):
            right = np.array([_ldexp(float(x), int(k)) for x, k in zip(a, clipped, strict=True)])
            assert_same(
                got, right.astype(a.dtype), [a, exponents], "ldexp", 1 if dtype == "float64" else 0
            )


def _ldexp(x, n):
    try:
        return math.ldexp(x, n)
    except OverflowError:
        return math.copysign(math.inf, x)


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits_of_integers(dtype):
    values = edge_values(dtype)
    got = agree({"popcount": te.popcount, "clz": te.clz}, [values])
    bits = dtypes.bits(dtype)
    plain = [int(x) & (2**bits - 1) for x in values]
    assert got["popcount"].tolist() == [x.bit_count() for x in plain]
    assert got["clz"].tolist() == [bits - x.bit_length() for x in plain]
    assert (got["popcount"].dtype, got["clz"].dtype) == (values.dtype, np.int32)


def test_integers_are_whole_and_finite():
    values = edge_values("int64")
    functions = {
        name: getattr(te, name) for name in ("floor", "ceil", "round", "trunc", "nearbyint")
    }
    functions["fmod"] = lambda x: te.fmod(x, -(2**40)) + te.truncdiv(x, -(2**40)) * -(2**40)
    got = agree({**functions, "isnan": te.isnan, "isfinite": te.isfinite}, [values])
    assert all((got[name] == values).all() for name in functions)
    assert not got["isnan"].any()
    assert got["isfinite"].all()


def test_likely_is_its_condition():
    values = np.arange(-8, 8, dtype="int32")
    got = agree({"Y": lambda x: te.if_then_else(te.likely(x > 3), x, -x)}, [values])["Y"]
    assert got.tolist() == np.where(values > 3, values, -values).tolist()


def test_division_of_integers_by_function():
    values, ones = pairs("int32", "int32")
    got = agree({"div": te.div, "ceildiv": te.ceildiv}, [values, ones])
    for name, function in (("div", lambda a, b: int(a / b)), ("ceildiv", lambda a, b: -(-a // b))):
        points = zip(got[name].tolist(), values.tolist(), ones.tolist(), strict=True)
        for result, a, b in points:
            right = function(a, b) if b else 0
            assert result == (right + 2**31) % 2**32 - 2**31, (name, a, b)


REFUSED = {
    "te.popcount: takes an integer": lambda x, i: te.popcount(x),
    "te.ldexp: takes an integer": lambda x, i: te.ldexp(x, x),
    "te.sort_key: takes a float32": lambda x, i: te.sort_key(x.astype("float64")),
    "te.from_bits: takes an integer": lambda x, i: te.from_bits(x),
    "te.from_bits: no float has 8 bits": lambda x, i: te.from_bits(x.astype("int8")),
    "te.tf32: takes a float32": lambda x, i: te.tf32(x.astype("float64")),
    "te.likely: the condition is not a bool": lambda x, i: te.likely(x),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals(text):
    A = te.placeholder((4,), name="A")
    with pytest.raises(ExpressionError) as caught:
        te.compute((4,), lambda i: REFUSED[text](A[i], i))
    assert str(caught.value).startswith(text)


def test_conditions_are_0_and_1():
    values = np.array([True, False, True])
    got = agree({"sqrt": te.sqrt, "floor": te.floor, "isnan": te.isnan}, [values])
    assert got["sqrt"].dtype == got["floor"].dtype == "float32"
    np.testing.assert_array_equal(got["floor"], got["sqrt"])
    assert not got["isnan"].any()
    A = te.placeholder((3,), "bool", name="A")
    np.testing.assert_allclose(te.evaluate(te.exp(A), [values]), np.exp([1, 0, 1]), rtol=1e-6)


def test_whole_tensors():
    A = te.placeholder((2, 3), name="A")
    values = np.array([[0.5, -1, 2], [3, -4.5, 0]], "float32")
    np.testing.assert_allclose(te.evaluate(te.exp(A), [values]), np.exp(values), rtol=1e-6)
    np.testing.assert_array_equal(
        te.evaluate(te.maximum(abs(A), 1), [values]), np.maximum(abs(values), 1)
    )
