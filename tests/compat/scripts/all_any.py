"""Conditions joined: a border around a matrix of any size."""

import numpy as np
import tvm
from tvm import te

a = np.ones((3, 4), dtype="float32")
# applying a zero padding of size 1 to a
b = np.zeros((5, 6), dtype="float32")
b[1:-1, 1:-1] = a

p = 1  # padding size
n, m = te.var("n"), te.var("m")
A = te.placeholder((n, m), name="a")
B = te.compute(
    (n + p * 2, m + p * 2),
    lambda i, j: te.if_then_else(te.any(i < p, i >= n + p, j < p, j >= m + p), 0, A[i - p, j - p]),
    name="b",
)
s = te.create_schedule(B.op)
print(tvm.lower(s, [A, B], simple_mode=True))
mod = tvm.build(s, [A, B])
c = tvm.nd.array(np.empty_like(b))
mod(tvm.nd.array(a), c)
np.testing.assert_array_equal(b, c.asnumpy())

# The same with all
C = te.compute(
    (n + p * 2, m + p * 2),
    lambda i, j: te.if_then_else(
        te.all(i >= p, i < n + p, j >= p, j < m + p), A[i - p, j - p], 0.0
    ),
    name="c",
)
mod = tvm.build(te.create_schedule(C.op), [A, C])
mod(tvm.nd.array(a), c)
np.testing.assert_array_equal(b, c.asnumpy())

a = np.random.normal(size=(7, 9)).astype("float32")
c = tvm.nd.empty((9, 11))
mod(tvm.nd.array(a), c)
np.testing.assert_array_equal(c.asnumpy(), np.pad(a, 1))
