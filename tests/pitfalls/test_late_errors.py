"""Where classic TVM noticed a mistake late, far from its cause, or crashed."""

import pytest

from dlcompiler import te
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule


@pytest.fixture
def chain():
    A = te.placeholder((16, 16), name="A")
    P = te.compute((16, 16), lambda i, j: A[i, j] * 2.0, name="P")
    Q = te.compute((16, 16), lambda i, j: P[i, j] + 1.0, name="Q")
    C = te.compute((16, 16), lambda i, j: Q[i, j] * 3.0, name="C")
    return create_schedule(C.op), A, P, Q, C


def test_compute_at_a_stage_that_does_not_read(chain, refused):
    """TVM #958: found in lowering only, as a failed check that named no stage."""
    s, A, P, _, C = chain
    s[P].compute_at(s[C], C.op.axis[0])
    (owed,) = s.obligations  # it may become right: Q can move inside, too
    assert "P is computed at C.i, and its reader Q is not there yet" in str(owed)
    text = refused(lower, s, [A, C])
    assert "attach Q inside C.i, or P further out" in text


def test_compute_at_a_loop_that_was_split(chain, computes):
    """TVM #5917: lowering failed on an attachment whose loop had been split."""
    s, _, P, Q, _ = chain
    s[P].compute_at(s[Q], Q.op.axis[1])
    s[Q].split(Q.op.axis[1], factor=4)
    (owed,) = s.obligations
    assert "it will be computed at Q.j.inner" in str(owed)
    computes(s)


def test_compute_at_a_loop_that_is_gone(chain, refused):
    """TVM #3610: bound inference failed where a loop with attached stages had been fused away."""
    s, A, P, Q, C = chain
    s[P].compute_at(s[Q], Q.op.axis[0])
    s[Q].fuse(*Q.op.axis)
    (owed,) = s.obligations
    assert "P is attached at Q.i, which is no longer a loop" in str(owed)
    assert "attached by: compute_at P" in refused(lower, s, [A, C])


def test_softmax_with_its_exponentials_inside(computes):
    """TVM #15431: bound inference refused a stage read both inside and by another at that loop."""
    X = te.placeholder((6, 5), "int32", name="X")
    k, q = te.reduce_axis((0, 5), name="k"), te.reduce_axis((0, 5), name="q")
    largest = te.compute((6,), lambda i: te.max(X[i, k], axis=k), name="largest")
    shifted = te.compute((6, 5), lambda i, j: X[i, j] - largest[i], name="shifted")
    total = te.compute((6,), lambda i: te.sum(shifted[i, q], axis=q), name="total")
    Y = te.compute((6, 5), lambda i, j: shifted[i, j] * 8 - total[i], name="Y")
    s = create_schedule(Y.op)
    for stage in (total, shifted, largest):
        s[stage].compute_at(s[Y], Y.op.axis[0])
    computes(s)


def test_copies_inside_a_twice_split_loop(computes):
    """TVM #756: leaves of attached copies did not begin at 0 (there, with a bound thread axis)."""
    A = te.placeholder((16, 16), name="A")
    C = te.compute((16, 16), lambda x, y: A[x, y] * 4.0, name="C")
    s = create_schedule(C.op)
    inside = s.cache_write(C, "local")
    outer, _ = s[C].split(C.op.axis[0], factor=2)
    outermost, _ = s[C].split(outer, factor=2)
    s[inside].compute_at(s[C], outermost)
    s[inside].parallel(s[inside].op.axis[0])
    computes(s)


