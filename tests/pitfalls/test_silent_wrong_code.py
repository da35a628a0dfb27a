"""Where classic TVM gave wrong results without a word."""

import numpy as np

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.schedule import create_schedule


def _row_sums(n=6, m=10):
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    return te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="C")


def test_parallel_over_a_reduction(refused):
    """TVM #7420: `parallel` on a reduction axis compiled into a race."""
    C = _row_sums()
    s = create_schedule(C.op)
    text = refused(s[C].parallel, C.op.reduce_axis[0])
    assert "a reduction axis cannot be parallel" in text
    assert "all threads would update C[i]" in text
    assert "parallelize i, a data axis" in text


def test_vectorize_over_a_reduction(refused):
    """TVM #670, #1795: lanes of a vectorized reduction overwrote each other."""
    C = _row_sums()
    s = create_schedule(C.op)
    text = refused(s[C].vectorize, C.op.reduce_axis[0])
    assert "a reduction axis cannot be vectorized" in text
    _, inner = s[C].split(C.op.reduce_axis[0], factor=4)
    assert "a reduction axis cannot be vectorized" in refused(s[C].vectorize, inner)


def test_one_call_verifies_a_schedule():
    """TVM #438: a wish for a way to check a schedule."""
    C = _row_sums()
    s = create_schedule(C.op)
    s[C].split(C.op.axis[0], factor=4)
    assert "numpy+interpreter" in str(dlc.verify(s, [*C.op.input_tensors, C]))


def test_part_that_no_tile_covers(computes):
    """TVM #15911: reverse_compute_at left out elements where the tiles did not divide."""
    A = te.placeholder((45,), name="A")
    C = te.compute((45,), lambda i: A[i] + 1.0, name="C")
    D = te.compute((45,), lambda i: C[i] + C[i], name="D")
    E = te.compute((45,), lambda i: D[i] + A[i], name="E")
    s = create_schedule(E.op)
    outer, _ = s[E].split(E.op.axis[0], factor=32)
    s[D].compute_at(s[E], outer)
    middle, _ = s[D].split(D.op.axis[0], factor=7)
    s[C].compute_at(s[D], middle)
    computes(s)


def test_sum_of_a_constant_past_its_end(refused):
    """TVM #15205: inlining hid a read out of bounds, and the result depended on the schedule."""
    c = te.compute((3,), lambda i: te.const(-34.0, "float32"), name="c")
    k = te.reduce_axis((0, 64), name="k")
    text = refused(te.compute, (), lambda: te.sum(c[k], axis=k), name="B")
    assert "c[k] lies outside c at k=63" in text


def test_read_past_the_end(refused):
    """TVM #12372: an index beyond the shape read whatever was there."""
    A = te.placeholder((2, 2), "int16", name="A")
    text = refused(te.compute, (2, 3), lambda d, z: A[z, d], name="IR")
    assert "A[z, d] lies outside A at z=2" in text


def test_fuse_of_loops_that_do_not_divide(computes):
    """TVM #16855: the bounds of a fused axis, where the region is not a multiple of the inner."""
    A = te.placeholder((7, 13), name="A")
    P = te.compute((7, 13), lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute((7, 13), lambda i, j: P[6 - i, j] + P[i, 12 - j], name="C")
    for factor in (2, 5, 8):
        s = create_schedule(C.op)
        fused = s[C].fuse(*C.op.axis)
        outer, _ = s[C].split(fused, factor=factor)
        s[P].compute_at(s[C], outer)
        computes(s)


def test_initialisation_of_an_attached_reduction_is_guarded(computes):
    """TVM #9598: the initialisation of an attached reduction ran past its buffer."""
    A = te.placeholder((11, 11), name="A")
    k = te.reduce_axis((0, 11), name="k")
    B = te.compute((11,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((11,), lambda i: B[i] + 0.0, name="C")
    s = create_schedule(C.op)
    _, inner = s[C].split(C.op.axis[0], factor=10)
    s[B].compute_at(s[C], inner)
    computes(s)


def test_product_with_infinity_after_inlining(computes):
    """TVM #12377: ``inf * 0`` was folded to another value once the stage was inlined."""
    A = te.placeholder((14,), "float16", name="A")
    P = te.compute((14,), lambda i: (A[i] + te.max_value("float16")) * te.const(0, "float16"), "P")
    C = te.compute((11,), lambda i: P[i] * te.const(2, "float16"), name="C")
    s = create_schedule(C.op)
    s[P].compute_inline()
    computes(s)
    kernel = dlc.build(s, [A, C])
    out = np.zeros(11, "float16")
    kernel(np.full(14, np.inf, "float16"), out)
    assert np.isnan(out).all()


def test_choice_that_guards_a_read_of_an_attached_reduction(computes):
    """TVM #15200: a guarded read of a smaller tensor corrupted the heap once it was scheduled."""
    A = te.placeholder((4, 10, 10), name="A")
    r, q = te.reduce_axis((0, 2), name="r"), te.reduce_axis((0, 2), name="q")
    T = te.compute(
        (4, 4, 4), lambda a, b, c: te.sum(A[a, b * 2 + r, c * 2 + q], axis=[r, q]), name="T"
    )
    C = te.compute(
        (4, 8, 8),
        lambda a, b, c: te.if_then_else(te.all(b < 4, c < 4), T[a, b, c], 0.0),
        name="C",
    )
    for n in range(3):
        s = create_schedule(C.op)
        s[T].compute_at(s[C], C.op.axis[n])
        computes(s)
