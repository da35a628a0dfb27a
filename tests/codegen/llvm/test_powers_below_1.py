"""A power whose exponent is the smaller of a number and 0: fewer instructions, as exact."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.codegen.llvm.functions import MAX_ULPS
from dlcompiler.pipeline import build

SPECIALS = [0.0, -0.0, np.nan, np.inf, -np.inf, 5.0, 1e-40, -1e-40, -3e38]


def _numbers(dtype):
    """Return all sizes of numbers below 0, and what is special."""
    if dtype == "float32":
        found = np.arange(0x80000000, 0xFF800000, 4099, np.uint32).view(np.float32)
        return np.concatenate([found, -np.linspace(86, 152, 5000, dtype=np.float32), SPECIALS])
    return np.concatenate(
        [-np.logspace(-320, 3.1, 20_000), -np.linspace(700, 1080, 5000), SPECIALS]
    )


@pytest.mark.parametrize(("name", "dtype"), [("exp", "float32"), ("exp", "float64")])
@pytest.mark.parametrize("lanes", [1, 8])
def test_results_are_as_exact_as_those_of_the_function(name, dtype, lanes):
    x = _numbers(dtype).astype(dtype)
    x = np.resize(x, (x.size + 7) // 8 * 8)
    A = te.placeholder(x.shape, dtype, name="A")
    B = te.compute(x.shape, lambda i: getattr(te, name)(te.minimum(A[i], te.const(0, dtype))))
    s = te.create_schedule(B.op)
    if lanes > 1:
        s[B].vectorize(s[B].split(B.op.axis[0], lanes)[1])
    kernel = build(s, [A, B])
    assert f"@dlc_{name}_below_1" in kernel.module.text
    got = np.empty_like(x)
    kernel(x, got)
    wide = np.longdouble if dtype == "float64" else np.float64
    wanted = getattr(np, name)(np.minimum(x, 0).astype(wide))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    unit = np.maximum(np.spacing(wanted.astype(dtype)), np.finfo(dtype).smallest_subnormal)
    error = np.abs(got.astype(wide) - wanted) / unit
    assert np.nanmax(error) <= MAX_ULPS[dtype][name]
