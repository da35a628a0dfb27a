"""Flat buffers of symbolic shape; the docstring of the pass is tested with the others."""

import numpy as np

from dlcompiler import te
from dlcompiler.passes import flatten_storage, storage_rewrite
from dlcompiler.pipeline import build
from dlcompiler.schedule import create_schedule
from dlcompiler.simulate import interpret
from tests.passes.examples import example
from tests.passes.reading import read


def test_buffers_of_symbolic_rows_that_share_memory():
    n, m = te.size_var("n"), te.size_var("m")
    A = te.placeholder((n, m), name="A")
    P = te.compute((n, m), lambda i, j: A[i, j] + 1.0, name="P")
    Q = te.compute((n, m), lambda i, j: P[i, j] * 2.0, name="Q")
    R = te.compute((n, m), lambda i, j: Q[i, j] + 3.0, name="R")
    C = te.compute((m, n), lambda j, i: R[i, j] * 2.0, name="C")
    kernel = build(create_schedule(C.op), [A, C])
    a, c = np.arange(6, dtype="float32").reshape(2, 3), np.zeros((3, 2), "float32")
    kernel(a, c)
    np.testing.assert_array_equal(c, ((a.T + 1) * 2 + 3) * 2)


SEPARATED = """\
def main(A: float32[4, 16], C: float32[4, 16]):
    allocate B: float32[2, 2 | 4, 4]
    for i in range(4):
        for j in range(16):
            B[i // 2, i % 2, j // 4, j % 4] = A[i, j] + 1.0
    for i in range(4):
        for j in range(16):
            C[i, j] = B[i // 2, i % 2, j // 4, j % 4]*2.0
"""


def test_each_dimension_of_the_memory_is_flat():
    func = flatten_storage(read(SEPARATED))
    text = str(func)
    assert "allocate B: float32[4 | 16]\n" in text
    assert "B[i // 2*2 + i % 2, j // 4*4 + j % 4] = A[i, j] + 1.0\n" in text
    assert flatten_storage(func) is func
    a, c = np.arange(64, dtype="float32").reshape(4, 16), np.zeros((4, 16), "float32")
    interpret(func, [a, c])
    np.testing.assert_array_equal(c, (a + 1) * 2)


def test_buffers_of_several_dimensions_of_memory_share_none():
    text = example(storage_rewrite, "Before").replace("B: float32[64, 32]", "B: float32[64 | 32]")
    func = read(text)
    assert "B_D" in str(storage_rewrite(read(text.replace(" | ", ", ")), min_bytes=0))
    assert storage_rewrite(func, min_bytes=0) is func
