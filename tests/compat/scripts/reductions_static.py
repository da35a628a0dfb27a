"""Reductions over known extents: conditions, starts, products, rfactor with known parts."""

import numpy as np
import tvm
import tvm.testing
from tvm import te

n, m = 24, 36
A = te.placeholder((n, m), name="A")
a = np.random.uniform(size=(n, m)).astype("float32")


def run(out, s=None):
    s = te.create_schedule(out.op) if s is None else s
    print(tvm.lower(s, [A, out], simple_mode=True))
    func = tvm.build(s, [A, out], "llvm")
    result = tvm.nd.empty(tuple(out.shape), out.dtype)
    func(tvm.nd.array(a), result)
    return result.numpy()


k = te.reduce_axis((0, m), "k")
total = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
tvm.testing.assert_allclose(run(total), a.sum(axis=1), rtol=1e-5)

largest = te.compute((n,), lambda i: te.max(A[i, k], axis=k), name="B")
tvm.testing.assert_allclose(run(largest), a.max(axis=1), rtol=0)

r = te.reduce_axis((2, 30), "r")
part = te.compute((n,), lambda i: te.sum(A[i, r], axis=r), name="B")
tvm.testing.assert_allclose(run(part), a[:, 2:30].sum(axis=1), rtol=1e-5)

below = te.compute((n,), lambda i: te.sum(A[i, k], axis=k, where=k < i), name="B")
tvm.testing.assert_allclose(run(below), [a[i, :i].sum() for i in range(n)], rtol=1e-5, atol=1e-6)

product = te.comm_reducer(lambda x, y: x * y, lambda t: tvm.tir.const(1, dtype=t), name="product")
multiplied = te.compute((n,), lambda i: product(A[i, k] + 0.5, axis=k), name="B")
tvm.testing.assert_allclose(run(multiplied), (a + 0.5).prod(axis=1), rtol=1e-4)

s = te.create_schedule(total.op)
ko, ki = s[total].split(total.op.reduce_axis[0], factor=9)
BF = s.rfactor(total, ki)
assert tuple(BF.shape) == (9, n)
xo, xi = s[total].split(s[total].op.axis[0], factor=8)
s[BF].compute_at(s[total], xo)
s[total].parallel(xo)
tvm.testing.assert_allclose(run(total, s), a.sum(axis=1), rtol=1e-5)

s = te.create_schedule(total.op)
ko, ki = s[total].split(total.op.reduce_axis[0], factor=4)
BF = s.rfactor(total, ki, 1)
s[BF].vectorize(s[BF].op.axis[1])
tvm.testing.assert_allclose(run(total, s), a.sum(axis=1), rtol=1e-5)
