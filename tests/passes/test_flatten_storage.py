"""Flat buffers of symbolic shape; the docstring of the pass is tested with the others."""

import numpy as np

from dlcompiler import te
from dlcompiler.pipeline import build
from dlcompiler.schedule import create_schedule


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
