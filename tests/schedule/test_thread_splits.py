"""Splits whose loops are bound to threads keep their factor, however short the axis is."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import TargetError
from dlcompiler.ir import For
from dlcompiler.passes.base import statements
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import Trace, create_schedule
from tests.schedule.test_device_programs import agrees, bound

TX, TY = "threadIdx.x", "threadIdx.y"


def doubled(n=16):
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: A[i] * 2.0, name="C")
    return create_schedule(C.op), A, C


def loops(s, args, target="gpu"):
    """Return the kinds of the loops of a program, and their extents."""
    found = statements(lower(s, args, target=target).body)
    return [(loop.kind, str(loop.extent)) for loop in found if isinstance(loop, For)]


def test_the_inner_half_keeps_its_factor():
    s, A, C = doubled()
    outer, inner = s[C].split(C.op.axis[0], factor=32)
    bound(s, C, (outer, inner), ("blockIdx.x", TX))
    assert str(lower(s, [A, C], target="gpu")) == (
        "def main(A: float32[16], C: float32[16]):\n"
        "    for i.outer in blockIdx.x(1):\n"
        "        for i.inner in threadIdx.x(32):\n"
        "            if i.inner < 16:\n"
        "                C[i.inner] = A[i.inner]*2.0\n"
    )
    assert agrees(s, [A, C])


def test_the_outer_half_keeps_its_number_of_parts():
    s, A, C = doubled()
    outer, inner = s[C].split(C.op.axis[0], nparts=32)
    s[C].bind(outer, te.thread_axis(TX))
    assert loops(s, [A, C]) == [(TX, "32")]
    assert agrees(s, [A, C])
    assert inner.extent == 1


def test_a_loop_beside_the_threads_is_clipped():
    s, A, C = doubled()
    outer, _ = s[C].split(C.op.axis[0], factor=32)
    s[C].bind(outer, te.thread_axis("blockIdx.x"))
    assert loops(s, [A, C]) == [("blockIdx.x", "1"), ("serial", "16")]
    assert agrees(s, [A, C])


def test_a_loop_below_one_block_is_run_by_the_device():
    s, A, C = doubled()
    outer, inner = s[C].split(C.op.axis[0], factor=16)
    _, inner = s[C].split(inner, factor=8)
    bound(s, C, (outer, inner), ("blockIdx.x", TX))
    (launch,) = build(s, [A, C], "a100").program.launches
    assert launch.loops == ()
    assert str(launch.threads["blockIdx.x"]) == "1"


def test_without_threads_all_is_clipped_as_ever():
    s, A, C = doubled()
    outer, inner = s[C].split(C.op.axis[0], factor=32)
    assert loops(s, [A, C], "cpu") == [("serial", "16")]
    s[C].bind(inner, te.thread_axis(TX))
    assert ("threadIdx.x", "32") in loops(s, [A, C])
    s.undo()
    assert loops(s, [A, C], "cpu") == [("serial", "16")]
    s[C].vectorize(inner)
    assert (outer.extent, inner.extent) == (1, 16)


@pytest.mark.parametrize("n", [0, 1, 3, 16, 33])
@pytest.mark.parametrize("factors", [(32, 4), (4, 32), (7, 5)])
def test_splits_of_splits(n, factors):
    s, A, C = doubled(n)
    outer, inner = s[C].split(C.op.axis[0], factors[0])
    middle, last = s[C].split(inner, factors[1])
    bound(s, C, (outer, middle, last), ("blockIdx.x", TY, TX))
    found = {kind: int(extent) for kind, extent in loops(s, [A, C])}
    if n:
        assert found.get(TX, 1) == factors[1]
        assert found.get(TY, 1) == -(-factors[0] // factors[1])
    assert agrees(s, [A, C])


@pytest.mark.parametrize("shape", [(3, 5), (16, 2), (1, 1), (9, 9)])
def test_what_was_split_and_is_fused(shape):
    A = te.placeholder(shape, name="A")
    C = te.compute(shape, lambda i, j: A[i, j] + 1.0, name="C")
    s = create_schedule(C.op)
    io, jo, ii, ji = s[C].tile(*C.op.axis, 4, 8)
    threads = s[C].fuse(ii, ji)
    bound(s, C, (io, jo, threads), ("blockIdx.y", "blockIdx.x", TX))
    assert (TX, "32") in loops(s, [A, C])
    assert agrees(s, [A, C])


@pytest.mark.parametrize("n", [1, 3, 8, 13])
def test_virtual_threads(n):
    s, A, C = doubled(n)
    block, rest = s[C].split(C.op.axis[0], 32)
    virtual, thread = s[C].split(rest, nparts=4)
    bound(s, C, (block, virtual, thread), ("blockIdx.x", "vthread", TX))
    assert (TX, "8") in loops(s, [A, C])
    assert agrees(s, [A, C])


@pytest.mark.campaign
@pytest.mark.parametrize("n", [0, 1, 5, 16, 40])
@pytest.mark.parametrize("reducer", [te.sum, te.max])
def test_a_reduction_that_threads_share(n, reducer):
    if n == 0 and reducer is te.max:
        pytest.skip("the maximum of nothing is infinite")
    A = te.placeholder((3, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((3,), lambda i: reducer(A[i, k], axis=k), name="C")
    s = create_schedule(C.op)
    _, inner = s[C].split(k, factor=32)
    bound(s, C, (C.op.axis[0], inner), ("blockIdx.x", TX))
    assert (TX, "32") in loops(s, [A, C])
    s[C].set_store_predicate("threadIdx.x == 31")
    assert agrees(s, [A, C])


@pytest.mark.parametrize("size", [(2, 4), (4, 2), (3, 3), (8, 1)])
def test_stages_of_different_extents_in_one_block(size):
    """The threads of the block are as many as the largest stage needs: each split says so."""
    rows, columns = size
    A = te.placeholder((rows, columns), name="A")
    B = te.placeholder((columns, 5), name="B")
    k = te.reduce_axis((0, columns), name="k")
    C = te.compute((rows, 5), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    CL = s.cache_write(C, "local")
    AA, BB = (s.cache_read(tensor, "shared", [CL]) for tensor in (A, B))
    for stage, axes in ((C, C.op.axis), (AA, s[AA].op.axis), (BB, s[BB].op.axis)):
        y, x = axes
        tiles = s[stage].tile(y, x, 4, 8)
        bound(s, stage, tiles[2:], (TY, TX))
        if stage is C:
            bound(s, stage, tiles[:2], ("blockIdx.y", "blockIdx.x"))
            s[CL].compute_at(s[C], tiles[3])
        else:
            s[stage].compute_at(s[CL], s[CL].op.reduce_axis[0])
            s[CL].reorder(s[CL].op.reduce_axis[0], *s[CL].op.axis)
    assert agrees(s, [A, B, C])
    assert not s.obligations
    again = create_schedule(C.op)
    Trace.from_json(s.trace.to_json()).replay(again)
    assert str(lower(again, [A, B, C], target="gpu")) == str(lower(s, [A, B, C], target="gpu"))


def test_an_attached_stage_that_has_more_threads_than_there_are_owes_them():
    A = te.placeholder((4,), name="A")
    C = te.compute((4,), lambda i: A[i] * 2.0, name="C")
    s = create_schedule(C.op)
    AA = s.cache_read(A, "shared", [C])
    one, threads = s[C].split(C.op.axis[0], nparts=1)
    bound(s, C, (one, threads), ("blockIdx.x", TX))
    s[AA].compute_at(s[C], threads)
    _, inner = s[AA].split(s[AA].op.axis[0], 8)
    s[AA].bind(inner, te.thread_axis(TX))
    (owed,) = s.obligations
    assert str(owed) == (
        "A.shared.ax0.inner has 8 iterations, and threadIdx.x 4 threads, those of C.i.inner"
    )


def test_a_thread_axis_with_the_number_of_threads():
    s, A, C = doubled()
    _, inner = s[C].split(C.op.axis[0], factor=32)
    s[C].bind(inner, te.thread_axis((0, 32), TX))
    assert agrees(s, [A, C])


def test_a_thread_axis_with_another_number_is_refused(refusal):
    s, _, C = doubled()
    _, inner = s[C].split(C.op.axis[0], factor=32)
    assert refusal(s[C].bind, inner, te.thread_axis((0, 16), TX)) == (
        "bind C.i.inner: the loop has another number of iterations\n"
        "  got       32\n"
        "  expected  16, as thread_axis('threadIdx.x', extent=16) has\n"
        "  hint      split the loop first, or leave the number of threads out"
    )


def test_a_number_of_threads_for_a_loop_of_unknown_extent(refusal):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: A[i] * 2.0, name="C")
    s = create_schedule(C.op)
    text = refusal(s[C].bind, C.op.axis[0], te.thread_axis((0, 16), TX))
    assert "the loop has another number of iterations\n  got       n\n" in text


def test_moves_see_the_threads():
    s, _, C = doubled()
    _, inner = s[C].split(C.op.axis[0], factor=32)
    middle, _ = s[C].split(inner, nparts=4)
    s[C].bind(middle, te.thread_axis(TX))
    (move,) = (
        move for move in s.moves(C, "gpu") if move.primitive == "split" and move.verdict
        and move.targets == ("C.i.inner.inner",)
    )  # fmt: skip
    assert move.domains[0].suggested == (2, 4)  # of 8 iterations, not of 4


def test_more_threads_than_a_device_has():
    s, A, C = doubled()
    _, inner = s[C].split(C.op.axis[0], factor=4096)
    s[C].bind(inner, te.thread_axis(TX))
    with pytest.raises(TargetError, match="4096"):
        build(s, [A, C], target="gpu")


def test_more_threads_than_an_index_counts(refusal):
    s, _, C = doubled()
    _, inner = s[C].split(C.op.axis[0], factor=2**50)
    assert "the loop would be too long" in refusal(s[C].bind, inner, te.thread_axis(TX))


def test_rfactor_beside_threads_that_are_more_than_needed(refusal):
    A = te.placeholder((3, 4), name="A")
    k = te.reduce_axis((0, 4), name="k")
    C = te.compute((3,), lambda i: te.sum(A[i, k], axis=k), name="C")
    s = create_schedule(C.op)
    outer, inner = s[C].split(k, factor=32)
    s[C].bind(inner, te.thread_axis(TX))
    assert refusal(s.rfactor, C, outer) == (
        "rfactor C.k.outer: the number of threads beside the factored loop would change\n"
        "  got       C.k.inner: 32 iterations, of which 4 are needed\n"
        "  because   it becomes an axis of C.rf by itself\n"
        "  hint      call rfactor first, then split and bind the loops of the new stage"
    )


def test_a_size_that_the_call_gives():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: A[i] * 2.0, name="C")
    s = create_schedule(C.op)
    bound(s, C, s[C].split(C.op.axis[0], factor=32), ("blockIdx.x", TX))
    kernel = build(s, [A, C], target="gpu")
    for count in (0, 1, 16, 33):
        given, result = np.arange(count, dtype="float32"), np.full(count, 77, "float32")
        kernel(given, result)
        np.testing.assert_array_equal(result, given * 2)
