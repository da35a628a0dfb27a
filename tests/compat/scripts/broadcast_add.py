"""Broadcast addition, defined by hand and by operators on tensors."""

import d2ltvm
import numpy as np
import tvm
from tvm import te

target = "llvm"


def broadcast_add(shape1, shape2):
    assert len(shape1) == 2 and len(shape2) == 2
    for i in range(len(shape1)):
        assert shape1[i] == shape2[i] or shape1[i] == 1 or shape2[i] == 1
    A = te.placeholder(shape1, name="A")
    B = te.placeholder(shape2, name="B")
    m = shape1[0] if shape2[0] == 1 else shape2[0]
    n = shape1[1] if shape2[1] == 1 else shape2[1]
    f = lambda x, y: (
        A[0 if shape1[0] == 1 else x, 0 if shape1[1] == 1 else y]
        + B[0 if shape2[0] == 1 else x, 0 if shape2[1] == 1 else y]
    )
    C = te.compute((m, n), f, name="C")
    return A, B, C


for shape1, shape2 in (((3, 1), (3, 4)), ((1, 1), (5, 7)), ((5, 1), (1, 7)), ((4, 4), (4, 4))):
    for make in (broadcast_add, d2ltvm.broadcast_add):
        A, B, C = make(shape1, shape2)
        s = te.create_schedule(C.op)
        print(tvm.lower(s, [A, B, C], simple_mode=True))
        mod = tvm.build(s, [A, B, C])
        a, b, c = d2ltvm.get_bcast_data(shape1, shape2, tvm.nd.array)
        mod(a, b, c)
        np.testing.assert_allclose(np.add(a.asnumpy(), b.asnumpy()), c.asnumpy(), atol=1e-5)

for shape1, shape2 in (((3, 1), (3, 4)), ((4,), (3, 4)), ((2, 1, 5), (3, 1))):
    A = te.placeholder(shape1, name="A")
    B = te.placeholder(shape2, name="B")
    C = 2 * A + B / 4 - 1
    D = tvm.topi.add(A, B)
    s = te.create_schedule([C.op, D.op])
    mod = tvm.build(s, [A, B, C, D], target)
    a = np.random.uniform(size=shape1).astype("float32")
    b = np.random.uniform(size=shape2).astype("float32")
    c, d = tvm.nd.empty(C.shape), tvm.nd.empty(D.shape)
    mod(tvm.nd.array(a), tvm.nd.array(b), c, d)
    np.testing.assert_allclose(c.asnumpy(), 2 * a + b / 4 - 1, rtol=1e-5)
    np.testing.assert_array_equal(d.asnumpy(), a + b)


def default(n):
    A, B, C = d2ltvm.broadcast_add((n, 1), (n, n))
    s = te.create_schedule(C.op)
    return s, (A, B, C)


def good_schedule(n):
    s, (A, B, C) = default(n)
    x, y = C.op.axis
    s[C].parallel(x)
    s[C].vectorize(y)
    return s, (A, B, C)


def bad_schedule(n):
    s, (A, B, C) = default(n)
    x, y = C.op.axis
    s[C].reorder(y, x)
    s[C].parallel(y)
    return s, (A, B, C)


for schedule in (default, good_schedule, bad_schedule):
    s, args = schedule(64)
    print(tvm.lower(s, args, simple_mode=True))
    mod = tvm.build(s, args, target)
    ctx = tvm.context(target, 0)
    a, b, c = d2ltvm.get_bcast_data((64, 1), (64, 64), lambda x: tvm.nd.array(x, ctx=ctx))
    mod(a, b, c)
    np.testing.assert_array_equal(c.asnumpy(), a.asnumpy() + b.asnumpy())
