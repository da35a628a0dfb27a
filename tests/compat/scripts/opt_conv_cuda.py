"""A convolution on a GPU: shared memory, virtual threads, and loads that the threads share."""

import numpy as np
import tvm
from tvm import te

# The layer of the tutorial has batch 256, 256 and 512 channels, and images of 14 x 14.
batch, in_channel, out_channel = 16, 16, 16
in_size, kernel, pad, stride = 4, 3, 1, 1
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

# Blocks of tile * num_thread channels and images, which are strided over the virtual threads.
tile, num_thread, step, vthread = 4, 4, 8, 2
block_factor = tile * num_thread
block_x, block_y, block_z = (te.thread_axis(f"blockIdx.{axis}") for axis in "xyz")
thread_x = te.thread_axis((0, num_thread), "threadIdx.x")
thread_y = te.thread_axis((0, num_thread), "threadIdx.y")
thread_xz = te.thread_axis((0, vthread), "vthread", name="vx")
thread_yz = te.thread_axis((0, vthread), "vthread", name="vy")

hi, wi, fi, ni = s[B].op.axis
bz = s[B].fuse(hi, wi)
by, fi = s[B].split(fi, factor=block_factor)
bx, ni = s[B].split(ni, factor=block_factor)
s[B].bind(bz, block_z)
s[B].bind(by, block_y)
s[B].bind(bx, block_x)
tyz, fi = s[B].split(fi, nparts=vthread)
txz, ni = s[B].split(ni, nparts=vthread)
ty, fi = s[B].split(fi, nparts=num_thread)
tx, ni = s[B].split(ni, nparts=num_thread)
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

# All threads of a block load the tiles together, four numbers at once.
for shared in (AA, WW):
    yi, xi, ci, inner = s[shared].op.axis
    ty, ci = s[shared].split(ci, nparts=num_thread)
    tx, inner = s[shared].split(inner, nparts=num_thread)
    _, inner = s[shared].split(inner, factor=4)
    s[shared].reorder(ty, tx, yi, xi, ci, inner)
    s[shared].bind(ty, thread_y)
    s[shared].bind(tx, thread_x)
    s[shared].vectorize(inner)

func = tvm.build(s, [A, W, B], "cuda")
dev = tvm.cuda(0)
a_np = np.random.uniform(size=(in_size, in_size, in_channel, batch)).astype(A.dtype)
w_np = np.random.uniform(size=(kernel, kernel, in_channel, out_channel)).astype(W.dtype)
a = tvm.nd.array(a_np, dev)
w = tvm.nd.array(w_np, dev)
b = tvm.nd.array(np.zeros((out_size, out_size, out_channel, batch), dtype=B.dtype), dev)
func(a, w, b)
dev.sync()

wide = np.pad(a_np, [(pad, pad), (pad, pad), (0, 0), (0, 0)])
patches = np.lib.stride_tricks.sliding_window_view(wide, (kernel, kernel), axis=(0, 1))
expected = np.einsum("yxcnpq,pqcf->yxfn", patches, w_np)
tvm.testing.assert_allclose(b.numpy(), expected, rtol=1e-4)

source = func.imported_modules[0].get_source()
assert "float4" in source and "__shared__" in source
evaluator = func.time_evaluator(func.entry_name, dev, number=1)
print("Convolution: %f ms" % (evaluator(a, w, b).mean * 1e3))
