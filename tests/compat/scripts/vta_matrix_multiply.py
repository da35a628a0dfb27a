"""A product of small matrices on VTA, in the manner of VTA's tutorial."""

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

# 1 x 256 by 256 x 256, in blocks of 16.
m, n, o = 16, 16, 1
A = te.placeholder((o, n, env.BATCH, env.BLOCK_IN), name="A", dtype=env.inp_dtype)
B = te.placeholder((m, n, env.BLOCK_OUT, env.BLOCK_IN), name="B", dtype=env.wgt_dtype)
a_chip = te.compute((o, n, env.BATCH, env.BLOCK_IN), lambda *i: A(*i), "a_chip")
b_chip = te.compute((m, n, env.BLOCK_OUT, env.BLOCK_IN), lambda *i: B(*i), "b_chip")

ko = te.reduce_axis((0, n), name="ko")
ki = te.reduce_axis((0, env.BLOCK_IN), name="ki")
c_chip = te.compute(
    (o, m, env.BATCH, env.BLOCK_OUT),
    lambda bo, co, bi, ci: te.sum(
        a_chip[bo, ko, bi, ki].astype(env.acc_dtype) * b_chip[co, ko, ci, ki].astype(env.acc_dtype),
        axis=[ko, ki],
    ),
    name="c_chip",
)
C = te.compute(
    (o, m, env.BATCH, env.BLOCK_OUT), lambda *i: c_chip(*i).astype(env.inp_dtype), name="C"
)

s = te.create_schedule(C.op)
print(tvm.lower(s, [A, B, C], simple_mode=True))
s[a_chip].set_scope(env.inp_scope)
s[b_chip].set_scope(env.wgt_scope)
s[c_chip].set_scope(env.acc_scope)
s[a_chip].compute_at(s[c_chip], ko)
s[b_chip].compute_at(s[c_chip], ko)
s[a_chip].pragma(s[a_chip].op.axis[0], env.dma_copy)
s[b_chip].pragma(s[b_chip].op.axis[0], env.dma_copy)
s[C].pragma(s[C].op.axis[0], env.dma_copy)
s[c_chip].reorder(
    ko, s[c_chip].op.axis[0], s[c_chip].op.axis[1], s[c_chip].op.axis[2], s[c_chip].op.axis[3], ki
)
s[c_chip].tensorize(s[c_chip].op.axis[2], env.gemm)
print(vta.lower(s, [A, B, C], simple_mode=True))

product = vta.build(s, [A, B, C], "ext_dev", env.target_host, name="product")
temp = utils.tempdir()
product.save(temp.relpath("gemm.o"))
remote.upload(temp.relpath("gemm.o"))
f = remote.load_module("gemm.o")
ctx = remote.ext_dev(0)

a_plain = np.random.randint(-128, 128, size=(o * env.BATCH, n * env.BLOCK_IN)).astype(A.dtype)
b_plain = np.random.randint(-128, 128, size=(m * env.BLOCK_OUT, n * env.BLOCK_IN)).astype(B.dtype)
a_nd = tvm.nd.array(blocked(a_plain, env.BATCH, env.BLOCK_IN), ctx)
b_nd = tvm.nd.array(blocked(b_plain, env.BLOCK_OUT, env.BLOCK_IN), ctx)
c_nd = tvm.nd.array(np.zeros((o, m, env.BATCH, env.BLOCK_OUT)).astype(C.dtype), ctx)
if env.TARGET in ["sim", "tsim"]:
    simulator.clear_stats()
f(a_nd, b_nd, c_nd)

expected = (a_plain.astype(env.acc_dtype) @ b_plain.T.astype(env.acc_dtype)).astype(C.dtype)
np.testing.assert_equal(c_nd.numpy(), blocked(expected, env.BATCH, env.BLOCK_OUT))
assert simulator.stats()["gemm_counter"] == o * m * n
