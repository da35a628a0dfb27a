"""Operators of topi on a GPU, with the schedules that come with them."""

import numpy as np
import tvm
from tvm import te, topi

n, m = te.var("n"), te.var("m")
A = te.placeholder((n, m), name="A")
C = topi.sum(A, axis=1)
with tvm.target.cuda():
    s = topi.cuda.schedule_reduce(C)
print(tvm.lower(s, [A, C], simple_mode=True))
func = tvm.build(s, [A, C], "cuda")
dev = tvm.cuda(0)
a_np = np.random.uniform(size=(5, 70)).astype("float32")
a, c = tvm.nd.array(a_np, dev), tvm.nd.empty((5,), device=dev)
func(a, c)
tvm.testing.assert_allclose(c.numpy(), a_np.sum(1), rtol=1e-4)

# several operators, some of them inlined
x, y = 6, 8
a = te.placeholder((x, y, y), name="a")
b = te.placeholder((y, y), name="b")
e = topi.elemwise_sum([a + b, a])
f = e / 2.0
g = topi.sum(f)
with tvm.target.cuda():
    sg = topi.cuda.schedule_reduce(g)
    print(sg.stages)
func = tvm.build(sg, [a, b, g], "cuda")
a_np = np.random.uniform(size=(x, y, y)).astype(a.dtype)
b_np = np.random.uniform(size=(y, y)).astype(b.dtype)
g_nd = tvm.nd.array(np.zeros((), dtype=g.dtype), dev)
func(tvm.nd.array(a_np, dev), tvm.nd.array(b_np, dev), g_nd)
tvm.testing.assert_allclose(g_nd.numpy(), ((2 * a_np + b_np) / 2).sum(), rtol=1e-4)

tarray = te.placeholder((4, 37), name="tarray")
softmax = topi.nn.softmax(tarray)
with tvm.target.Target("cuda"):
    sst = topi.cuda.schedule_softmax(softmax)
func = tvm.build(sst, [tarray, softmax], "cuda")
t_np = np.random.uniform(size=(4, 37)).astype("float32")
out = tvm.nd.empty((4, 37), device=dev)
func(tvm.nd.array(t_np, dev), out)
tvm.testing.assert_allclose(out.numpy(), topi.testing.softmax_python(t_np), rtol=1e-4)

# a convolution and an activation
data = te.placeholder((1, 3, 8, 8))
kernel = te.placeholder((4, 3, 5, 5))
with tvm.target.Target("cuda"):
    conv = topi.cuda.conv2d_nchw(data, kernel, 1, 2, 1)
    out = topi.nn.relu(conv)
    sconv = topi.cuda.schedule_conv2d_nchw([out])
    doubled = topi.multiply(data, 2.0)
    sdoubled = topi.generic.schedule_injective([doubled])
d_np = np.random.normal(size=(1, 3, 8, 8)).astype("float32")
k_np = np.random.normal(size=(4, 3, 5, 5)).astype("float32")
d = tvm.nd.array(d_np, dev)
result = tvm.nd.empty((1, 4, 8, 8), device=dev)
tvm.build(sconv, [data, kernel, out], "cuda")(d, tvm.nd.array(k_np, dev), result)
expected = np.maximum(topi.testing.conv2d_nchw_python(d_np, k_np, 1, 2), 0)
tvm.testing.assert_allclose(result.numpy(), expected, rtol=1e-3, atol=1e-4)
twice = tvm.nd.empty(d_np.shape, device=dev)
tvm.build(sdoubled, [data, doubled], "cuda")(d, twice)
tvm.testing.assert_allclose(twice.numpy(), 2 * d_np)
