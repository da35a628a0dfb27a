"""Broadcast addition on a GPU: fused and split loops, and what happens without a bind."""

import numpy as np
import tvm
from tvm import te


def broadcast_add(shape1, shape2):
    A = te.placeholder(shape1, name="A")
    B = te.placeholder(shape2, name="B")
    m = max(shape1[0], shape2[0])
    n = max(shape1[1], shape2[1])

    def at(T, shape, x, y):
        return T[0 if shape[0] == 1 else x, 0 if shape[1] == 1 else y]

    C = te.compute((m, n), lambda x, y: at(A, shape1, x, y) + at(B, shape2, x, y), name="C")
    return A, B, C


def continuous_parallel(shape1, shape2, nt):
    A, B, C = broadcast_add(shape1, shape2)
    s = te.create_schedule(C.op)
    x, y = C.op.axis
    fused = s[C].fuse(x, y)
    bx, tx = s[C].split(fused, factor=nt)
    s[C].bind(bx, te.thread_axis("blockIdx.x"))
    s[C].bind(tx, te.thread_axis("threadIdx.x"))
    return s, (A, B, C)


def alternate_parallel(shape1, shape2, nt):
    A, B, C = broadcast_add(shape1, shape2)
    s = te.create_schedule(C.op)
    fused = s[C].fuse(*C.op.axis)
    xo, xi = s[C].split(fused, nparts=nt)
    s[C].reorder(xo, xi)
    s[C].bind(xo, te.thread_axis("threadIdx.x"))
    return s, (A, B, C)


for sched in (continuous_parallel, alternate_parallel):
    for shape1, shape2 in (((23, 1), (23, 9)), ((1, 17), (5, 1)), ((8, 8), (8, 8))):
        s, args = sched(shape1, shape2, 16)
        print(tvm.lower(s, args, simple_mode=True))
        mod = tvm.build(s, args, target="cuda")
        ctx = tvm.gpu()
        a = tvm.nd.array(np.random.uniform(size=shape1).astype("float32"), ctx)
        b = tvm.nd.array(np.random.uniform(size=shape2).astype("float32"), ctx)
        c = tvm.nd.empty(tuple(np.broadcast_shapes(shape1, shape2)), ctx=ctx)
        mod(a, b, c)
        np.testing.assert_allclose(c.asnumpy(), a.asnumpy() + b.asnumpy(), rtol=1e-6)

A, B, C = broadcast_add((4, 1), (4, 4))
try:
    tvm.build(te.create_schedule(C.op), [A, B, C], target="cuda")
except tvm.TVMError as e:
    print(e)
    assert "outside any thread" in str(e)
else:
    raise AssertionError("a stage without threads was built")
