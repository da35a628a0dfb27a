"""vectorize, unroll, parallel: the nests they make, and what they refuse."""

import itertools

import pytest

KINDS = {"vectorize": "vectorized", "unroll": "unrolled", "parallel": "parallel"}


@pytest.mark.parametrize("primitive", KINDS)
def test_a_data_loop(matmul, nest, golden, primitive):
    getattr(matmul.s[matmul.C], primitive)(matmul.j)
    golden(f"{primitive}_data", nest(matmul))


def test_unroll_of_a_reduction(matmul, nest, golden):
    _, inner = matmul.s[matmul.C].split(matmul.k, 4)
    matmul.s[matmul.C].unroll(inner)
    golden("unroll_reduction", nest(matmul))


def test_a_data_loop_inside_the_reduction_initialises_the_same_way(matmul, nest, golden):
    matmul.s[matmul.C].reorder(matmul.k, matmul.i, matmul.j)
    matmul.s[matmul.C].parallel(matmul.i)
    matmul.s[matmul.C].vectorize(matmul.j)
    golden("inside_the_reduction", nest(matmul))


@pytest.mark.parametrize("primitive", KINDS)
def test_twice_is_once(matmul, primitive):
    call = getattr(matmul.s[matmul.C], primitive)
    call(matmul.j)
    call(matmul.j)
    assert matmul.s[matmul.C].state.kind(matmul.j) == KINDS[primitive]


def test_vectorize_refuses_a_reduction_axis(matmul, refusal):
    assert refusal(matmul.s[matmul.C].vectorize, matmul.k) == (
        "vectorize C.k: a reduction axis cannot be vectorized\n"
        "  got       axis k of stage C (reduction, extent 8)\n"
        "  because   all lanes would update C[i, j]: iterations k=0 and k=1 write the "
        "same element\n"
        "  hint      vectorize j, a data axis"
    )


def test_parallel_refuses_a_reduction_axis(matmul, refusal):
    _, inner = matmul.s[matmul.C].split(matmul.k, 2)
    assert refusal(matmul.s[matmul.C].parallel, inner) == (
        "parallel C.k.inner: a reduction axis cannot be parallel\n"
        "  got       axis k.inner of stage C (reduction, extent 2)\n"
        "  because   all threads would update C[i, j]: iterations k.inner=0 and k.inner=1 write "
        "the same element\n"
        "  hint      parallelize i, a data axis"
    )


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(KINDS, 2)))
def test_refuses_another_kind(matmul, refusal, first, second):
    getattr(matmul.s[matmul.C], first)(matmul.j)
    assert refusal(getattr(matmul.s[matmul.C], second), matmul.j) == (
        f"{second} C.j: the loop is {KINDS[first]} already\n"
        "  got       C.j\n"
        "  hint      undo that step, or choose another loop"
    )


def test_vectorize_refuses_a_second_loop(matmul, refusal):
    matmul.s[matmul.C].vectorize(matmul.j)
    assert refusal(matmul.s[matmul.C].vectorize, matmul.i) == (
        "vectorize C.i: a loop nest can have one vectorized loop\n"
        "  got       C.i and C.j vectorized"
    )


def test_parallel_refuses_a_loop_inside_a_vectorized_one(matmul, refusal):
    matmul.s[matmul.C].vectorize(matmul.i)
    assert refusal(matmul.s[matmul.C].parallel, matmul.j) == (
        "parallel C.j: a parallel loop cannot stand inside a vectorized one\n"
        "  got       C.j inside C.i"
    )


def test_what_is_attached_at_a_vectorized_loop_is_computed_around_it(chain, computes):
    chain.s[chain.Q].compute_at(chain.s[chain.D], chain.D.op.axis[0])
    chain.s[chain.D].vectorize(chain.D.op.axis[0])
    assert [item.is_settled for item in chain.s.obligations] == [True]
    computes(chain.s)


@pytest.mark.parametrize("primitive", KINDS)
def test_refuses_an_axis_that_was_split(matmul, refusal, primitive):
    matmul.s[matmul.C].split(matmul.j, 2)
    assert refusal(getattr(matmul.s[matmul.C], primitive), matmul.j) == (
        f"{primitive} C.j: it was split into j.outer and j.inner\n"
        "  got       axis j of stage C\n"
        "  hint      the loops are now: i, j.outer, j.inner, k"
    )


@pytest.mark.parametrize("primitive", KINDS)
def test_refuses_what_is_not_an_axis(matmul, refusal, primitive):
    assert refusal(getattr(matmul.s[matmul.C], primitive), "j") == (
        f"{primitive} C: not an axis\n  got       'j' (str)\n"
        "  hint      pass one of s[C].leaf_iter_vars"
    )


@pytest.mark.parametrize("primitive", KINDS)
def test_refuses_an_inlined_stage(chain, refusal, primitive):
    chain.s[chain.Q].compute_inline()
    assert refusal(getattr(chain.s[chain.Q], primitive), chain.Q.op.axis[0]) == (
        f"{primitive} Q.i: Q is inlined: it has no loops of its own\n"
        "  hint      call s[Q].compute_root() first"
    )
