"""Steps that change the order of a reduction of one's own: refused where the order matters."""

import pytest

from dlcompiler import te
from dlcompiler.schedule import LEGAL, create_schedule


def _zero(dtype):
    return te.const(0, dtype)


def _larger_magnitude(x, y):
    return te.select(te.abs(x) >= te.abs(y), x, y)


def _saturating(x, y):
    wide = x.astype("int32") + y.astype("int32")
    return te.maximum(te.minimum(wide, 127), -128).astype("int8")


def _reduced(combine, identity=_zero, dtype="int32", **options):
    """Return a schedule of a reduction over two axes, the stage, and these."""
    A = te.placeholder((5, 4, 6), dtype, name="A")
    k, r = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 6), name="r")
    own = te.comm_reducer(combine, identity, name="own")
    C = te.compute((5,), lambda i: own(A[i, k, r], axis=[k, r], **options), name="C")
    return create_schedule(C.op), C, k, r


ORDERS = [(_larger_magnitude, "int32"), (_larger_magnitude, "float32"), (_saturating, "int8")]


@pytest.mark.parametrize(("combine", "dtype"), ORDERS)
def test_loops_keep_their_order(refusal, combine, dtype):
    s, C, k, r = _reduced(combine, dtype=dtype)
    text = refusal(s[C].reorder, r, k)
    assert text.startswith(
        "reorder C (r, k): the reducer own of C is not commutative: another order gives another "
        "result\n  because   f("
    )
    s[C].reorder(C.op.axis[0], k, r)  # the order that they have


@pytest.mark.parametrize(("combine", "dtype"), ORDERS)
def test_a_tile_moves_loops(refusal, combine, dtype):
    s, C, k, r = _reduced(combine, dtype=dtype)
    assert "the reducer own of C is not commutative" in refusal(s[C].tile, k, r, 2, 2)
    assert "the reducer own of C is not commutative" in refusal(s[C].tile, C.op.axis[0], r, 2, 2)
    s[C].tile(C.op.axis[0], k, 2, 2)


def test_a_tile_of_a_sum():
    s, C, k, r = _reduced(lambda x, y: x + y)
    assert s.can("tile", C, k, r, 2, 2) == LEGAL


@pytest.mark.parametrize(("combine", "dtype"), ORDERS)
def test_partial_results_need_an_order(refusal, combine, dtype):
    s, C, _, r = _reduced(combine, dtype=dtype)
    assert "the reducer own of C is not commutative" in refusal(s.rfactor, C, r)
    assert "the reducer own of C is not commutative" in refusal(
        s[C].bind, r, te.thread_axis("threadIdx.x")
    )


def test_saturating_addition_has_no_partial_results(refusal):
    s, C, k, _ = _reduced(_saturating, dtype="int8")
    assert refusal(s.rfactor, C, k).startswith(
        "rfactor C.k: the reducer own of C is not associative: another order gives another result\n"
        "  because   f(f("
    )


def test_what_starts_a_reduction_needs_an_identity(refusal):
    def five(dtype):
        return te.const(5, dtype)

    s, C, k, _ = _reduced(te.maximum, five)
    assert s.can("rfactor", C, k) == LEGAL  # no result is below 5, whatever the groups
    s, C, k, _ = _reduced(te.maximum, five, init=2)
    assert "the identity of the reducer own of C is wrong" in refusal(s.rfactor, C, k)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_partial_results_of_an_argmax_are_combined_by_threads(dtype):
    A = te.placeholder((3, 32), dtype, name="A")
    k = te.reduce_axis((0, 32), name="k")
    M, _ = te.compute((3,), lambda i: te.argmax(A[i, k], k), name="M")
    s = create_schedule(M.op)
    _, inner = s[M].split(k, 8)
    part, _ = s.rfactor(M, inner)
    (last,) = s[M].op.reduce_axis
    s[M].bind(last, te.thread_axis("threadIdx.x"))
    assert s[part].op.axis[0].extent == 8


def _welford(x, y):
    count, delta = x[0] + y[0], y[1] - x[1]
    safe = te.select(count == 0.0, 1.0, count)
    return count, x[1] + delta * y[0] / safe, x[2] + y[2] + delta * delta * x[0] * y[0] / safe


def test_partial_results_of_partial_results(computes):
    A = te.placeholder((3, 32), name="A")
    k = te.reduce_axis((0, 32), name="k")
    own = te.comm_reducer(_welford, lambda *kinds: tuple(map(_zero, kinds)), name="welford")
    value = te.const(1.0), te.const(0.0)
    N, _, _ = te.compute((3,), lambda i: own((value[0], A[i, k], value[1]), axis=k), name="W")
    s = create_schedule(N.op)
    _, inner = s[N].split(k, 7)
    s.rfactor(N, inner)
    (last,) = s[N].op.reduce_axis
    _, inner = s[N].split(last, 3)
    s.rfactor(N, inner)
    assert s.can("bind", N, *s[N].op.reduce_axis, te.thread_axis("threadIdx.x")) == LEGAL
