"""Reductions that the threads of a block share, and stages that they compute one after another."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.measurement import verify
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.simulate import interpret
from tests.schedule.test_device_programs import agrees, bound

TX, TY, BX = (te.thread_axis(tag) for tag in ("threadIdx.x", "threadIdx.y", "blockIdx.x"))
SIZES = [(7, 13, 4), (8, 8, 8), (1, 1, 1), (9, 13, 5), (3, 100, 32), (5, 3, 7)]


def rows(n, m, combine=te.sum, dtype="float32", **options):
    A = te.placeholder((n, m), dtype, name="A")
    k = te.reduce_axis((0, m), name="k")
    return A, te.compute((n,), lambda i: combine(A[i, k], axis=k, **options), name="B")


@pytest.mark.parametrize(("n", "m", "threads"), SIZES)
@pytest.mark.parametrize("combine", [te.sum, te.max, te.min])
def test_a_row_is_reduced_by_threads(n, m, threads, combine):
    A, B = rows(n, m, combine)
    s = create_schedule(B.op)
    _, ki = s[B].split(B.op.reduce_axis[0], threads)
    bound(s, B, (B.op.axis[0], ki), ("blockIdx.x", "threadIdx.x"))
    assert agrees(s, [A, B])


@pytest.mark.parametrize(("n", "m", "threads"), SIZES)
def test_rows_beside_each_other_in_a_block(n, m, threads):
    A, B = rows(n, m)
    s = create_schedule(B.op)
    _, ki = s[B].split(B.op.reduce_axis[0], threads)
    io, ii = s[B].split(B.op.axis[0], 3)
    bound(s, B, (io, ii, ki), ("blockIdx.x", "threadIdx.y", "threadIdx.x"))
    assert agrees(s, [A, B])


@pytest.mark.parametrize(("n", "m", "threads"), SIZES)
def test_the_classic_reduction(n, m, threads):
    """`rfactor` makes the part of each thread a stage of its own."""
    A, B = rows(n, m)
    s = create_schedule(B.op)
    _, ki = s[B].split(B.op.reduce_axis[0], threads)
    BF = s.rfactor(B, ki)
    io, ii = s[B].split(s[B].op.axis[0], 4)
    s[B].bind(io, BX)
    s[B].bind(ii, TY)
    s[B].bind(s[B].op.reduce_axis[0], TX)
    s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
    s[B].set_store_predicate(TX.var == 0)
    assert agrees(s, [A, B])


def test_the_rows_may_follow_one_after_another():
    A, B = rows(6, 10)
    s = create_schedule(B.op)
    _, ki = s[B].split(B.op.reduce_axis[0], 4)
    io, _ = s[B].split(B.op.axis[0], 4)
    bound(s, B, (io, ki), ("blockIdx.x", "threadIdx.x"))
    assert agrees(s, [A, B])


def test_two_axes_of_threads_share_a_reduction():
    A = te.placeholder((3, 5, 7), name="A")
    j, k = te.reduce_axis((0, 5), name="j"), te.reduce_axis((0, 7), name="k")
    B = te.compute((3,), lambda i: te.sum(A[i, j, k], axis=[j, k]), name="B")
    s = create_schedule(B.op)
    bound(s, B, (B.op.axis[0], j, k), ("blockIdx.x", "threadIdx.y", "threadIdx.x"))
    s[B].set_store_predicate("threadIdx.x == 6 and threadIdx.y == 1")
    assert agrees(s, [A, B])
    assert "if j == 1 and k == 6:" in str(lower(s, [A, B]))


def test_the_reduction_of_everything():
    A = te.placeholder((37,), name="A")
    k = te.reduce_axis((0, 37), name="k")
    B = te.compute((), lambda: te.sum(A[k], axis=k), name="B")
    s = create_schedule(B.op)
    _, ki = s[B].split(k, 8)
    s[B].bind(ki, TX)
    assert agrees(s, [A, B])


def test_it_may_start_from_a_value_and_leave_points_out():
    A = te.placeholder((5, 11), name="A")
    start = te.placeholder((5,), name="start")
    k = te.reduce_axis((0, 11), name="k")
    B = te.compute(
        (5,),
        lambda i: te.sum(A[i, k], axis=k, where=A[i, k] > 0.0, init=start[i]),
        name="B",
    )
    s = create_schedule(B.op)
    _, ki = s[B].split(k, 4)
    bound(s, B, (B.op.axis[0], ki), ("blockIdx.x", "threadIdx.x"))
    assert agrees(s, [A, start, B])


def test_results_that_belong_together():
    """Of equal values, the first counts, whichever thread has it."""
    A = te.placeholder((6, 9), name="A")
    k = te.reduce_axis((0, 9), name="k")

    argmax = te.comm_reducer(
        lambda x, y: (
            te.select(te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0])), x[0], y[0]),
            te.select(x[1] >= y[1], x[1], y[1]),
        ),
        lambda t0, t1: (te.const(1000, t0), te.min_value(t1)),
        name="argmax",
    )
    where, largest = te.compute(
        (6,), lambda i: argmax((k.var.astype("int32"), A[i, k]), axis=k), name="B"
    )
    s = create_schedule(where.op)
    _, ki = s[where].split(k, 4)
    bound(s, where, (where.op.axis[0], ki), ("blockIdx.x", "threadIdx.x"))
    func = lower(s, [A, where, largest])
    a = np.random.default_rng(0).integers(-2, 3, (6, 9)).astype("float32")
    index, value = np.zeros(6, "int32"), np.zeros(6, "float32")
    interpret(func, [a, index, value])
    assert np.array_equal(index, a.argmax(1))
    assert np.array_equal(value, a.max(1))


@pytest.mark.parametrize(("n", "m", "threads"), [(5, 13, 4), (3, 32, 8), (2, 1, 4)])
def test_softmax_in_one_kernel(n, m, threads):
    """The largest element and the sum of a row are shared by its block."""
    X = te.placeholder((n, m), name="X")
    k, r = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="r")
    largest = te.compute((n,), lambda i: te.max(X[i, k], axis=k), name="largest")
    E = te.compute((n, m), lambda i, j: te.exp(X[i, j] - largest[i]), name="E")
    total = te.compute((n,), lambda i: te.sum(E[i, r], axis=r), name="total")
    Y = te.compute((n, m), lambda i, j: E[i, j] / total[i], name="Y")
    s = create_schedule(Y.op)
    i, j = s[Y].op.axis
    _, ji = s[Y].split(j, threads)
    bound(s, Y, (i, ji), ("blockIdx.x", "threadIdx.x"))
    s[E].compute_inline()
    for stage in (total, largest):
        s[stage].compute_at(s[Y], i)
        _, ki = s[stage].split(s[stage].op.reduce_axis[0], threads)
        s[stage].bind(ki, TX)
    text = str(lower(s, [X, Y]))
    assert "allocate total: float32[1] in shared" in text
    assert verify(s, [X, Y], target="gpu").oracles == ("numpy", "interpreter")


def test_a_stage_of_a_block_may_have_threads_of_its_own():
    """They run one after another, and all have come before the next stage begins."""
    A, B = rows(7, 5)
    C = te.compute((7, 5), lambda i, j: A[i, j] * B[i], name="C")
    s = create_schedule(C.op)
    i, j = s[C].op.axis
    io, _ = s[C].split(i, 4)
    bound(s, C, (io, j), ("blockIdx.x", "threadIdx.x"))
    s[B].compute_at(s[C], io)
    s[B].bind(s[B].op.axis[0], TX)
    assert "allocate B: float32[4] in shared" in str(lower(s, [A, C]))
    assert agrees(s, [A, C])


@pytest.mark.parametrize("sizes", [(5, 9), (1, 1), (12, 4)])
def test_sizes_that_only_the_call_tells(sizes):
    n, m = te.var("n"), te.var("m")
    A, B = rows(n, m)
    s = create_schedule(B.op)
    _, ki = s[B].split(B.op.reduce_axis[0], 4)
    bound(s, B, (B.op.axis[0], ki), ("blockIdx.x", "threadIdx.x"))
    a = np.random.default_rng(1).integers(-9, 9, sizes).astype("float32")
    result = np.full(sizes[0], 7, "float32")
    interpret(lower(s, [A, B]), [a, result])
    assert np.array_equal(result, a.sum(1))


def test_every_kind_of_number():
    for dtype in ("float64", "int32", "int8", "uint16", "float16"):
        A, B = rows(5, 11, dtype=dtype)
        s = create_schedule(B.op)
        _, ki = s[B].split(B.op.reduce_axis[0], 4)
        bound(s, B, (B.op.axis[0], ki), ("blockIdx.x", "threadIdx.x"))
        a = np.random.default_rng(2).integers(0, 5, (5, 11)).astype(dtype)
        result = np.full(5, 1, dtype)
        interpret(lower(s, [A, B]), [a, result])
        assert np.array_equal(result, a.sum(1).astype(dtype)), dtype


# -- refusals --------------------------------------------------------------------------------------


def refusal(call, *args):
    with pytest.raises(ScheduleError) as caught:
        call(*args)
    return str(caught.value)


def test_data_loops_stand_outside():
    A = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((8,), lambda j: te.sum(A[k, j], axis=k), name="B")
    s = create_schedule(B.op)
    s[B].reorder(k, B.op.axis[0])
    assert refusal(s[B].bind, k, TX) == (
        "bind B.k: the threads of B.k reduce one element at a time\n"
        "  got       B.j, a data loop, inside B.k\n"
        "  hint      reorder the data loops of B to the outside"
    )


def test_the_threads_must_be_free_for_it():
    _, B = rows(8, 8)
    C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
    s = create_schedule(C.op)
    io, ii = s[C].split(C.op.axis[0], 4)
    bound(s, C, (io, ii), ("blockIdx.x", "threadIdx.x"))
    s[B].compute_at(s[C], ii)
    s[B].set_scope("shared")
    assert "the threads of C.i.inner already run other work" in refusal(
        s[B].bind, B.op.reduce_axis[0], TX
    )


def test_the_threads_reduce_one_element_together():
    _, B = rows(8, 8)
    C = te.compute((8,), lambda i: B[i] + 1.0, name="C")
    s = create_schedule(C.op)
    io, ii = s[C].split(C.op.axis[0], 4)
    bound(s, C, (io, ii), ("blockIdx.x", "threadIdx.x"))
    s[B].compute_at(s[C], ii)
    ko, _ = s[B].split(B.op.reduce_axis[0], nparts=2)
    assert refusal(s[B].bind, ko, TX) == (
        "bind B.k.outer: the threads of C.i.inner would reduce different elements of B\n"
        "  got       B.k.outer, bound to threadIdx.x, too\n"
        "  because   threads that share a reduction reduce one element together\n"
        "  hint      compute B outside C.i.inner, or bind to another axis"
    )
    s[B].compute_at(s[C], io)
    s[B].bind(ko, TX)
    assert not s.can("compute_at", s[B], s[C], ii)


def test_virtual_threads_share_no_reduction():
    _, B = rows(8, 8)
    s = create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("vthread"))
    assert refusal(s[B].bind, B.op.reduce_axis[0], TX) == (
        "bind B.k: virtual threads cannot share a reduction\n"
        "  got       B.i, vthread, around B.k\n"
        "  hint      leave the loop serial, or bind it to another axis of the block"
    )


# -- results that each thread has ----------------------------------------------------------------


def centred(n, m):
    """Return rows without their mean: each thread of a row needs the sum of all."""
    A, B = rows(n, m)
    return A, B, te.compute((n, m), lambda i, j: A[i, j] * float(m) - B[i], name="C")


@pytest.mark.parametrize(("n", "m", "threads"), [(3, 12, 4), (2, 13, 4), (1, 3, 5), (4, 70, 32)])
@pytest.mark.parametrize("together", [1, 3])
def test_each_thread_gets_the_result(n, m, threads, together):
    A, B, C = centred(n, m)
    s = create_schedule(C.op)
    i, j = C.op.axis
    rows_of_block, row = s[C].split(i, together)
    step, x = s[C].split(j, threads)
    s[C].reorder(rows_of_block, row, x, step)
    bound(s, C, (rows_of_block, row, x), ("blockIdx.x", "threadIdx.y", "threadIdx.x"))
    s[B].compute_at(s[C], x)
    _, k = s[B].split(B.op.reduce_axis[0], threads)
    s[B].bind(k, TX)
    assert agrees(s, [A, C])


def test_each_thread_of_several_warps_gets_the_result(golden):
    A, B, C = centred(3, 50)
    s = create_schedule(C.op)
    i, j = C.op.axis
    step, inner = s[C].split(j, 12)
    y, x = s[C].split(inner, 4)
    s[C].reorder(i, y, x, step)
    bound(s, C, (i, y, x), ("blockIdx.x", "threadIdx.y", "threadIdx.x"))
    s[B].compute_at(s[C], x)
    _, inner = s[B].split(B.op.reduce_axis[0], 12)
    own_y, own_x = s[B].split(inner, 4)
    bound(s, B, (own_y, own_x), ("threadIdx.y", "threadIdx.x"))
    assert agrees(s, [A, C])
    golden("each_thread", str(lower(s, [A, C], simple_mode=True)))


def test_rows_one_after_another_in_the_same_threads():
    A, B, C = centred(6, 8)
    s = create_schedule(C.op)
    i, j = C.op.axis
    outer, row = s[C].split(i, 3)
    step, x = s[C].split(j, 4)
    s[C].reorder(outer, x, row, step)
    bound(s, C, (outer, x), ("blockIdx.x", "threadIdx.x"))
    s[B].compute_at(s[C], row)
    _, k = s[B].split(B.op.reduce_axis[0], 4)
    s[B].bind(k, TX)
    assert agrees(s, [A, C])


def test_elements_stay_in_registers_between_two_reductions():
    """Each thread loads its part of a row once, though two reductions and the result read it."""
    m, threads = 24, 4
    A, B, C = centred(5, m)
    s = create_schedule(C.op)
    AL = s.cache_read(A, "local", [B, C])
    s[AL].transform_layout(lambda i, j: [i, j // (2 * threads), j // 2 % threads, j % 2])
    i, j = C.op.axis
    step, inner = s[C].split(j, 2 * threads)
    x, two = s[C].split(inner, 2)
    s[C].reorder(i, x, step, two)
    bound(s, C, (i, x), ("blockIdx.x", "threadIdx.x"))
    for stage in (AL, B):
        s[stage].compute_at(s[C], x)
    _, inner = s[B].split(B.op.reduce_axis[0], 2 * threads)
    k, _ = s[B].split(inner, 2)
    s[B].bind(k, TX)
    assert agrees(s, [A, C])
    text = str(lower(s, [A, C]))
    assert "allocate A.local: float32[1, 3, 1, 2] in local" in text


def test_many_threads_along_the_other_axis():
    """They combine their parts by a tree: one after the other would take too long."""
    A, B = rows(2, 200)
    s = create_schedule(B.op)
    _, inner = s[B].split(B.op.reduce_axis[0], 80)
    y, x = s[B].split(inner, 2)
    bound(s, B, (B.op.axis[0], y, x), ("blockIdx.x", "threadIdx.y", "threadIdx.x"))
    assert agrees(s, [A, B])


def test_no_thread_is_chosen_where_each_stores_the_result():
    _, B, C = centred(4, 8)
    s = create_schedule(C.op)
    bound(s, C, C.op.axis, ("blockIdx.x", "threadIdx.x"))
    s[B].compute_at(s[C], C.op.axis[1])
    s[B].bind(B.op.reduce_axis[0], TX)
    assert refusal(s[B].set_store_predicate, TX.var == 0) == (
        "set_store_predicate B: other threads would read what they have not stored of B\n"
        "  because   B is in local memory: each thread stores the result for itself\n"
        "  hint      undo set_store_predicate"
    )


def test_the_number_of_threads_is_known():
    m = te.var("m")
    _, B = rows(4, m)
    s = create_schedule(B.op)
    assert refusal(s[B].bind, B.op.reduce_axis[0], TX) == (
        "bind B.k: threads share a reduction only where their number is known, and not 0\n"
        "  got       B.k, threadIdx.x, with m threads\n"
        "  hint      split the loop by a number, and bind the inner one"
    )


@pytest.mark.parametrize(
    ("tag", "words"), [("blockIdx.x", "blockIdx.x"), ("vthread", "virtual threads")]
)
def test_other_axes_cannot_share_a_reduction(tag, words):
    _, B = rows(4, 8)
    s = create_schedule(B.op)
    text = refusal(s[B].bind, B.op.reduce_axis[0], te.thread_axis(tag))
    assert f"bind B.k: a reduction axis cannot be bound to {words}" in text


def test_a_part_is_computed_by_its_thread():
    A, B = rows(8, 12)
    s = create_schedule(B.op)
    AA = s.cache_read(A, "local", [B])
    ko, ki = s[B].split(B.op.reduce_axis[0], 4)
    s[AA].compute_at(s[B], ko)
    assert refusal(s[B].bind, ki, TX) == (
        "bind B.k.inner: the threads of B.k.inner stand outside the other loops of the reduction\n"
        "  got       A.local attached at B.k.outer\n"
        "  hint      reorder to i, k.inner, k.outer first"
    )


def test_a_stage_in_a_block_needs_memory_that_its_threads_share():
    A, B = rows(8, 8)
    C = te.compute((8, 8), lambda i, j: A[i, j] * B[i], name="C")
    s = create_schedule(C.op)
    i, j = s[C].op.axis
    bound(s, C, (i, j), ("blockIdx.x", "threadIdx.x"))
    s[B].set_scope("local")
    text = refusal(s[B].compute_at, s[C], i)
    assert "B would be computed outside the threads of C.j" in text


def test_a_stage_at_the_threads_of_a_reduction_needs_their_order():
    A, B = rows(8, 12)
    s = create_schedule(B.op)
    AA = s.cache_read(A, "shared", [B])
    ko, ki = s[B].split(B.op.reduce_axis[0], 4)
    s[B].bind(ki, TX)
    text = refusal(s[AA].compute_at, s[B], ki)
    assert "stand outside the other loops of the reduction" in text
    s[B].reorder(ki, ko)
    s[AA].compute_at(s[B], ki)
    s[B].bind(B.op.axis[0], BX)
    assert agrees(s, [A, B])


def test_there_must_be_threads():
    _, B = rows(3, 0)
    s = create_schedule(B.op)
    assert "and not 0" in refusal(s[B].bind, B.op.reduce_axis[0], TX)


def test_a_reducer_that_minds_the_order_is_refused():
    A = te.placeholder((4, 8), "int32", name="A")
    k = te.reduce_axis((0, 8), name="k")
    last = te.comm_reducer(lambda x, y: y, lambda t: te.const(0, t), name="last")
    B = te.compute((4,), lambda i: last(A[i, k], axis=k), name="B")
    s = create_schedule(B.op)
    assert "the reducer last of B is not commutative" in refusal(s[B].bind, k, TX)


def test_blocks_cannot_share_what_each_has_for_itself():
    A, B = rows(8, 8)
    s = create_schedule(B.op)
    AA = s.cache_read(A, "shared", [B])
    s[B].bind(B.op.axis[0], BX)
    s[AA].compute_at(s[B], B.op.axis[0])
    assert refusal(s[AA].bind, s[AA].op.axis[1], BX) == (
        "bind A.shared.ax1: the blocks of A.shared.ax1 would compute A.shared together\n"
        "  because   A.shared is computed in each block, in memory of its own\n"
        "  hint      bind the loop to an axis of the threads of a block"
    )


def test_extents_that_are_the_same_expression():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    AA = s.cache_read(A, "shared", [B])
    s[B].bind(B.op.axis[0], TX)
    s[AA].compute_at(s[B], B.op.axis[0])
    s[AA].bind(s[AA].op.axis[0], TX)
    a, b = np.arange(5, dtype="float32"), np.empty(5, "float32")
    interpret(lower(s, [A, B]), [a, b])
    assert np.array_equal(b, a + 1)


def test_blocks_stand_outside_the_threads_that_share():
    A, B = rows(8, 8)
    C = te.compute((8, 8), lambda i, j: A[i, j] * B[i], name="C")
    s = create_schedule(C.op)
    i, j = s[C].op.axis
    bound(s, C, (i, j), ("threadIdx.x", "blockIdx.x"))
    AA = s.cache_read(A, "shared", [C])
    assert refusal(s[AA].compute_at, s[C], j) == (
        "compute_at A.shared at C.j: the threads of C.i would be outside the blocks of C.j\n"
        "  because   the threads of a block share A.shared\n"
        "  hint      reorder C.j to the outside"
    )


def blocks_in_a_loop_of_the_host():
    """Return a schedule of a sum whose blocks are launched once for each element of its reader."""
    a = te.placeholder((31, 3), "int32", name="A")
    k = te.reduce_axis((0, 3), "k")
    p = te.compute((31,), lambda i: te.sum(a[i, k], axis=k), name="P")
    c = te.compute((31,), lambda i: p[i] * 3 - p[30 - i], name="C")
    s = te.create_schedule(c.op)
    outer, _ = s[p].split(p.op.axis[0], factor=5)
    s[p].bind(outer, te.thread_axis("blockIdx.x"))
    return s, p, c


def test_blocks_are_launched_in_a_serial_loop_of_the_host_only():
    s, p, c = blocks_in_a_loop_of_the_host()
    assert s.can("compute_at", p, c, c.op.axis[0])
    s[c].parallel(c.op.axis[0])
    assert "would compute P together" in str(s.can("compute_at", p, c, c.op.axis[0]))


def test_a_loop_of_the_host_around_launches_stays_serial():
    s, p, c = blocks_in_a_loop_of_the_host()
    s[p].compute_at(s[c], c.op.axis[0])
    with pytest.raises(ScheduleError, match="would compute P together"):
        s[c].parallel(c.op.axis[0])
