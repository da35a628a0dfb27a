"""Several outputs at once: computed together, and reduced together."""

import numpy as np
import tvm
import tvm.testing
from tvm import te

n = te.var("n")
m = te.var("m")
A0 = te.placeholder((m, n), name="A0")
A1 = te.placeholder((m, n), name="A1")
B0, B1 = te.compute((m, n), lambda i, j: (A0[i, j] + 2, A1[i, j] * 3), name="B")

s = te.create_schedule(B0.op)
print(tvm.lower(s, [A0, A1, B0, B1], simple_mode=True))
func = tvm.build(s, [A0, A1, B0, B1])
x = np.random.uniform(size=(3, 5)).astype("float32")
y = np.random.uniform(size=(3, 5)).astype("float32")
b0, b1 = tvm.nd.empty((3, 5)), tvm.nd.empty((3, 5))
func(tvm.nd.array(x), tvm.nd.array(y), b0, b1)
tvm.testing.assert_allclose(b0.numpy(), x + 2)
tvm.testing.assert_allclose(b1.numpy(), y * 3, rtol=1e-6)


# x and y are the operands of reduction, both of them is a tuple of index
# and value.
def fcombine(x, y):
    lhs = tvm.tir.Select((x[1] >= y[1]), x[0], y[0])
    rhs = tvm.tir.Select((x[1] >= y[1]), x[1], y[1])
    return lhs, rhs


# our identity element also need to be a tuple, so `fidentity` accepts
# two types as inputs.
def fidentity(t0, t1):
    return tvm.tir.const(-1, t0), te.min_value(t1)


argmax = te.comm_reducer(fcombine, fidentity, name="argmax")

m = te.var("m")
n = te.var("n")
idx = te.placeholder((m, n), name="idx", dtype="int32")
val = te.placeholder((m, n), name="val", dtype="int32")
k = te.reduce_axis((0, n), "k")
T0, T1 = te.compute((m,), lambda i: argmax((idx[i, k], val[i, k]), axis=k), name="T")
s = te.create_schedule(T0.op)
print(tvm.lower(s, [idx, val, T0, T1], simple_mode=True))
func = tvm.build(s, [idx, val, T0, T1])

values = np.stack([np.random.permutation(100)[:40] for _ in range(6)]).astype("int32")
places = np.tile(np.arange(40, dtype="int32"), (6, 1))
t0, t1 = tvm.nd.empty((6,), "int32"), tvm.nd.empty((6,), "int32")
func(tvm.nd.array(places), tvm.nd.array(values), t0, t1)
np.testing.assert_array_equal(t0.numpy(), values.argmax(axis=1))
np.testing.assert_array_equal(t1.numpy(), values.max(axis=1))

# Schedule Operation with Tuple Inputs
n = te.var("n")
m = te.var("m")
A0 = te.placeholder((m, n), name="A0")
B0, B1 = te.compute((m, n), lambda i, j: (A0[i, j] + 2, A0[i, j] * 3), name="B")
A1 = te.placeholder((m, n), name="A1")
C = te.compute((m, n), lambda i, j: A1[i, j] + B0[i, j], name="C")

s = te.create_schedule(C.op)
s[B0].compute_at(s[C], C.op.axis[0])
print(tvm.lower(s, [A0, A1, C], simple_mode=True))
func = tvm.build(s, [A0, A1, C])
c = tvm.nd.empty((3, 5))
func(tvm.nd.array(x), tvm.nd.array(y), c)
tvm.testing.assert_allclose(c.numpy(), y + x + 2, rtol=1e-6)
