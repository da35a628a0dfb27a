"""Programs that a course asks for: a norm, a stencil, quantized products, gathers, upsampling."""

import numpy as np
import tvm
import tvm.testing
from tvm import te

random = np.random.default_rng(0)


def normal(*shape):
    return random.normal(size=shape).astype("float32")


def run(args, arrays, wanted, s=None):
    s = s or te.create_schedule(args[-1].op)
    print(tvm.lower(s, args, simple_mode=True))
    f = tvm.build(s, args, "llvm")
    out = tvm.nd.empty(tuple(args[-1].shape), args[-1].dtype)
    f(*[tvm.nd.array(x) for x in arrays], out)
    tvm.testing.assert_allclose(out.numpy(), wanted, rtol=1e-4, atol=1e-5)


# A matrix times a vector: eight partial sums, side by side
A = te.placeholder((32, 64), name="A")
x = te.placeholder((64,), name="x")
k = te.reduce_axis((0, 64), "k")
y = te.compute((32,), lambda i: te.sum(A[i, k] * x[k], axis=k), name="y")
s = te.create_schedule(y.op)
ko, ki = s[y].split(k, factor=8)
yf = s.rfactor(y, ki, 1)
s[yf].compute_at(s[y], s[y].op.axis[0])
s[yf].vectorize(s[yf].op.axis[1])
s[y].parallel(s[y].op.axis[0])
a, v = normal(32, 64), normal(64)
run([A, x, y], [a, v], a @ v, s)

# Layer normalization
X = te.placeholder((8, 32), name="X")
j, j2 = te.reduce_axis((0, 32), "j"), te.reduce_axis((0, 32), "j2")
total = te.compute((8,), lambda i: te.sum(X[i, j], axis=j), name="total")
mean = te.compute((8,), lambda i: total[i] / 32, name="mean")
square = te.compute(
    (8,), lambda i: te.sum((X[i, j2] - mean[i]) * (X[i, j2] - mean[i]), axis=j2), name="square"
)
norm = te.compute(
    (8, 32), lambda i, q: (X[i, q] - mean[i]) * te.rsqrt(square[i] / 32 + 1e-5), name="norm"
)
s = te.create_schedule(norm.op)
s[mean].compute_inline()
s[norm].parallel(norm.op.axis[0])
a = normal(8, 32)
wanted = (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-5)
run([X, norm], [a], wanted, s)

# A blur in two steps, the first inside the tiles of the second
image = te.placeholder((20, 22), name="image")
rows = te.compute(
    (20, 20), lambda y, x: (image[y, x] + image[y, x + 1] + image[y, x + 2]) / 3, name="rows"
)
blur = te.compute((18, 20), lambda y, x: (rows[y, x] + rows[y + 1, x] + rows[y + 2, x]) / 3, "blur")
s = te.create_schedule(blur.op)
yo, xo, yi, xi = s[blur].tile(blur.op.axis[0], blur.op.axis[1], 8, 8)
s[rows].compute_at(s[blur], xo)
s[rows].vectorize(s[rows].op.axis[1])
s[blur].parallel(yo)
s[blur].vectorize(xi)
a = normal(20, 22)
b = (a[:, :-2] + a[:, 1:-1] + a[:, 2:]) / 3
run([image, blur], [a], (b[:-2] + b[1:-1] + b[2:]) / 3, s)

# int8 times int8, summed in int32
A = te.placeholder((16, 32), "int8", name="A")
B = te.placeholder((16, 32), "int8", name="B")
k = te.reduce_axis((0, 32), "k")
C = te.compute(
    (16, 16),
    lambda i, j: te.sum(A[i, k].astype("int32") * B[j, k].astype("int32"), axis=k),
    name="C",
)
s = te.create_schedule(C.op)
i, j = C.op.axis
jo, ji = s[C].split(j, 8)
s[C].reorder(i, jo, k, ji)
s[C].vectorize(ji)
a, b = (random.integers(-128, 128, size=(16, 32)).astype("int8") for _ in range(2))
run([A, B, C], [a, b], a.astype("int32") @ b.T.astype("int32"), s)

# A gather
E = te.placeholder((10, 4), name="E")
ids = te.placeholder((6,), "int32", name="ids")
G = te.compute((6, 4), lambda i, j: E[ids[i], j], name="G")
a, b = normal(10, 4), random.integers(0, 10, 6).astype("int32")
run([E, ids, G], [a, b], a[b])

# Functions of elements
P = te.placeholder((12,), name="P")
p = normal(12)
for element, wanted in (
    (lambda v: te.min(te.max(v, tvm.tir.const(-0.5, "float32")), 0.5), p.clip(-0.5, 0.5)),
    (lambda v: te.power(te.abs(v), 2.5), np.abs(p) ** 2.5),
    (lambda v: te.sigmoid(v) * te.tanh(v) + te.erf(v) * 0, 1 / (1 + np.exp(-p)) * np.tanh(p)),
    (lambda v: te.floor(v) + te.ceil(v) + te.trunc(v), np.floor(p) + np.ceil(p) + np.trunc(p)),
    (lambda v: te.power(2.0, v), 2.0**p),
):
    Q = te.compute((12,), lambda i: element(P[i]), name="Q")
    run([P, Q], [p], wanted)

# A transposed convolution with a step of 2
L = te.placeholder((8,), name="L")
W = te.placeholder((3,), name="W")
k = te.reduce_axis((0, 3), "k")
T = te.compute(
    (17,),
    lambda i: te.sum(
        te.if_then_else(te.all((i - k) % 2 == 0, i - k >= 0, i - k < 16), L[(i - k) // 2], 0.0)
        * W[k],
        axis=k,
    ),
    name="T",
)
a, w = normal(8), normal(3)
wanted = np.zeros(17, "float32")
for q in range(8):
    wanted[2 * q : 2 * q + 3] += a[q] * w
run([L, W, T], [a, w], wanted)
