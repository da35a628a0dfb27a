"""A device of OpenCL computes functions and operations of every dtype as NumPy does."""

import pytest

from dlcompiler import dtypes, te
from tests.scalars.agreement import FLOATS, INTEGERS, agree, pairs
from tests.scalars.test_functions import EXACT, ROUNDED, values_of
from tests.scalars.test_operations import FLOAT_OPERATIONS, INTEGER_OPERATIONS, UNARY

OF_TWO = ("copysign", "fmod", "nextafter")


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions(dtype, opencl):
    ulps = 1 if dtypes.bits(dtype) == 16 else 4
    functions = {name: getattr(te, name) for name in (*ROUNDED, *EXACT)}
    agree(functions, [values_of(dtype)], ulps=ulps, ways=["opencl"])


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats(dtype, opencl):
    a, b = pairs(dtype, dtype)
    differ = (a != 0) | (b != 0)  # which of 0 and -0 is the larger is not said
    operations = FLOAT_OPERATIONS | {name: getattr(te, name) for name in OF_TWO}
    agree(operations, [a[differ], b[differ]], ways=["opencl"])


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype, opencl):
    a, b = pairs(dtype, dtype)
    operations = {name: function for name, (function, _) in INTEGER_OPERATIONS.items()}
    agree(operations, [a, b], ways=["opencl"])
    agree({name: function for name, (function, _) in UNARY.items()}, [a], ways=["opencl"])
