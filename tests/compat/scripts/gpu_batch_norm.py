"""Batch normalisation and softmax on a GPU: reductions that the threads of a block share."""

import numpy as np
import tvm
from tvm import te

c, n, threads = 3, 20, 8
thread_x = te.thread_axis((0, threads), "threadIdx.x")
block_x = te.thread_axis("blockIdx.x")
ctx = tvm.gpu()

# batch normalisation, the statistics of each channel in its block
X = te.placeholder((c, n), name="X")
k1, k2 = te.reduce_axis((0, n), name="k1"), te.reduce_axis((0, n), name="k2")
mean = te.compute((c,), lambda i: te.sum(X[i, k1], axis=k1), name="total")
var = te.compute(
    (c,),
    lambda i: te.sum((X[i, k2] - mean[i] / float(n)) * (X[i, k2] - mean[i] / float(n)), axis=k2),
    name="squares",
)
Y = te.compute(
    (c, n),
    lambda i, j: (X[i, j] - mean[i] / float(n)) / te.sqrt(var[i] / float(n) + 1e-5),
    name="Y",
)
s = te.create_schedule(Y.op)
i, j = s[Y].op.axis
jo, ji = s[Y].split(j, factor=threads)
s[Y].bind(i, block_x)
s[Y].bind(ji, thread_x)
for stage in (var, mean):
    s[stage].compute_at(s[Y], i)
    ko, ki = s[stage].split(s[stage].op.reduce_axis[0], factor=threads)
    s[stage].bind(ki, thread_x)
    s[stage].set_store_predicate(thread_x.var.equal(0))
mod = tvm.build(s, [X, Y], "cuda")
x_np = np.random.normal(size=(c, n)).astype("float32")
x, y = tvm.nd.array(x_np, ctx), tvm.nd.empty((c, n), ctx=ctx)
mod(x, y)
expected = (x_np - x_np.mean(1, keepdims=True)) / np.sqrt(x_np.var(1, keepdims=True) + 1e-5)
np.testing.assert_allclose(y.asnumpy(), expected, atol=1e-4)
print(tvm.lower(s, [X, Y], simple_mode=True))
