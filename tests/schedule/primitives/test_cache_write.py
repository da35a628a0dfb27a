"""cache_write: the nests it makes, and what it refuses."""

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule


def test_computes_in_a_buffer_and_copies(matmul, nest, golden):
    cached = matmul.s.cache_write(matmul.C, "local")
    assert cached.name == "C.local"
    assert matmul.s[cached].scope == "local"
    golden("root", nest(matmul))


def test_inside_the_loops_of_the_copy(matmul, nest, golden):
    cached = matmul.s.cache_write(matmul.C, "local")
    _, jo, _, _ = matmul.s[matmul.C].tile(matmul.i, matmul.j, 2, 3)
    matmul.s[cached].compute_at(matmul.s[matmul.C], jo)
    golden("attached", nest(matmul))


def test_the_original_keeps_its_data_axes_and_the_cache_gets_the_reduction(matmul):
    cached = matmul.s.cache_write(matmul.C, "local")
    assert matmul.s[matmul.C].leaf_iter_vars == (matmul.i, matmul.j)
    names = [axis.name for axis in matmul.s[cached].leaf_iter_vars]
    assert names == ["i.c", "j.c", "k"]
    assert matmul.s[cached].op.reduce_axis == (matmul.k,)


def test_the_stage_is_found_by_every_tensor_it_ever_had(matmul):
    original = matmul.C
    matmul.s.cache_write(matmul.C, "local")
    stage = matmul.s[original]
    assert matmul.s[original.op].name == stage.name
    assert matmul.s[stage.op].name == stage.name
    assert matmul.s[stage.op.output(0)].name == stage.name


def test_twice_gives_two_names(matmul, nest, golden):
    first = matmul.s.cache_write(matmul.C, "local")
    second = matmul.s.cache_write(matmul.C, "local")
    assert (matmul.s[first].name, matmul.s[second].name) == ("C.local", "C.local_1")
    golden("twice", nest(matmul))


@pytest.mark.parametrize("scope", ["shared", "", None, 3, ["local"]])
def test_refuses_an_unknown_scope(matmul, refusal, scope):
    assert refusal(matmul.s.cache_write, matmul.C, scope) == (
        "cache_write C: no such memory scope on a CPU\n"
        f"  got       {scope!r}\n"
        "  hint      known scopes: global, local"
    )


def test_refuses_a_stage_whose_loops_were_changed(matmul, refusal):
    matmul.s[matmul.C].split(matmul.i, 2)
    assert refusal(matmul.s.cache_write, matmul.C, "local") == (
        "cache_write C: the loops of C have been changed already\n"
        "  hint      call cache_write first, then schedule both stages"
    )


@pytest.mark.parametrize("primitive", ["vectorize", "reorder"])
def test_refuses_a_stage_with_another_kind_or_order(matmul, refusal, primitive):
    axes = (matmul.j, matmul.i) if primitive == "reorder" else (matmul.j,)
    getattr(matmul.s[matmul.C], primitive)(*axes)
    assert refusal(matmul.s.cache_write, matmul.C, "local") == (
        "cache_write C: the loops of C have been changed already\n"
        "  hint      call cache_write first, then schedule both stages"
    )


def test_refuses_an_input(matmul, refusal):
    assert refusal(matmul.s.cache_write, matmul.A, "local") == (
        "cache_write A: A is an input: it is not computed"
    )


def test_refuses_an_inlined_stage(chain, refusal):
    chain.s[chain.Q].compute_inline()
    assert refusal(chain.s.cache_write, chain.Q, "local") == (
        "cache_write Q: Q is inlined: it is not stored"
    )


def test_refuses_what_takes_the_loops_away_from_an_attached_stage(refusal):
    A = te.placeholder((8,), name="A")
    P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
    D = te.compute((8,), lambda i: P[i] + 1.0, name="D")
    s = create_schedule(D.op)
    s[P].compute_at(s[D], D.op.axis[0])
    assert refusal(s.cache_write, D, "local") == (
        "cache_write D: D.local reads P outside the loop D.i, where P is computed\n"
        "  because   P exists only during one iteration of D.i\n"
        "  hint      attach P further out, or D.local inside D.i"
    )


def test_refuses_what_is_no_tensor(matmul, refusal):
    assert refusal(matmul.s.cache_write, matmul.s[matmul.C], "local") == (
        "schedule['C']: no stage of this schedule\n"
        "  got       Stage(C: i, j, k)\n"
        "  expected  a tensor or operation of this schedule: A, B, C"
    )


def test_refuses_the_cache_of_an_undone_step_until_it_is_redone(matmul, refusal):
    cached = matmul.s.cache_write(matmul.C, "local")
    stage = matmul.s[cached]
    matmul.s.undo()
    assert refusal(matmul.s.__getitem__, cached) == (
        "schedule['C.local']: the stage was made by an undone step: cache_write C local\n"
        "  got       Tensor(C.local: float32[4, 6])\n"
        "  hint      s.redo() brings it back"
    )
    assert refusal(stage.vectorize, matmul.j) == (
        "stage C.local: made by an undone step: cache_write C local\n"
        "  hint      s.redo() brings it back"
    )
    matmul.s.redo()
    stage.vectorize(stage.op.axis[1])
