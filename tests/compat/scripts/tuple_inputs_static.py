"""Several outputs of known extents, and a mean and a variance in one walk."""

import numpy as np
import tvm
import tvm.testing
from tvm import te

m, n = 6, 40
A = te.placeholder((m, n), name="A")
k = te.reduce_axis((0, n), "k")
both = te.comm_reducer(
    lambda x, y: (x[0] + y[0], x[1] + y[1]),
    lambda t0, t1: (tvm.tir.const(0, t0), tvm.tir.const(0, t1)),
    name="both",
)
S, Q = te.compute((m,), lambda i: both((A[i, k], A[i, k] * A[i, k]), axis=k), name="SQ")
a = np.random.uniform(size=(m, n)).astype("float32")


def check(s):
    print(tvm.lower(s, [A, S, Q], simple_mode=True))
    func = tvm.build(s, [A, S, Q], "llvm")
    total, squares = tvm.nd.empty((m,)), tvm.nd.empty((m,))
    func(tvm.nd.array(a), total, squares)
    tvm.testing.assert_allclose(total.numpy(), a.sum(axis=1), rtol=1e-5)
    tvm.testing.assert_allclose(squares.numpy(), (a * a).sum(axis=1), rtol=1e-5)


s = te.create_schedule(S.op)
check(s)

s = te.create_schedule(S.op)
ko, ki = s[S].split(k, factor=8)
xo, xi = s[S].split(S.op.axis[0], factor=2)
s[S].reorder(xo, ko, xi, ki)
s[S].parallel(xo)
s[S].unroll(ki)
check(s)


def first_largest(x, y):
    takes_x = te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0]))
    return tvm.tir.Select(takes_x, x[0], y[0]), tvm.tir.Select(takes_x, x[1], y[1])


argmax = te.comm_reducer(
    first_largest, lambda t0, t1: (te.max_value(t0), te.min_value(t1)), name="argmax"
)
k = te.reduce_axis((0, n), "k")
place, value = te.compute((m,), lambda i: argmax((k, A[i, k]), axis=k), name="T")
s = te.create_schedule(place.op)
ko, ki = s[place].split(k, factor=5)
factored = s.rfactor(place, ki)
print(tvm.lower(s, [A, place, value], simple_mode=True))
func = tvm.build(s, [A, place, value])
p, v = tvm.nd.empty((m,), place.dtype), tvm.nd.empty((m,))
func(tvm.nd.array(a), p, v)
np.testing.assert_array_equal(p.numpy(), a.argmax(axis=1))
np.testing.assert_array_equal(v.numpy(), a.max(axis=1))
