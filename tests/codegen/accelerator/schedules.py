"""Schedules for accelerators that tests share: products, convolutions, elementwise chains."""

from __future__ import annotations

import numpy as np

from dlcompiler import te

VTA = "vta-pynq"
GEMM = "vta_gemm_1x16x16"


def scoped(schedule, memories, accelerator=VTA):
    """Put stages into memories: {tensor: name of a memory}."""
    for tensor, memory in memories.items():
        schedule[tensor].set_scope(f"{accelerator}.{memory}")


def product(rows, columns, inner, *, column_tile=4, inner_tile=2, threads=1, chain=()):
    """Return a schedule of a product of int8 blocks and an elementwise chain, and its arguments.

    Sizes are in blocks of 16. `chain` has functions of a number, one stage each.
    """
    a = te.placeholder((rows, inner, 1, 16), "int8", name="A")
    w = te.placeholder((columns, inner, 16, 16), "int8", name="W")
    a_buf = te.compute(a.shape, lambda *i: a[i], name="A_buf")
    w_buf = te.compute(w.shape, lambda *i: w[i], name="W_buf")
    ko, ki = te.reduce_axis((0, inner), "ko"), te.reduce_axis((0, 16), "ki")

    def element(x, y, i, j):
        left, right = a_buf[x, ko, i, ki].astype("int32"), w_buf[y, ko, j, ki].astype("int32")
        return te.sum(left * right, axis=[ko, ki])

    stages = [te.compute((rows, columns, 1, 16), element, name="sums")]
    for number, function in enumerate(chain):
        before = stages[-1]
        stages.append(
            te.compute(
                before.shape, lambda *i, f=function, b=before: f(b[i]), name=f"chain{number}"
            )
        )
    c = te.compute(stages[-1].shape, lambda *i: stages[-1][i].astype("int8"), name="C")
    s = te.create_schedule(c.op)
    scoped(s, {a_buf: "inp", w_buf: "wgt", **dict.fromkeys(stages, "acc")})
    x, y, i, j = s[c].op.axis
    y_outer, y_inner = s[c].split(y, column_tile)
    s[c].reorder(x, y_outer, y_inner, i, j)
    at = y_outer
    if threads > 1:
        y_outer, thread = s[c].split(y_outer, threads)
        s[c].bind(thread, te.thread_axis("cthread"))
        at = thread
    for stage in stages:
        s[stage].compute_at(s[c], at)
    sums = stages[0]
    x, y, i, j = s[sums].op.axis
    outer, inner_k = s[sums].split(s[sums].op.reduce_axis[0], inner_tile)
    s[sums].reorder(outer, x, inner_k, y, i, j, s[sums].op.reduce_axis[1])
    s[a_buf].compute_at(s[sums], outer)
    s[w_buf].compute_at(s[sums], outer)
    s[sums].tensorize(i, te.tensor_intrin(GEMM))
    return s, [a, w, c]


def convolution(
    channels, size, filters, kernel, *, stride=1, padding=0, filter_tile=1, rows=4, columns=8,
    threads=1,
):  # fmt: skip
    """Return a schedule of a convolution of int8 blocks with padding, a shift and a clip."""
    out = (size + 2 * padding - kernel) // stride + 1
    padded = size + 2 * padding
    data = te.placeholder((1, channels, size, size, 1, 16), "int8", name="data")
    weights = te.placeholder((filters, channels, kernel, kernel, 16, 16), "int8", name="weights")

    def frame(b, c, y, x, i, j):
        inside = te.all(y >= padding, y < size + padding, x >= padding, x < size + padding)
        return te.if_then_else(
            inside, data[b, c, y - padding, x - padding, i, j], te.const(0, "int8")
        )

    shape = (1, channels, padded, padded, 1, 16)
    data_buf = te.compute(shape, frame if padding else lambda *i: data[i], name="data_buf")
    weights_buf = te.compute(weights.shape, lambda *i: weights[i], name="weights_buf")
    rc, dy = te.reduce_axis((0, channels), "rc"), te.reduce_axis((0, kernel), "dy")
    dx, ri = te.reduce_axis((0, kernel), "dx"), te.reduce_axis((0, 16), "ri")

    def element(b, o, y, x, i, j):
        left = data_buf[b, rc, y * stride + dy, x * stride + dx, i, ri].astype("int32")
        return te.sum(
            left * weights_buf[o, rc, dy, dx, j, ri].astype("int32"), axis=[rc, dy, dx, ri]
        )

    sums = te.compute((1, filters, out, out, 1, 16), element, name="sums")
    shifted = te.compute(sums.shape, lambda *i: sums[i] >> 6, name="shifted")
    clipped = te.compute(
        sums.shape, lambda *i: te.minimum(te.maximum(shifted[i], -100), 100), name="clipped"
    )
    result = te.compute(sums.shape, lambda *i: clipped[i].astype("int8"), name="result")
    s = te.create_schedule(result.op)
    of = {data_buf: "inp", weights_buf: "wgt", **dict.fromkeys((sums, shifted, clipped), "acc")}
    scoped(s, of)
    b, o, y, x, i, j = s[result].op.axis
    o_outer, o_inner = s[result].split(o, filter_tile)
    y_outer, y_inner = s[result].split(y, rows)
    x_outer, x_inner = s[result].split(x, columns)
    s[result].reorder(b, y_outer, x_outer, o_outer, o_inner, y_inner, x_inner, i, j)
    at = o_outer
    if threads > 1:
        _, at = s[result].split(o_outer, threads)
        s[result].bind(at, te.thread_axis("cthread"))
    for stage in (sums, shifted, clipped):
        s[stage].compute_at(s[result], at)
    b, o, y, x, i, j = s[sums].op.axis
    s[sums].reorder(rc, b, o, y, dy, dx, x, i, j, ri)
    s[data_buf].compute_at(s[sums], rc)
    s[weights_buf].compute_at(s[sums], rc)
    s[sums].tensorize(i, te.tensor_intrin(GEMM))
    return s, [data, weights, result]


def arrays_for(args, seed=0):
    """Return random inputs of all values of their dtypes, and an output of zeros."""
    generator = np.random.default_rng(seed)
    inputs = []
    for tensor in args[:-1]:
        limits = np.iinfo(tensor.dtype)
        inputs.append(
            generator.integers(
                limits.min, limits.max, tensor.static_shape, tensor.dtype, endpoint=True
            )
        )
    return [*inputs, np.zeros(args[-1].static_shape, args[-1].dtype)]


def check(kernel, args, seed=0, orders=2):
    """Compare a kernel with te.evaluate, in some orders of the engines."""
    arrays = arrays_for(args, seed)
    expected = te.evaluate(args[-1], dict(zip(args[:-1], arrays[:-1], strict=True)))
    for order in (None, *range(orders)):
        arrays[-1][:] = 0
        kernel(*arrays, seed=order)
        np.testing.assert_array_equal(arrays[-1], expected)
