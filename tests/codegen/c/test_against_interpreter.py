"""Random expressions: C computes what the interpreter does.

A compiler takes long to start, so that one source holds several functions' worth of statements.
"""

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from dlcompiler.ir import Buffer, For, PrimFunc, Seq, Store
from dlcompiler.simulate import interpret
from tests.codegen.llvm.test_against_interpreter import INPUTS, arrays_of, functions


def _joined(drawn):
    """Return one function with an output for each drawn one."""
    outputs, loops = [], []
    for number, func in enumerate(drawn):
        (out,) = func.outputs
        renamed = Buffer(f"{out.name}{number}", out.shape, out.dtype)
        store = func.body.body
        body = Store(renamed, store.indices, store.value)
        loops.append(For(func.body.var, func.body.extent, func.body.kind, body))
        outputs.append(renamed)
    return PrimFunc("random", (*INPUTS.values(), *outputs), tuple(outputs), Seq(tuple(loops)))


@pytest.mark.campaign
def test_random_expressions(build):
    @settings(max_examples=25)
    @given(st.lists(functions(lanes=(1,)), min_size=4, max_size=8))
    def check(drawn):
        func = _joined(drawn)
        note(str(func))
        interpreted, compiled = list(arrays_of(func)), list(arrays_of(func))
        with np.errstate(all="ignore"):
            interpret(func, interpreted)
        build(func)(*compiled)
        for out, got, right in zip(func.params, compiled, interpreted, strict=True):
            # NumPy does not see that a NaN of bfloat16 equals another.
            exact = "float32" if out.dtype == "bfloat16" else got.dtype
            np.testing.assert_array_equal(got.astype(exact), right.astype(exact))

    check()
