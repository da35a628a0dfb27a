"""Vector addition on a GPU: one thread for each element, sizes that the call tells."""

import numpy as np
import tvm
from tvm import te

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.placeholder((n,), name="B")
C = te.compute(A.shape, lambda i: A[i] + B[i], name="C")
s = te.create_schedule(C.op)
bx, tx = s[C].split(C.op.axis[0], factor=64)

tgt = "cuda"
if tgt == "cuda" or tgt == "rocm" or tgt.startswith("opencl"):
    s[C].bind(bx, te.thread_axis("blockIdx.x"))
    s[C].bind(tx, te.thread_axis("threadIdx.x"))
fadd = tvm.build(s, [A, B, C], tgt, target_host="llvm", name="myadd")

ctx = tvm.context(tgt, 0)
assert ctx.exist
for size in (1024, 1, 100):
    a = tvm.nd.array(np.random.uniform(size=size).astype(A.dtype), ctx)
    b = tvm.nd.array(np.random.uniform(size=size).astype(B.dtype), ctx)
    c = tvm.nd.array(np.zeros(size, dtype=C.dtype), ctx)
    fadd(a, b, c)
    tvm.testing.assert_allclose(c.asnumpy(), a.asnumpy() + b.asnumpy())

dev_module = fadd.imported_modules[0]
print("-----GPU code-----")
print(dev_module.get_source())
assert "threadIdx.x" in dev_module.get_source()
evaluator = fadd.time_evaluator(fadd.entry_name, ctx, number=10)
print("%.3f ms" % (evaluator(a, b, c).mean * 1e3))

dev = tvm.gpu(0)
assert 64 <= dev.max_threads_per_block and dev.warp_size == 32
s = te.create_schedule(C.op)
bx, tx = s[C].split(C.op.axis[0], factor=2 * dev.max_threads_per_block)
s[C].bind(bx, te.thread_axis("blockIdx.x"))
s[C].bind(tx, te.thread_axis("threadIdx.x"))
try:
    tvm.build(s, [A, B, C], tgt)
except tvm.TVMError as e:
    assert "too many threads" in str(e)
else:
    raise AssertionError("a block of 2048 threads was built")
