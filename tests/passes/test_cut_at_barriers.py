"""`cut_at_barriers`: the threads of a block as loops of a CPU."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import ProgramError
from dlcompiler.ir import Barrier, For, verify_func, walk
from dlcompiler.passes.cut_at_barriers import as_cpu_function
from dlcompiler.pipeline import build_program, lower, lower_program
from dlcompiler.pipeline.pipelines import pipeline_of
from dlcompiler.simulate import interpret
from dlcompiler.target import resolve
from tests.thread_programs import convolution, softmax, staged_copy, tiled_matmul

PROGRAMS = {
    "staged_copy": staged_copy,
    "tiled_matmul": tiled_matmul,
    "tiled_matmul, virtual": lambda: tiled_matmul(vthreads=2),
    "softmax": softmax,
    "convolution": lambda: convolution(vthreads=2),
}


@pytest.mark.campaign
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_cpu_computes_what_the_threads_do(name):
    schedule, args = PROGRAMS[name]()
    program = lower_program(schedule, args, "gpu")
    func = as_cpu_function(program)
    verify_func(func)
    kinds = {node.kind for node in walk(func.body) if isinstance(node, For)}
    assert kinds <= {"serial", "unrolled"}
    assert not any(isinstance(node, Barrier) for node in walk(func.body))
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-3, 4, a.static_shape).astype(a.dtype) for a in args]
    expected = [array.copy() for array in arrays]
    interpret(program.func, expected)
    build_program(func)(*arrays)
    np.testing.assert_allclose(arrays[-1], expected[-1], rtol=1e-6)


@pytest.mark.parametrize("n", [8, te.var("n")], ids=["8", "n"])
def test_a_value_of_a_thread_outlives_a_barrier(n):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    k = te.reduce_axis((0, 3), "k")
    C = te.compute((n,), lambda i: te.sum(B[n - 1 - i] + A[i], axis=k), name="C")
    s = te.create_schedule(C.op)
    local = s.cache_write(C, "local")
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    s[local].compute_at(s[C], C.op.axis[0])
    s[B].compute_at(s[local], s[local].op.reduce_axis[0])
    s[B].set_scope("shared")
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    program = pipeline_of(resolve("gpu")).divide(lower(s, [A, C], target="gpu"))
    a, c = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    build_program(as_cpu_function(program))(a, c)
    np.testing.assert_array_equal(c, (a[::-1] * 2 + a) * 3)


def test_a_failed_check_is_an_error():
    table, index = te.placeholder((4,), name="T"), te.placeholder((8,), "int32", name="I")
    C = te.compute((8,), lambda i: table[index[i]], name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    kernel = build_program(as_cpu_function(lower_program(s, [table, index, C], "gpu")))
    with pytest.raises(ProgramError, match="index 9 in dimension 0 of extent 4"):
        kernel(np.ones(4, "float32"), np.full(8, 9, "int32"), np.zeros(8, "float32"))


def test_a_program_for_a_gpu_keeps_its_results():
    kernel = dlc.build(*staged_copy(), target="gpu")
    a, b, again = np.arange(64, dtype="float32"), np.zeros(64, "float32"), np.zeros(64, "float32")
    kernel(a, b)
    build_program(as_cpu_function(kernel.program))(a, again)
    np.testing.assert_array_equal(b, again)
