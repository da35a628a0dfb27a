"""Depthwise convolution on a GPU: a block for each channel, its image in shared memory."""

import numpy as np
import tvm
from tvm import te

c, n, k, p, s_ = 3, 9, 3, 1, 1
X = te.placeholder((c, n, n), name="X")
K = te.placeholder((c, 1, k, k), name="K")
padded = te.compute(
    (c, n + 2 * p, n + 2 * p),
    lambda i, h, w: te.if_then_else(
        te.any(h < p, h >= n + p, w < p, w >= n + p), 0.0, X[i, h - p, w - p]
    ),
    name="PaddedX",
)
rkh, rkw = te.reduce_axis((0, k), name="rkh"), te.reduce_axis((0, k), name="rkw")
Y = te.compute(
    (c, n, n),
    lambda i, h, w: te.sum(
        padded[i, h * s_ + rkh, w * s_ + rkw] * K[i, 0, rkh, rkw], axis=[rkh, rkw]
    ),
    name="Y",
)

sch = te.create_schedule(Y.op)
sch[padded].compute_inline()
shared = sch.cache_read(padded, "shared", [Y])
kernels = sch.cache_read(K, "shared", [Y])
local = sch.cache_write(Y, "local")
i, h, w = sch[Y].op.axis
ho, hi = sch[Y].split(h, 3)
wo, wi = sch[Y].split(w, 4)
sch[Y].reorder(i, ho, wo, hi, wi)
sch[Y].bind(i, te.thread_axis("blockIdx.x"))
sch[Y].bind(hi, te.thread_axis("threadIdx.y"))
sch[Y].bind(wi, te.thread_axis("threadIdx.x"))
sch[local].compute_at(sch[Y], wi)
for cache in (shared, kernels):
    sch[cache].compute_at(sch[Y], wi)
    fused = sch[cache].fuse(*sch[cache].op.axis)
    fused, tx = sch[cache].split(fused, 4)
    _, ty = sch[cache].split(fused, 3)
    sch[cache].bind(ty, te.thread_axis("threadIdx.y"))
    sch[cache].bind(tx, te.thread_axis("threadIdx.x"))
mod = tvm.build(sch, [X, K, Y], "cuda -model=1080")

ctx = tvm.context("cuda", 0)
x_np = np.random.normal(size=(c, n, n)).astype("float32")
k_np = np.random.normal(size=(c, 1, k, k)).astype("float32")
x, kk = tvm.nd.array(x_np, ctx), tvm.nd.array(k_np, ctx)
y = tvm.nd.empty((c, n, n), ctx=ctx)
mod(x, kk, y)
wide = np.pad(x_np, ((0, 0), (p, p), (p, p)))
expected = sum(
    wide[:, a : a + n, b : b + n] * k_np[:, :, a, b, None] for a in range(k) for b in range(k)
)
np.testing.assert_allclose(y.asnumpy(), expected, atol=1e-4)
