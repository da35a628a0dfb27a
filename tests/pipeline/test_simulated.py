"""Programs for GPUs that are not here: built against their limits, run by the simulator."""

from dataclasses import replace

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import CallError, MeasurementError, ProgramError, TargetError
from dlcompiler.measurement.remote import RemoteKernel
from dlcompiler.pipeline import SimulatedKernel
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from tests.schedule.test_device_programs import bound
from tests.schedule.test_shared_memory import product, tiled


def added(n=64, threads=32):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], threads)
    bound(s, B, (outer, inner), ("blockIdx.x", "threadIdx.x"))
    return s, [A, B]


def refused(s, args, target="v100"):
    with pytest.raises(TargetError) as caught:
        dlc.build(s, args, target=target)
    return str(caught.value)


def test_it_runs_and_says_how():
    kernel = dlc.build(*added(), target="v100", name="add")
    assert isinstance(kernel, SimulatedKernel)
    assert repr(kernel) == "SimulatedKernel(add for v100: 1 kernel; run by simulation)"
    a, b = np.arange(64, dtype="float32"), np.empty(64, "float32")
    kernel(a, b)
    assert np.array_equal(b, a + 1)
    assert kernel.source() == (
        "# launch: blockIdx.x 2, threadIdx.x 32\n"
        "def add_kernel0(A: float32[64], B: float32[64]):\n"
        "    for i.outer in blockIdx.x(2):\n"
        "        for i.inner in threadIdx.x(32):\n"
        "            B[i.outer*32 + i.inner] = A[i.outer*32 + i.inner] + 1.0\n"
    )
    assert kernel.work.flops == 64
    assert "blockIdx.x" in kernel._repr_html_()


@pytest.mark.parametrize("target", ["gpu", "gtx-titan-x", "h200"])
def test_a_product_in_tiles(target):
    args = product(9, 12, 10)
    kernel = dlc.build(tiled(args), args, target=target)
    a, b = (np.random.default_rng(n).integers(-4, 5, t.shape).astype("float32")
            for n, t in enumerate(args[:2]))  # fmt: skip
    c = np.empty((9, 12), "float32")
    kernel(a, b, c)
    assert np.array_equal(c, a @ b)
    assert kernel.simulate(a, b, c, order=3).unwritten == 0


def test_a_long_program_runs_as_machine_code():
    args = product(64, 64, 64)
    kernel = dlc.build(tiled(args, threads=8), args, target="gpu")
    a, b = (np.random.default_rng(n).integers(-4, 5, t.shape).astype("float32")
            for n, t in enumerate(args[:2]))  # fmt: skip
    c = np.empty((64, 64), "float32")
    kernel(a, b, c)
    assert np.array_equal(c, a @ b)
    assert "on_host" in vars(kernel), "it was compiled"
    with pytest.raises(CallError):
        kernel(a, b, c[:1])


def test_a_long_program_checks_its_indices():
    table, index = te.placeholder((4,), name="T"), te.placeholder((40_000,), "int32", name="I")
    C = te.compute((40_000,), lambda i: table[index[i]], name="C")
    s = create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], 64)
    bound(s, C, (outer, inner), ("blockIdx.x", "threadIdx.x"))
    kernel = dlc.build(s, [table, index, C], target="gpu")
    wrong = np.zeros(40_000, "int32")
    wrong[30_000] = 9
    with pytest.raises(ProgramError, match="index 9 in dimension 0 of extent 4"):
        kernel(np.ones(4, "float32"), wrong, np.zeros(40_000, "float32"))


