"""Schedules of the benchmarks: the six-step GEMM, a packed convolution, a chain, a GPU's GEMM."""

from __future__ import annotations

from dlcompiler import te
from dlcompiler.schedule import Schedule, create_schedule
from dlcompiler.te import Tensor

Program = tuple[Schedule, list[Tensor]]


def six_step_gemm(n: int = 1024, block: int = 32) -> Program:
    """Return classic TVM's GEMM after its six steps, and its arguments.

    Blocking, vectors, order of loops, packing, write cache, threads.
    """
    a = te.placeholder((n, n), name="A")
    b = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    packed = te.compute((n // block, n, block), lambda x, y, z: b[y, x * block + z], name="packedB")
    c = te.compute(
        (n, n), lambda i, j: te.sum(a[i, k] * packed[j // block, k, j % block], axis=k), name="C"
    )
    s = create_schedule(c.op)
    cache = s.cache_write(c, "global")
    i, j = s[c].op.axis
    i_outer, j_outer, _, _ = s[c].tile(i, j, block, block)
    s[cache].compute_at(s[c], j_outer)
    i, j = s[cache].op.axis
    k_outer, k_inner = s[cache].split(s[cache].op.reduce_axis[0], factor=4)
    s[cache].reorder(k_outer, i, k_inner, j)
    s[cache].vectorize(j)
    s[cache].unroll(k_inner)
    s[c].parallel(i_outer)
    x, _, z = s[packed].op.axis
    s[packed].vectorize(z)
    s[packed].parallel(x)
    return s, [a, b, c]


def packed_conv2d(channels: int = 64, size: int = 56, block: int = 16) -> Program:
    """Return a 3 × 3 convolution with padding, packing, bias and a fused relu, and its arguments.

    Eight stages: padding, packed data, packed weights, the sum, its unpacking, bias, relu, and the
    write cache of the sum.
    """
    data = te.placeholder((channels, size, size), name="data")
    weight = te.placeholder((channels, channels, 3, 3), name="weight")
    bias = te.placeholder((channels,), name="bias")
    zero = te.const(0, "float32")
    groups = channels // block
    padded = te.compute(
        (channels, size + 2, size + 2),
        lambda c, y, x: te.if_then_else(
            te.all(y >= 1, y <= size, x >= 1, x <= size), data[c, y - 1, x - 1], zero
        ),
        name="padded",
    )
    packed = te.compute(
        (groups, size + 2, size + 2, block),
        lambda g, y, x, c: padded[g * block + c, y, x],
        name="packed",
    )
    weights = te.compute(
        (groups, groups, 3, 3, block, block),
        lambda o, i, dy, dx, ci, co: weight[o * block + co, i * block + ci, dy, dx],
        name="weights",
    )
    i, dy, dx = (
        te.reduce_axis((0, n), name=name) for name, n in (("i", channels), ("dy", 3), ("dx", 3))
    )
    conv = te.compute(
        (groups, size, size, block),
        lambda o, y, x, c: te.sum(
            packed[i // block, y + dy, x + dx, i % block]
            * weights[o, i // block, dy, dx, i % block, c],
            axis=[i, dy, dx],
        ),
        name="conv",
    )
    plain = te.compute(
        (channels, size, size), lambda c, y, x: conv[c // block, y, x, c % block], name="plain"
    )
    biased = te.compute(plain.shape, lambda c, y, x: plain[c, y, x] + bias[c], name="biased")
    relu = te.compute(plain.shape, lambda c, y, x: te.maximum(biased[c, y, x], zero), name="relu")
    s = create_schedule(relu.op)
    for inlined in (padded, plain, biased):
        s[inlined].compute_inline()
    _schedule_conv2d(s, relu, packed, weights, conv, block)
    return s, [data, weight, bias, relu]


def _schedule_conv2d(
    s: Schedule, out: Tensor, packed: Tensor, weights: Tensor, conv: Tensor, block: int
) -> None:
    c, y, x = s[out].op.axis
    group, lane = s[out].split(c, factor=block)
    x_outer, x_inner = s[out].split(x, factor=8)
    s[out].reorder(group, y, x_outer, x_inner, lane)
    s[out].parallel(s[out].fuse(group, y))
    s[out].vectorize(lane)
    cache = s.cache_write(conv, "local")
    s[conv].compute_at(s[out], x_outer)
    s[conv].vectorize(s[conv].op.axis[3])
    s[cache].compute_at(s[out], x_outer)
    _, _, x, lane = s[cache].op.axis
    i, dy, dx = s[cache].op.reduce_axis
    i_outer, i_inner = s[cache].split(i, factor=block)
    s[cache].reorder(i_outer, dy, dx, i_inner, x, lane)
    s[cache].vectorize(lane)
    s[cache].unroll(x)
    for copy in (packed, weights):
        first, second, *_, last = s[copy].op.axis
        s[copy].parallel(s[copy].fuse(first, second))
        s[copy].vectorize(last)


def chain(stages: int, n: int = 64) -> Program:
    """Return a chain of elementwise stages, each in vectors, and its arguments."""
    first = te.placeholder((n, n), name="A")
    tensors = [first]
    for number in range(stages):
        tensors.append(_next(tensors[-1], f"S{number}"))
    s = create_schedule(tensors[-1].op)
    for tensor in tensors[1:]:
        _, lane = s[tensor].split(s[tensor].op.axis[1], factor=16)
        s[tensor].vectorize(lane)
    return s, [first, tensors[-1]]


def _next(tensor: Tensor, name: str) -> Tensor:
    following: Tensor = te.compute(tensor.shape, lambda i, j: tensor[i, j] * 2.0 + 1.0, name=name)
    return following


def tiled_gpu_gemm(size: int) -> Program:
    """Return a product as GPUs compute it: 8×8 threads of 2×2 elements, tiles in shared memory.

    Parameters
    ----------
    size : int
        Rows and columns of both matrices.
    """
    a, b = (te.placeholder((size, size), name=name) for name in "AB")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = create_schedule(c.op)
    local = s.cache_write(c, "local")
    shared = [s.cache_read(tensor, "shared", [local]) for tensor in (a, b)]
    i, j = s[c].op.axis
    by, i = s[c].split(i, 16)
    bx, j = s[c].split(j, 16)
    ty, i = s[c].split(i, 2)
    tx, j = s[c].split(j, 2)
    s[c].reorder(by, bx, ty, tx, i, j)
    tags = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    for loop, tag in zip((by, bx, ty, tx), tags, strict=True):
        s[c].bind(loop, te.thread_axis(tag))
    s[local].compute_at(s[c], tx)
    ko, ki = s[local].split(s[local].op.reduce_axis[0], 4)
    s[local].reorder(ko, ki, *s[local].op.axis)
    for tile in shared:
        s[tile].compute_at(s[local], ko)
        _, inner = s[tile].split(s[tile].fuse(*s[tile].op.axis), 64)
        for loop, tag in zip(s[tile].split(inner, 8), tags[2:], strict=True):
            s[tile].bind(loop, te.thread_axis(tag))
    return s, [a, b, c]
