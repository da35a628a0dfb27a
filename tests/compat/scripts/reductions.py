"""Reductions: rows, all elements, products, one's own, rfactor."""

import d2ltvm
import numpy as np
import tvm
import tvm.testing
from tvm import te

n, m = te.var("n"), te.var("m")
A = te.placeholder((n, m), name="a")
j = te.reduce_axis((0, m), name="j")
B = te.compute((n,), lambda i: te.sum(A[i, j], axis=j), name="b")
s = te.create_schedule(B.op)
print(tvm.lower(s, [A, B], simple_mode=True))
mod = tvm.build(s, [A, B])

a = np.random.normal(size=(3, 4)).astype("float32")
c = tvm.nd.array(np.empty((3,), dtype="float32"))
mod(tvm.nd.array(a), c)
np.testing.assert_allclose(a.sum(axis=1), c.asnumpy(), atol=1e-5)

i = te.reduce_axis((0, n), name="i")
B = te.compute((), lambda: te.sum(A[i, j], axis=(i, j)), name="b")
s = te.create_schedule(B.op)
print(tvm.lower(s, [A, B], simple_mode=True))
mod = tvm.build(s, [A, B])
c = tvm.nd.array(np.empty((), dtype="float32"))
mod(tvm.nd.array(a), c)
np.testing.assert_allclose(a.sum(), c.asnumpy(), atol=1e-5)

# A reduction of one's own
comp = lambda a, b: a * b
init = lambda dtype: tvm.tir.const(1, dtype=dtype)
product = te.comm_reducer(comp, init)

n = te.var("n")
m = te.var("m")
A = te.placeholder((n, m), name="a")
k = te.reduce_axis((0, m), name="k")
B = te.compute((n,), lambda i: product(A[i, k], axis=k), name="b")
s = te.create_schedule(B.op)
print(tvm.lower(s, [A, B], simple_mode=True))
mod = tvm.build(s, [A, B])
b = tvm.nd.array(np.empty((3,), dtype="float32"))
mod(tvm.nd.array(a), b)
np.testing.assert_allclose(a.prod(axis=1), b.asnumpy(), atol=1e-5)

# Schedules
n = te.var("n")
m = te.var("m")
A = te.placeholder((n, m), name="A")
k = te.reduce_axis((0, m), "k")
B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
s = te.create_schedule(B.op)
ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
xo, xi = s[B].split(B.op.axis[0], factor=32)
print(tvm.lower(s, [A, B], simple_mode=True))


def check(s, rows, columns):
    func = tvm.build(s, [A, B], "llvm")
    a = tvm.nd.array(np.random.uniform(size=(rows, columns)).astype(A.dtype))
    b = tvm.nd.array(np.zeros(rows, dtype=B.dtype))
    func(a, b)
    tvm.testing.assert_allclose(b.numpy(), np.sum(a.numpy(), axis=1), rtol=1e-4)


check(s, 128, 1024)
check(s, 33, 17)
check(s, 1, 1)

s = te.create_schedule(B.op)
ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
BF = s.rfactor(B, ki)
print(tvm.lower(s, [A, B], simple_mode=True))
print(s[B].op.body)
check(s, 128, 1024)
check(s, 33, 17)

s = te.create_schedule(B.op)
ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
BF = s.rfactor(B, ki)
xo, xi = s[B].split(s[B].op.axis[0], factor=32)
s[BF].compute_at(s[B], xo)
s[B].parallel(xo)
print(tvm.lower(s, [A, B], simple_mode=True))
check(s, 128, 1024)
check(s, 33, 17)

# A convolution of two dimensions is a reduction over two axes
n = te.var("n")
Input = te.placeholder((n, n), name="Input")
Filter = te.placeholder((3, 3), name="Filter")
di = te.reduce_axis((0, 3), name="di")
dj = te.reduce_axis((0, 3), name="dj")
Output = te.compute(
    (n - 2, n - 2),
    lambda i, j: te.sum(Input[i + di, j + dj] * Filter[di, dj], axis=[di, dj]),
    name="Output",
)
s = te.create_schedule(Output.op)
print(tvm.lower(s, [Input, Filter, Output], simple_mode=True))
mod = tvm.build(s, [Input, Filter, Output])
x = np.random.uniform(size=(7, 7)).astype("float32")
w = np.random.uniform(size=(3, 3)).astype("float32")
y = tvm.nd.empty((5, 5))
mod(tvm.nd.array(x), tvm.nd.array(w), y)
wanted = sum(x[i : i + 5, j : j + 5] * w[i, j] for i in range(3) for j in range(3))
tvm.testing.assert_allclose(y.numpy(), wanted, rtol=1e-5)
