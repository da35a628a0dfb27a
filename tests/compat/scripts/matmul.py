"""Matrix multiplication: the order of loops, threads, local accumulation."""

import d2ltvm
import numpy as np
import tvm
from tvm import te

target = "llvm -mcpu=skylake-avx512"


def matmul(n, m, l):
    """Return the computing expression of matrix multiplication
    A : n x l matrix
    B : l x m matrix
    C : n x m matrix with C = A B
    """
    k = te.reduce_axis((0, l), name="k")
    A = te.placeholder((n, l), name="A")
    B = te.placeholder((l, m), name="B")
    C = te.compute((n, m), lambda x, y: te.sum(A[x, k] * B[k, y], axis=k), name="C")
    return A, B, C


def check(s, args, n):
    mod = tvm.build(s, args, target)
    a, b, c = d2ltvm.get_abc((n, n), tvm.nd.array)
    mod(a, b, c)
    np.testing.assert_allclose(np.dot(a.asnumpy(), b.asnumpy()), c.asnumpy(), atol=1e-4)
    return mod, (a, b, c)


def default(n):
    A, B, C = d2ltvm.matmul(n, n, n)
    return te.create_schedule(C.op), (A, B, C)


def reorder(n):
    s, (A, B, C) = default(n)
    (x, y), (k,) = C.op.axis, C.op.reduce_axis
    s[C].reorder(x, k, y)
    return s, (A, B, C)


def parallel(n):
    s, (A, B, C) = reorder(n)
    s[C].parallel(C.op.axis[0])
    return s, (A, B, C)


for schedule in (default, reorder, parallel):
    s, args = schedule(63)
    print(tvm.lower(s, args, simple_mode=True))
    mod, arrays = check(s, args, 63)
    evaluator = mod.time_evaluator(mod.entry_name, ctx=tvm.cpu(), number=2, repeat=3)
    timing = evaluator(*arrays)
    assert len(timing.results) == 3 and timing.median > 0 and timing.std >= 0

A, B, C = matmul(20, 30, 40)
s = te.create_schedule(C.op)
mod = tvm.build(s, [A, B, C])
a = np.random.normal(size=(20, 40)).astype(np.float32)
b = np.random.normal(size=(40, 30)).astype(np.float32)
c = tvm.nd.array(np.zeros((20, 30), dtype=np.float32))
mod(tvm.nd.array(a), tvm.nd.array(b), c)
np.testing.assert_allclose(np.dot(a, b), c.asnumpy(), atol=1e-4)
