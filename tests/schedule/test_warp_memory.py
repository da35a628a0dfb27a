"""Memory of a warp: shared by the threads along x, and by no others."""

import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import ScheduleError, TargetError
from dlcompiler.pipeline import SimulatedKernel, lower
from dlcompiler.schedule import create_schedule
from tests.schedule.test_device_programs import agrees, bound

TX = te.thread_axis("threadIdx.x")


def reversed_rows(n, m, lanes, rows):
    """Each thread takes what another thread of its warp has loaded."""
    A = te.placeholder((n, m), name="A")
    B = te.compute((n, m), lambda i, j: A[i, m - 1 - j] + 1.0, name="B")
    s = create_schedule(B.op)
    AA = s.cache_read(A, "warp", [B])
    i, j = B.op.axis
    io, ii = s[B].split(i, rows)
    jo, ji = s[B].split(j, lanes)
    s[B].reorder(io, jo, ii, ji)
    bound(s, B, (io, jo, ii, ji), ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x"))
    s[AA].compute_at(s[B], ji)
    s[AA].bind(s[AA].op.axis[1], TX)
    return s, [A, B], AA


@pytest.mark.parametrize("case", [(5, 16, 8, 2), (4, 7, 8, 4), (1, 1, 1, 1), (3, 12, 4, 3)])
def test_threads_read_what_their_neighbours_loaded(case):
    s, args, _ = reversed_rows(*case)
    assert agrees(s, args)


def test_a_gpu_has_such_memory():
    s, args, _ = reversed_rows(5, 16, 8, 2)
    assert isinstance(dlc.build(s, args, target="v100"), SimulatedKernel)


def test_it_stands_outside_the_threads_along_x_alone():
    s, args, _ = reversed_rows(4, 8, 8, 2)
    lines = str(lower(s, args, simple_mode=True)).splitlines()
    at = next(n for n, line in enumerate(lines) if "A.warp: float32[1, 8] in warp" in line)
    assert "threadIdx.y" in lines[at - 1]
    assert "threadIdx.x" in lines[at + 1]


def test_a_load_that_is_not_shared_out_is_the_work_of_the_first():
    A = te.placeholder((6, 8), name="A")
    B = te.compute((6, 8), lambda i, j: A[i, 7 - j], name="B")
    s = create_schedule(B.op)
    AA = s.cache_read(A, "warp", [B])
    bound(s, B, B.op.axis, ("threadIdx.y", "threadIdx.x"))
    s[AA].compute_at(s[B], B.op.axis[1])
    assert agrees(s, [A, B])


def test_other_threads_do_not_share_it():
    s, _, AA = reversed_rows(4, 8, 8, 2)
    with pytest.raises(ScheduleError) as caught:
        s[AA].bind(s[AA].op.axis[0], te.thread_axis("threadIdx.y"))
    assert str(caught.value) == (
        "bind A.warp.ax0: the threads of A.warp.ax0 do not share the memory of a warp\n"
        "  got       A.warp.ax0, threadIdx.y, for A.warp in warp memory\n"
        "  because   it is shared along threadIdx.x, the axis whose threads are neighbours\n"
        '  hint      bind to threadIdx.x, as the innermost loop of threads, or use "shared"'
    )


def test_the_threads_along_x_are_the_innermost():
    A = te.placeholder((4, 8), name="A")
    B = te.compute((4, 8), lambda i, j: A[i, 7 - j], name="B")
    s = create_schedule(B.op)
    AA = s.cache_read(A, "warp", [B])
    bound(s, B, B.op.axis, ("threadIdx.x", "threadIdx.y"))
    with pytest.raises(ScheduleError, match=r"the threads of B\.j do not share the memory"):
        s[AA].compute_at(s[B], B.op.axis[1])


def test_it_is_owed_threads():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[7 - i], name="B")
    s = create_schedule(B.op)
    AA = s.cache_read(A, "warp", [B])
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.y"))
    s[AA].compute_at(s[B], B.op.axis[0])
    with pytest.raises(ScheduleError, match="in warp memory, and computed outside any warp"):
        lower(s, [A, B])


def test_a_warp_has_only_so_many_threads():
    s, args, _ = reversed_rows(4, 24, 24, 1)
    with pytest.raises(TargetError) as caught:
        dlc.build(s, args, target="v100")
    assert str(caught.value) == (
        "build main for v100: the threads of j.inner share warp memory, but may belong to several "
        "warps\n"
        "  got       threadIdx.x 24\n"
        "  expected  a number that divides 32\n"
        '  hint      split the loop by such a number, or use "shared"'
    )


def test_no_threads_share_nothing():
    A = te.placeholder((0, 8), name="A")
    B = te.compute((0, 8), lambda i, j: A[i, 7 - j], name="B")
    s = create_schedule(B.op)
    AA = s.cache_read(A, "warp", [B])
    bound(s, B, [B.op.axis[0]], ("threadIdx.x",))
    s[AA].compute_at(s[B], B.op.axis[1])
    assert isinstance(dlc.build(s, [A, B], target="v100"), SimulatedKernel)
