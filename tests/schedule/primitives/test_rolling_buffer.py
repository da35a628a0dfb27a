"""rolling_buffer: what the next iteration needs is kept; refused where that is not certain."""

import contextlib
import math

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.analysis import analyze_initialisation
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Allocate, For, Store, walk
from dlcompiler.ir.rewrite import children
from dlcompiler.measurement import verify
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import Illegal, Pending, create_schedule

CANNOT = "cannot keep what the next iteration of"


def stencil(rows, columns, size=3, step=1, dtype="int32"):
    """P doubles, C adds `size` rows of P, of which each result is `step` rows further on."""
    A = te.placeholder((rows, columns), dtype, name="A")
    P = te.compute((rows, columns), lambda i, j: A[i, j] * 2, name="P")
    k = te.reduce_axis((0, size), name="k")
    shape = ((rows - size) // step + 1, columns)
    C = te.compute(shape, lambda i, j: te.sum(P[i * step + k, j], axis=k), name="C")
    return A, P, C, create_schedule(C.op)


@pytest.fixture
def rows():
    """P of 10×6, attached at the rows of C: three are needed for each."""
    A, P, C, s = stencil(10, 6)
    s[P].compute_at(s[C], C.op.axis[0])
    return A, P, C, s


def stored(func, name):
    """Return how many elements a program without conditions stores to a buffer."""

    def count(stmt):
        own = isinstance(stmt, Store) and stmt.buffer.name == name
        inside = own + sum(count(c) for c in children(stmt) if not hasattr(c, "dtype"))
        return inside * (int(stmt.extent.value) if isinstance(stmt, For) else 1)

    return count(func.body)


def window_of(s, args, name="P"):
    """Return the shape and the steps of the buffer of a stage; None where it does not roll."""
    func = lower(s, args, simple_mode=True)
    (found,) = (n for n in walk(func.body) if isinstance(n, Allocate) and n.buffer.name == name)
    return found.window and (found.buffer.shape, found.window.steps)


def test_a_nest_asks_for_it_and_a_pass_does_it(rows, golden, computes):
    A, P, C, s = rows
    s[P].rolling_buffer()
    golden("nest", str(lower(s, [A, C], simple_mode=True)))
    golden("lowered", str(lower(s, [A, C])))
    computes(s)


def test_it_is_written_and_asked_about(rows):
    s, P = rows[3], rows[1]
    assert s.can("rolling_buffer", P)
    assert [m.primitive for m in s.legal_moves(P)].count("rolling_buffer") == 1
    s[P].rolling_buffer()
    assert "s[P].rolling_buffer()" in s.trace.to_python()
    before = s.state.stage("P").rolled_by
    s[P].rolling_buffer()
    assert s.state.stage("P").rolled_by == before == "rolling_buffer P"


def test_only_new_rows_are_computed(rows):
    A, P, C, s = rows
    assert stored(lower(s, [A, C]), "P") == 8 * 3 * 6
    s[P].rolling_buffer()
    assert stored(lower(s, [A, C]), "P") == 10 * 6
    assert analyze_initialisation(lower(s, [A, C])).status != "violated"


@pytest.mark.parametrize(
    ("size", "step", "window"),
    [
        (3, 1, ((3, 6), (1, 0))),
        (3, 2, ((3, 6), (2, 0))),
        (5, 3, ((5, 6), (3, 0))),
        (2, 2, None),  # nothing is needed again
        (1, 1, None),
        (2, 3, None),
        (10, 1, None),  # a single iteration
    ],
)
def test_the_part_that_is_kept(computes, size, step, window):
    A, P, C, s = stencil(10, 6, size, step)
    s[P].compute_at(s[C], C.op.axis[0])
    s[P].rolling_buffer()
    assert window_of(s, [A, C]) == window
    computes(s)


@pytest.mark.parametrize("place", ["outer", "inner"])
@pytest.mark.parametrize("factor", [1, 2, 3, 5, 16])
def test_tails_of_splits(computes, factor, place):
    _A, P, C, s = stencil(13, 5)
    outer, inner = s[C].split(C.op.axis[0], factor)
    s[P].compute_at(s[C], {"outer": outer, "inner": inner}[place])
    s[P].rolling_buffer()
    computes(s)


def test_along_columns_and_with_vectors(computes):
    A = te.placeholder((7, 19), "float32", name="A")
    P = te.compute((7, 19), lambda i, j: A[i, j] * 2, name="P")
    C = te.compute((7, 17), lambda i, j: P[i, j] + P[i, j + 2], name="C")
    s = create_schedule(C.op)
    i, j = C.op.axis
    outer, inner = s[C].split(j, 4)
    s[C].vectorize(inner)
    s[C].parallel(i)
    s[P].compute_at(s[C], outer)
    s[P].rolling_buffer()
    assert window_of(s, [A, C]) == ((1, 6), (0, 4))
    s[P].unroll(P.op.axis[1])
    computes(s)


@pytest.mark.parametrize("kind", ["parallel", "vectorize", "unroll"])
def test_loops_of_the_stage_itself(rows, computes, kind):
    _, P, _, s = rows
    s[P].rolling_buffer()
    getattr(s[P], kind)(P.op.axis[0])
    computes(s)


def convolution_and_pooling(height, pad, dtype):
    """Q convolves A, padded in P; C takes the largest of windows of Q: three stages."""
    A = te.placeholder((2, height, 5), dtype, name="A")
    W = te.placeholder((3, 2, 3), dtype, name="W")

    def padded(c, y, x):
        inside = te.all(y >= pad, y < height + pad)
        return te.if_then_else(inside, A[c, y - pad, x], te.const(0, dtype))

    P = te.compute((2, height + 2 * pad, 5), padded, name="P")
    c, k = te.reduce_axis((0, 2), name="c"), te.reduce_axis((0, 3), name="k")
    rows = height + 2 * pad - 2
    Q = te.compute(
        (3, rows, 5), lambda f, y, x: te.sum(P[c, y + k, x] * W[f, c, k], axis=[c, k]), name="Q"
    )
    m = te.reduce_axis((0, 3), name="m")
    C = te.compute(
        (3, (rows - 3) // 2 + 1, 5), lambda f, y, x: te.max(Q[f, y * 2 + m, x], axis=m), name="C"
    )
    return A, W, P, Q, C, create_schedule(C.op)


@pytest.mark.campaign
@pytest.mark.parametrize(("height", "pad"), [(5, 0), (6, 0), (5, 1), (11, 0), (13, 1)])
@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_chains_of_three_stages(computes, height, pad, dtype):
    A, W, P, Q, C, s = convolution_and_pooling(height, pad, dtype)
    f, y, x = C.op.axis
    s[C].reorder(y, f, x)
    for stage in (Q, P):
        s[stage].compute_at(s[C], y)
        s[stage].rolling_buffer()
    computes(s)
    if height == 13:
        assert window_of(s, [A, W, C], "P") == ((2, 5, 5), (0, 2, 0))
        func = lower(s, [A, W, C])
        assert stored(func, "Q") == 3 * 13 * 5 * (1 + 2 * 3)  # once to begin, once for each term


def test_a_chain_inside_the_middle_stage(computes):
    _, _, P, Q, C, s = convolution_and_pooling(11, 1, "int32")
    s[Q].compute_at(s[C], C.op.axis[0])
    _f, y, _x = Q.op.axis
    s[P].compute_at(s[Q], y)
    s[P].rolling_buffer()
    computes(s)


def test_machine_code_is_verified():
    A, W, P, Q, C, s = convolution_and_pooling(13, 1, "float32")
    s[C].reorder(C.op.axis[1], C.op.axis[0])
    for stage in (Q, P):
        s[stage].compute_at(s[C], C.op.axis[1])
        s[stage].rolling_buffer()
    assert verify(s, [A, W, C])


def test_long_programs_are_interpreted_on_a_smaller_shape():
    A, P, C, s = stencil(130, 1200)
    s[P].compute_at(s[C], C.op.axis[0])
    s[P].rolling_buffer()
    assert "interpreter on" in repr(verify(s, [A, C]))


@pytest.mark.parametrize("count", [3, 4, 10, 57])
def test_symbolic_lengths(count):
    n = te.var("n")
    A = te.placeholder((n,), "int32", name="A")
    P = te.compute((n,), lambda i: A[i] * 2, name="P")
    C = te.compute((n - 2,), lambda i: P[i] + P[i + 2], name="C")
    s = create_schedule(C.op)
    s[P].compute_at(s[C], C.op.axis[0])
    s[P].rolling_buffer()
    assert window_of(s, [A, C]) == ((3,), (1,))
    a, c = np.arange(count, dtype="int32"), np.zeros(count - 2, "int32")
    build(s, [A, C])(a, c)
    assert (c == 2 * a[:-2] + 2 * a[2:]).all()
    assert verify(s, [A, C])


def test_several_results_of_one_stage(computes):
    A = te.placeholder((9, 4), "int32", name="A")
    P, Q = te.compute((9, 4), lambda i, j: (A[i, j] + 1, A[i, j] - 1), name="P")
    C = te.compute((7, 4), lambda i, j: P[i, j] * Q[i + 2, j], name="C")
    s = create_schedule(C.op)
    s[P].compute_at(s[C], C.op.axis[0])
    s[P].rolling_buffer()
    computes(s)


def test_aligned_rows_and_a_cache_that_is_double_buffered(rows, computes):
    A, P, C, s = rows
    s[P].storage_align(P.op.axis[0], 8, 1)
    s[P].rolling_buffer()
    copy = s.cache_read(A, "local", [P])
    s[copy].compute_at(s[C], C.op.axis[0])
    s[copy].double_buffer()
    computes(s)


# -- refusals -------------------------------------------------------------------------------------


def test_memory_of_the_caller_is_refused(rows, refusal):
    A, _P, C, s = rows
    assert refusal(s[A].rolling_buffer).endswith("A is an input: its memory is the caller's")
    assert "C is an output: its memory is the caller's" in refusal(s[C].rolling_buffer)


def test_a_stage_in_no_loop_is_owed(rows):
    A, P, C, s = rows
    s[P].compute_root()
    text = "P is a rolling buffer, but computed outside any loop (requested by: rolling_buffer P)"
    assert s.can("rolling_buffer", P) == Pending(text)
    s[P].rolling_buffer()
    with pytest.raises(ScheduleError) as caught:
        lower(s, [A, C])
    assert str(caught.value) == (
        f"lower main: {text}\n  hint      compute it inside a loop: s[P].compute_at(…)"
    )


def test_the_same_part_in_each_iteration(refusal):
    A = te.placeholder((6,), name="A")
    P = te.compute((6,), lambda i: A[i] * 2, name="P")
    C = te.compute((4, 6), lambda i, j: P[j] + P[5 - j], name="C")
    s = create_schedule(C.op)
    s[P].compute_at(s[C], C.op.axis[0])
    assert refusal(s[P].rolling_buffer) == (
        f"rolling_buffer P: P {CANNOT} C.i needs\n"
        "  because   each iteration needs the same part\n"
        "  hint      attach it further out"
    )


@pytest.mark.parametrize("kind", ["parallel", "bind"])
def test_loops_that_run_in_any_order(rows, refusal, kind):
    _A, P, C, s = rows
    i = C.op.axis[0]
    tag = te.thread_axis("threadIdx.x")
    step = getattr(s[C], kind)
    args = (i, tag) if kind == "bind" else (i,)
    name = "threadIdx.x" if kind == "bind" else kind
    reason = (
        f"P {CANNOT} C.i needs\n"
        f"  because   the iterations of C.i ({name}) run in any order, or at once\n"
        "  hint      attach it at a serial loop"
    )
    s[P].rolling_buffer()
    assert refusal(step, *args).endswith(reason)
    s.undo()
    step(*args)
    assert refusal(s[P].rolling_buffer) == f"rolling_buffer P: {reason}"


def one_dimension(index, count=6):
    A = te.placeholder((40,), "int32", name="A")
    P = te.compute((40,), lambda i: A[i] * 2, name="P")
    C = te.compute((count, count), lambda i, j: P[index(i, j)] + P[index(i, j) + 3], name="C")
    s = create_schedule(C.op)
    s[P].compute_at(s[C], C.op.axis[0])
    return s, P


@pytest.mark.parametrize(
    ("index", "because"),
    [
        (lambda i, j: 20 - i,
         "only a part of known size that moves forward can roll"),
        (lambda i, j: (i // 2) * 4,
         "what it needs does not move by a constant step along i alone"),
        (lambda i, j: (i * 3) % 7 + i,
         "what it needs does not move by a constant step along i alone"),
    ],
)  # fmt: skip
def test_parts_that_do_not_move_forward_by_a_step(refusal, index, because):
    s, P = one_dimension(index)
    text = refusal(s[P].rolling_buffer)
    assert text.startswith(f"rolling_buffer P: P {CANNOT} C.i needs\n")
    assert f"  because   {because}\n" in text


def test_parts_that_move_along_two_dimensions(refusal):
    A = te.placeholder((12, 12), name="A")
    P = te.compute((12, 12), lambda i, j: A[i, j] * 2, name="P")
    C = te.compute((8,), lambda i: P[i, i] + P[i + 2, i + 2], name="C")
    s = create_schedule(C.op)
    s[P].compute_at(s[C], C.op.axis[0])
    assert "does not move by a constant step along i and j alone" in refusal(s[P].rolling_buffer)


def test_fused_loops(rows, refusal):
    _, P, C, s = rows
    fused = s[C].fuse(*C.op.axis)
    s[P].compute_at(s[C], fused)
    assert "by a constant step along" in refusal(s[P].rolling_buffer)


def test_a_part_of_unknown_size(refusal):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    P = te.compute((n,), lambda i: A[i] * 2, name="P")
    m = te.var("m")
    k = te.reduce_axis((0, m), name="k")
    C = te.compute((n - m,), lambda i: te.sum(P[i + k], axis=k), name="C")
    s = create_schedule(C.op)
    s[P].compute_at(s[C], C.op.axis[0])
    assert isinstance(s.can("rolling_buffer", P), Illegal)


def test_first_iterations_that_may_be_left_out(refusal):
    """Q is needed from -1 on, which is no row of it: its loop begins with iteration 1."""
    A = te.placeholder((12,), "int32", name="A")
    P = te.compute((12,), lambda i: A[i] * 2, name="P")
    Q = te.compute((10,), lambda i: P[i] + P[i + 2], name="Q")

    def shifted(i, j):
        is_inside = te.all(i * 4 + j >= 1, i * 4 + j < 11)
        return te.if_then_else(is_inside, Q[i * 4 + j - 1], 0)

    C = te.compute((3, 4), shifted, name="C")
    s = create_schedule(C.op)
    s[Q].compute_at(s[C], C.op.axis[0])
    s[P].compute_at(s[Q], Q.op.axis[0])
    assert refusal(s[P].rolling_buffer) == (
        f"rolling_buffer P: P {CANNOT} Q.i needs\n"
        "  got       if i*4 + Q.i - 1 >= 0:\n"
        "  because   its first iterations may be left out\n"
        "  hint      attach it at another loop, or leave rolling_buffer out"
    )


def test_stages_that_roll_one_inside_the_other(refusal):
    _, _, P, Q, C, s = convolution_and_pooling(11, 0, "int32")
    s[Q].compute_at(s[C], C.op.axis[1])
    s[Q].rolling_buffer()
    _f, y, _x = Q.op.axis
    s[P].compute_at(s[Q], y)
    assert refusal(s[P].rolling_buffer) == (
        f"rolling_buffer P: P {CANNOT} Q.y needs\n"
        "  because   Q has a rolling buffer as well: it leaves out iterations of Q.y\n"
        "  hint      attach it at another loop, or leave rolling_buffer out"
    )


def test_it_is_one_of_two_ways(rows, refusal):
    _A, P, _C, s = rows
    s[P].double_buffer()
    assert refusal(s[P].rolling_buffer) == (
        f"rolling_buffer P: P {CANNOT} C.i needs\n"
        "  because   P is double-buffered: the next part is computed ahead\n"
        "  hint      choose one of the two"
    )
    s.undo()
    s[P].rolling_buffer()
    assert "because   P is double-buffered" in refusal(s[P].double_buffer)


def test_shared_memory(rows, refusal):
    _A, P, C, s = rows
    j = C.op.axis[1]
    s[C].reorder(j, C.op.axis[0])
    s[C].bind(j, te.thread_axis("threadIdx.x"))
    s[P].set_scope("shared")
    assert "because   the threads of a block compute P together" in refusal(s[P].rolling_buffer)


@pytest.mark.parametrize("tag", ["threadIdx.x", "vthread"])
def test_threads_around_the_loop_have_a_buffer_each(rows, tag):
    A, P, C, s = rows
    j = C.op.axis[1]
    s[C].reorder(j, C.op.axis[0])
    s[C].bind(j, te.thread_axis(tag))
    s[P].transform_layout(lambda i, j: [i, te.AXIS_SEPARATOR, j])
    s[P].rolling_buffer()
    assert verify(s, [A, C], target="gpu")
    assert math.prod(window_of(s, [A, C])[0]) == 3


# -- readers that are rounded up ------------------------------------------------------------------


def read_through(index):
    """Q reads P, and C a window of Q: both are computed at C's loop, and P is to roll."""
    A = te.placeholder((40,), name="A")
    P = te.compute((40,), lambda i: A[i] * 2.0, name="P")
    Q = te.compute((38,), lambda i: P[i] + P[i + 2], name="Q")
    k = te.reduce_axis((0, 3), name="k")
    C = te.compute((17,), lambda x: te.sum(Q[index(x, k)], axis=k), name="C")
    s = create_schedule(C.op)
    for stage in (Q, P):
        s[stage].compute_at(s[C], C.op.axis[0])
    return s, P, Q


@pytest.mark.parametrize("rolls_first", [True, False])
def test_a_reader_that_is_rounded_up_to_the_whole_keeps_its_input_from_rolling(
    rolls_first, refusal
):
    s, P, Q = read_through(lambda x, k: x * 2 + k)
    calls = [(s[P].rolling_buffer, ()), (s[Q].align_extent, (Q.op.axis[0], 64))]
    (first, args), (last, given) = calls if rolls_first else reversed(calls)
    first(*args)
    assert refusal(last, *given).endswith(
        "P cannot keep what the next iteration of C.x needs\n"
        "  because   each iteration needs the same part\n"
        "  hint      attach it further out"
    )


@pytest.mark.parametrize("factor", [2, 4, 16])
def test_a_window_with_a_step(factor, computes):
    s, P, Q = read_through(lambda x, k: x * 2 + k - te.if_then_else(k > 1, 1, 0))
    for step in (
        lambda: s[P].rolling_buffer(), lambda: s[Q].align_extent(Q.op.axis[0], factor),
        lambda: s[P].align_extent(P.op.axis[0], factor),
    ):  # fmt: skip
        with contextlib.suppress(ScheduleError):
            step()
    computes(s)


def test_what_cannot_roll_is_refused_where_it_is_lowered(monkeypatch):
    s, P, _ = read_through(lambda x, k: x * 2 + k)
    s[P].rolling_buffer()
    reason = Illegal("limit", "P cannot keep what it needs", because="of this test", hint="none")
    monkeypatch.setattr("dlcompiler.lowering.loop_builder.moving_window", lambda *_: reason)
    with pytest.raises(ScheduleError) as error:
        lower(s, [s.stages[0].state.tensor, s.outputs[0]])
    assert str(error.value) == (
        "lower main: P cannot keep what it needs\n  because   of this test\n  hint      none"
    )
