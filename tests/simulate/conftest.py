"""Small functions of loop IR, and a way to run them."""

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.ir import Buffer, For, Load, PrimFunc, Store, Var, index_const
from dlcompiler.simulate import interpret


@pytest.fixture
def loop():
    def make(var, extent, body, kind="serial"):
        return For(var, index_const(extent), kind, body)

    return make


@pytest.fixture
def compute(loop):
    """Compute ``make(*elements)`` for each element of some arrays: ``compute(make, a, b)``."""

    def run(make, *arrays):
        i = Var("i")
        inputs = [
            Buffer(f"x{n}", array.shape, dtypes.from_numpy(array.dtype))
            for n, array in enumerate(arrays)
        ]
        value = make(*(Load(buffer, (i,)) for buffer in inputs))
        output = Buffer("y", arrays[0].shape, value.dtype)
        body = loop(i, len(arrays[0]), Store(output, (i,), value))
        result = np.empty(len(arrays[0]), dtypes.to_numpy(value.dtype))
        interpret(PrimFunc("f", (*inputs, output), (output,), body), [*arrays, result])
        return result

    return run
