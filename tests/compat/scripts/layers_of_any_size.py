"""topi's operators on tensors whose sizes are known at the call only."""

import numpy as np
import tvm
import tvm.testing
from tvm import te, topi

random = np.random.default_rng(3)
n, m = te.var("n"), te.var("m")


def normal(*shape):
    return random.normal(size=shape).astype("float32")


def check(out, inputs, cases, schedule=lambda s: None):
    s = te.create_schedule(out.op)
    schedule(s)
    f = tvm.build(s, [*inputs, out], "llvm")
    for *arrays, wanted in cases:
        result = tvm.nd.array(np.full(wanted.shape, 9, wanted.dtype))
        f(*map(tvm.nd.array, arrays), result)
        tvm.testing.assert_allclose(result.numpy(), wanted, rtol=1e-3, atol=1e-4)


A = te.placeholder((n, m), name="A")
B = te.placeholder((m,), name="B")
C = topi.nn.relu(A * 2 + B)


def fused(s):
    te.schedule.AutoInlineInjective(s)
    outer, inner = s[C].split(s[C].fuse(*C.op.axis), 8)
    s[C].vectorize(inner)


pairs = [(normal(*shape), normal(shape[1])) for shape in ((3, 5), (1, 1), (7, 8), (0, 3))]
check(C, [A, B], [(a, b, np.maximum(a * 2 + b, 0)) for a, b in pairs], fused)

S = topi.nn.softmax(A)
check(S, [A], [(a, topi.testing.softmax_python(a, 1)) for a, _ in pairs])

check(topi.reshape(A, (n * m,)), [A], [(a, a.ravel()) for a, _ in pairs])
check(topi.reshape(A, (m, -1)), [A], [(a, a.reshape(a.shape[1], -1)) for a, _ in pairs[:3]])
check(topi.concatenate([A, A], axis=1), [A], [(a, np.concatenate([a, a], 1)) for a, _ in pairs])

X = te.placeholder((n, 4, 3), name="X")
x = normal(2, 4, 3)
check(topi.nn.flatten(X), [X], [(x, x.reshape(2, 12))])

X = te.placeholder((1, 3, n, n), name="X")
W = te.placeholder((8, 3, 3, 3), name="W")
Y = topi.nn.conv2d_nchw(X, W, 1, 1, 1)


def tiled(s):
    te.schedule.AutoInlineInjective(s)
    s[Y].vectorize(s[Y].split(Y.op.axis[3], 8)[1])
    s[Y].parallel(Y.op.axis[1])


cases = [(normal(1, 3, q, q), normal(8, 3, 3, 3)) for q in (3, 8, 11)]
check(Y, [X, W], [(x, w, topi.testing.conv2d_nchw_python(x, w, 1, 1)) for x, w in cases], tiled)

X = te.placeholder((n,), name="X")
Y = te.compute(((n - 3) // 2 + 1,), lambda i: X[i * 2] + X[i * 2 + 1] + X[i * 2 + 2], name="Y")
check(
    Y,
    [X],
    [
        (x, x[: len(x) - 2 : 2] + x[1 : len(x) - 1 : 2] + x[2::2])
        for x in (normal(3), normal(4), normal(9))
    ],
)

X, W, b = te.placeholder((n, 16), name="X"), te.placeholder((m, 16), name="W"), te.placeholder((m,))
x, w, c = normal(2, 16), normal(5, 16), normal(5)
check(topi.nn.dense(X, W, b), [X, W, b], [(x, w, c, x @ w.T + c)])

k = te.reduce_axis((0, m), "k")
place, value = te.compute((n,), lambda i: te.argmax(A[i, k], axis=k), name="argmax")
s = te.create_schedule(place.op)
ko, ki = s[place].split(k, factor=4)
s.rfactor(place, ki)
f = tvm.build(s, [A, place, value])
for a, _ in pairs[:3]:
    i, v = tvm.nd.empty(a.shape[:1], "int32"), tvm.nd.empty(a.shape[:1])
    f(tvm.nd.array(a), i, v)
    np.testing.assert_array_equal(i.numpy(), a.argmax(1))
    np.testing.assert_array_equal(v.numpy(), a.max(1))
