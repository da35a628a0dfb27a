"""A tour of the schedule primitives, without threads of GPUs."""

import numpy as np
import tvm
from tvm import te

# declare some variables for use later
n = te.var("n")
m = te.var("m")

A = te.placeholder((m, n), name="A")
B = te.placeholder((m, n), name="B")
C = te.compute((m, n), lambda i, j: A[i, j] * B[i, j], name="C")
s = te.create_schedule([C.op])
print(tvm.lower(s, [A, B, C], simple_mode=True))


def run(s, args, out, inputs, wanted):
    mod = tvm.build(s, args)
    arrays = [tvm.nd.array(x) for x in inputs]
    result = tvm.nd.empty(wanted.shape, out.dtype)
    mod(*arrays, result)
    np.testing.assert_allclose(result.numpy(), wanted, rtol=1e-6)


x = np.random.uniform(size=(13, 17)).astype("float32")
y = np.random.uniform(size=(13, 17)).astype("float32")
v = np.random.uniform(size=100).astype("float32")
run(s, [A, B, C], C, (x, y), x * y)

# split
A = te.placeholder((m,), name="A")
B = te.compute((m,), lambda i: A[i] * 2, name="B")
s = te.create_schedule(B.op)
xo, xi = s[B].split(B.op.axis[0], factor=32)
print(tvm.lower(s, [A, B], simple_mode=True))
run(s, [A, B], B, (v,), v * 2)

A = te.placeholder((m,), name="A")
B = te.compute((m,), lambda i: A[i], name="B")
s = te.create_schedule(B.op)
bx, tx = s[B].split(B.op.axis[0], nparts=32)
print(tvm.lower(s, [A, B], simple_mode=True))
run(s, [A, B], B, (v,), v)

# tile
A = te.placeholder((m, n), name="A")
B = te.compute((m, n), lambda i, j: A[i, j], name="B")
s = te.create_schedule(B.op)
xo, yo, xi, yi = s[B].tile(B.op.axis[0], B.op.axis[1], x_factor=10, y_factor=5)
print(tvm.lower(s, [A, B], simple_mode=True))
run(s, [A, B], B, (x,), x)

# fuse
s = te.create_schedule(B.op)
xo, yo, xi, yi = s[B].tile(B.op.axis[0], B.op.axis[1], x_factor=10, y_factor=5)
fused = s[B].fuse(xi, yi)
print(tvm.lower(s, [A, B], simple_mode=True))
run(s, [A, B], B, (x,), x)

# reorder
s = te.create_schedule(B.op)
xo, yo, xi, yi = s[B].tile(B.op.axis[0], B.op.axis[1], x_factor=10, y_factor=5)
s[B].reorder(xi, yo, xo, yi)
print(tvm.lower(s, [A, B], simple_mode=True))
run(s, [A, B], B, (x,), x)

# compute_at
A = te.placeholder((m,), name="A")
B = te.compute((m,), lambda i: A[i] + 1, name="B")
C = te.compute((m,), lambda i: B[i] * 2, name="C")
s = te.create_schedule(C.op)
print(tvm.lower(s, [A, B, C], simple_mode=True))
s[B].compute_at(s[C], C.op.axis[0])
print(tvm.lower(s, [A, B, C], simple_mode=True))
run(s, [A, C], C, (v,), (v + 1) * 2)

# compute_inline
s = te.create_schedule(C.op)
s[B].compute_inline()
print(tvm.lower(s, [A, B, C], simple_mode=True))
run(s, [A, C], C, (v,), (v + 1) * 2)

# compute_root
s = te.create_schedule(C.op)
s[B].compute_at(s[C], C.op.axis[0])
s[B].compute_root()
print(tvm.lower(s, [A, B, C], simple_mode=True))
run(s, [A, C], C, (v,), (v + 1) * 2)