def test_a_stage_between_two_kernels():
    A = te.placeholder((32,), name="A")
    B = te.compute((32,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((32,), lambda i: B[31 - i] + 1.0, name="C")
    s = create_schedule(C.op)
    for stage in (B, C):
        s[stage].bind(stage.op.axis[0], te.thread_axis("blockIdx.x"))
    kernel = dlc.build(s, [A, C], target="a100")
    assert "2 kernels" in repr(kernel)
    assert [buffer.name for buffer in kernel.program.temporaries] == ["B"]


def test_wrong_arguments_are_refused():
    kernel = dlc.build(*added(), target="v100")
    with pytest.raises(CallError):
        kernel(np.zeros(3, "float32"), np.zeros(64, "float32"))
    with pytest.raises(CallError):
        kernel(np.zeros(64, "float32"))


def test_a_large_program_stops_at_the_budget():
    kernel = dlc.build(*added(), target="v100")
    a = np.zeros(64, "float32")
    with pytest.raises(ProgramError, match="more than 100 steps"):
        kernel.simulate(a, a.copy(), max_steps=100)


def test_its_time_is_predicted_and_no_worker_measures_it():
    kernel = dlc.build(*added(), target="v100")
    assert dlc.measure(kernel).provenance.kind == "predicted"
    with pytest.raises(MeasurementError) as caught:
        RemoteKernel.of(kernel)
    assert str(caught.value) == (
        "measure main: only machine code has times\n"
        "  got       SimulatedKernel(main for v100: 1 kernel; run by simulation)\n"
        "  hint      call it to see that it is right: kernel(a, b, c); "
        "kernel.report() says what is simulated"
    )


# -- limits ----------------------------------------------------------------------------------------


def test_a_stage_that_no_thread_computes():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    assert refused(create_schedule(B.op), [A, B]) == (
        "build main for v100: B is computed outside any thread\n"
        "  because   a host cannot write the memory of a device\n"
        '  hint      bind a loop of its stage: s[B].bind(loop, te.thread_axis("blockIdx.x"))'
    )


def test_one_thread_is_enough():
    A = te.placeholder((1,), name="A")
    B = te.compute((1,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    kernel = dlc.build(s, [A, B], target="v100")
    a, b = np.ones(1, "float32"), np.empty(1, "float32")
    kernel(a, b)
    assert b[0] == 2.0


def test_too_many_threads():
    assert refused(*added(4096, 2048)) == (
        "build main for v100: i.inner asks for too many threads along threadIdx.x\n"
        "  got       2048\n"
        "  expected  at most 1024 (CUDA C++ Programming Guide 12.9, table 21)\n"
        "  hint      split the loop, and bind both parts to axes of their own"
    )
    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: A[i, j] + 1.0, name="B")
    s = create_schedule(B.op)
    bound(s, B, B.op.axis, ("threadIdx.y", "threadIdx.x"))
    assert refused(s, [A, B]) == (
        "build main for v100: a block would have too many threads\n"
        "  got       4096: threadIdx.y 64 × threadIdx.x 64\n"
        "  expected  at most 1024 (CUDA C++ Programming Guide 12.9, table 21)\n"
        "  hint      split the loops that are bound to threadIdx by smaller numbers"
    )


def test_too_many_along_the_last_axis():
    A = te.placeholder((128,), name="A")
    B = te.compute((128,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.z"))
    assert "expected  at most 64" in refused(s, [A, B])


def test_a_number_of_threads_that_is_not_known():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    assert refused(s, [A, B]) == (
        "build main for v100: the number of threads of i is not known\n"
        "  got       threadIdx.x: n\n"
        "  hint      split the loop by a number, and bind the inner one"
    )


def symbolic(factor, tag):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    bound(s, B, s[B].split(B.op.axis[0], factor), (tag, "threadIdx.x"))
    return s, [A, B]


def test_a_number_of_blocks_that_a_call_decides():
    kernel = dlc.build(*symbolic(1, "blockIdx.y"), target="v100")
    x = np.zeros(70_000, "float32")
    with pytest.raises(TargetError) as caught:
        kernel(x, x.copy())
    assert str(caught.value) == (
        "run main_kernel0 on v100: too many blocks along blockIdx.y\n"
        "  got       70,000\n"
        "  expected  at most 65,535\n"
        "  because   CUDA C++ Programming Guide 12.9, table 21\n"
        "  hint      split the loop, and bind both parts to axes of their own"
    )


@pytest.mark.parametrize(
    "wrong", [np.zeros(7, "float32"), np.zeros(32), np.zeros((4, 8), "float32")]
)
def test_a_report_takes_only_what_a_call_takes(wrong):
    kernel = dlc.build(*symbolic(32, "blockIdx.x"), target="v100")
    for refusing in (kernel, kernel.report, lambda *arrays: dlc.measure(kernel, arrays)):
        with pytest.raises(CallError):
            refusing(wrong, np.zeros(32, "float32"))


def test_too_much_shared_memory():
    args = product(64, 64, 256)
    text = refused(tiled(args, threads=8, each=8, step=256), args)
    assert text == (
        "build main for v100: a block would need more shared memory than there is\n"
        "  got       131072 bytes: A.shared 65536, B.shared 65536\n"
        "  expected  at most 98304 bytes (CUDA C++ Programming Guide 12.9, table 21)\n"
        "  hint      compute smaller parts: split the loops they are computed for further"
    )


def test_too_many_threads_along_axes_of_loops_beside_each_other():
    A = te.placeholder((1024,), name="A")
    B = te.compute((1024,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((1024,), lambda i: B[i] * 2.0, name="C")
    s = create_schedule(C.op)
    block, thread = s[C].split(C.op.axis[0], 512)
    bound(s, C, (block, thread), ("blockIdx.x", "threadIdx.x"))
    s[B].set_scope("shared")
    s[B].compute_at(s[C], block)
    s[B].bind(s[B].split(B.op.axis[0], nparts=4)[0], te.thread_axis("threadIdx.y"))
    assert refused(s, [A, C]) == (
        "build main for v100: a block would have too many threads\n"
        "  got       2048: threadIdx.x 512 × threadIdx.y 4\n"
        "  expected  at most 1024 (CUDA C++ Programming Guide 12.9, table 21)\n"
        "  hint      split the loops that are bound to threadIdx by smaller numbers"
    )


def test_too_many_virtual_threads():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 4)
    bound(s, B, (outer, inner), ("vthread", "threadIdx.x"))
    assert refused(s, [A, B]) == (
        "build main for v100: a thread would run too many virtual threads\n"
        "  got       16: i.outer\n"
        "  expected  at most 8\n"
        "  hint      bind fewer iterations to vthread"
    )


def test_too_wide_vectors():
    _, (A, B) = added(64, 16)
    s = create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 8)
    s[B].bind(outer, te.thread_axis("threadIdx.x"))
    s[B].vectorize(inner)
    assert refused(s, [A, B]) == (
        "build main for v100: the vectorized loop i.inner stores too much at once\n"
        "  got       32 bytes of B\n"
        "  expected  at most 16 bytes (CUDA C++ Programming Guide 12.9, table 21)\n"
        "  hint      split the loop by 4 first"
    )


def test_vectors_of_a_width_that_there_is():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 4)
    s[B].bind(outer, te.thread_axis("threadIdx.x"))
    s[B].vectorize(inner)
    kernel = dlc.build(s, [A, B], target="v100")
    a, b = np.arange(64, dtype="float32"), np.empty(64, "float32")
    kernel(a, b)
    assert np.array_equal(b, a + 1)


def test_a_limit_that_a_target_does_not_give_is_none():
    A = te.placeholder((4096,), name="A")
    B = te.compute((4096,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    machine = replace(resolve("gpu"), limits={})
    assert any(move.primitive == "vectorize" for move in s.moves(s[B], machine))
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    dlc.verify(s, [A, B], target=machine)
