"""Conversions between all dtypes: truncating, saturating, NaN to 0, rounding once."""

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.ir import Binary, Broadcast, Cast, Const

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")


def _values(dtype):
    if dtype == "bool":
        return np.array([False, True])
    if dtypes.is_int(dtype):
        low, high = dtypes.min_value(dtype), dtypes.max_value(dtype)
        values = {0, 1, 2, 100, low, low + 1, high, high - 1, high // 2, high // 3}
        return np.array(sorted(values), dtype)
    limits = [float(f(name)) for name in INTEGERS for f in (dtypes.min_value, dtypes.max_value)]
    near = [np.nextafter(x, y) for x in limits for y in (-np.inf, np.inf)]
    parts = [0.0, -0.0, 0.5, -0.5, 0.99, -0.99, 1.5, -1.5, 254.9, 255.1, -128.9, -129.1]
    with np.errstate(all="ignore"):
        return np.array([*limits, *near, *parts, np.inf, -np.inf, np.nan]).astype(dtype)


def _expected(values, source, target):
    with np.errstate(all="ignore"):
        if dtypes.is_float(source) and dtypes.is_int(target):
            return np.array([_saturated(float(x), target) for x in values], target)
        return values.astype(target)


def _saturated(value, target):
    low, high = dtypes.min_value(target), dtypes.max_value(target)
    if np.isnan(value):
        return 0
    if value <= low or value >= high:
        return low if value <= low else high
    return int(value)


@pytest.mark.campaign
@pytest.mark.parametrize("lanes", [2])  # tests/scalars has 1 and 8
@pytest.mark.parametrize("result", ["bool", *INTEGERS, *FLOATS])
@pytest.mark.parametrize("source", ["bool", *INTEGERS, *FLOATS])
def test_conversion(elementwise, source, result, lanes):
    values = _values(source)
    run = elementwise(
        lambda x: Cast(x, dtypes.with_lanes(result, lanes)),
        source, dtype=result, lanes=lanes, size=len(values),
    )  # fmt: skip
    np.testing.assert_array_equal(run(values), _expected(values, source, result))


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize(
    ("result", "low", "high"),
    [("uint8", 0, 255), ("int8", -128, 127), ("int8", -3, 300), ("int32", -5, 900)],
)
def test_floats_between_limits(elementwise, result, low, high, lanes):
    values = _values("float32")
    limits = [Const(float(n), "float32") for n in (low, high)]
    least, most = [Broadcast(n, lanes) for n in limits] if lanes > 1 else limits
    run = elementwise(
        lambda x: Cast(Binary("min", Binary("max", x, least), most),
                       dtypes.with_lanes(result, lanes)),
        "float32", dtype=result, lanes=lanes, size=len(values),
    )  # fmt: skip
    clamped = np.minimum(np.maximum(values, np.float32(low)), np.float32(high))
    np.testing.assert_array_equal(run(values), _expected(clamped, "float32", result))


def test_index_is_signed(elementwise):
    run = elementwise(lambda x: Cast(Cast(x, "index"), "float64"), "int64", dtype="float64", size=3)
    assert run([-3, 0, 2**53]).tolist() == [-3.0, 0.0, 2.0**53]


@pytest.mark.parametrize("lanes", [1, 8])
def test_float64_to_float16_rounds_once(elementwise, lanes):
    # 1 + 2**-11 lies between two float16 numbers; a little more rounds up, which float32 hides.
    near_ties = [1 + 2.0**-11 + s * 2.0**-40 for s in (-1, 0, 1)]
    near_ties += [65520 - 2.0**-30, 65520.0, 2.0**-25, 2.0**-25 * (1 + 2.0**-40), 2.0**-26, 1e-300]
    bits = np.random.default_rng(2).integers(0, 2**16, 4096).astype("uint16").view("float16")
    finite = bits[np.isfinite(bits)].astype("float64")
    nudged = np.concatenate([finite * (1 + 2.0**-11 + s * 2.0**-45) for s in (-1, 0, 1)])
    values = np.concatenate([near_ties, finite, nudged, [np.inf, np.nan]])
    values = np.concatenate([values, -values])
    run = elementwise(
        lambda x: Cast(x, dtypes.with_lanes("float16", lanes)),
        "float64", dtype="float16", lanes=lanes, size=len(values),
    )  # fmt: skip
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(values), values.astype("float16"))
