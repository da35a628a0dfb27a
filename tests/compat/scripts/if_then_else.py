"""Choices: the lower triangle of a matrix, padding, and choices of a choice."""

import numpy as np
import tvm
from tvm import te

a = np.arange(12, dtype="float32").reshape((3, 4))

n, m = te.var("n"), te.var("m")
A = te.placeholder((n, m))
B = te.compute(A.shape, lambda i, j: te.if_then_else(i >= j, A[i, j], 0.0))
s = te.create_schedule(B.op)
print(tvm.lower(s, [A, B], simple_mode=True))
mod = tvm.build(s, [A, B])
b = tvm.nd.array(np.empty_like(a))
mod(tvm.nd.array(a), b)
np.testing.assert_array_equal(b.asnumpy(), np.tril(a))

A = te.placeholder((n, m))
B = te.compute(
    A.shape,
    lambda i, j: te.if_then_else(i > j, A[i, j] * 2, te.if_then_else(i == j, 0.0, -A[i, j])),
)
mod = tvm.build(te.create_schedule(B.op), [A, B])
mod(tvm.nd.array(a), b)
np.testing.assert_array_equal(b.asnumpy(), np.tril(a, -1) * 2 - np.triu(a, 1))
