"""Schedules of functions whose sizes are known at the call only."""

import numpy as np
import tvm
import tvm.testing
from tvm import te

M, N, K = te.var("M"), te.var("N"), te.var("K")
A = te.placeholder((M, K), name="A")
B = te.placeholder((K, N), name="B")
k = te.reduce_axis((0, K), "k")
C = te.compute((M, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
s = te.create_schedule(C.op)
CC = s.cache_write(C, "local")
xo, yo, xi, yi = s[C].tile(C.op.axis[0], C.op.axis[1], 8, 8)
s[C].parallel(xo)
s[C].vectorize(yi)
s[CC].compute_at(s[C], yo)
xc, yc = s[CC].op.axis
ko, ki = s[CC].split(s[CC].op.reduce_axis[0], factor=4)
s[CC].reorder(ko, xc, ki, yc)
s[CC].vectorize(yc)
s[CC].unroll(ki)
print(tvm.lower(s, [A, B, C], simple_mode=True))
f = tvm.build(s, [A, B, C], "llvm")
for m, n, q in ((8, 8, 8), (16, 24, 5), (3, 5, 7), (1, 1, 1), (0, 3, 2), (17, 9, 33)):
    a, b = np.random.rand(m, q).astype("float32"), np.random.rand(q, n).astype("float32")
    c = tvm.nd.empty((m, n))
    f(tvm.nd.array(a), tvm.nd.array(b), c)
    tvm.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4)

# A window whose padding is computed where it is needed
n = te.var("n")
X = te.placeholder((n, n), name="X")
W = te.placeholder((3, 3), name="W")
P = te.compute(
    (n + 2, n + 2),
    lambda i, j: te.if_then_else(
        te.all(i >= 1, i < n + 1, j >= 1, j < n + 1), X[i - 1, j - 1], 0.0
    ),
    name="P",
)
r, c = te.reduce_axis((0, 3), "r"), te.reduce_axis((0, 3), "c")
Y = te.compute((n, n), lambda i, j: te.sum(P[i + r, j + c] * W[r, c], axis=[r, c]), name="Y")
s = te.create_schedule(Y.op)
io, jo, ii, ji = s[Y].tile(Y.op.axis[0], Y.op.axis[1], 4, 4)
s[P].compute_at(s[Y], jo)
f = tvm.build(s, [X, W, Y])
for q in (1, 4, 7, 16):
    x, w = np.random.rand(q, q).astype("float32"), np.random.rand(3, 3).astype("float32")
    y = tvm.nd.empty((q, q))
    f(tvm.nd.array(x), tvm.nd.array(w), y)
    p = np.pad(x, 1)
    wanted = sum(p[i : i + q, j : j + q] * w[i, j] for i in range(3) for j in range(3))
    tvm.testing.assert_allclose(y.numpy(), wanted, rtol=1e-4)

# Fused, and split into vectors
A = te.placeholder((M, N), name="A")
B = te.compute((M, N), lambda i, j: A[i, j] * 2, name="B")
s = te.create_schedule(B.op)
outer, inner = s[B].split(s[B].fuse(*B.op.axis), factor=16)
s[B].vectorize(inner)
s[B].parallel(outer)
f = tvm.build(s, [A, B])
for shape in ((3, 5), (16, 1), (0, 4), (7, 9)):
    a, b = np.random.rand(*shape).astype("float32"), tvm.nd.empty(shape)
    f(tvm.nd.array(a), b)
    np.testing.assert_array_equal(b.numpy(), a * 2)

# Numbers as arguments
alpha = te.var("alpha", "float32")
D = te.compute((M,), lambda i: A[i, 0] * alpha, name="D")
f = tvm.build(te.create_schedule(D.op), [A, alpha, D])
d = tvm.nd.empty((3,))
f(tvm.nd.array(np.ones((3, 2), "float32")), 2.5, d)
np.testing.assert_array_equal(d.numpy(), np.full(3, 2.5, "float32"))

n = te.size_var("n")
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[n - 1 - i], name="B")
f = tvm.build(te.create_schedule(B.op), [n, A, B])
b = tvm.nd.empty((4,))
f(4, tvm.nd.array(np.arange(4, dtype="float32")), b)
np.testing.assert_array_equal(b.numpy(), [3, 2, 1, 0])
