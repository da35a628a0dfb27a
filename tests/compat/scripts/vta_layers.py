"""Layers of a quantized network on VTA: convolutions with bias and residual, caches, two kinds of threads."""

import itertools

import numpy as np
import tvm
import vta
import vta.testing
from tvm import te, topi

SHIFT = 7


def layer(env, inner, filters, size, kernel, stride, has_residual):
    """Return the tensors of a convolution with bias, residual, shift and clip."""
    pad = kernel // 2
    out_size = (size + 2 * pad - kernel) // stride + 1
    data = te.placeholder((1, inner, size, size, env.BATCH, env.BLOCK_IN), env.inp_dtype, "data")
    weight = te.placeholder(
        (filters, inner, kernel, kernel, env.BLOCK_OUT, env.BLOCK_IN), env.wgt_dtype, "weight"
    )
    shape = (1, filters, out_size, out_size, env.BATCH, env.BLOCK_OUT)
    bias = te.placeholder((1, filters, 1, 1, env.BATCH, env.BLOCK_OUT), env.acc_dtype, "bias")
    residual = te.placeholder(shape, env.acc_dtype, "residual")
    padded = topi.nn.pad(data, [0, 0, pad, pad, 0, 0], name="padded") if pad else data
    rc, ki = te.reduce_axis((0, inner), "rc"), te.reduce_axis((0, env.BLOCK_IN), "ki")
    dy, dx = te.reduce_axis((0, kernel), "dy"), te.reduce_axis((0, kernel), "dx")

    def element(b, o, y, x, i, c):
        left = padded[b, rc, y * stride + dy, x * stride + dx, i, ki].astype(env.acc_dtype)
        return te.sum(
            left * weight[o, rc, dy, dx, c, ki].astype(env.acc_dtype), axis=[rc, dy, dx, ki]
        )

    conv = te.compute(shape, element, name="conv")
    tail = [
        te.compute(
            shape,
            lambda b, o, y, x, i, c: conv(b, o, y, x, i, c) + bias(b, o, 0, 0, i, c),
            "biased",
        )
    ]
    if has_residual:
        tail.append(te.compute(shape, lambda *i: tail[0](*i) + residual(*i), "summed"))
    for name, function in (
        ("shifted", lambda value: value >> SHIFT),
        ("above", lambda value: tvm.te.max(value, 0)),
        ("clipped", lambda value: tvm.te.min(value, 127)),
    ):
        before = tail[-1]
        tail.append(te.compute(shape, lambda *i, f=function, b=before: f(b(*i)), name))
    out = te.compute(shape, lambda *i: tail[-1](*i).astype(env.inp_dtype), "out")
    inputs = [data, weight, bias, *([residual] if has_residual else [])]
    return inputs, padded, conv, tail, out


def scheduled(env, tensors, tiles, oc_threads, h_threads):
    """Return a schedule: tiles of filters, rows and input channels, virtual threads."""
    inputs, padded, conv, tail, out = tensors
    data, weight, bias, *residual = inputs
    s = te.create_schedule(out.op)
    if padded is data:
        padded = s.cache_read(data, env.inp_scope, [conv])
    else:
        s[padded].set_scope(env.inp_scope)
    kernel = s.cache_read(weight, env.wgt_scope, [conv])
    s[conv].set_scope(env.acc_scope)
    loaded = [s.cache_read(bias, env.acc_scope, [tail[0]])]
    loaded += [s.cache_read(each, env.acc_scope, [tail[1]]) for each in residual]
    for stage in tail:
        s[stage].set_scope(env.acc_scope)
        s[stage].pragma(s[stage].op.axis[0], env.alu)
    b, o, y, x, i, c = s[out].op.axis
    o_out, o_inn = s[out].split(o, factor=tiles[0])
    y_out, y_inn = s[out].split(y, factor=tiles[1])
    s[out].reorder(b, y_out, o_out, o_inn, y_inn, x, i, c)
    point = o_out
    if oc_threads > 1:
        _, thread = s[out].split(o_out, factor=oc_threads)
        s[out].reorder(thread, b)
        s[out].bind(thread, te.thread_axis("cthread"))
        point = s[out].leaf_iter_vars[3]
    if h_threads > 1:
        _, thread = s[out].split(y_out, factor=h_threads)
        s[out].reorder(thread, b)
        s[out].bind(thread, te.thread_axis("cthread"))
    for stage in (conv, *tail, *loaded):
        s[stage].compute_at(s[out], point)
    for stage in loaded:
        s[stage].pragma(s[stage].op.axis[0], env.dma_copy)
    b, o, y, x, i, c = s[conv].op.axis
    rc, dy, dx, ki = s[conv].op.reduce_axis
    s[conv].reorder(b, rc, x, dx, dy, o, y, i, c, ki)
    k_out, _ = s[conv].split(rc, factor=tiles[2])
    for stage in (padded, kernel):
        s[stage].compute_at(s[conv], k_out)
        s[stage].pragma(s[stage].op.axis[0], env.dma_copy)
    s[conv].tensorize(i, env.gemm)
    s[out].pragma(o_inn, env.dma_copy)
    return s, [*inputs, out]


def expected(arrays, out_shape, stride):
    """Return the result by NumPy, in blocks."""
    data, weight, bias, *residual = (each.astype("int64") for each in arrays)
    kernel = weight.shape[2]
    pad = kernel // 2
    image = np.pad(data, [(0, 0), (0, 0), (pad, pad), (pad, pad), (0, 0), (0, 0)])
    total = np.zeros(out_shape, "int64") + bias
    rows, columns = out_shape[2:4]
    for dy, dx in itertools.product(range(kernel), repeat=2):
        part = image[:, :, dy:, dx:][:, :, : rows * stride : stride, : columns * stride : stride]
        total += np.einsum("bryxik,orck->boyxic", part, weight[:, :, dy, dx])
    for each in residual:
        total += each
    return np.clip(total >> SHIFT, 0, 127).astype("int8")


def run(env, remote):
    ctx = remote.ext_dev(0)
    layers = (
        (2, 2, 8, 3, 1, True, (1, 4, 1)),
        (2, 4, 8, 3, 2, False, (2, 2, 1)),
        (1, 4, 8, 1, 2, False, (2, 2, 1)),
        (2, 4, 8, 1, 1, True, (2, 8, 2)),
    )
    for *shape, tiles in layers:
        for oc_threads, h_threads in ((1, 1), (2, 1), (1, 2)):
            tensors = layer(env, *shape)
            s, args = scheduled(env, tensors, tiles, oc_threads, h_threads)
            with vta.build_config(disabled_pass={"tir.CommonSubexprElimTIR"}):
                f = vta.build(s, args, target=env.target, name="layer")
            arrays = []
            for tensor in args[:-1]:
                extents = tuple(int(n) for n in tensor.shape)
                arrays.append(np.random.randint(-100, 100, extents).astype(tensor.dtype))
            out = tvm.nd.empty(tuple(int(n) for n in args[-1].shape), "int8", ctx)
            f(*[tvm.nd.array(each, ctx) for each in arrays], out)
            np.testing.assert_equal(out.numpy(), expected(arrays, out.shape, shape[4]))
            print(shape, tiles, oc_threads, h_threads)


vta.testing.run(run)
