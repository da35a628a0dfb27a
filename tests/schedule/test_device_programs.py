"""Schedules for GPUs of other operators than products: they compute the same in the interpreter."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.simulate import interpret


def agrees(s, args, seed=0):
    """Tell whether a schedule computes what its expression says, on numbers that are exact.

    As scheduled, and as a GPU gets it; with threads one after the other, and in disorder.
    """
    generator = np.random.default_rng(seed)
    *inputs, output = args
    arrays = [generator.integers(-4, 5, t.shape).astype(t.dtype) for t in inputs]
    (expected,) = te.evaluate([output], dict(zip(inputs, arrays, strict=True)))
    for func in (lower(s, args, simple_mode=True), lower(s, args, target="gpu")):
        for order in (None, seed + 1):
            result = np.full(output.shape, 77, output.dtype)
            interpret(func, [*arrays, result], order=order)
            if not np.array_equal(result, expected):
                return False
    return True


def bound(s, stage, loops, tags):
    for loop, tag in zip(loops, tags, strict=True):
        s[stage].bind(loop, te.thread_axis(tag))


def load_together(s, cache, threads):
    """Share the elements of a cache out among the threads of a block, by all of them."""
    loop = s[cache].fuse(*s[cache].op.axis)
    for tag, count in reversed(threads):
        loop, inner = s[cache].split(loop, count)
        s[cache].bind(inner, te.thread_axis(tag))


@pytest.mark.parametrize("case", [(8, 4, 8, 3), (7, 3, 5, 3), (9, 2, 6, 1)])
def test_a_convolution_with_its_input_in_shared_memory(case):
    size, channels, outs, kernel = case
    X = te.placeholder((channels, size + kernel - 1, size + kernel - 1), name="X")
    W = te.placeholder((outs, channels, kernel, kernel), name="W")
    c, y, x = (
        te.reduce_axis((0, n), name=name)
        for n, name in ((channels, "c"), (kernel, "y"), (kernel, "x"))
    )
    Y = te.compute(
        (outs, size, size),
        lambda o, i, j: te.sum(X[c, i + y, j + x] * W[o, c, y, x], axis=[c, y, x]),
        name="Y",
    )
    s = create_schedule(Y.op)
    YL = s.cache_write(Y, "local")
    XX, WW = (s.cache_read(t, "shared", [YL]) for t in (X, W))
    o, i, j = s[Y].op.axis
    oo, oi = s[Y].split(o, 4)
    io, ii = s[Y].split(i, 4)
    s[Y].reorder(oo, io, oi, ii, j)
    bound(s, Y, (oo, io, oi, ii), ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"))
    s[YL].compute_at(s[Y], ii)
    c, y, x = s[YL].op.reduce_axis
    co, ci = s[YL].split(c, 2)
    s[YL].reorder(co, ci, y, x, *s[YL].op.axis)
    for cache in (XX, WW):
        s[cache].compute_at(s[YL], co)
        load_together(s, cache, (("threadIdx.y", 4), ("threadIdx.x", 4)))
    assert agrees(s, [X, W, Y])


@pytest.mark.parametrize(("channels", "size"), [(3, 9), (2, 16)])
def test_a_depthwise_convolution(channels, size):
    X = te.placeholder((channels, size + 2, size + 2), name="X")
    W = te.placeholder((channels, 3, 3), name="W")
    y, x = te.reduce_axis((0, 3), name="y"), te.reduce_axis((0, 3), name="x")
    Y = te.compute(
        (channels, size, size),
        lambda c, i, j: te.sum(X[c, i + y, j + x] * W[c, y, x], axis=[y, x]),
        name="Y",
    )
    s = create_schedule(Y.op)
    XX = s.cache_read(X, "shared", [Y])
    c, i, j = s[Y].op.axis
    io, ii = s[Y].split(i, 4)
    jo, ji = s[Y].split(j, 4)
    s[Y].reorder(c, io, jo, ii, ji)
    tags = ("blockIdx.z", "blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    bound(s, Y, (c, io, jo, ii, ji), tags)
    s[XX].compute_at(s[Y], ji)
    load_together(s, XX, (("threadIdx.y", 4), ("threadIdx.x", 4)))
    assert agrees(s, [X, W, Y])


@pytest.mark.parametrize("rows", [3, 5, 8])
def test_the_sum_of_each_row_in_two_steps(rows):
    A = te.placeholder((rows, 24), name="A")
    k = te.reduce_axis((0, 24), name="k")
    S = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="S")
    s = create_schedule(S.op)
    _, inner = s[S].split(s[S].op.reduce_axis[0], 6)
    partial = s.rfactor(S, inner)
    outer, block = s[S].split(s[S].op.axis[0], 3)
    bound(s, S, (outer, block), ("blockIdx.x", "threadIdx.x"))
    s[partial].set_scope("shared")
    s[partial].compute_at(s[S], block)
    first = s[partial].op.axis[0]
    s[partial].bind(s[partial].split(first, 3)[1], te.thread_axis("threadIdx.x"))
    assert agrees(s, [A, S])


def test_a_chain_of_stages_each_a_launch_of_its_own():
    A = te.placeholder((6, 10), name="A")
    k, r = te.reduce_axis((0, 10), name="k"), te.reduce_axis((0, 10), name="r")
    M = te.compute((6,), lambda i: te.max(A[i, k], axis=k), name="M")
    D = te.compute((6, 10), lambda i, j: A[i, j] - M[i], name="D")
    T = te.compute((6,), lambda i: te.sum(D[i, r], axis=r), name="T")
    R = te.compute((6, 10), lambda i, j: D[i, j] * T[i], name="R")
    s = create_schedule(R.op)
    for tensor in (M, D, T, R):
        outer, inner = s[tensor].split(s[tensor].op.axis[0], 4)
        bound(s, tensor, (outer, inner), ("blockIdx.x", "threadIdx.x"))
    assert agrees(s, [A, R])


def test_threads_bound_around_a_stage_are_checked_for_it():
    """The step changes another stage than the one it is refused for."""
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((8, 8), lambda i, j: B[i, j] * 2.0, name="C")
    D = te.compute((8, 8), lambda i, j: C[i, j] - 1.0, name="D")
    s = te.create_schedule(D.op)
    s[D].bind(D.op.axis[1], te.thread_axis("threadIdx.x"))
    s[B].compute_at(s[C], C.op.axis[0])
    with pytest.raises(ScheduleError, match="B would be computed outside the threads of C"):
        s[C].bind(C.op.axis[1], te.thread_axis("threadIdx.x"))


def test_virtual_threads_share_a_stage_that_is_computed_outside_them():
    A = te.placeholder((4, 8), name="A")
    B = te.compute((4, 8), lambda i, j: A[i, j] + 1.0, name="B")
    C = te.compute((4, 8), lambda i, j: B[i, 7 - j] * 2.0, name="C")
    s = create_schedule(C.op)
    i, j = s[C].op.axis
    s[C].bind(s[C].split(j, nparts=2)[0], te.thread_axis("vthread"))
    bound(s, C, (i,), ("blockIdx.x",))
    s[B].compute_at(s[C], i)
    s[B].set_scope("local")
    assert agrees(s, [A, C])
