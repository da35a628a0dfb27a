"""prefetch: the note it leaves, the hints that become of it, and what it refuses."""

import pytest

from dlcompiler import te
from dlcompiler.ir import Prefetch, walk
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule


def test_leaves_a_note_that_a_pass_makes_hints_of(matmul, nest, computes):
    s, C = matmul.s, matmul.C
    s[C].prefetch(matmul.A, matmul.i, 2)
    s[C].prefetch(matmul.B, matmul.k)
    func = lower(s, matmul.args)
    named = {node.buffer.name for node in walk(func.body) if isinstance(node, Prefetch)}
    assert named == {"A", "B"}
    assert "s[C].prefetch(A, i, 2)" in s.trace.to_python()
    computes(s)


def test_of_an_inner_tensor_and_of_a_second_output(computes):
    A = te.placeholder((7, 5), "int32", name="A")
    P, Q = te.compute((7, 5), lambda i, j: (A[i, j] + 1, A[i, j] * 2), name="P")
    C = te.compute((7, 5), lambda i, j: P[i, j] * Q[i, j], name="C")
    s = create_schedule(C.op)
    s[C].prefetch(Q, C.op.axis[0])
    func = lower(s, [A, C])
    assert "prefetch P.v1[i + 1, " in str(func)
    assert "s[C].prefetch(P.op.output(1), i, 1)" in s.trace.to_python()
    computes(s)


def test_through_an_inlined_stage(chain, computes):
    s = chain.s
    s[chain.P].compute_inline()
    s[chain.Q].prefetch(chain.A, chain.Q.op.axis[0])
    computes(s)
    assert not s.can("prefetch", s[chain.Q], chain.P, chain.Q.op.axis[0])


def test_refuses_what_is_not_read(chain, refusal):
    i = chain.D.op.axis[0]
    assert refusal(chain.s[chain.D].prefetch, chain.A, i) == ("prefetch D.i: D does not read A")
    chain.s[chain.Q].compute_inline()
    assert refusal(chain.s[chain.D].prefetch, chain.Q, i) == (
        "prefetch D.i: Q is inlined: it is not stored"
    )


@pytest.mark.parametrize("offset", [0, -1, 1.5, "1"])
def test_refuses_an_offset(matmul, refusal, offset):
    text = refusal(matmul.s[matmul.C].prefetch, matmul.A, matmul.i, offset)
    assert text.startswith("prefetch C.i: offset must be ")


@pytest.mark.parametrize("kind", ["vectorize", "parallel"])
def test_refuses_loops_whose_iterations_run_at_once(matmul, refusal, kind):
    s, C, i = matmul.s, matmul.C, matmul.i
    s[C].prefetch(matmul.A, i)
    name = {"vectorize": "vectorized"}.get(kind, kind)
    assert refusal(getattr(s[C], kind), i) == (
        f"{kind} C.i: the loop prefetches, and a {name} loop has no later iterations\n"
        "  got       C.i\n"
        "  hint      undo that step, or choose another loop"
    )
    s.undo()
    getattr(s[C], kind)(i)
    assert refusal(s[C].prefetch, matmul.A, i) == (
        f"prefetch C.i: the loop is {name}: it has no later iterations\n"
        "  got       C.i\n"
        "  hint      prefetch at a serial loop inside or outside it"
    )


def test_refuses_a_loop_of_one_iteration(refusal):
    A = te.placeholder((1, 4), name="A")
    C = te.compute((1, 4), lambda i, j: A[i, j] + 1.0, name="C")
    assert refusal(create_schedule(C.op)[C].prefetch, A, C.op.axis[0]) == (
        "prefetch C.i: the loop has no other iteration\n  got       C.i"
    )
