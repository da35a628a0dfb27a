"""Awkward shapes: nothing, one element, no dimension, late starts, splits that do not fit."""

import itertools

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 1), (1, 5)])
@pytest.mark.parametrize("attach", ["root", "attached", "inlined"])
def test_zero_and_one(computes, shape, attach):
    A = te.placeholder(shape, name="A")
    P = te.compute(shape, lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute(shape, lambda i, j: P[i, j] + 1.0, name="C")
    s = create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[1], 4)
    s[C].vectorize(inner)
    if attach == "attached":
        s[P].compute_at(s[C], outer)
    elif attach == "inlined":
        s[P].compute_inline()
    computes(s)


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (0, 0)])
@pytest.mark.parametrize("reduce", [te.sum, te.max, te.min])
def test_reductions_over_nothing_give_the_identity(computes, shape, reduce):
    A = te.placeholder(shape, "int32", name="A")
    k = te.reduce_axis((0, shape[1]), name="k")
    C = te.compute((shape[0],), lambda i: reduce(A[i, k], axis=k), name="C")
    s = create_schedule(C.op)
    outer, inner = s[C].split(k, nparts=2)
    s[C].reorder(outer, C.op.axis[0], inner)
    computes(s)


def test_fused_with_nothing(computes, nest, golden):
    A = te.placeholder((3, 0), name="A")
    C = te.compute((3, 0), lambda i, j: A[i, j] + 1.0, name="C")
    s = create_schedule(C.op)
    s[C].split(s[C].fuse(*C.op.axis), 4)
    golden("nothing", nest(s))
    computes(s)


def scalars():
    A = te.placeholder((5,), name="A")
    b = te.placeholder((), name="b")
    k = te.reduce_axis((0, 5), name="k")
    total = te.compute((), lambda: te.sum(A[k] * b[()], axis=k), name="total")
    half = te.compute((), lambda: total[()] * 0.5, name="half")
    C = te.compute((5,), lambda i: A[i] - half[()], name="C")
    return create_schedule([total.op, C.op]), total, half, C


@pytest.mark.parametrize("level", ["root", "attached", "inlined"])
def test_no_dimension(computes, level):
    s, _, half, C = scalars()
    if level == "attached":
        s[half].compute_at(s[C], C.op.axis[0])
    elif level == "inlined":
        s[half].compute_inline()
    computes(s)


def test_no_dimension_text(nest, golden):
    s, _, half, C = scalars()
    s[half].compute_at(s[C], C.op.axis[0])
    golden("no_dimension", nest(s))


def test_a_cache_of_no_dimension(computes):
    s, total, _, _ = scalars()
    s.cache_write(total, "local")
    computes(s)


@pytest.mark.campaign
@pytest.mark.parametrize("first", [-1, 1, 2, 5])
@pytest.mark.parametrize("factor", [1, 2, 3, 8])
def test_axes_that_start_late(computes, first, factor):
    A = te.placeholder((12,), name="A")
    P = te.compute((12,), lambda i: A[i] * 2.0, name="P")
    k = te.reduce_axis((first, first + 4), name="k")
    C = te.compute((3,), lambda i: te.sum(P[i + k + 1], axis=k), name="C")
    s = create_schedule(C.op)
    outer, inner = s[C].split(k, factor)
    s[C].reorder(outer, C.op.axis[0], inner)
    s[P].compute_at(s[C], outer)
    computes(s)


def test_axes_that_start_late_text(nest, golden):
    A = te.placeholder((12,), name="A")
    k = te.reduce_axis((3, 7), name="k")
    C = te.compute((3,), lambda i: te.sum(A[i + k], axis=k), name="C")
    s = create_schedule(C.op)
    s[C].split(k, 3)
    golden("late_start", nest(s))


@pytest.mark.campaign
@pytest.mark.parametrize("n", [1, 2, 3, 7, 13, 16])
@pytest.mark.parametrize("factors", list(itertools.product((2, 3, 5), repeat=2)))
def test_nested_splits(computes, n, factors):
    A = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="C")
    s = create_schedule(C.op)
    for axis in (C.op.axis[0], k):
        outer, inner = s[C].split(axis, factors[0])
        s[C].split(outer, nparts=factors[1])
        s[C].split(inner, factors[1])
    leaves = list(s[C].leaf_iter_vars)
    s[C].reorder(*leaves[::2], *leaves[1::2])
    computes(s)


@pytest.mark.parametrize("n", [1, 3, 7, 16])
def test_split_fuse_split(computes, n):
    A = te.placeholder((n, 5), name="A")
    C = te.compute((n, 5), lambda i, j: A[i, j] * 2.0 + (i * 5 + j).astype("float32"), name="C")
    s = create_schedule(C.op)
    io, ii = s[C].split(C.op.axis[0], 3)
    jo, ji = s[C].split(C.op.axis[1], 2)
    s[C].reorder(io, jo, ii, ji)
    fused = s[C].fuse(jo, ii)
    outer, inner = s[C].split(fused, 4)
    s[C].fuse(io, outer)
    s[C].vectorize(inner)
    computes(s)


def test_split_of_a_fused_split_that_does_not_divide_text(nest, golden):
    A = te.placeholder((7, 5), name="A")
    C = te.compute((7, 5), lambda i, j: A[i, j] * 2.0, name="C")
    s = create_schedule(C.op)
    io, ii = s[C].split(C.op.axis[0], 3)
    s[C].split(s[C].fuse(io, ii), 4)
    golden("fused_split", nest(s))
