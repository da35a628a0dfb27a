"""bind: loops on the threads of a device; the programs run in the interpreter."""

import itertools

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError, TargetError
from dlcompiler.ir import THREADS, For, walk
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.trace import Trace
from dlcompiler.simulate import interpret

BX, BY = te.thread_axis("blockIdx.x"), te.thread_axis("blockIdx.y")
TX, TY = te.thread_axis("threadIdx.x"), te.thread_axis("threadIdx.y")


def outcome(s, args, seed=0):
    """Run a schedule in the interpreter; return its output and what te.evaluate says."""
    generator = np.random.default_rng(seed)
    *inputs, output = args
    arrays = [generator.integers(-4, 5, t.shape).astype(t.dtype) for t in inputs]
    result = np.full(output.shape, 77, output.dtype)
    interpret(lower(s, args), [*arrays, result])
    expected = te.evaluate([output], dict(zip(inputs, arrays, strict=True)))
    return result, expected[output] if isinstance(expected, dict) else expected[0]


@pytest.mark.parametrize(("n", "factor"), list(itertools.product([1, 31, 32, 100], [1, 8, 32])))
def test_vectors_of_awkward_sizes(n, factor):
    A, B = te.placeholder((n,), name="A"), te.placeholder((n,), name="B")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    s = create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor)
    s[C].bind(outer, BX)
    s[C].bind(inner, TX)
    result, expected = outcome(s, [A, B, C])
    assert (result == expected).all()


def test_the_program_of_a_product(matmul, nest, golden):
    s, C = matmul.s, matmul.C
    outer_i, outer_j, inner_i, inner_j = s[C].tile(matmul.i, matmul.j, 2, 4)
    for loop, axis in zip((outer_i, outer_j, inner_i, inner_j), (BY, BX, TY, TX), strict=True):
        s[C].bind(loop, axis)
    golden("product", nest(matmul))
    result, expected = outcome(s, matmul.args)
    assert (result == expected).all()


def test_each_root_stage_is_a_launch_of_its_own(chain):
    s = chain.s
    for tensor in (chain.P, chain.Q, chain.D):
        s[tensor].bind(s[tensor].op.axis[0], TX)
    loops = [n for n in walk(lower(s, chain.args).body) if isinstance(n, For)]
    assert sorted((loop.kind, int(loop.extent.value)) for loop in loops) == [
        ("threadIdx.x", 16), ("threadIdx.x", 16), ("threadIdx.x", 18),
    ]  # fmt: skip
    result, expected = outcome(s, chain.args)
    assert (result == expected).all()


def test_a_stage_inside_all_threads_belongs_to_one_of_them(chain):
    s = chain.s
    outer, inner = s[chain.D].split(s[chain.D].op.axis[0], 5)
    s[chain.D].bind(outer, BX)
    s[chain.D].bind(inner, TX)
    s[chain.Q].compute_at(s[chain.D], inner)
    s[chain.P].compute_at(s[chain.D], inner)
    result, expected = outcome(s, chain.args)
    assert (result == expected).all()


def test_a_number_of_threads_must_be_that_of_the_loop(matmul, refusal):
    s, C = matmul.s, matmul.C
    s[C].bind(matmul.j, te.thread_axis((0, 6), "threadIdx.x"))
    assert refusal(s[C].bind, matmul.i, te.thread_axis((0, 8), "threadIdx.y")) == (
        "bind C.i: the loop has another number of iterations\n"
        "  got       4\n"
        "  expected  8, as thread_axis('threadIdx.y', extent=8) has\n"
        "  hint      split the loop first, or leave the number of threads out"
    )


def test_a_reduction_is_refused(matmul, refusal):
    assert refusal(matmul.s[matmul.C].bind, matmul.k, BX) == (
        "bind C.k: a reduction axis cannot be bound to blockIdx.x\n"
        "  got       axis k of stage C (reduction, extent 8)\n"
        "  because   all blocks would update C[i, j]: iterations k=0 and k=1 write the "
        "same element\n"
        "  hint      bind a data axis, or make one of the reduction first, with s.rfactor"
    )


