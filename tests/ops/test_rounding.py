"""ops.rounding: the bound of a rounding holds for numbers of any size."""

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.ops.rounding import UNITS, rounded


@pytest.mark.parametrize("dtype", [name for name in UNITS if name != "float64"])
def test_rounded_holds_below_the_smallest_normal_number(dtype):
    kind = dtypes.to_numpy(dtype)
    smallest = float(np.asarray(1, kind)) * 2.0 ** (-24 if dtype == "float16" else -130)
    exact = np.linspace(-4, 4, 1001) * smallest
    error = np.abs(exact.astype(kind).astype(np.float64) - exact)
    assert (error <= rounded(exact, np.zeros_like(exact), dtype)).all()
