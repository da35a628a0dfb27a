"""Kernels with code of its own for sizes that fulfil conditions, against NumPy."""

from functools import partial

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError, TargetError
from dlcompiler.measurement import verify
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import create_schedule


@pytest.fixture
def product():
    """C = A·B of m×n and n×m, tiled by 4×8, with vectors."""
    m, n = te.var("m"), te.var("n")
    A, B = te.placeholder((m, n), name="A"), te.placeholder((n, m), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((m, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    io, jo, ii, ji = s[C].tile(*C.op.axis, 4, 8)
    s[C].reorder(io, jo, k, ii, ji)
    s[C].vectorize(ji)
    s[C].unroll(ii)
    s[C].parallel(io)
    return s, [A, B, C], m, n


@pytest.mark.campaign
@pytest.mark.parametrize("sizes", [(16, 4), (8, 1), (12, 4), (13, 5), (16, 0), (0, 4), (1, 1)])
def test_every_size_is_right(product, sizes):
    s, args, m, n = product
    kernel = build(s, args, conditions=[m % 8 == 0, n >= 2])
    rng = np.random.default_rng(sizes[0])
    a = rng.integers(-8, 8, sizes).astype("float32")
    b = rng.integers(-8, 8, sizes[::-1]).astype("float32")
    c = np.full((sizes[0], sizes[0]), np.nan, "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def test_guards_are_gone_where_the_conditions_hold(product):
    s, args, m, n = product
    text = str(lower(s, args, conditions=[m % 8 == 0, n >= 2]))
    special, _, general = text.partition("\n    else:\n")
    assert "if m % 8 == 0 and n >= 2:\n" in special
    assert special.count("if ") == 1
    assert " where " in general or "if " in general


@pytest.mark.campaign
def test_verify_tries_sizes_that_fulfil_them(product):
    s, args, m, n = product
    assert verify(s, args, conditions=[m % 8 == 0, n >= 2])


def test_a_number_that_is_passed():
    n = te.var("n")
    A = te.placeholder((40,), "int32", name="A")
    C = te.compute((40,), lambda i: te.if_then_else(i + n >= 0, A[i], 0), name="C")
    s = create_schedule(C.op)
    kernel = build(s, [n, A, C], conditions=[n >= 0])
    a = np.arange(40, dtype="int32")
    for value in (-50, -7, 0, 3):
        c = np.full(40, 77, "int32")
        kernel(value, a, c)
        np.testing.assert_array_equal(c, np.where(np.arange(40) + value >= 0, a, 0))
    special = str(lower(s, [n, A, C], conditions=[n >= 0])).partition("else:\n")[0]
    assert "C[i] = A[i]\n" in special


def test_an_extent_that_is_a_number_beside_a_stride_that_is_none():
    m, n = te.var("m"), te.var("n")
    A = te.placeholder((m, n), "int32", name="A")
    C = te.compute((m, n), lambda i, j: A[i, j] * 2, name="C")
    s = create_schedule(C.op)
    s[C].fuse(*C.op.axis)
    assert verify(s, [A, C], conditions=[n == 5])


def test_attached_stages_and_rolling_buffers():
    n = te.var("n")
    A = te.placeholder((n,), "int32", name="A")
    P = te.compute((n,), lambda i: A[i] * 2, name="P")
    C = te.compute((n - 2,), lambda i: P[i] + P[i + 2], name="C")
    s = create_schedule(C.op)
    outer, _ = s[C].split(C.op.axis[0], 4)
    s[P].compute_at(s[C], outer)
    s[P].rolling_buffer()
    assert verify(s, [A, C], conditions=[n >= 10])


def test_a_gpu_cannot_choose(product):
    _, _, m, _ = product
    A = te.placeholder((m,), name="A")
    C = te.compute((m,), lambda i: A[i] + 1, name="C")
    s = create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
    for call in (partial(lower, target="gpu"), partial(verify, target="gpu")):
        with pytest.raises(TargetError) as caught:
            call(s, [A, C], conditions=[m % 4 == 0])
        assert str(caught.value) == (
            "lower: conditions choose between bodies on a CPU only\n"
            "  got       m % 4 == 0\n"
            "  because   on a GPU each nest is a launch of its own\n"
            "  hint      build a program for each condition, and choose where they are called"
        )


def test_known_shapes_have_no_symbols_to_ask_about(product):
    _, _, m, _ = product
    A = te.placeholder((4,), name="A")
    C = te.compute((4,), lambda i: A[i] + 1, name="C")
    with pytest.raises(ScheduleError) as caught:
        lower(create_schedule(C.op), [A, C], conditions=[m >= 4])
    assert str(caught.value) == "specialize main: m is not a symbol of the function"
