"""A convolution on VTA with two virtual threads, in the manner of VTA's tutorial."""

import numpy as np
import tvm
import vta
from tvm import rpc, te, topi
from tvm.contrib import utils
from vta.testing import simulator

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
fout_height = (height + 2 * pad_h - kernel_h) // stride_h + 1
fout_width = (width + 2 * pad_w - kernel_w) // stride_w + 1
output_shape = (
    *(batch_size // env.BATCH, out_channels // env.BLOCK_OUT, fout_height, fout_width),
    *(env.BATCH, env.BLOCK_OUT),
)

dy = te.reduce_axis((0, kernel_h), name="dy")
dx = te.reduce_axis((0, kernel_w), name="dx")
ic = te.reduce_axis((0, in_channels // env.BLOCK_IN), name="ic")
ic_tns = te.reduce_axis((0, env.BLOCK_IN), name="ic_tns")
data = te.placeholder(data_shape, name="data", dtype=env.inp_dtype)
kernel = te.placeholder(kernel_shape, name="kernel", dtype=env.wgt_dtype)
data_buf = topi.nn.pad(data, [0, 0, pad_h, pad_w, 0, 0], name="data_buf")
kernel_buf = te.compute(kernel_shape, lambda *i: kernel(*i), "kernel_buf")
res_conv = te.compute(
    output_shape,
    lambda bo, co, i, j, bi, ci: te.sum(
        data_buf[bo, ic, i * stride_h + dy, j * stride_w + dx, bi, ic_tns].astype(env.acc_dtype)
        * kernel_buf[co, ic, dy, dx, ci, ic_tns].astype(env.acc_dtype),
        axis=[ic, dy, dx, ic_tns],
    ),
    name="res_conv",
)
inp_max = (1 << (env.INP_WIDTH - 1)) - 1
res_shr = te.compute(output_shape, lambda *i: res_conv(*i) >> 8, name="res_shr")
res_max = te.compute(output_shape, lambda *i: tvm.te.max(res_shr(*i), 0), "res_max")
res_min = te.compute(output_shape, lambda *i: tvm.te.min(res_max(*i), inp_max), "res_min")
res = te.compute(output_shape, lambda *i: res_min(*i).astype(env.inp_dtype), name="res")

s = te.create_schedule(res.op)
b_block, oc_block, ic_block = 1 // env.BATCH, 128 // env.BLOCK_OUT, 16 // env.BLOCK_IN
h_block, w_block = 7, 14
b, oc, y, x, b_tns, oc_tns = s[res].op.axis
b_out, b_inn = s[res].split(b, factor=b_block)
oc_out, oc_inn = s[res].split(oc, factor=oc_block)
y_out, y_inn = s[res].split(y, factor=h_block)
x_out, x_inn = s[res].split(x, factor=w_block)
s[res].reorder(b_out, oc_out, y_out, x_out, b_inn, oc_inn, y_inn, x_inn, b_tns, oc_tns)
for stage in (res_conv, res_shr, res_max, res_min):
    s[stage].compute_at(s[res], x_out)

b, oc, y, x, b_tns, oc_tns = s[res_conv].op.axis
ic_out, ic_inn = s[res_conv].split(ic, factor=ic_block)
s[res_conv].reorder(ic_out, b, oc, y, x, ic_inn, dy, dx, b_tns, oc_tns, ic_tns)

v_threads = 2
_, tx = s[res].split(oc_out, factor=v_threads)
s[res].reorder(tx, b_out)
s[res].bind(tx, te.thread_axis("cthread"))

s[data_buf].set_scope(env.inp_scope)
s[kernel_buf].set_scope(env.wgt_scope)
for stage in (res_conv, res_shr, res_min, res_max):
    s[stage].set_scope(env.acc_scope)
s[data_buf].compute_at(s[res_conv], ic_out)
s[kernel_buf].compute_at(s[res_conv], ic_out)
s[data_buf].pragma(s[data_buf].op.axis[0], env.dma_copy)
s[kernel_buf].pragma(s[kernel_buf].op.axis[0], env.dma_copy)
s[res].pragma(s[res].op.axis[4], env.dma_copy)
s[res_conv].tensorize(s[res_conv].op.axis[4], env.gemm)
for stage in (res_shr, res_min, res_max):
    s[stage].pragma(s[stage].op.axis[0], env.alu)
print(vta.lower(s, [data, kernel, res], simple_mode=True))

with vta.build_config(disabled_pass={"tir.CommonSubexprElimTIR"}):
    my_conv = vta.build(
        s, [data, kernel, res], tvm.target.Target("ext_dev", host=env.target_host), name="my_conv"
    )
temp = utils.tempdir()
my_conv.save(temp.relpath("conv2d.o"))
remote.upload(temp.relpath("conv2d.o"))
f = remote.load_module("conv2d.o")
ctx = remote.ext_dev(0)

data_np = np.random.randint(-128, 128, (batch_size, in_channels, height, width))
data_np = data_np.astype(data.dtype)
kernel_np = np.random.randint(-128, 128, (out_channels, in_channels, kernel_h, kernel_w))
kernel_np = kernel_np.astype(kernel.dtype)
data_packed = data_np.reshape(
    *(batch_size // env.BATCH, env.BATCH, in_channels // env.BLOCK_IN, env.BLOCK_IN),
    *(height, width),
).transpose((0, 2, 4, 5, 1, 3))
kernel_packed = kernel_np.reshape(
    *(out_channels // env.BLOCK_OUT, env.BLOCK_OUT, in_channels // env.BLOCK_IN, env.BLOCK_IN),
    *(kernel_h, kernel_w),
).transpose((0, 2, 4, 5, 1, 3))
data_nd = tvm.nd.array(data_packed, ctx)
kernel_nd = tvm.nd.array(kernel_packed, ctx)
res_nd = tvm.nd.array(np.zeros(output_shape).astype(res.dtype), ctx)
simulator.clear_stats()
f(data_nd, kernel_nd, res_nd)

res_ref = topi.testing.conv2d_nchw_python(
    data_np.astype(env.acc_dtype), kernel_np.astype(env.acc_dtype), (stride_h, stride_w), "SAME"
).astype(env.acc_dtype)
res_ref = np.clip(res_ref >> 8, 0, inp_max).astype(res.dtype)
res_ref = res_ref.reshape(
    *(batch_size // env.BATCH, env.BATCH, out_channels // env.BLOCK_OUT, env.BLOCK_OUT),
    *(fout_height, fout_width),
).transpose((0, 2, 4, 5, 1, 3))
np.testing.assert_equal(res_ref, res_nd.numpy())
stats = simulator.stats()
print(stats)
assert stats["gemm_counter"] == 16 * 16 * 9 * fout_height * fout_width