def test_an_axis_is_bound_once_in_a_nest(matmul, refusal):
    matmul.s[matmul.C].bind(matmul.i, TX)
    assert refusal(matmul.s[matmul.C].bind, matmul.j, TX) == (
        "bind C.j: another loop of the nest is bound to threadIdx.x\n"
        "  got       C.i\n"
        "  hint      fuse i and j, or bind to another axis"
    )
    assert "the loop is threadIdx.x already" in refusal(matmul.s[matmul.C].bind, matmul.i, BX)
    assert "the loop is threadIdx.x already" in refusal(matmul.s[matmul.C].split, matmul.i, 2)


def test_what_is_no_thread_axis_is_refused(matmul, refusal):
    assert "no such thread axis" in refusal(matmul.s[matmul.C].bind, matmul.i, "threadIdx.w")
    assert refusal(matmul.s[matmul.C].bind, matmul.i, 3) == (
        'bind C: not a thread axis\n  got       3\n  expected  te.thread_axis("threadIdx.x")'
    )


@pytest.mark.parametrize("first", ["bind", "parallel"])
def test_cores_and_threads_of_a_device_do_not_mix(matmul, refusal, first):
    stage = matmul.s[matmul.C]
    calls = {"bind": lambda: stage.bind(matmul.j, TX), "parallel": lambda: stage.parallel(matmul.i)}
    calls.pop(first)()
    (other,) = calls
    with pytest.raises(ScheduleError, match="cannot run inside a parallel loop"):
        calls[other]()


def test_what_a_thread_has_for_itself_is_not_computed_by_several(chain, refusal):
    s = chain.s
    outer, inner = s[chain.D].split(s[chain.D].op.axis[0], 4)
    s[chain.D].bind(inner, TX)
    assert refusal(s[chain.Q].compute_at, s[chain.D], outer) == (
        "compute_at Q at D.i.outer: Q would be computed outside the threads of D.i.inner\n"
        "  because   the threads of a block start together, and compute together what they share\n"
        "  hint      attach Q inside all thread loops of D"
    )
    s[chain.Q].compute_at(s[chain.D], inner)
    assert refusal(s[chain.Q].bind, s[chain.Q].op.axis[0], TX) == (
        "bind Q.i: the threads of Q.i would compute Q together\n"
        "  because   Q is in local memory: each thread has its own\n"
        '  hint      compute it in shared memory: s[Q].set_scope("shared")'
    )


def test_a_loop_of_threads_has_no_later_iterations(matmul, refusal):
    matmul.s[matmul.C].bind(matmul.i, TX)
    assert "the loop is threadIdx.x: it has no later iterations" in refusal(
        matmul.s[matmul.C].prefetch, matmul.A, matmul.i
    )


def test_a_cpu_refuses_it_and_says_what_runs_it(matmul):
    matmul.s[matmul.C].bind(matmul.i, BX)
    with pytest.raises(TargetError) as caught:
        build(matmul.s, matmul.args)
    assert str(caught.value) == (
        "generate LLVM code for main: a CPU has no device threads\n"
        "  got       i, bound to blockIdx.x\n"
        "  hint      interpret(lower(s, args), arrays) runs it; on a CPU, use parallel and "
        "vectorize"
    )


def test_it_is_asked_for_replayed_and_written_as_python(matmul):
    s, C = matmul.s, matmul.C
    assert s.can("bind", matmul.i, BX)
    assert not s.can("bind", matmul.k, BX)
    for axis, thread in ((matmul.i, BX), (matmul.j, TX)):
        s[C].bind(axis, thread)
    assert 's[C].bind(i, te.thread_axis("blockIdx.x"))' in s.trace.to_python()
    again = create_schedule(C.op)
    Trace.from_json(s.trace.to_json()).replay(again)
    assert again.state.id == s.state.id
    namespace = {"te": te, "C": C}
    exec(s.trace.to_python(), namespace)
    assert namespace["s"].state.id == s.state.id


def test_all_axes_are_known():
    assert len(THREADS) == 7
