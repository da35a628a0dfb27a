"""Convolution on a GPU: virtual threads, an inlined padding, inputs in shared memory."""

import numpy as np
import tvm
from tvm import te

batch, in_channel, out_channel, in_size, kernel, pad, stride = 1, 4, 8, 6, 3, 1, 1
out_size = (in_size - kernel + 2 * pad) // stride + 1

A = te.placeholder((in_size, in_size, in_channel, batch), name="A")
W = te.placeholder((kernel, kernel, in_channel, out_channel), name="W")
Apad = te.compute(
    (in_size + 2 * pad, in_size + 2 * pad, in_channel, batch),
    lambda yy, xx, cc, nn: tvm.tir.if_then_else(
        tvm.tir.all(yy >= pad, yy - pad < in_size, xx >= pad, xx - pad < in_size),
        A[yy - pad, xx - pad, cc, nn],
        tvm.tir.const(0.0, "float32"),
    ),
    name="Apad",
)
rc = te.reduce_axis((0, in_channel), name="rc")
ry = te.reduce_axis((0, kernel), name="ry")
rx = te.reduce_axis((0, kernel), name="rx")
B = te.compute(
    (out_size, out_size, out_channel, batch),
    lambda yy, xx, ff, nn: te.sum(
        Apad[yy * stride + ry, xx * stride + rx, rc, nn] * W[ry, rx, rc, ff], axis=[ry, rx, rc]
    ),
    name="B",
)

s = te.create_schedule(B.op)
s[Apad].compute_inline()
AA = s.cache_read(Apad, "shared", [B])
WW = s.cache_read(W, "shared", [B])
AL = s.cache_read(AA, "local", [B])
WL = s.cache_read(WW, "local", [B])
BL = s.cache_write(B, "local")

tile, num_thread, step, vthread = 1, 2, 2, 2
block_factor = tile * num_thread
block_x = te.thread_axis("blockIdx.x")
block_y = te.thread_axis("blockIdx.y")
block_z = te.thread_axis("blockIdx.z")
thread_x = te.thread_axis((0, 1), "threadIdx.x")
thread_y = te.thread_axis((0, num_thread), "threadIdx.y")
thread_xz = te.thread_axis((0, 1), "vthread", name="vx")
thread_yz = te.thread_axis((0, vthread), "vthread", name="vy")

hi, wi, fi, ni = s[B].op.axis
bz = s[B].fuse(hi, wi)
by, fi = s[B].split(fi, factor=block_factor * vthread)
bx, ni = s[B].split(ni, factor=block_factor)
s[B].bind(bz, block_z)
s[B].bind(by, block_y)
s[B].bind(bx, block_x)
tyz, fi = s[B].split(fi, nparts=vthread)
txz, ni = s[B].split(ni, nparts=1)
ty, fi = s[B].split(fi, nparts=num_thread)
tx, ni = s[B].split(ni, nparts=1)
s[B].reorder(bz, by, bx, tyz, txz, ty, tx, fi, ni)
s[B].bind(tyz, thread_yz)
s[B].bind(txz, thread_xz)
s[B].bind(ty, thread_y)
s[B].bind(tx, thread_x)

s[BL].compute_at(s[B], tx)
yi, xi, fi, ni = s[BL].op.axis
ry, rx, rc = s[BL].op.reduce_axis
rco, rci = s[BL].split(rc, factor=step)
s[BL].reorder(rco, ry, rx, rci, fi, ni)
s[AA].compute_at(s[BL], rx)
s[WW].compute_at(s[BL], rx)
s[AL].compute_at(s[BL], rci)
s[WL].compute_at(s[BL], rci)
for load in (AA, WW):
    yi, xi, ci, ni = s[load].op.axis
    ty, ci = s[load].split(ci, nparts=num_thread)
    tx, ni = s[load].split(ni, nparts=1)
    s[load].reorder(ty, tx, yi, xi, ci, ni)
    s[load].bind(ty, thread_y)
    s[load].bind(tx, thread_x)

func = tvm.build(s, [A, W, B], "cuda")
ctx = tvm.gpu(0)
a_np = np.random.uniform(size=(in_size, in_size, in_channel, batch)).astype("float32")
w_np = np.random.uniform(size=(kernel, kernel, in_channel, out_channel)).astype("float32")
a, w = tvm.nd.array(a_np, ctx), tvm.nd.array(w_np, ctx)
b = tvm.nd.array(np.zeros((out_size, out_size, out_channel, batch), "float32"), ctx)
func(a, w, b)
padded = np.pad(a_np[..., 0], ((1, 1), (1, 1), (0, 0)))
expected = sum(
    padded[y : y + out_size, x : x + out_size] @ w_np[y, x]
    for y in range(kernel)
    for x in range(kernel)
)
np.testing.assert_allclose(b.asnumpy()[..., 0], expected, rtol=1e-4)
evaluator = func.time_evaluator(func.entry_name, ctx, number=1)
print("Convolution: %f ms" % (evaluator(a, w, b).mean * 1e3))
