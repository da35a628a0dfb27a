"""A blocked product of matrices on VTA, shifted and clipped, in the manner of VTA's tutorial."""

import numpy as np
import tvm
import vta
from tvm import rpc, te
from tvm.contrib import utils
from vta.testing import simulator


def blocked(matrix, rows, columns):
    """Return a matrix in blocks: (rows, columns of blocks, rows, columns of a block)."""
    height, width = matrix.shape
    parts = matrix.reshape(height // rows, rows, width // columns, columns)
    return parts.transpose((0, 2, 1, 3))


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
operations = in_channels * out_channels * batch_size * 2

ic = te.reduce_axis((0, in_channels // env.BLOCK_IN), name="ic")
ic_tns = te.reduce_axis((0, env.BLOCK_IN), name="ic_tns")
data = te.placeholder(data_shape, name="data", dtype=env.inp_dtype)
weight = te.placeholder(weight_shape, name="weight", dtype=env.wgt_dtype)
data_chip = te.compute(data_shape, lambda *i: data(*i), "data_chip")
weight_chip = te.compute(weight_shape, lambda *i: weight(*i), "weight_chip")
total = te.compute(
    output_shape,
    lambda bo, co, bi, ci: te.sum(
        data_chip[bo, ic, bi, ic_tns].astype(env.acc_dtype)
        * weight_chip[co, ic, ci, ic_tns].astype(env.acc_dtype),
        axis=[ic, ic_tns],
    ),
    name="total",
)
most = (1 << (env.INP_WIDTH - 1)) - 1
shifted = te.compute(output_shape, lambda *i: total(*i) >> env.INP_WIDTH, name="shifted")
above = te.compute(output_shape, lambda *i: tvm.te.max(shifted(*i), 0), "above")
clipped = te.compute(output_shape, lambda *i: tvm.te.min(above(*i), most), "clipped")
out = te.compute(output_shape, lambda *i: clipped(*i).astype(env.inp_dtype), name="out")

s = te.create_schedule(out.op)
print(tvm.lower(s, [data, weight, out], simple_mode=True))
b_block = 1 // env.BATCH
i_block = 256 // env.BLOCK_IN
o_block = 256 // env.BLOCK_OUT
b, oc, b_tns, oc_tns = s[out].op.axis
b_out, b_inn = s[out].split(b, b_block)
oc_out, oc_inn = s[out].split(oc, o_block)
s[out].reorder(b_out, oc_out, b_inn, oc_inn)
for stage in (total, shifted, above, clipped):
    s[stage].compute_at(s[out], oc_out)

b, oc, b_tns, oc_tns = s[total].op.axis
ic_out, ic_inn = s[total].split(ic, i_block)
s[total].reorder(ic_out, b, oc, ic_inn, b_tns, oc_tns, ic_tns)
print(tvm.lower(s, [data, weight, out], simple_mode=True))

s[data_chip].set_scope(env.inp_scope)
s[weight_chip].set_scope(env.wgt_scope)
for stage in (total, shifted, clipped, above):
    s[stage].set_scope(env.acc_scope)
s[data_chip].compute_at(s[total], ic_out)
s[weight_chip].compute_at(s[total], ic_out)
s[data_chip].pragma(s[data_chip].op.axis[0], env.dma_copy)
s[weight_chip].pragma(s[weight_chip].op.axis[0], env.dma_copy)
s[out].pragma(b_inn, env.dma_copy)
s[total].tensorize(b_tns, env.gemm)
for stage in (shifted, clipped, above):
    s[stage].pragma(s[stage].op.axis[0], env.alu)
print(vta.lower(s, [data, weight, out], simple_mode=True))

product = vta.build(
    s, [data, weight, out], tvm.target.Target("ext_dev", host=env.target_host), name="product"
)
temp = utils.tempdir()
product.save(temp.relpath("gemm.o"))
remote.upload(temp.relpath("gemm.o"))
f = remote.load_module("gemm.o")
ctx = remote.ext_dev(0)

data_plain = np.random.randint(-128, 128, size=(batch_size, in_channels)).astype(data.dtype)
weight_plain = np.random.randint(-128, 128, size=(out_channels, in_channels)).astype(weight.dtype)
data_nd = tvm.nd.array(blocked(data_plain, env.BATCH, env.BLOCK_IN), ctx)
weight_nd = tvm.nd.array(blocked(weight_plain, env.BLOCK_OUT, env.BLOCK_IN), ctx)
out_nd = tvm.nd.array(np.zeros(output_shape).astype(out.dtype), ctx)
simulator.clear_stats()
f(data_nd, weight_nd, out_nd)

sums = data_plain.astype(env.acc_dtype) @ weight_plain.T.astype(env.acc_dtype)
expected = np.clip(sums >> env.INP_WIDTH, 0, most).astype(out.dtype)
np.testing.assert_equal(out_nd.numpy(), blocked(expected, env.BATCH, env.BLOCK_OUT))
stats = simulator.stats()
print(stats)
assert stats["wgt_load_nbytes"] == weight_plain.nbytes
assert stats["inp_load_nbytes"] == data_plain.nbytes * (out_channels // 256)

time_f = f.time_evaluator("product", ctx, number=20)
cost = time_f(data_nd, weight_nd, out_nd)
print(f"{operations / cost.mean / 1e9:.3f} GOPS at the clock of the accelerator, simulated")
