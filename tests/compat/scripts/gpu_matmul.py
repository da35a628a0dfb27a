"""Matrix product on a GPU: blocks and threads, local accumulators, tiles in shared memory."""

import numpy as np
import tvm
from tvm import te


def split(stage, axis, factors):
    axes = []
    for f in reversed(factors):
        axis, x = stage.split(axis, f)
        axes.append(x)
    return list(reversed([*axes, axis]))


def bind_thread(stage, axes, tags):
    for axis, tag in zip(axes, tags):
        stage.bind(axis, te.thread_axis(tag))


block_size = 4
tx, ty, tk = 2, 2, 4
n, m, l = 18, 16, 10

A = te.placeholder((n, l), name="A")
B = te.placeholder((l, m), name="B")
k = te.reduce_axis((0, l), name="k")
C = te.compute((n, m), lambda x, y: te.sum(A[x, k] * B[k, y], axis=k), name="C")

s = te.create_schedule(C.op)
A_shared = s.cache_read(A, "shared", [C])
A_local = s.cache_read(A_shared, "local", [C])
B_shared = s.cache_read(B, "shared", [C])
B_local = s.cache_read(B_shared, "local", [C])
C_local = s.cache_write(C, "local")

x, y = s[C].op.axis
xb, xo, xi = split(s[C], x, (block_size, tx))
yb, yo, yi = split(s[C], y, (block_size, ty))
s[C].reorder(xb, yb, xo, yo, xi, yi)
bind_thread(s[C], (yb, xb, yo, xo), ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y"))

s[C_local].compute_at(s[C], yo)
yi, xi = s[C_local].op.axis
(k,) = s[C_local].op.reduce_axis
ko, ki = s[C_local].split(k, tk)
s[C_local].reorder(ko, ki, yi, xi)


def optimize_read_cache(shared, local):
    s[shared].compute_at(s[C_local], ko)
    s[local].compute_at(s[C_local], ki)
    y, x = s[shared].op.axis
    yo, yi = s[shared].split(y, nparts=block_size)
    xo, xi = s[shared].split(x, nparts=block_size)
    s[shared].reorder(yo, xo, yi, xi)
    bind_thread(s[shared], (xo, yo), ("threadIdx.x", "threadIdx.y"))


optimize_read_cache(A_shared, A_local)
optimize_read_cache(B_shared, B_local)
print(tvm.lower(s, [A, B, C], simple_mode=True))

ctx = tvm.gpu()
a_np = np.random.uniform(size=(n, l)).astype("float32")
b_np = np.random.uniform(size=(l, m)).astype("float32")
a, b = tvm.nd.array(a_np, ctx), tvm.nd.array(b_np, ctx)
c = tvm.nd.empty((n, m), ctx=ctx)
mod = tvm.build(s, [A, B, C], "cuda")
mod(a, b, c)
np.testing.assert_allclose(c.asnumpy(), np.dot(a_np, b_np), atol=1e-4)
source = mod.imported_modules[0].get_source()
assert "__shared__ " in source and "__syncthreads();" in source
