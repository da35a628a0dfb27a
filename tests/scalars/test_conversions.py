"""Conversions between all dtypes, against exact arithmetic: rounded once, saturating, NaN to 0."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dlcompiler import dtypes, te
from tests.scalars.agreement import DATA, FLOATS, INTEGERS, agree, assert_same, edge_values, nearest


def values_from(source):
    """Return edge values, and those beside what other dtypes can hold or lie halfway between."""
    values = list(edge_values(source).tolist())
    if dtypes.is_float(source):
        limits = [float(f(name)) for name in INTEGERS for f in (dtypes.min_value, dtypes.max_value)]
        values += [math.nextafter(x, y) for x in limits for y in (-math.inf, x, math.inf)]
        values += [254.9, 255.1, -128.9, -129.1, 0.99, -0.99, 65519.99, 65520.0, 3.4e38, 1e300]
    if source in ("float32", "float64", "int32", "int64", "uint64"):
        is_integer = not dtypes.is_float(source)
        for bits in (8, 9, 11, 12, 24, 25):
            for scale in (0, 20, 35) if is_integer else (0, -100, -14):
                tie = Fraction(2**bits + 1) * Fraction(2) ** scale
                nudges = (-1, 0, 1) if is_integer else (-(2.0**-40) * float(tie), 0.0, 1e-9)
                values += [(int if is_integer else float)(tie + Fraction(x)) for x in nudges]
        low, high = dtypes.min_value(source), dtypes.max_value(source)
        values = [value for value in values if not is_integer or low <= value <= high]
        values += [] if dtypes.is_unsigned(source) else [-value for value in values if value > 0]
    with np.errstate(all="ignore"):
        return (
            np.array(values, object)
            .astype(np.float64 if dtypes.is_float(source) else object)
            .astype(dtypes.to_numpy(source))
        )


def _converted(value, target):
    if dtypes.is_bool(target):
        return value != 0
    if dtypes.is_float(target):
        if isinstance(value, float) and (value == 0 or not math.isfinite(value)):
            return value
        return nearest(Fraction(value), target)
    low, high = int(dtypes.min_value(target)), int(dtypes.max_value(target))
    if isinstance(value, float):
        return 0 if math.isnan(value) else int(min(max(value, low), high))
    return (int(value) - low) % (high - low + 1) + low


@pytest.mark.campaign
@pytest.mark.parametrize("source", DATA)
def test_conversion_to_all(source):
    values = values_from(source)
    results = agree(
        {name: lambda x, t=name: x.astype(t) for name in DATA if name != source}, [values]
    )
    plain = [float(x) if dtypes.is_float(source) else x.item() for x in values]
    for target, got in results.items():
        right = np.array([_converted(x, target) for x in plain], dtypes.to_numpy(target))
        assert_same(got, right, [values], f"{source} to {target}")


def test_every_float16_and_bfloat16_widens_exactly():
    bits = np.arange(2**16, dtype=np.uint16)
    for name in ("float16", "bfloat16"):
        values = bits.view(dtypes.to_numpy(name))
        wide = agree({"Y": lambda x: x.astype("float32").astype("float64")}, [values])["Y"]
        with np.errstate(all="ignore"):
            assert_same(wide, values.astype("float64"), [values], name)


@pytest.mark.parametrize("dtype", [*DATA[1:], "bool"])
def test_numpy_dtypes_are_dtypes(dtype):
    kind = dtypes.to_numpy(dtype)
    for given in (dtype, kind, kind.type):
        A = te.placeholder((3,), given, name="A")
        assert A.dtype == dtype
        assert te.const(1, given).dtype == te.max_value(given).dtype == dtype
        assert A[0].astype(given).dtype == dtype
    assert te.notation("B[i] = A[i]", A=((3,), kind)).dtype == dtype


@pytest.mark.parametrize("dtype", FLOATS)
def test_literals_are_rounded_once(dtype):
    A = te.placeholder((1,), dtype, name="A")
    for value in (0.1, 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-11 + 2.0**-45):
        B = te.compute((1,), lambda i: A[i] * value)  # noqa: B023
        got = te.evaluate(B, [np.ones(1, dtypes.to_numpy(dtype))])
        assert float(got[0]) == nearest(Fraction(value), dtype)
