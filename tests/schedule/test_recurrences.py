"""Recurrences scheduled: the nests, what is verified, and what is refused."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.analysis import analyze_initialisation, analyze_races
from dlcompiler.errors import CallError, ProgramError, TargetError
from dlcompiler.ir import Load, binary, rewrite
from dlcompiler.measurement.verification import verify
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import Trace, create_schedule
from dlcompiler.schedule.inference.thread_loops import uses_threads
from dlcompiler.simulate import interpret
from tests.recurrences import (
    fibonacci,
    lstm,
    lstm_in_numpy,
    rnn,
    rnn_in_numpy,
    running,
    two_stages,
    two_states,
)


def scheduled(recurrence):
    return create_schedule([tensor.op for tensor in recurrence.outputs])


def nest(s, recurrence):
    return str(lower(s, recurrence.args, simple_mode=True)).rstrip().splitlines()[1:]


def checked(s, recurrence):
    """Verify a schedule, and that its trace leads there again."""
    target = "gpu" if uses_threads(s.state) else "cpu"
    assert verify(s, recurrence.args, target=target).oracles
    again = scheduled(recurrence)
    Trace.from_json(s.trace.to_json()).replay(again)
    assert nest(again, recurrence) == nest(s, recurrence)


# -- nests ----------------------------------------------------------------------------------------


def test_the_plain_nest():
    r = two_stages(6, 5)
    assert nest(scheduled(r), r) == [
        "    for first.i in range(5):",
        "        S[0, first.i] = X[0, first.i]",
        "    for idx in range(5):",
        "        allocate s1: float32[1, 5]",
        "        for s1.i in range(5):",
        "            s1[0, s1.i] = S[idx, s1.i]*2.0",
        "        for i in range(5):",
        "            S[idx + 1, i] = s1[0, i] + X[idx + 1, i]",
    ]


def test_two_states_share_the_steps():
    r = two_states(6, 5, 3)
    assert nest(scheduled(r), r) == [
        "    for first1.i in range(5):",
        "        S.v0[0, first1.i] = X[0, first1.i]",
        "    for first2.i in range(3):",
        "        S.v1[0, first2.i] = 0.0",
        "    for idx in range(5):",
        "        for step1.i in range(5):",
        "            S.v0[idx + 1, step1.i] = S.v0[idx, step1.i] + X[idx + 1, step1.i]",
        "        for i in range(3):",
        "            S.v1[idx + 1, i] = S.v1[idx, i] + S.v0[idx, 0]",
    ]


def test_the_tutorials_schedule_of_two_stages():
    r = two_stages(6, 64)
    s = scheduled(r)
    outer, _ = s[r.s2].split(r.s2.op.axis[1], factor=32)
    s[r.s1].compute_at(s[r.s2], outer)
    assert nest(s, r)[2:] == [
        "    for idx in range(5):",
        "        for i.outer in range(2):",
        "            allocate s1: float32[1, 32]",
        "            for i in range(32):",
        "                s1[0, i] = S[idx, i.outer*32 + i]*2.0",
        "            for i.inner in range(32):",
        "                S[idx + 1, i.outer*32 + i.inner] = s1[0, i.inner] + "
        "X[idx + 1, i.outer*32 + i.inner]",
    ]
    checked(s, r)


def test_time_is_split_and_unrolled():
    r = two_stages(8, 5)
    s = scheduled(r)
    _, inner = s[r.S].split(r.S.op.scan_axis, factor=3)
    s[r.S].unroll(inner)
    assert nest(s, r)[2:5] == [
        "    for idx.outer in range(3):",
        "        for idx.inner in unrolled(3):",
        "            if idx.outer*3 + idx.inner < 7:",
    ]
    checked(s, r)
    s = scheduled(r)
    s[r.S].fuse(*s[r.S].split(r.S.op.scan_axis, factor=3))
    checked(s, r)


def test_what_reads_the_result():
    r = running(6, 5)
    C = te.compute((5, 6), lambda i, t: r.S[t, i] * 2.0, name="C")
    s = create_schedule(C.op)
    copy = s.cache_read(r.S, "local", [C])
    s[copy].compute_at(s[C], C.op.axis[0])
    assert nest(s, type(r)(r.tensors, [r.X], [C]))[0] == "    allocate S: float32[6, 5]"
    assert verify(s, [r.X, C]).oracles


# -- schedules that are right ---------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (2, 7), (13, 31), (7, 0)])
def test_running_sums(shape):
    r = running(*shape)
    s = scheduled(r)
    outer, inner = s[r.step].split(r.step.op.axis[1], factor=4)
    s[r.step].vectorize(inner)
    s[r.step].parallel(outer)
    s[r.first].vectorize(r.first.op.axis[1])
    checked(s, r)


@pytest.mark.parametrize("dtype", ["int8", "int64", "float64", "float16"])
def test_dtypes(dtype):
    r = running(7, 9, dtype, te.maximum)
    s = scheduled(r)
    s[r.step].vectorize(s[r.step].split(r.step.op.axis[1], 8)[1])
    checked(s, r)


def test_several_steps_back():
    r = fibonacci(21)
    s = scheduled(r)
    s[r.S].unroll(s[r.S].split(r.S.op.scan_axis, 4)[1])
    checked(s, r)


def test_symbolic_shapes():
    r = running(te.var("m"), te.var("n"))
    s = scheduled(r)
    s[r.step].vectorize(s[r.step].split(r.step.op.axis[1], 4)[1])
    checked(s, r)
    kernel = build(s, r.args)
    for shape in ((1, 1), (7, 5), (3, 0)):
        x, out = np.ones(shape, "float32"), np.zeros(shape, "float32")
        kernel(x, out)
        np.testing.assert_array_equal(out, np.cumsum(x, axis=0))


def test_fewer_rows_than_inits_are_refused_when_the_kernel_is_called():
    m = te.var("m")
    X, state = te.placeholder((m,), name="X"), te.placeholder((m,), name="state")
    first = te.compute((2,), lambda t: 1.0, name="first")
    step = te.compute((m,), lambda t: state[t - 2] + X[t], name="step")
    S = te.scan(first, step, state, name="S")
    kernel = build(create_schedule(S.op), [X, S])
    with pytest.raises(CallError) as caught:
        kernel(np.ones(1, "float32"), np.ones(1, "float32"))
    assert str(caught.value) == (
        "call main: S has fewer rows than its inits\n  got       m = 1\n  expected  m >= 2"
    )


def test_an_rnn_cell():
    r = rnn(5, 3, 4, 11)
    s = scheduled(r)
    time = r.H.op.scan_axis
    s[r.xs].compute_at(s[r.H], time)
    _, b, i = r.step.op.axis
    local = s.cache_write(r.hs, "local")
    s[r.hs].compute_inline()
    s[local].compute_at(s[r.step], b)
    _, inner = s[r.step].split(i, 4)
    s[r.step].vectorize(inner)
    s[r.step].parallel(b)
    rows, columns = s[r.xs].op.axis[1:]
    s[r.xs].reorder(s[r.xs].op.reduce_axis[0], rows, columns)
    s[r.xs].vectorize(columns)
    checked(s, r)
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(t.static_shape).astype("float32") for t in r.inputs]
    found = np.zeros(r.H.static_shape, "float32")
    build(s, r.args)(*arrays, found)
    np.testing.assert_allclose(found, rnn_in_numpy(*arrays), atol=1e-5)


def test_an_lstm_cell():
    r = lstm(5, 2, 3, 7)
    s = scheduled(r)
    for gate in (r.put, r.new, r.keep, r.show):
        s[gate].compute_inline()
    s[r.xs].compute_at(s[r.C], r.C.op.scan_axis)
    part = s.rfactor(r.hs, s[r.hs].split(s[r.hs].op.reduce_axis[0], 2)[1])
    s[part].vectorize(s[part].op.axis[3])
    s[r.hs].compute_at(s[r.gate], r.gate.op.axis[1])
    for step in (r.c_step, r.h_step):
        s[step].vectorize(s[step].split(step.op.axis[2], 4)[1])
    s[r.h_step].parallel(r.h_step.op.axis[1])
    checked(s, r)
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal(t.static_shape).astype("float32") for t in r.inputs]
    found = [np.zeros(t.static_shape, "float32") for t in r.outputs]
    build(s, r.args)(*arrays, *found)
    for got, wanted in zip(found, lstm_in_numpy(*arrays), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_parts_have_buffers_of_their_own():
    r = two_stages(6, 9)
    s = scheduled(r)
    local = s.cache_write(r.s2, "local")
    s[local].compute_at(s[r.s2], s[r.s2].split(s[r.s2].op.axis[1], 4)[0])
    copy = s.cache_read(r.s1, "local", [local])
    s[copy].compute_at(s[local], s[local].op.axis[1])
    s.cache_write(r.first, "local")
    s[r.s1].transform_layout(lambda t, i: [i // 4, t, i % 4])
    checked(s, r)


def test_inputs_ahead_of_their_step():
    r = running(6, 64)
    s = scheduled(r)
    copy = s.cache_read(r.X, "local", [r.step])
    s[copy].compute_at(s[r.S], r.S.op.scan_axis)
    s[copy].double_buffer()
    checked(s, r)


def test_a_state_is_copied_at_each_step():
    r = rnn(5, 3, 4, 11)
    s = scheduled(r)
    copy = s.cache_read(r.state, "local", [r.hs])
    s[copy].compute_at(s[r.hs], r.hs.op.axis[1])
    lines = [line.strip() for line in nest(s, r)]
    assert "allocate state.local: float32[1, 1, 11] in local" in lines
    assert "state.local[0, 0, ax2] = H[idx, hs.b, ax2]" in lines
    checked(s, r)
    r = lstm(4, 2, 3, 5)
    s = scheduled(r)
    s.cache_read(r.h_state, "local", [r.hs])
    s.cache_read(r.c_state, "global", [r.c_step])
    checked(s, r)
    assert 's.cache_read(lstm.op.states[1], "local", [hs])' in s.trace.to_python()


def test_stacked_cells():
    r = running(6, 4)
    state = te.placeholder((6, 4), name="state2")
    first = te.compute((1, 4), lambda t, i: r.S[t, i], name="first2")
    step = te.compute((6, 4), lambda t, i: state[t - 1, i] + r.S[t, i], name="step2")
    T = te.scan(first, step, state, name="T")
    s = create_schedule(T.op)
    s[step].vectorize(step.op.axis[1])
    assert verify(s, [r.X, T]).oracles


def test_normalize_leaves_the_steps_in_their_loop():
    r = two_stages(6, 5)
    s = scheduled(r)
    assert nest(s.normalize(), r) == nest(s, r)


def test_a_layout_that_divides_time():
    r = two_stages(8, 5)
    s = scheduled(r)
    s[r.s1].transform_layout(lambda t, i: [t // 4, i, t % 4])
    checked(s, r)


# -- threads --------------------------------------------------------------------------------------


def on_threads(s, tensor, threads=4):
    outer, inner = s[tensor].split(tensor.op.axis[1], factor=threads)
    s[tensor].bind(outer, te.thread_axis("blockIdx.x"))
    s[tensor].bind(inner, te.thread_axis("threadIdx.x"))
    return inner


@pytest.mark.parametrize("shape", [(6, 13), (te.var("m"), te.var("n"))])
def test_the_tutorials_scan_on_a_device(shape):
    r = running(*shape)
    s = scheduled(r)
    on_threads(s, r.first)
    on_threads(s, r.step)
    numpy, *others = verify(s, r.args, target="v100").oracles
    assert numpy == "numpy"
    assert all("interpreter" in name for name in others)
    kernel = build(s, r.args, target="v100")
    first, step = kernel.program.launches
    assert not first.loops
    assert [loop.var.name for loop in step.loops] == ["idx"]
    x, found = np.ones((5, 9), "float32"), np.zeros((5, 9), "float32")
    if isinstance(shape[0], int):
        x, found = np.ones(shape, "float32"), np.zeros(shape, "float32")
    kernel(x, found)
    np.testing.assert_array_equal(found, np.cumsum(x, axis=0))


def test_a_step_in_shared_memory():
    r = two_stages(6, 13)
    s = scheduled(r)
    on_threads(s, r.first)
    inner = on_threads(s, r.s2)
    s[r.s1].set_scope("shared")
    s[r.s1].compute_at(s[r.s2], inner)
    s[r.s1].bind(r.s1.op.axis[1], te.thread_axis("threadIdx.x"))
    text = "\n".join(nest(s, r))
    assert "allocate s1: float32[1, 4] in shared" in text
    assert text.count("barrier") == 2
    checked(s, r)
    with pytest.raises(TargetError, match="a CPU has no device threads"):
        build(s, r.args)


# -- analyses -------------------------------------------------------------------------------------


def test_the_analyses_see_that_it_is_right():
    r = running(6, 5)
    s = scheduled(r)
    s[r.step].parallel(r.step.op.axis[1])
    func = lower(s, r.args, simple_mode=True)
    assert analyze_races(func).status == "safe"
    assert not analyze_initialisation(func).violations


def test_the_analyses_see_what_is_wrong():
    """A step that reads the row after its own, and one that reads what its neighbours write."""
    r = running(6, 5)
    s = scheduled(r)
    s[r.step].parallel(r.step.op.axis[1])
    func = lower(s, r.args, simple_mode=True)
    state = next(buffer for buffer in func.outputs)

    def later(node):
        if isinstance(node, Load) and node.buffer is state:
            return Load(state, (binary("add", node.indices[0], 2), node.indices[1]))
        return node

    def same(node):
        if isinstance(node, Load) and node.buffer is state:
            return Load(state, (binary("add", node.indices[0], 1), 4 - node.indices[1]))
        return node

    late = func.with_body(rewrite(func.body, later))
    assert analyze_initialisation(late).status == "violated"
    racing = func.with_body(rewrite(func.body, same))
    assert analyze_races(racing).status == "violated"
    x = np.ones((6, 5), "float32")
    for wrong in (late, racing):
        with pytest.raises(ProgramError):
            interpret(wrong, [x, np.zeros_like(x)])
