"""A product of 128 by 128 matrices on VTA: all engines, and then one of them at a time."""

import numpy as np
import tvm
import vta
import vta.testing
from tvm import te
from tvm.contrib import util
from vta.testing import simulator

ROWS, CHANNELS, BLOCK = 128, 128, 128


def product(env):
    """Return the tensors: inputs, copies on the chip, results, output."""
    rows, inner = ROWS // env.BATCH, CHANNELS // env.BLOCK_IN
    columns = CHANNELS // env.BLOCK_OUT
    data = te.placeholder((rows, inner, env.BATCH, env.BLOCK_IN), env.inp_dtype, "data")
    weight = te.placeholder((columns, inner, env.BLOCK_OUT, env.BLOCK_IN), env.wgt_dtype, "weight")
    data_buf = te.compute(data.shape, lambda *i: data(*i), "data_buf")
    weight_buf = te.compute(weight.shape, lambda *i: weight(*i), "weight_buf")
    ko, ki = te.reduce_axis((0, inner), "ko"), te.reduce_axis((0, env.BLOCK_IN), "ki")
    shape = (rows, columns, env.BATCH, env.BLOCK_OUT)

    def element(i, j, b, c):
        left, right = data_buf[i, ko, b, ki], weight_buf[j, ko, c, ki]
        return te.sum(left.astype(env.acc_dtype) * right.astype(env.acc_dtype), axis=[ko, ki])

    total = te.compute(shape, element, name="total")
    shifted = te.compute(shape, lambda *i: total(*i) >> 8, name="shifted")
    above = te.compute(shape, lambda *i: tvm.te.max(shifted(*i), 0), "above")
    most = (1 << (env.INP_WIDTH - 1)) - 1
    clipped = te.compute(shape, lambda *i: tvm.te.min(above(*i), most), "clipped")
    out = te.compute(shape, lambda *i: clipped(*i).astype(env.inp_dtype), name="out")
    return (data, weight), (data_buf, weight_buf), (total, shifted, above, clipped), out


def scheduled(env, load_data, load_weight, gemm, alu, store):
    """Return a blocked schedule and its arguments; each engine is given, or its mock."""
    inputs, (data_buf, weight_buf), results, out = product(env)
    total = results[0]
    s = te.create_schedule(out.op)
    s[data_buf].set_scope(env.inp_scope)
    s[weight_buf].set_scope(env.wgt_scope)
    i, j, _, _ = s[out].op.axis
    _, j_out, i_inn, _ = s[out].tile(i, j, BLOCK // env.BATCH, BLOCK // env.BLOCK_OUT)
    for stage in results:
        s[stage].set_scope(env.acc_scope)
        s[stage].compute_at(s[out], j_out)
    i, j, b, c = s[total].op.axis
    ko, ki = s[total].op.reduce_axis
    k_out, k_inn = s[total].split(ko, BLOCK // env.BLOCK_IN)
    s[total].reorder(k_out, k_inn, i, j, b, c, ki)
    for stage, pragma in ((data_buf, load_data), (weight_buf, load_weight)):
        s[stage].compute_at(s[total], k_out)
        s[stage].pragma(s[stage].op.axis[0], pragma)
    s[total].tensorize(b, gemm)
    for stage in results[1:]:
        s[stage].pragma(s[stage].op.axis[0], alu)
    s[out].pragma(i_inn, store)
    return s, [*inputs, out]


def timed(env, remote, *engines, is_checked=False):
    """Return the simulated time of a program with the given engines [s]."""
    s, args = scheduled(env, *engines)
    with vta.build_config():
        module = vta.build(s, args, "ext_dev", env.target_host, name="gemm")
    folder = util.tempdir()
    module.save(folder.relpath("gemm.o"))
    remote.upload(folder.relpath("gemm.o"))
    f = remote.load_module("gemm.o")
    ctx = remote.ext_dev(0)
    shapes = [tuple(int(n) for n in tensor.shape) for tensor in args]
    data, weight = (np.random.randint(-128, 128, shape).astype("int8") for shape in shapes[:2])
    arrays = [tvm.nd.array(each, ctx) for each in (data, weight, np.zeros(shapes[2], "int8"))]
    evaluator = f.time_evaluator("gemm", ctx, number=20)
    simulator.clear_stats()
    cost = evaluator(*arrays)
    if is_checked:
        expected = np.einsum("inbk,jnck->ijbc", data.astype("int32"), weight.astype("int32"))
        np.testing.assert_equal(arrays[2].asnumpy(), np.clip(expected >> 8, 0, 127))
        assert simulator.stats()["gemm_counter"] == ROWS * CHANNELS**2 // (
            env.BATCH * env.BLOCK_IN * env.BLOCK_OUT
        )
    return cost.mean


def run(env, remote):
    mock, copy = env.mock, env.dma_copy
    no_copy = mock.dma_copy
    whole = timed(env, remote, copy, copy, env.gemm, env.alu, copy, is_checked=True)
    alone = {
        "gemm": timed(env, remote, no_copy, no_copy, env.gemm, mock.alu, no_copy),
        "alu": timed(env, remote, no_copy, no_copy, mock.gemm, env.alu, no_copy),
        "load data": timed(env, remote, copy, no_copy, mock.gemm, mock.alu, no_copy),
        "load weight": timed(env, remote, no_copy, copy, mock.gemm, mock.alu, no_copy),
        "store": timed(env, remote, no_copy, no_copy, mock.gemm, mock.alu, copy),
    }
    for name, seconds in alone.items():
        print(f"{name}: {seconds * 1e6:.1f} us of {whole * 1e6:.1f} us")
        assert seconds < whole
    assert whole <= sum(alone.values())


vta.testing.run(run)
