"""A vector addition on VTA, in the manner of VTA's first tutorial."""

import os

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
host = os.environ.get("VTA_RPC_HOST", "192.168.2.99")
port = int(os.environ.get("VTA_RPC_PORT", "9091"))

if env.TARGET in ("pynq", "de10nano"):
    assert tvm.runtime.enabled("rpc")
    remote = rpc.connect(host, port)
    vta.reconfig_runtime(remote)
    vta.program_fpga(remote, bitstream=None)
else:
    assert env.TARGET in ("sim", "tsim", "intelfocl")
    remote = rpc.LocalSession()

# 64 elements of the accumulator in each of the two vectors.
m, o = 64, 1
shape = (o, m, env.BATCH, env.BLOCK_OUT)
A = te.placeholder(shape, name="A", dtype=env.acc_dtype)
B = te.placeholder(shape, name="B", dtype=env.acc_dtype)
a_chip = te.compute(shape, lambda *i: A(*i), "a_chip")
b_chip = te.compute(shape, lambda *i: B(*i), "b_chip")
c_chip = te.compute(
    shape,
    lambda *i: a_chip(*i).astype(env.acc_dtype) + b_chip(*i).astype(env.acc_dtype),
    name="c_chip",
)
C = te.compute(shape, lambda *i: c_chip(*i).astype(env.inp_dtype), name="C")

s = te.create_schedule(C.op)
for stage in (a_chip, b_chip, c_chip):
    s[stage].set_scope(env.acc_scope)
s[a_chip].pragma(s[a_chip].op.axis[0], env.dma_copy)
s[b_chip].pragma(s[b_chip].op.axis[0], env.dma_copy)
s[C].pragma(s[C].op.axis[0], env.dma_copy)
s[c_chip].pragma(c_chip.op.axis[0], env.alu)
print(vta.lower(s, [A, B, C], simple_mode=True))

vadd = vta.build(s, [A, B, C], tvm.target.Target("ext_dev", host=env.target_host), name="vadd")
temp = utils.tempdir()
vadd.save(temp.relpath("vadd.o"))
remote.upload(temp.relpath("vadd.o"))
f = remote.load_module("vadd.o")
ctx = remote.ext_dev(0)

a_plain = np.random.randint(-128, 128, size=(o * env.BATCH, m * env.BLOCK_OUT)).astype(A.dtype)
b_plain = np.random.randint(-128, 128, size=(o * env.BATCH, m * env.BLOCK_OUT)).astype(B.dtype)
a_nd = tvm.nd.array(blocked(a_plain, env.BATCH, env.BLOCK_OUT), ctx)
b_nd = tvm.nd.array(blocked(b_plain, env.BATCH, env.BLOCK_OUT), ctx)
c_nd = tvm.nd.array(np.zeros(shape).astype(C.dtype), ctx)
simulator.clear_stats()
f(a_nd, b_nd, c_nd)

expected = (a_plain.astype(env.acc_dtype) + b_plain.astype(env.acc_dtype)).astype(C.dtype)
np.testing.assert_equal(c_nd.numpy(), blocked(expected, env.BATCH, env.BLOCK_OUT))

counted = simulator.stats()
for name, value in counted.items():
    print(f"\t{name:<16}: {value:>16}")
assert counted["acc_load_nbytes"] == 2 * a_plain.nbytes
assert counted["out_store_nbytes"] == expected.nbytes
assert counted["alu_counter"] == m
