"""Double buffers that threads share: filled by all of them for the next iteration."""

import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError, TargetError
from dlcompiler.ir import Barrier, For, If
from dlcompiler.passes.base import statements
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import create_schedule
from tests.schedule.test_device_programs import agrees, bound, load_together

GRID = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")


def product(rows, columns, length):
    A, B = te.placeholder((rows, length), name="A"), te.placeholder((length, columns), name="B")
    k = te.reduce_axis((0, length), name="k")
    return [
        A, B,
        te.compute((rows, columns), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C"),
    ]  # fmt: skip


class Classic:
    """A product in tiles: of each, threads load a part of both inputs at a time."""

    def __init__(self, args, tile=4, step=4, scope="shared"):
        self.args = args
        A, B, self.C = args
        self.s = s = create_schedule(self.C.op)
        self.CL = s.cache_write(self.C, "local")
        self.AA, self.BB = (s.cache_read(tensor, scope, [self.CL]) for tensor in (A, B))
        self.tiles = s[self.C].tile(*self.C.op.axis, tile, tile)
        bound(s, self.C, self.tiles, GRID)
        s[self.CL].compute_at(s[self.C], self.tiles[-1])
        self.ko, self.ki = s[self.CL].split(s[self.CL].op.reduce_axis[0], step)
        s[self.CL].reorder(self.ko, self.ki, *s[self.CL].op.axis)
        for load in (self.AA, self.BB):
            s[load].compute_at(s[self.CL], self.ko)
            load_together(s, load, [("threadIdx.y", tile), ("threadIdx.x", tile)])

    def double(self, *stages):
        for stage in stages or (self.AA, self.BB):
            self.s[stage].double_buffer()
        return self

    def lowered(self):
        return lower(self.s, self.args, target="gpu")

    def agrees(self):
        return all(agrees(self.s, self.args, seed) for seed in range(2))


def barriers(func):
    """Return how many barriers stand in the loops of a program, and how many elsewhere."""
    inside = {
        id(part)
        for loop in statements(func.body)
        if isinstance(loop, For) and loop.kind == "serial"
        for part in statements(loop.body)
    }
    found = [part for part in statements(func.body) if isinstance(part, Barrier)]
    return sum(id(part) in inside for part in found), len(found)


def test_the_classic_form(golden):
    case = Classic(product(8, 8, 16)).double()
    golden("classic", str(case.lowered()))
    assert case.agrees()


@pytest.mark.campaign
@pytest.mark.parametrize(
    "shape", [(8, 8, 4), (8, 8, 8), (4, 4, 12), (5, 7, 13), (1, 1, 1), (3, 9, 20)]
)
@pytest.mark.parametrize("step", [1, 3, 4])
def test_results(shape, step):
    assert Classic(product(*shape), step=step).double().agrees()


def test_one_barrier_in_each_iteration():
    single = Classic(product(8, 8, 16))
    assert barriers(single.lowered()) == (2, 2)
    assert barriers(single.double().lowered()) == (1, 1)


def test_beside_a_buffer_that_is_single_the_barriers_stay():
    case = Classic(product(8, 8, 16))
    case.double(case.AA)
    assert barriers(case.lowered()) == (2, 2)
    assert case.agrees()


@pytest.mark.parametrize("length", [4, 8, 12, 13])
def test_a_loop_that_runs_again_waits_for_the_readers_of_the_last_time(length):
    """The first half is filled again while other threads may still read it."""
    A, _, C = args = product(8, 8, length)
    s = create_schedule(C.op)
    CL = s.cache_write(C, "local")
    AA = s.cache_read(A, "shared", [CL])
    i, j = s[C].op.axis
    bound(s, C, (j,), ("threadIdx.x",))
    s[C].reorder(j, i)
    s[CL].compute_at(s[C], i)
    ko, ki = s[CL].split(s[CL].op.reduce_axis[0], 4)
    s[CL].reorder(ko, ki, *s[CL].op.axis)
    s[AA].compute_at(s[CL], ko)
    load_together(s, AA, [("threadIdx.x", 8)])
    s[AA].double_buffer()
    assert barriers(lower(s, args, target="gpu"))[1] == 2
    assert agrees(s, args)


@pytest.mark.parametrize("vthreads", [2, 3])
def test_virtual_threads(vthreads):
    args = product(6 * vthreads, 4 * vthreads, 10)
    A, B, C = args
    s = create_schedule(C.op)
    CL = s.cache_write(C, "local")
    AA, BB = (s.cache_read(tensor, "shared", [CL]) for tensor in (A, B))
    (vy, y), (vx, x) = (s[C].split(axis, nparts=vthreads) for axis in C.op.axis)
    s[C].reorder(vy, vx, y, x)
    bound(s, C, (vy, vx, y, x), ("vthread", "vthread", "threadIdx.y", "threadIdx.x"))
    s[CL].compute_at(s[C], x)
    ko, ki = s[CL].split(s[CL].op.reduce_axis[0], 3)
    s[CL].reorder(ko, ki, *s[CL].op.axis)
    for load in (AA, BB):
        s[load].compute_at(s[CL], ko)
        load_together(s, load, [("threadIdx.y", 6), ("threadIdx.x", 4)])
        s[load].double_buffer()
    assert agrees(s, args)


def test_memory_of_each_thread():
    case = Classic(product(8, 8, 16))
    AL = case.s.cache_read(case.AA, "local", [case.CL])
    case.s[AL].compute_at(case.s[case.CL], case.ki)
    case.double(AL)
    assert case.agrees()
    case.double()
    assert case.agrees()
    assert barriers(case.lowered()) == (1, 1)


def test_registers_that_a_warp_shares():
    A = te.placeholder((12, 8), name="A")
    C = te.compute((12, 8), lambda i, j: A[i, 7 - j] * 2.0, name="C")
    s = create_schedule(C.op)
    AA = s.cache_read(A, "warp", [C])
    i, j = C.op.axis
    s[C].reorder(j, i)
    bound(s, C, (j,), ("threadIdx.x",))
    s[AA].compute_at(s[C], i)
    load_together(s, AA, [("threadIdx.x", 8)])
    s[AA].double_buffer()
    assert agrees(s, [A, C])


def test_what_the_threads_load_in_loops_around_them():
    """The loop over k stands around the loops of the threads: no barrier is needed there."""
    A = te.placeholder((6, 8), name="A")
    C = te.compute((6, 8), lambda i, j: A[i, 7 - j] * 2.0, name="C")
    s = create_schedule(C.op)
    AA = s.cache_read(A, "shared", [C])
    i, j = C.op.axis
    block, i = s[C].split(i, 3)
    bound(s, C, (block, j), ("blockIdx.x", "threadIdx.x"))
    s[AA].compute_at(s[C], i)
    s[AA].bind(s[AA].op.axis[1], te.thread_axis("threadIdx.x"))
    s[AA].double_buffer()
    func = lower(s, [A, C], target="gpu")
    assert "float32[2, 1, 8] in shared" in str(func)
    assert barriers(func) == (0, 0)
    assert agrees(s, [A, C])


def test_what_threads_reduce_together():
    A = te.placeholder((3, 4, 16), name="A")
    k = te.reduce_axis((0, 16), name="k")
    P = te.compute((3, 4), lambda i, j: te.sum(A[i, j, k], axis=k), name="P")
    C = te.compute((3, 16, 4), lambda i, t, j: P[i, j] * 2.0, name="C")
    s = create_schedule(C.op)
    i, t, j = C.op.axis
    s[C].reorder(i, j, t)
    bound(s, C, (i, t), ("blockIdx.x", "threadIdx.x"))
    s[C].reorder(i, t, j)
    s[P].set_scope("shared")
    s[P].compute_at(s[C], j)
    s[P].double_buffer()
    assert agrees(s, [A, C])


def test_two_results_of_one_stage():
    A = te.placeholder((16, 8), name="A")
    P, Q = te.compute((16, 8), lambda i, j: (A[i, j] * 2.0, A[i, j] + 1.0), name="P")
    C = te.compute((16, 8), lambda i, j: P[i, j] + Q[i, 7 - j], name="C")
    s = create_schedule(C.op)
    i, j = C.op.axis
    s[C].reorder(j, i)
    s[C].bind(j, te.thread_axis("threadIdx.x"))
    s[P].compute_at(s[C], i)
    s[P].set_scope("shared")
    s[P].bind(s[P].op.axis[1], te.thread_axis("threadIdx.x"))
    s[P].double_buffer()
    assert agrees(s, [A, C])


def test_what_fills_it_may_share_other_memory():
    A = te.placeholder((16, 8), name="A")
    Q = te.compute((16, 8), lambda i, j: A[i, 7 - j] * 2.0, name="Q")
    P = te.compute((16, 8), lambda i, j: Q[i, 7 - j] + 1.0, name="P")
    C = te.compute((16, 8), lambda i, j: P[i, 7 - j] * 3.0, name="C")
    s = create_schedule(C.op)
    i, j = C.op.axis
    s[C].reorder(j, i)
    s[C].bind(j, te.thread_axis("threadIdx.x"))
    s[P].compute_at(s[C], i)
    s[Q].compute_at(s[P], P.op.axis[0])
    for stage in (P, Q):
        s[stage].set_scope("shared")
    s[Q].bind(Q.op.axis[1], te.thread_axis("threadIdx.x"))
    s[P].double_buffer()
    assert agrees(s, [A, C])


def test_a_loop_that_runs_once():
    case = Classic(product(4, 4, 4)).double()
    assert "[2, " not in str(case.lowered())
    assert case.agrees()


def test_the_steps_in_another_order():
    A, _, C = args = product(8, 8, 12)
    s = create_schedule(C.op)
    AA = s.cache_read(A, "shared", [C])
    s[AA].double_buffer()
    ko, _ = s[C].split(s[C].op.reduce_axis[0], 4)
    s[AA].compute_at(s[C], ko)
    bound(s, C, C.op.axis, ("blockIdx.x", "threadIdx.x"))
    load_together(s, AA, [("threadIdx.x", 8)])
    assert not s.obligations
    assert agrees(s, args)


def test_both_halves_count_as_memory():
    big = Classic(product(128, 128, 128), tile=32, step=128)
    build(big.s, big.args, target="gtx-1080")
    big.double()
    assert "[2, " not in str(big.lowered())  # one iteration
    large = Classic(product(128, 128, 256), tile=32, step=128).double()
    with pytest.raises(TargetError, match="shared"):
        build(large.s, large.args, target="gtx-1080")


# -- refusals -------------------------------------------------------------------------------------


def test_iterations_that_run_at_once(refusal):
    case = Classic(product(8, 8, 16))
    case.s[case.AA].compute_at(case.s[case.C], case.tiles[3])
    assert refusal(case.s[case.AA].double_buffer) == (
        "double_buffer A.shared: A.shared cannot be computed ahead for the next iteration of "
        "C.j.inner\n"
        "  because   the iterations of C.j.inner (threadIdx.x) run in any order, or at once\n"
        "  hint      attach it at a serial loop, or leave double_buffer out"
    )


def test_a_loop_that_becomes_concurrent_later(chain):
    s = chain.s
    s[chain.P].compute_at(s[chain.Q], s[chain.Q].op.axis[0])
    s[chain.P].double_buffer()
    verdict = s.can("parallel", s[chain.Q], s[chain.Q].op.axis[0])
    assert verdict.reason == "P cannot be computed ahead for the next iteration of Q.i"


def test_what_reads_what_the_loop_computes(chain, refusal):
    s = chain.s
    for stage in (chain.Q, chain.P):
        s[stage].compute_at(s[chain.D], s[chain.D].op.axis[0])
    assert refusal(s[chain.Q].double_buffer) == (
        "double_buffer Q: Q cannot be computed ahead for the next iteration of D.i\n"
        "  because   it reads P, which each iteration of D.i computes for itself\n"
        "  hint      attach P outside D.i, or inside the loops of Q"
    )
    s[chain.P].compute_at(s[chain.Q], s[chain.Q].op.axis[0])
    s[chain.Q].double_buffer()
    assert s.can("compute_at", s[chain.P], s[chain.D], s[chain.D].op.axis[0]).reason.startswith("Q")


def test_conditions_stand_inside_the_barriers():
    """A loop that does not divide: its guard must not keep threads from a barrier."""
    case = Classic(product(5, 5, 10), tile=3, step=4).double()
    for condition in statements(case.lowered().body):
        if isinstance(condition, If):
            assert not any(isinstance(part, Barrier) for part in statements(condition))
    assert case.agrees()


@pytest.mark.parametrize("thread", ["vthread", "threadIdx.x"])
def test_what_threads_share_is_not_computed_ahead(thread):
    A = te.placeholder((2, 4), name="A")
    P = te.compute((2, 4), lambda i, j: A[i, j] * 2.0, name="P")
    C = te.compute((2, 4), lambda i, j: P[i, j] + 1.0, name="C")
    s = create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis(thread))
    outer, _ = s[C].split(C.op.axis[1], factor=3)
    s[P].double_buffer()
    s[P].compute_at(s[C], outer)
    shared = s.cache_read(A, "shared", [P])
    with pytest.raises(ScheduleError) as caught:
        s[shared].compute_at(s[P], P.op.axis[0])
    assert "P cannot be computed ahead for the next iteration of C.j.outer" in str(caught.value)
    assert "threads around it share A.shared, which is computed inside it" in str(caught.value)
