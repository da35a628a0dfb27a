"""LLVM's vectorizer of straight code breaks some long blocks; they are compiled without it."""

import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
from dlcompiler import te
from dlcompiler.pipeline import build
from dlcompiler.runtime.llvm import assembly, optimize
from dlcompiler.schedule import create_schedule

A = te.placeholder((10, 33), name="A")
row = lambda y, x: A[y, x] + A[y, x + 1] + A[y, x + 2]
B = te.compute((8, 31), lambda y, x: row(y, x) + row(y + 1, x) + row(y + 2, x), name="B")
s = create_schedule(B.op)
s[B].unroll(s[B].fuse(*B.op.axis))
kernel = build(s, [A, B])
a, b = np.ones((10, 33), "float32"), np.zeros((8, 31), "float32")
kernel(a, b)
assert (b == 9).all()
module = kernel.module
assert "define" in optimize(module.text, module.options)
assert "main" in assembly(module.text, module.options)
print("right")
"""


@pytest.mark.campaign
def test_a_module_that_the_vectorizer_breaks_is_compiled_without_it():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout == "right\n", done.stderr
