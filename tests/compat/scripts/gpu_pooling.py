"""Pooling on a GPU: the largest and the mean of each window, in one block for each row."""

import numpy as np
import tvm
from tvm import te

c, n, k, stride = 2, 8, 2, 2
out = (n - k) // stride + 1
X = te.placeholder((c, n, n), name="X")


def pooled(kind):
    rkh, rkw = te.reduce_axis((0, k), name="rkh"), te.reduce_axis((0, k), name="rkw")
    at = lambda i, h, w: X[i, h * stride + rkh, w * stride + rkw]  # noqa: E731
    if kind == "max":
        return [te.compute((c, out, out), lambda *i: te.max(at(*i), axis=[rkh, rkw]), name="Y")]
    total = te.compute((c, out, out), lambda *i: te.sum(at(*i), axis=[rkh, rkw]), name="total")
    return [total, te.compute((c, out, out), lambda *i: total(*i) / float(k * k), name="Y")]


x_np = np.random.normal(size=(c, n, n)).astype("float32")
windows = x_np.reshape(c, out, k, out, k)
for kind, expected in (("max", windows.max((2, 4))), ("avg", windows.mean((2, 4)))):
    stages = pooled(kind)
    Y = stages[-1]
    s = te.create_schedule(Y.op)
    fused = s[Y].fuse(*s[Y].op.axis)
    bx, tx = s[Y].split(fused, factor=5)
    s[Y].bind(bx, te.thread_axis("blockIdx.x"))
    s[Y].bind(tx, te.thread_axis("threadIdx.x"))
    if kind == "avg":
        s[stages[0]].compute_at(s[Y], tx)
    mod = tvm.build(s, [X, Y], "cuda")
    ctx = tvm.gpu()
    x, y = tvm.nd.array(x_np, ctx), tvm.nd.empty((c, out, out), ctx=ctx)
    mod(x, y)
    np.testing.assert_allclose(y.asnumpy(), expected, atol=1e-5)
