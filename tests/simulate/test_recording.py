"""What the threads of a block touch, as it is recorded, against what the schedule says."""

from dataclasses import replace

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import CallError, ProgramError
from dlcompiler.ir import Barrier, ExternCall, Seq, rewrite
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.simulate import interpret
from dlcompiler.simulate.recording import launches, record_block
from tests.thread_programs import convolution, softmax, tiled_matmul

N, TILE, STEP = 32, 16, 8


def program(*args, **options):
    s, tensors = tiled_matmul(*args, **options)
    return lower(s, tensors, simple_mode=True)


def touched(phase):
    """How a phase reaches each buffer: ``{("A", "r"): {thread: offsets}}``."""
    return {
        (touch.buffer.name, "w" if touch.is_write else "r"): touch.by_thread
        for touch in phase.touches
    }


def grid():
    return [(x, y, 0) for y in range(TILE) for x in range(TILE)]


class Counting:
    """An observer that counts."""

    def __init__(self):
        self.elements = {False: 0, True: 0}
        self.barriers = 0

    def access(self, buffer, offsets, task, *, is_write):
        self.elements[is_write] += len(offsets)

    def synchronise(self, site):
        self.barriers += site is not None


def test_the_threads_read_and_write_what_the_schedule_says():
    recording = record_block(program(N, TILE, STEP), None, {"blockIdx.x": 1})
    start, load, use, *_, last = recording.phases
    assert recording.threads == (TILE, TILE, 1)
    assert recording.blocks == {"blockIdx.y": 2, "blockIdx.x": 2}
    assert recording.block == {"blockIdx.y": 0, "blockIdx.x": 1}
    assert {buffer.name for buffer in recording.private} == {"C.local"}
    assert touched(start) == {("C.local", "w"): {thread: [0] for thread in grid()}}
    seen = touched(use)
    assert seen["A.shared", "r"] == {
        (x, y, 0): [y * STEP + k for k in range(STEP)] for x, y, _ in grid()
    }
    assert seen["B.shared", "r"] == {
        (x, y, 0): [k * TILE + x for k in range(STEP)] for x, y, _ in grid()
    }
    # The block at x = 1 loads columns 16 to 31 of B, each element by one thread.
    (loaded,) = (t for t in load.touches if (t.buffer.name, t.is_write) == ("B", False))
    elements = [at for offsets in loaded.by_thread.values() for at in offsets]
    assert sorted(elements) == [k * N + TILE + x for k in range(STEP) for x in range(TILE)]
    assert touched(last)["C", "w"] == {(x, y, 0): [y * N + TILE + x] for x, y, _ in grid()}


def test_phases_begin_at_barriers_and_know_where_their_loops_are():
    recording = record_block(program(N, TILE, STEP))
    rounds = N // STEP
    assert recording.barriers == 2 * rounds
    assert [phase.start for phase in recording.phases] == [None, *[0, 1] * rounds]
    assert [phase.loops for phase in recording.phases[1:]] == [
        (("k.outer", k),) for k in range(rounds) for _ in range(2)
    ]


@pytest.mark.campaign
@pytest.mark.parametrize("make", [program, lambda: lower(*convolution(2), simple_mode=True)])
def test_one_block_after_another_is_the_whole_program(make):
    func, counting = make(), Counting()
    arrays = [np.zeros(buffer.static_shape, buffer.dtype) for buffer in func.buffers]
    report = interpret(func, arrays, observer=counting)
    assert counting.elements == {False: report.loads, True: report.stores}
    seen, barriers = {False: 0, True: 0}, 0
    for y in range(2):
        for x in range(2):
            recording = record_block(func, None, {"blockIdx.y": y, "blockIdx.x": x})
            barriers += recording.barriers
            for touch in (touch for phase in recording.phases for touch in phase.touches):
                seen[touch.is_write] += sum(map(len, touch.by_thread.values()))
    assert (seen, barriers) == (counting.elements, counting.barriers)


