"""Expressions of shapes and of indices: transposes, reshapes, slices; sizes given at the call."""

import numpy as np
import tvm
from tvm import te

# Matrix Transpose
n = te.var("n")
m = te.var("m")
A = te.placeholder((n, m), name="a")
B = te.compute((m, n), lambda i, j: A[j, i], name="b")
s = te.create_schedule(B.op)
print(tvm.lower(s, [A, B], simple_mode=True))
mod = tvm.build(s, [A, B])
a = np.arange(12, dtype="float32").reshape((3, 4))
b = np.empty((4, 3), dtype="float32")
a, b = tvm.nd.array(a), tvm.nd.array(b)
mod(a, b)
np.testing.assert_array_equal(b.asnumpy(), a.asnumpy().T)

# Reshaping
B = te.compute((m * n,), lambda i: A[i // m, i % m], name="b")
s = te.create_schedule(B.op)
print(tvm.lower(s, [A, B], simple_mode=True))
mod = tvm.build(s, [A, B])
b = tvm.nd.array(np.empty((12,), dtype="float32"))
mod(a, b)
np.testing.assert_array_equal(b.asnumpy(), a.asnumpy().reshape(-1))

p, q = te.var("p"), te.var("q")
B = te.compute((p, q), lambda i, j: A[(i * q + j) // m, (i * q + j) % m], name="b")
s = te.create_schedule(B.op)
print(tvm.lower(s, [A, B], simple_mode=True))
mod = tvm.build(s, [A, B])
b = tvm.nd.array(np.zeros((5, 4), dtype="float32"))
try:
    mod(a, b)
except tvm.TVMError as e:
    print(e)
else:
    raise AssertionError("an access outside a tensor was made")
b = tvm.nd.array(np.zeros((2, 6), dtype="float32"))
mod(a, b)
np.testing.assert_array_equal(b.asnumpy(), a.asnumpy().reshape(2, 6))

# Slicing
bi, bj, si, sj = [te.var(name) for name in ["bi", "bj", "si", "sj"]]
B = te.compute(((n - bi) // si, (m - bj) // sj), lambda i, j: A[i * si + bi, j * sj + bj], name="b")
s = te.create_schedule(B.op)
mod = tvm.build(s, [A, B, bi, si, bj, sj])
b = tvm.nd.array(np.empty((1, 3), dtype="float32"))
mod(a, b, 1, 2, 1, 1)
np.testing.assert_array_equal(b.asnumpy(), a.asnumpy()[1::2, 1::1])
b = tvm.nd.array(np.empty((1, 2), dtype="float32"))
mod(a, b, 2, 1, 0, 2)
np.testing.assert_array_equal(b.asnumpy(), a.asnumpy()[2::1, 0::2])
