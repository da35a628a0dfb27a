"""A convolution on VTA with two virtual threads, in the manner of VTA's tutorial."""

import numpy as np
import tvm
import vta
from tvm import rpc, te, topi
from tvm.contrib import utils
from vta.testing import simulator


def blocked(images, rows, columns):
    """Return an array in blocks: the first two dimensions are divided, their parts come last."""
    first, second, height, width = images.shape
    parts = images.reshape(first // rows, rows, second // columns, columns, height, width)
    return parts.transpose((0, 2, 4, 5, 1, 3))


env = vta.get_env()
remote = rpc.LocalSession()

batch_size, height, width = 1, 14, 14
in_channels, out_channels = 256, 256
kernel_h, kernel_w = 3, 3
pad_h, pad_w = 1, 1
stride_h, stride_w = 1, 1
assert batch_size % env.BATCH == 0
assert in_channels % env.BLOCK_IN == 0
assert out_channels % env.BLOCK_OUT == 0

data_shape = (
    *(batch_size // env.BATCH, in_channels // env.BLOCK_IN, height, width),
    *(env.BATCH, env.BLOCK_IN),
)
kernel_shape = (
    *(out_channels // env.BLOCK_OUT, in_channels // env.BLOCK_IN, kernel_h, kernel_w),
    *(env.BLOCK_OUT, env.BLOCK_IN),
)
out_height = (height + 2 * pad_h - kernel_h) // stride_h + 1
out_width = (width + 2 * pad_w - kernel_w) // stride_w + 1
output_shape = (
    *(batch_size // env.BATCH, out_channels // env.BLOCK_OUT, out_height, out_width),
    *(env.BATCH, env.BLOCK_OUT),
)

dy = te.reduce_axis((0, kernel_h), name="dy")
dx = te.reduce_axis((0, kernel_w), name="dx")
ic = te.reduce_axis((0, in_channels // env.BLOCK_IN), name="ic")
ic_tns = te.reduce_axis((0, env.BLOCK_IN), name="ic_tns")
data = te.placeholder(data_shape, name="data", dtype=env.inp_dtype)
kernel = te.placeholder(kernel_shape, name="kernel", dtype=env.wgt_dtype)
data_chip = topi.nn.pad(data, [0, 0, pad_h, pad_w, 0, 0], name="data_chip")
kernel_chip = te.compute(kernel_shape, lambda *i: kernel(*i), "kernel_chip")
total = te.compute(
    output_shape,
    lambda bo, co, i, j, bi, ci: te.sum(
        data_chip[bo, ic, i * stride_h + dy, j * stride_w + dx, bi, ic_tns].astype(env.acc_dtype)
        * kernel_chip[co, ic, dy, dx, ci, ic_tns].astype(env.acc_dtype),
        axis=[ic, dy, dx, ic_tns],
    ),
    name="total",
)
most = (1 << (env.INP_WIDTH - 1)) - 1
shifted = te.compute(output_shape, lambda *i: total(*i) >> 8, name="shifted")
above = te.compute(output_shape, lambda *i: tvm.te.max(shifted(*i), 0), "above")
clipped = te.compute(output_shape, lambda *i: tvm.te.min(above(*i), most), "clipped")
out = te.compute(output_shape, lambda *i: clipped(*i).astype(env.inp_dtype), name="out")

s = te.create_schedule(out.op)
print(tvm.lower(s, [data, kernel, out], simple_mode=True))
b_block, oc_block, ic_block = 1 // env.BATCH, 128 // env.BLOCK_OUT, 16 // env.BLOCK_IN
h_block, w_block = 7, 14
b, oc, y, x, b_tns, oc_tns = s[out].op.axis
b_out, b_inn = s[out].split(b, factor=b_block)
oc_out, oc_inn = s[out].split(oc, factor=oc_block)
y_out, y_inn = s[out].split(y, factor=h_block)
x_out, x_inn = s[out].split(x, factor=w_block)
s[out].reorder(b_out, oc_out, y_out, x_out, b_inn, oc_inn, y_inn, x_inn, b_tns, oc_tns)
for stage in (total, shifted, above, clipped):
    s[stage].compute_at(s[out], x_out)

b, oc, y, x, b_tns, oc_tns = s[total].op.axis
ic_out, ic_inn = s[total].split(ic, factor=ic_block)
s[total].reorder(ic_out, b, oc, y, x, ic_inn, dy, dx, b_tns, oc_tns, ic_tns)

v_threads = 2
_, tx = s[out].split(oc_out, factor=v_threads)
s[out].reorder(tx, b_out)
s[out].bind(tx, te.thread_axis("cthread"))
print(tvm.lower(s, [data, kernel, out], simple_mode=True))

s[data_chip].set_scope(env.inp_scope)
s[kernel_chip].set_scope(env.wgt_scope)
for stage in (total, shifted, clipped, above):
    s[stage].set_scope(env.acc_scope)
s[data_chip].compute_at(s[total], ic_out)
s[kernel_chip].compute_at(s[total], ic_out)
s[data_chip].pragma(s[data_chip].op.axis[0], env.dma_copy)
s[kernel_chip].pragma(s[kernel_chip].op.axis[0], env.dma_copy)
s[out].pragma(s[out].op.axis[4], env.dma_copy)
s[total].tensorize(s[total].op.axis[4], env.gemm)
for stage in (shifted, clipped, above):
    s[stage].pragma(s[stage].op.axis[0], env.alu)
print(vta.lower(s, [data, kernel, out], simple_mode=True))

with vta.build_config(disabled_pass={"tir.CommonSubexprElimTIR"}):
    conv = vta.build(
        s, [data, kernel, out], tvm.target.Target("ext_dev", host=env.target_host), name="conv"
    )
temp = utils.tempdir()
conv.save(temp.relpath("conv2d.o"))
remote.upload(temp.relpath("conv2d.o"))
f = remote.load_module("conv2d.o")
ctx = remote.ext_dev(0)

data_plain = np.random.randint(-128, 128, (batch_size, in_channels, height, width))
data_plain = data_plain.astype(data.dtype)
kernel_plain = np.random.randint(-128, 128, (out_channels, in_channels, kernel_h, kernel_w))
kernel_plain = kernel_plain.astype(kernel.dtype)
data_nd = tvm.nd.array(blocked(data_plain, env.BATCH, env.BLOCK_IN), ctx)
kernel_nd = tvm.nd.array(blocked(kernel_plain, env.BLOCK_OUT, env.BLOCK_IN), ctx)
out_nd = tvm.nd.array(np.zeros(output_shape).astype(out.dtype), ctx)
simulator.clear_stats()
f(data_nd, kernel_nd, out_nd)

expected = topi.testing.conv2d_nchw_python(
    data_plain.astype(env.acc_dtype),
    kernel_plain.astype(env.acc_dtype),
    (stride_h, stride_w),
    "SAME",
).astype(env.acc_dtype)
expected = np.clip(expected >> 8, 0, most).astype(out.dtype)
np.testing.assert_equal(out_nd.numpy(), blocked(expected, env.BATCH, env.BLOCK_OUT))
stats = simulator.stats()
print(stats)
assert stats["gemm_counter"] == 16 * 16 * 9 * out_height * out_width
