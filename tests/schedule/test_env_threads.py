"""All steps of a scan in one launch: the nests, what is verified, what is refused."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.pipeline import build, lower, races
from dlcompiler.simulate import interpret
from tests.recurrences import Recurrence, lstm, rnn, rnn_in_numpy, running, two_stages, two_states
from tests.schedule.test_recurrence_refusals import refused
from tests.schedule.test_recurrences import checked, nest, scheduled

BX, TX = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")


def launched(r, scan, *threads):
    """Return a schedule whose steps run in one launch, with loops of first and later rows bound."""
    s = scheduled(r)
    s[scan].env_threads([te.thread_axis(count, tag) for tag, count in threads])
    return s


def bound(s, tensor, axis, factor, tags=("blockIdx.x", "threadIdx.x")):
    """Split an axis of a stage, and bind the two parts."""
    for part, tag in zip(s[tensor].split(axis, factor=factor), tags, strict=True):
        s[tensor].bind(part, tag)


def running_sums(m, n, blocks, threads):
    r = running(m, n)
    s = launched(r, r.S, ("blockIdx.x", blocks), ("threadIdx.x", threads))
    for tensor in (r.first, r.step):
        bound(s, tensor, tensor.op.axis[1], threads)
    return r, s


def test_the_loop_over_time_is_inside_the_threads():
    r, s = running_sums(6, 60, 4, 16)
    assert nest(s, r)[4:] == [
        "    for bx in blockIdx.x(4):",
        "        for tx in threadIdx.x(16):",
        "            for idx in range(5):",
        "                if bx*16 + tx < 60:",
        "                    S[idx + 1, bx*16 + tx] = S[idx, bx*16 + tx] + X[idx + 1, bx*16 + tx]",
        "                barrier",
    ]
    assert races(s).status == "safe"
    checked(s, r)


def test_its_loops_have_names_in_python():
    r = running(6, 8)
    s = scheduled(r)
    (tx,) = s[r.S].env_threads(te.thread_axis(8, "threadIdx.x"))
    s[r.step].bind(r.step.op.axis[1], TX)
    copy = s.cache_read(r.X, "shared", [r.step])
    s[copy].compute_at(s[r.S], tx)
    assert s.can("compute_at", s[copy], s[r.S], tx)
    text = s.trace.to_python()
    assert '(tx,) = s[S].env_threads([te.thread_axis(8, "threadIdx.x")])' in text
    assert "s[X_shared].compute_at(s[S], tx)" in text


def test_it_is_offered_for_a_gpu():
    r = running(6, 8)
    s = scheduled(r)
    threads = [te.thread_axis(2, "blockIdx.x"), te.thread_axis(4, "threadIdx.x")]
    assert s.can("env_threads", s[r.S], threads)
    assert not s.can("env_threads", s[r.step], threads)
    offered = [move for move in s.moves(s[r.S], "v100") if move.primitive == "env_threads"]
    assert [bool(move.verdict) for move in offered] == [True] * 3
    assert not [move for move in s.moves(s[r.S]) if move.primitive == "env_threads"]
    s.apply("env_threads", "S", offered[0].args)
    assert not [move for move in s.moves(s[r.S], "v100") if move.primitive == "env_threads"]


def test_it_is_one_kernel():
    r, s = running_sums(6, 60, 4, 16)
    kernel = build(s, r.args, target="v100")
    assert "2 kernels" in repr(kernel), "the first row, and all steps"
    X, S = np.random.default_rng(0).random((6, 60), "float32"), np.zeros((6, 60), "float32")
    kernel(X, S)
    np.testing.assert_allclose(S, np.cumsum(X, axis=0), rtol=1e-6)


def test_a_step_reads_what_other_threads_wrote():
    """Without the barrier after each step it is a race, which the analysis and a run both find."""
    r = two_stages(5, 12)
    mirror = te.compute((5, 12), lambda t, i: r.state[t - 1, 11 - i] + r.X[t, i], name="mirror")
    S = te.scan(r.first, mirror, r.state, name="S")
    s = te.create_schedule(S.op)
    s[S].env_threads(te.thread_axis(12, "threadIdx.x"))
    s[mirror].bind(mirror.op.axis[1], TX)
    s[r.first].bind(r.first.op.axis[1], TX)
    func = lower(s, [r.X, S], simple_mode=True)
    assert str(func).count("barrier") == 1
    assert races(func).status == "safe"
    checked(s, Recurrence({}, [r.X], [S]))


def test_a_recurrent_network_in_one_launch():
    r = rnn(5, 3, 4, 20)
    s = launched(r, r.H, ("blockIdx.x", 3), ("threadIdx.x", 8))
    for tensor in (r.first, r.xs, r.step):
        inner = s[tensor].split(tensor.op.axis[2], factor=8)[1]
        s[tensor].bind(tensor.op.axis[1], BX)
        s[tensor].bind(inner, TX)
    s[r.hs].set_scope("shared")
    bound_to = s[r.hs].split(r.hs.op.axis[2], factor=8)[1]
    s[r.hs].bind(bound_to, TX)
    assert races(s).status == "safe"
    checked(s, r)
    arrays = [np.random.default_rng(n).normal(size=t.shape) for n, t in enumerate(r.inputs)]
    arrays = [array.astype("float32") for array in arrays]
    for order in (None, 3):
        result = np.zeros((5, 3, 20), "float32")
        interpret(lower(s, r.args), [*arrays, result], order=order)
        np.testing.assert_allclose(result, rnn_in_numpy(*arrays), rtol=1e-4, atol=1e-5)


def test_weights_are_loaded_once_before_the_first_step():
    r = rnn(4, 2, 3, 8)
    s = launched(r, r.H, ("blockIdx.x", 2), ("threadIdx.x", 8))
    for tensor in (r.first, r.xs, r.step):
        s[tensor].bind(tensor.op.axis[1], BX)
        s[tensor].bind(tensor.op.axis[2], TX)
    weights = s.cache_read(r.Wh, "shared", [r.hs])
    s[weights].compute_at(s[r.H], TX)
    s[weights].bind(s[weights].op.axis[0], TX)
    text = "\n".join(nest(s, r))
    assert text.index("Wh.shared[") < text.index("for idx")
    checked(s, r)


def test_states_are_read_from_shared_memory():
    r = rnn(4, 2, 3, 8)
    s = launched(r, r.H, ("blockIdx.x", 2), ("threadIdx.x", 8))
    for tensor in (r.first, r.xs, r.step):
        s[tensor].bind(tensor.op.axis[1], BX)
        s[tensor].bind(tensor.op.axis[2], TX)
    copy = s.cache_read(r.state, "shared", [r.hs])
    s[copy].bind(s[copy].op.axis[2], TX)
    s[r.hs].compute_at(s[r.step], r.step.op.axis[2])
    assert "barrier" in str(lower(s, r.args))
    checked(s, r)


def test_threads_share_a_reduction_of_each_step():
    """The blocks alone are around the steps: the threads of each step synchronise."""
    r = rnn(4, 2, 3, 8)
    s = launched(r, r.H, ("blockIdx.x", 2))
    for tensor in (r.first, r.xs, r.step):
        s[tensor].bind(tensor.op.axis[1], BX)
        s[tensor].bind(tensor.op.axis[2], TX)
    s[r.hs].set_scope("shared")
    s[r.hs].bind(s[r.hs].op.reduce_axis[0], TX)
    checked(s, r)


@pytest.mark.parametrize("parts", [{"factor": 2}, {"factor": 3}, {"nparts": 2}])
def test_time_is_split(parts):
    r, s = running_sums(9, 20, 3, 8)
    s[r.S].split(r.S.op.scan_axis, **parts)
    assert races(s).status == "safe"
    checked(s, r)


def test_the_guard_of_the_last_steps_is_inside_the_barriers():
    r, s = running_sums(9, 16, 2, 8)
    s[r.S].split(r.S.op.scan_axis, factor=3)
    assert nest(s, r)[3:] == [
        "    for bx in blockIdx.x(2):",
        "        for tx in threadIdx.x(8):",
        "            for idx.outer in range(3):",
        "                for idx.inner in range(3):",
        "                    if idx.outer*3 + idx.inner + 1 < 9:",
        "                        S[idx.outer*3 + idx.inner + 1, bx*8 + tx] = "
        "S[idx.outer*3 + idx.inner, bx*8 + tx] + X[idx.outer*3 + idx.inner + 1, bx*8 + tx]",
        "                    barrier",
    ]


def test_states_of_different_shapes_in_one_block():
    r = two_states(6, 5, 3)
    s = launched(r, r.S, ("threadIdx.x", 5))
    for tensor in (r.first1, r.first2, r.step1, r.step2):
        s[tensor].bind(tensor.op.axis[1], TX)
    text = "\n".join(nest(s, r))
    assert "if tx < 3:" in text
    checked(s, r)


def test_one_thread_computes_what_no_loop_is_bound_for():
    r = two_stages(5, 6)
    s = launched(r, r.S, ("threadIdx.x", 4))
    s[r.first].bind(r.first.op.axis[1], TX)
    assert "            if tx < 1:" in "\n".join(nest(s, r))
    checked(s, r)


def test_any_length_of_time():
    m, n = te.var("m"), te.var("n")
    r = running(m, n)
    s = launched(r, r.S, ("blockIdx.x", 4), ("threadIdx.x", 8))
    bound(s, r.first, r.first.op.axis[1], 8)
    outer, _ = s[r.step].split(r.step.op.axis[1], nparts=32)
    block, thread = s[r.step].split(outer, factor=8)
    s[r.step].bind(block, BX)
    s[r.step].bind(thread, TX)
    assert races(s).status == "safe"
    func = lower(s, r.args)
    for shape in ((1, 1), (2, 40), (7, 33)):
        X, S = np.random.default_rng(0).random(shape, "float32"), np.zeros(shape, "float32")
        interpret(func, [X, S])
        np.testing.assert_allclose(S, np.cumsum(X, axis=0), rtol=1e-6)


def test_a_long_short_term_memory():
    r = lstm(3, 2, 3, 4)
    s = launched(r, r.outputs[0], ("blockIdx.x", 2), ("threadIdx.x", 4))
    for stage in list(s.stages):
        if stage.name in ("c_step", "h_step", "c_first", "h_first"):
            batch, unit = stage.op.axis[1:]
            stage.bind(batch, BX)
            stage.bind(unit, TX)
    for tensor in (r.xs,):
        s[tensor].bind(tensor.op.axis[2], BX)
    assert races(s).status == "safe"
    checked(s, r)


# -- what is refused ------------------------------------------------------------------------------

HINT = (
    "  hint      give blocks first, then threads, each with its number: "
    '"blockIdx.x=4 threadIdx.x=32"'
)


@pytest.mark.parametrize(
    ("threads", "reason"),
    [
        ("", "these are no thread axes with their numbers"),
        ("threadIdx.x", "these are no thread axes with their numbers"),
        ("threadIdx.x=0", "these are no thread axes with their numbers"),
        ("threadIdx.w=4", "these are no thread axes with their numbers"),
        ("vthread=4", "a launch has each axis of its blocks and threads once"),
        ("threadIdx.x=4 threadIdx.x=4", "a launch has each axis of its blocks and threads once"),
        ("threadIdx.x=4 blockIdx.x=4", "blocks would be inside the threads of a block"),
    ],
)
def test_what_is_no_launch(threads, reason):
    r = running(6, 5)
    s = scheduled(r)
    refused(
        lambda: s[r.S].env_threads(threads),
        f"env_threads S: {reason}",
        f"  got       {threads!r}",
        HINT,
    )


def test_an_axis_without_a_number():
    r = running(6, 5)
    with pytest.raises(ScheduleError, match="no thread axes with their numbers"):
        scheduled(r)[r.S].env_threads([BX])


def test_only_a_scan_has_steps():
    r = running(6, 5)
    s = scheduled(r)
    refused(
        lambda: s[r.step].env_threads("threadIdx.x=4"),
        "env_threads step: step is no scan",
        "  hint      bind the loops of step themselves",
    )


def test_once():
    r, s = running_sums(6, 60, 4, 16)
    refused(
        lambda: s[r.S].env_threads("threadIdx.x=4"),
        "env_threads S: the steps of S run on threads already",
        "  got       blockIdx.x, 4, threadIdx.x, 16",
        "  hint      undo that step, and give all thread axes at once",
    )


def test_the_threads_of_a_launch_are_no_loops_to_change():
    r, s = running_sums(6, 60, 4, 16)
    for axis in s[r.S].leaf_iter_vars[:2]:
        for change in (lambda a: s[r.S].split(a, 2), s[r.S].unroll, lambda a: s[r.S].bind(a, TX)):
            with pytest.raises(ScheduleError, match="already"):
                change(axis)
    with pytest.raises(ScheduleError, match="already"):
        s[r.S].fuse(*s[r.S].leaf_iter_vars[1:3])


def test_blocks_that_would_all_compute_the_rows():
    r = running(6, 60)
    s = launched(r, r.S, ("blockIdx.x", 4))
    with pytest.raises(ScheduleError) as caught:
        lower(s, r.args)
    assert "each block of S.bx would compute all of step" in str(caught.value)
    assert "bind a loop of step to blockIdx.x" in str(caught.value)


def test_more_iterations_than_threads():
    r = running(6, 60)
    s = launched(r, r.S, ("threadIdx.x", 16))
    s[r.step].bind(r.step.op.axis[1], TX)
    with pytest.raises(
        ScheduleError, match=r"step.i has 60 iterations, and threadIdx.x 16 threads"
    ):
        lower(s, r.args)


def test_more_blocks_than_parts():
    r = rnn(4, 3, 4, 5)
    s = launched(r, r.H, ("blockIdx.x", 4))
    s[r.step].bind(r.step.op.axis[1], BX)
    with pytest.raises(ScheduleError) as caught:
        lower(s, r.args)
    assert "step.b has 3 iterations, and blockIdx.x 4 blocks, those of H.bx" in str(caught.value)


def test_blocks_whose_stages_would_be_larger_than_their_part():
    X = te.placeholder((5, 3, 4), name="X")
    state = te.placeholder((5, 3, 4), name="state")
    first = te.compute((1, 3, 4), lambda t, i, j: X[0, i, j], name="first")
    half = te.compute((5, 3, 4), lambda t, i, j: state[t - 1, i, j] / 2, name="half")
    step = te.compute((5, 3, 4), lambda t, i, j: half[t, i, j] + X[t, i, j], name="step")
    S = te.scan(first, step, state, name="S")
    s = te.create_schedule(S.op)
    s[S].env_threads("blockIdx.x=2")
    outer, _ = s[step].split(s[step].fuse(*step.op.axis[1:]), nparts=2)
    with pytest.raises(ScheduleError) as caught:
        s[step].bind(outer, BX)
    assert "half is computed for more than a block's part of state" in str(caught.value)
    s[half].compute_inline()
    s[step].bind(outer, BX)
    s[first].bind(first.op.axis[1], BX)
    assert races(s).status == "safe"
    checked(s, Recurrence({}, [X], [S]))


def test_blocks_that_take_turns():
    """A block's part of the batch may be every second element: no span of them is one block's."""
    r = rnn(4, 6, 3, 5)
    s = launched(r, r.H, ("blockIdx.x", 2))
    _, inner = s[r.step].split(r.step.op.axis[1], factor=2)
    with pytest.raises(ScheduleError, match="hs is computed for more than a block's part of state"):
        s[r.step].bind(inner, BX)
    s[r.hs].compute_at(s[r.step], inner)
    s[r.step].bind(inner, BX)
    s[r.first].bind(r.first.op.axis[1], BX)
    s[r.xs].bind(r.xs.op.axis[1], BX)
    assert races(s).status == "safe"
    checked(s, r)


def test_blocks_that_are_not_around_the_steps():
    r = running(6, 60)
    s = launched(r, r.S, ("threadIdx.x", 16))
    bound(s, r.step, r.step.op.axis[1], 16)
    with pytest.raises(
        ScheduleError, match=r"step.i.outer is bound to blockIdx.x, and no loop aro"
    ):
        lower(s, r.args)


def test_blocks_that_read_what_others_wrote():
    r = rnn(5, 3, 4, 20)
    s = launched(r, r.H, ("blockIdx.x", 5))
    outer, _ = s[r.step].split(r.step.op.axis[2], factor=4)
    refused(
        lambda: s[r.step].bind(outer, BX),
        "bind step.i.outer: a block would need what other blocks compute: hs reads "
        "state[t - 1, b, kh]",
        "  got       step.i.outer, bound to blocks that run all steps of H",
        "  because   blocks of one launch cannot synchronise, and each computes a part of each "
        "step",
        "  hint      let the threads of one block share the steps: env_threads of threadIdx alone, "
        "or bind a batch axis to the blocks",
    )


def test_states_that_blocks_share_out_in_different_ways():
    X = te.placeholder((5, 8), name="X")
    a, b = te.placeholder((5, 8), name="a"), te.placeholder((5, 8), name="b")
    first_a = te.compute((1, 8), lambda t, i: X[0, i], name="first_a")
    first_b = te.compute((1, 8), lambda t, i: X[0, i], name="first_b")
    step_a = te.compute((5, 8), lambda t, i: b[t - 1, i] + X[t, i], name="step_a")
    step_b = te.compute((5, 8), lambda t, i: a[t - 1, i] * X[t, i], name="step_b")
    A, B = te.scan([first_a, first_b], [step_a, step_b], [a, b], name="S")
    s = te.create_schedule([A.op, B.op])
    s[A].env_threads("blockIdx.x=4")
    outer, _ = s[step_a].split(step_a.op.axis[1], factor=2)
    s[step_a].bind(outer, BX)
    inner = s[step_b].split(step_b.op.axis[1], nparts=2)[1]
    refused(
        lambda: s[step_b].bind(inner, BX),
        "bind step_b.i.inner: the blocks of step_a.i.outer and step_b.i.inner have other elements "
        "of one batch",
        "  because   blocks cannot synchronise: each may read only what it computed itself",
        "  hint      split both by the same numbers",
    )
