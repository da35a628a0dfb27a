"""Reduction on a GPU: rfactor, threads that share a reduction, the thread that stores."""

import numpy as np
import tvm
from tvm import te

n, m = te.var("n"), te.var("m")
A = te.placeholder((n, m), name="A")
k = te.reduce_axis((0, m), "k")
B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")

s = te.create_schedule(B.op)
ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
BF = s.rfactor(B, ki)
xo, xi = s[B].split(s[B].op.axis[0], factor=32)
s[B].bind(xo, te.thread_axis("blockIdx.x"))
s[B].bind(xi, te.thread_axis("threadIdx.y"))
tx = te.thread_axis("threadIdx.x")
s[B].bind(s[B].op.reduce_axis[0], tx)
s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
s[B].set_store_predicate(tx.var.equal(0))
print(tvm.lower(s, [A, B], simple_mode=True))
fcuda = tvm.build(s, [A, B], "cuda")
print(fcuda.imported_modules[0].get_source())

ctx = tvm.gpu(0)
for nn, mm in ((40, 20), (3, 128), (1, 1)):
    a = tvm.nd.array(np.random.uniform(size=(nn, mm)).astype(A.dtype), ctx)
    b = tvm.nd.array(np.zeros(nn, dtype=B.dtype), ctx)
    fcuda(a, b)
    tvm.testing.assert_allclose(b.asnumpy(), np.sum(a.asnumpy(), axis=1), rtol=1e-4)

# the largest element and its place, by two axes of threads
rows = te.placeholder((6, 4, 8), name="rows")
r, q = te.reduce_axis((0, 4), "r"), te.reduce_axis((0, 8), "q")
L = te.compute((6,), lambda i: te.max(rows[i, r, q], axis=[r, q]), name="L")
s = te.create_schedule(L.op)
s[L].bind(L.op.axis[0], te.thread_axis("blockIdx.x"))
s[L].bind(r, te.thread_axis("threadIdx.y"))
s[L].bind(q, te.thread_axis("threadIdx.x"))
largest = tvm.build(s, [rows, L], "cuda")
x = tvm.nd.array(np.random.normal(size=(6, 4, 8)).astype("float32"), ctx)
y = tvm.nd.empty((6,), ctx=ctx)
largest(x, y)
np.testing.assert_array_equal(y.asnumpy(), x.asnumpy().max((1, 2)))
