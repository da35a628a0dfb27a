"""GPUs compute functions, operations and conversions of every dtype as NumPy does.

OpenCL runs on a device; the LLVM IR of PTX is run on this CPU.
"""

import operator

import numpy as np
import pytest

from dlcompiler import dtypes, te
from tests.scalars.agreement import DATA, FLOATS, INTEGERS, agree, edge_values, pairs
from tests.scalars.test_conversions import values_from
from tests.scalars.test_functions import EXACT, ROUNDED, values_of
from tests.scalars.test_operations import FLOAT_OPERATIONS, INTEGER_OPERATIONS, UNARY

OF_TWO = ("copysign", "fmod", "nextafter")


@pytest.fixture(params=["opencl", "ptx"])
def way(request):
    """Return a way of `agree`."""
    if request.param == "opencl":
        request.getfixturevalue("opencl")
    return request.param


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", FLOATS)
def test_functions(dtype, way):
    ulps = 1 if dtypes.bits(dtype) == 16 else 4
    functions = {name: getattr(te, name) for name in (*ROUNDED, *EXACT)}
    agree(functions, [values_of(dtype)], ulps=ulps, ways=[way])


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(dtype, way):
    a, b = pairs(dtype, dtype)
    differ = (a != 0) | (b != 0)  # which of 0 and -0 is the larger is not said
    operations = FLOAT_OPERATIONS | {name: getattr(te, name) for name in OF_TWO}
    agree(operations, [a[differ], b[differ]], ways=[way])


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype, way):
    a, b = pairs(dtype, dtype)
    operations = {name: function for name, (function, _) in INTEGER_OPERATIONS.items()}
    agree(operations, [a, b], ways=[way])
    agree({name: function for name, (function, _) in UNARY.items()}, [a], ways=[way])
    bits = np.arange(dtypes.bits(dtype)).astype(dtype)
    grids = [each.ravel() for each in np.meshgrid(edge_values(dtype), bits)]
    agree({"shl": operator.lshift, "shr": operator.rshift}, grids, ways=[way])


@pytest.mark.campaign
@pytest.mark.parametrize("source", DATA)
def test_conversion_to_all(source, way):
    others = [name for name in DATA if name != source]
    agree(
        {name: lambda x, t=name: x.astype(t) for name in others}, [values_from(source)], ways=[way]
    )
