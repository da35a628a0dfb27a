"""A blocked product of matrices on VTA, shifted and clipped, in the manner of VTA's tutorial."""

import numpy as np
import tvm
import vta
from tvm import rpc, te
from tvm.contrib import utils
from vta.testing import simulator

env = vta.get_env()
remote = rpc.LocalSession()

batch_size, in_channels, out_channels = 1, 1024, 1024
assert batch_size % env.BATCH == 0
assert in_channels % env.BLOCK_IN == 0
assert out_channels % env.BLOCK_OUT == 0
data_shape = (batch_size // env.BATCH, in_channels // env.BLOCK_IN, env.BATCH, env.BLOCK_IN)
weight_shape = (
    out_channels // env.BLOCK_OUT,
    in_channels // env.BLOCK_IN,
    env.BLOCK_OUT,
    env.BLOCK_IN,
)
output_shape = (batch_size // env.BATCH, out_channels // env.BLOCK_OUT, env.BATCH, env.BLOCK_OUT)
num_ops = in_channels * out_channels * batch_size * 2

ic = te.reduce_axis((0, in_channels // env.BLOCK_IN), name="ic")
ic_tns = te.reduce_axis((0, env.BLOCK_IN), name="ic_tns")
data = te.placeholder(data_shape, name="data", dtype=env.inp_dtype)
weight = te.placeholder(weight_shape, name="weight", dtype=env.wgt_dtype)
data_buf = te.compute(data_shape, lambda *i: data(*i), "data_buf")
weight_buf = te.compute(weight_shape, lambda *i: weight(*i), "weight_buf")
res_gemm = te.compute(
    output_shape,
    lambda bo, co, bi, ci: te.sum(
        data_buf[bo, ic, bi, ic_tns].astype(env.acc_dtype)
        * weight_buf[co, ic, ci, ic_tns].astype(env.acc_dtype),
        axis=[ic, ic_tns],
    ),
    name="res_gem",
)
inp_max = (1 << (env.INP_WIDTH - 1)) - 1
res_shr = te.compute(output_shape, lambda *i: res_gemm(*i) >> env.INP_WIDTH, name="res_shr")
res_max = te.compute(output_shape, lambda *i: tvm.te.max(res_shr(*i), 0), "res_max")
res_min = te.compute(output_shape, lambda *i: tvm.te.min(res_max(*i), inp_max), "res_min")
res = te.compute(output_shape, lambda *i: res_min(*i).astype(env.inp_dtype), name="res")

s = te.create_schedule(res.op)
b_block = 1 // env.BATCH
i_block = 256 // env.BLOCK_IN
o_block = 256 // env.BLOCK_OUT
b, oc, b_tns, oc_tns = s[res].op.axis
b_out, b_inn = s[res].split(b, b_block)
oc_out, oc_inn = s[res].split(oc, o_block)
s[res].reorder(b_out, oc_out, b_inn, oc_inn)
for stage in (res_gemm, res_shr, res_max, res_min):
    s[stage].compute_at(s[res], oc_out)

b, oc, b_tns, oc_tns = s[res_gemm].op.axis
ic_out, ic_inn = s[res_gemm].split(ic, i_block)
s[res_gemm].reorder(ic_out, b, oc, ic_inn, b_tns, oc_tns, ic_tns)

s[data_buf].set_scope(env.inp_scope)
s[weight_buf].set_scope(env.wgt_scope)
for stage in (res_gemm, res_shr, res_min, res_max):
    s[stage].set_scope(env.acc_scope)
s[data_buf].compute_at(s[res_gemm], ic_out)
s[weight_buf].compute_at(s[res_gemm], ic_out)
s[data_buf].pragma(s[data_buf].op.axis[0], env.dma_copy)
s[weight_buf].pragma(s[weight_buf].op.axis[0], env.dma_copy)
s[res].pragma(b_inn, env.dma_copy)
s[res_gemm].tensorize(b_tns, env.gemm)
for stage in (res_shr, res_min, res_max):
    s[stage].pragma(s[stage].op.axis[0], env.alu)
print(vta.lower(s, [data, weight, res], simple_mode=True))

my_gemm = vta.build(
    s, [data, weight, res], tvm.target.Target("ext_dev", host=env.target_host), name="my_gemm"
)
temp = utils.tempdir()
my_gemm.save(temp.relpath("gemm.o"))
remote.upload(temp.relpath("gemm.o"))
f = remote.load_module("gemm.o")
ctx = remote.ext_dev(0)

data_np = np.random.randint(-128, 128, size=(batch_size, in_channels)).astype(data.dtype)
weight_np = np.random.randint(-128, 128, size=(out_channels, in_channels)).astype(weight.dtype)
data_packed = data_np.reshape(
    batch_size // env.BATCH, env.BATCH, in_channels // env.BLOCK_IN, env.BLOCK_IN
).transpose((0, 2, 1, 3))
weight_packed = weight_np.reshape(
    out_channels // env.BLOCK_OUT, env.BLOCK_OUT, in_channels // env.BLOCK_IN, env.BLOCK_IN
).transpose((0, 2, 1, 3))
data_nd = tvm.nd.array(data_packed, ctx)
weight_nd = tvm.nd.array(weight_packed, ctx)
res_nd = tvm.nd.array(np.zeros(output_shape).astype(res.dtype), ctx)
simulator.clear_stats()
f(data_nd, weight_nd, res_nd)

res_ref = np.dot(data_np.astype(env.acc_dtype), weight_np.T.astype(env.acc_dtype))
res_ref = np.clip(res_ref >> env.INP_WIDTH, 0, inp_max).astype(res.dtype)
res_ref = res_ref.reshape(
    batch_size // env.BATCH, env.BATCH, out_channels // env.BLOCK_OUT, env.BLOCK_OUT
).transpose((0, 2, 1, 3))
np.testing.assert_equal(res_ref, res_nd.numpy())
stats = simulator.stats()
print(stats)
assert stats["wgt_load_nbytes"] == weight_np.nbytes
assert stats["inp_load_nbytes"] == data_np.nbytes * (out_channels // 256)

time_f = f.time_evaluator("my_gemm", ctx, number=20)
cost = time_f(data_nd, weight_nd, res_nd)
print(f"{num_ops / cost.mean / 1e9:.3f} GOPS at the clock of the accelerator, simulated")