@pytest.mark.campaign
def test_virtual_threads_are_the_thread_that_runs_them():
    recording = record_block(program(64, TILE, STEP, 2))
    assert (recording.threads, recording.vthreads) == ((TILE, TILE, 1), 4)
    reads = touched(recording.phases[2])["A.shared", "r"]
    rows = {at // STEP for at in reads[3, 5, 0]}
    assert rows == {5, 5 + TILE}, "of both virtual threads along y"
    # Each virtual thread has a copy of what is private.
    assert sorted(touched(recording.phases[0])["C.local", "w"][3, 5, 0]) == [0, 1, 2, 3]


def test_a_loop_round_the_threads_begins_a_phase_without_a_barrier():
    recording = record_block(lower(*convolution(), simple_mode=True))
    starts = [n for n, phase in enumerate(recording.phases) if phase.start is None]
    assert starts == [0, 9, 18, 27], "four channels of the block, one after the other"


def test_threads_that_have_ended_begin_another_phase():
    phases = record_block(lower(*softmax(), simple_mode=True)).phases
    names = [{f"{name} {way}" for name, way in touched(phase)} for phase in phases]
    assert [n for n, phase in enumerate(phases) if phase.start is None] == [
        0,
        *range(5, 10),
        *range(14, 18),
    ]
    assert names[5] == {"A r", "M r", "E w"}, "what one nest of threads writes …"
    assert names[9] >= {"E r", "S.part w"}, "… another reads in a phase of its own"


def test_a_reduction_that_threads_share_is_a_tree():
    phases = record_block(lower(*softmax(), simple_mode=True)).phases
    writers = [len(touched(phase).get(("M.parts", "w"), ())) for phase in phases[:5]]
    assert writers == [8, 4, 2, 1, 0]


def test_lanes_of_a_vector_are_accesses_of_their_thread():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    i, lanes = s[B].split(B.op.axis[0], 4)
    s[B].bind(i, te.thread_axis("threadIdx.x"))
    s[B].vectorize(lanes)
    for simple in (True, False):
        (phase,) = record_block(lower(s, [A, B], simple_mode=simple)).phases
        assert touched(phase)["B", "w"] == {
            (x, 0, 0): [4 * x + n for n in range(4)] for x in range(16)
        }


def two_launches():
    A = te.placeholder((8,), name="A")
    P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
    Q = te.compute((8,), lambda i: P[7 - i] + 1.0, name="Q")
    s = create_schedule(Q.op)
    for stage in (P, Q):
        block, thread = s[stage].split(stage.op.axis[0], 4)
        s[stage].bind(block, te.thread_axis("blockIdx.x"))
        s[stage].bind(thread, te.thread_axis("threadIdx.x"))
    return lower(s, [A, Q], simple_mode=True)


def test_the_launches_before_run_and_are_not_recorded():
    func = two_launches()
    first, last = launches(func)
    (phase,) = record_block(func, last, {"blockIdx.x": 1}).phases
    assert touched(phase) == {
        ("P", "r"): {(x, 0, 0): [3 - x] for x in range(4)},
        ("Q", "w"): {(x, 0, 0): [4 + x] for x in range(4)},
    }
    (phase,) = record_block(func, first).phases
    assert {name for name, _ in touched(phase)} == {"A", "P"}


# -- what is refused -----------------------------------------------------------------------------


def plain(shape):
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *i: A[i] + 1.0, name="B")
    return create_schedule(B.op), A, B


def bound(shape):
    s, A, B = plain(shape)
    s[B].bind(s[B].op.axis[0], te.thread_axis("threadIdx.x"))
    return lower(s, [A, B], simple_mode=True)


def refused(func, **options):
    with pytest.raises(CallError) as caught:
        record_block(func, **options)
    return str(caught.value)


def test_a_program_without_threads_is_refused():
    s, A, B = plain((8,))
    assert refused(lower(s, [A, B])) == (
        "record a block of main: none of its loops is bound to the threads of a block\n"
        '  hint      s[B].bind(loop, te.thread_axis("threadIdx.x"))'
    )


def test_sizes_that_are_known_only_at_a_call_are_refused():
    assert "its sizes are symbolic" in refused(bound((te.var("n"),)))


@pytest.mark.parametrize(
    ("block", "got"),
    [
        ({"blockIdx.x": 2}, "blockIdx.x=2"),
        ({"blockIdx.y": -1}, "blockIdx.y=-1"),
        ({"blockIdx.z": 0}, "blockIdx.z=0"),
    ],
)
def test_a_block_that_there_is_not_is_refused(block, got):
    assert refused(program(), block=block) == (
        f"record a block of main: there is no such block\n  got       {got}\n"
        "  expected  blockIdx.y < 2, blockIdx.x < 2"
    )


def test_a_launch_of_one_block_has_no_index():
    assert "no index: the launch is one block" in refused(bound((8,)), block={"blockIdx.x": 0})


def test_a_loop_that_is_no_launch_is_refused():
    other = launches(program(16, 4, 4))[0]
    assert refused(program(), launch=other) == (
        "record a block of main: the loop is not a launch of this program\n"
        "  got       i.outer\n  expected  i.outer"
    )


def test_code_from_outside_is_refused():
    func = program()
    call = ExternCall("elsewhere", "packed", ())
    body = rewrite(func.body, lambda node: call if isinstance(node, Barrier) else node)
    assert refused(replace(func, body=body)) == (
        "record a block of main: it calls code from outside, whose accesses cannot be recorded"
    )


def test_a_long_run_is_refused_with_what_to_do():
    text = refused(program(2048, 16, 16))
    assert "one block takes too many steps to be recorded" in text
    assert "at most 500,000" in text
    assert "hint      replay the steps on a smaller shape: s.trace.replay(…)" in text


def test_large_arrays_are_refused():
    s, A, B = plain((4096, 4096))
    block, thread = s[B].split(B.op.axis[1], 8)
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.y"))
    s[B].bind(block, te.thread_axis("blockIdx.x"))
    s[B].bind(thread, te.thread_axis("threadIdx.x"))
    text = refused(lower(s, [A, B], simple_mode=True))
    assert "its arrays are too large to be recorded\n  got       33,554,432 elements" in text


def test_a_wrong_program_stops_the_recording():
    func = program()
    body = rewrite(func.body, lambda node: Seq(()) if isinstance(node, Barrier) else node)
    with pytest.raises(ProgramError, match=r"A\.shared\[0, 1\] is read before it is"):
        record_block(replace(func, body=body))