def test_a_stage_read_directly_and_through_an_inlined_one(computes, refused):
    """TVM #15197: a loop variable was used before its definition."""
    X = te.placeholder((1, 4, 6, 6), "int32", name="X")
    k = te.reduce_axis((0, 4), name="k")
    total = te.compute((1, 6, 6), lambda a, b, c: te.sum(X[a, k, b, c], axis=k), name="total")
    twice = te.compute((1, 6, 6), lambda a, b, c: total[a, b, c] * 2, name="twice")
    Y = te.compute((1, 4, 6, 6), lambda a, b, c, d: twice[a, b, c] - total[a, c, d], name="Y")
    s = create_schedule(Y.op)
    s[twice].compute_inline()
    outer, inner = s[Y].split(Y.op.axis[1], factor=3)
    s[Y].reorder(Y.op.axis[2], outer, Y.op.axis[3], inner)
    s[total].compute_at(s[Y], outer)
    computes(s)


def test_conditions_as_indices(computes):
    """TVM #15202: a common subexpression was used before its definition."""
    k, q = te.reduce_axis((0, 1), name="k"), te.reduce_axis((0, 1), name="q")
    two = te.const(2.0, "float32")
    P = te.compute((1, 4, 5, 4), lambda a, b, c, d: te.min(two * two, axis=k), name="P")
    C = te.compute(
        (1, 8, 5),
        lambda n, c, d: te.sum(P[n, te.select(c <= 4, 1, 0), d, te.select(c < 4, 1, 0)], axis=q),
        name="C",
    )
    for axis in (0, 1, 2):
        s = create_schedule(C.op)
        s[P].compute_at(s[C], C.op.axis[axis])
        s[C].unroll(C.op.axis[2])
        computes(s)


def test_dilated_and_padded_convolution(computes):
    """TVM #15201: two bounds were found for one index, ``max(2, x)``."""
    A = te.placeholder((3, 6), "int32", name="A")
    dilated = te.compute(
        (3, 11), lambda c, i: te.if_then_else(i % 2 == 0, A[c, i // 2], 0), name="dilated"
    )
    padded = te.compute(
        (3, 17),
        lambda c, i: te.if_then_else(te.all(i >= 3, i < 14), dilated[c, i - 3], 0),
        name="padded",
    )
    r = te.reduce_axis((0, 3), name="r")
    C = te.compute((3, 15), lambda c, i: te.sum(padded[c, te.maximum(i, 2) + r], axis=r), name="C")
    s = create_schedule(C.op)
    outer, _ = s[C].split(C.op.axis[1], factor=4)
    s[padded].compute_at(s[C], outer)
    s[dilated].compute_at(s[padded], padded.op.axis[1])
    computes(s)


def test_division_by_an_index_that_may_be_zero(computes):
    """TVM #15199: a schedule turned a division by an axis into an error of the compiler."""
    A = te.placeholder((1, 8, 8), "int32", name="A")
    r, q = te.reduce_axis((0, 2), name="r"), te.reduce_axis((0, 2), name="q")
    T = te.compute(
        (1, 4, 4),
        lambda a, b, c: te.max(A[a, (b + 2) % r, te.truncdiv(c * 2, q)], axis=[r, q]),
        name="T",
    )
    s = create_schedule(T.op)
    s[T].unroll(q)
    outer, _ = s[T].split(T.op.axis[1], factor=3)
    s[T].reorder(r, outer)
    computes(s)


def test_stage_of_another_schedule(refused):
    """TVM #139: attaching to a stage of another schedule ended the process."""
    A = te.placeholder((4, 4), name="A")
    k = te.reduce_axis((0, 4), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    P = te.compute((4, 4), lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute((4, 4), lambda i, j: P[i, j] * 2.0, name="C")
    first, second = create_schedule(B.op), create_schedule(C.op)
    text = refused(second[P].compute_at, first[B], B.op.axis[0])
    assert "not a stage of this schedule" in text


def test_attachments_in_a_circle(chain, refused):
    """TVM #7898: a circle of attachments kept the compiler busy for ever."""
    s, _, P, Q, C = chain
    assert "inside itself" in refused(s[P].compute_at, s[P], P.op.axis[0])
    s[P].compute_at(s[Q], Q.op.axis[0])
    assert "P does not read Q" in refused(s[Q].compute_at, s[P], P.op.axis[0])
    assert "output" in refused(s[C].compute_at, s[Q], Q.op.axis[0])
