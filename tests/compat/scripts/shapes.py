"""Shapes given at the call: one function for all sizes and, with one name, equal extents."""

import d2ltvm
import numpy as np
import tvm
from tvm import te

n = te.var(name="n")
print(type(n), n.dtype)
A = te.placeholder((n,), name="a")
B = te.placeholder((n,), name="b")
C = te.compute(A.shape, lambda i: A[i] + B[i], name="c")
s = te.create_schedule(C.op)
print(tvm.lower(s, [A, B, C], simple_mode=True))
mod = tvm.build(s, [A, B, C])


def test_mod(mod, n):
    a, b, c = d2ltvm.get_abc(n, tvm.nd.array)
    mod(a, b, c)
    print("c.shape:", c.shape)
    np.testing.assert_array_equal(c.asnumpy(), a.asnumpy() + b.asnumpy())


for size in (5, 1000, 1, 0):
    test_mod(mod, size)

try:
    mod(tvm.nd.empty((3,)), tvm.nd.empty((4,)), tvm.nd.empty((3,)))
except tvm.TVMError as e:
    print(e)
else:
    raise AssertionError("extents that differ were taken")


def tvm_vector_add(ndim):
    A = te.placeholder([te.var() for _ in range(ndim)])
    B = te.placeholder(A.shape)
    C = te.compute(A.shape, lambda *i: A[i] + B[i])
    s = te.create_schedule(C.op)
    return tvm.build(s, [A, B, C])


test_mod(tvm_vector_add(2), (2, 3))
test_mod(tvm_vector_add(4), (2, 3, 4, 5))
