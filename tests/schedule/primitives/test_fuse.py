"""fuse: the nests it makes, and what it refuses."""

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule


def test_two_loops_become_one(matmul, nest, golden):
    fused = matmul.s[matmul.C].fuse(matmul.i, matmul.j)
    assert fused.extent == 24
    golden("two", nest(matmul))


def test_a_list_of_three(matmul, nest, golden):
    _, inner = matmul.s[matmul.C].split(matmul.j, 3)
    outer = matmul.s[matmul.C].leaf_iter_vars[1]
    fused = matmul.s[matmul.C].fuse([matmul.i, outer, inner])
    assert (fused.name, fused.extent) == ("i.j.outer.j.inner.fused", 24)
    golden("three", nest(matmul))


def test_reduction_loops(matmul, nest, golden):
    matmul.s[matmul.C].fuse(*matmul.s[matmul.C].split(matmul.k, 3))
    golden("reduction_not_dividing", nest(matmul))


def test_a_swapped_pair_is_fused_in_the_order_of_the_nest(matmul, computes):
    fused = matmul.s[matmul.C].fuse(matmul.j, matmul.i)
    assert fused.name == "i.j.fused"
    computes(matmul.s)


def test_no_loop_gives_one_that_runs_once(matmul, nest, golden, computes):
    s, C = matmul.s, matmul.C
    once = s[C].fuse()
    s[C].parallel(once)
    golden("singleton", nest(matmul))
    s.undo()
    s.cache_write(C, "local")
    computes(s)


def test_of_a_tensor_without_dimensions(computes):
    A = te.placeholder((), name="A")
    P = te.compute((), lambda: A[()] * 2.0, name="P")
    C = te.compute((), lambda: P[()] + 1.0, name="C")
    s = create_schedule(C.op)
    outer, _ = s[C].split(s[C].fuse(*C.op.axis), 8)
    s[P].compute_at(s[C], outer)
    computes(s)


def test_refuses_loops_with_another_between_them(matmul, refusal):
    _, inner = matmul.s[matmul.C].split(matmul.j, 2)
    assert refusal(matmul.s[matmul.C].fuse, matmul.i, inner) == (
        "fuse C (i, j.inner): the loops are not adjacent\n"
        "  got       i, j.inner\n"
        "  hint      the loops are: i, j.outer, j.inner, k; reorder them first"
    )


def test_refuses_a_data_loop_with_a_reduction_loop(matmul, refusal):
    assert refusal(matmul.s[matmul.C].fuse, matmul.j, matmul.k) == (
        "fuse C (j, k): a data loop and a reduction loop cannot be fused\n"
        "  got       j (data), k (reduce)\n"
        "  because   the fused loop would be neither: the result is initialised between them"
    )


def test_refuses_one_loop_twice(matmul, refusal):
    assert refusal(matmul.s[matmul.C].fuse, matmul.i, matmul.i) == (
        "fuse C (i, i): each axis may be given once\n  got       i, i"
    )


def test_one_loop_is_returned_as_it_is(matmul, refusal):
    before = matmul.s.state
    assert matmul.s[matmul.C].fuse(matmul.i) is matmul.i
    assert matmul.s[matmul.C].fuse([matmul.i]) is matmul.i
    assert matmul.s.state is before
    matmul.s[matmul.C].split(matmul.i, 2)
    assert "fuse C.i" in refusal(matmul.s[matmul.C].fuse, matmul.i)


def test_refuses_an_axis_that_was_fused(matmul, refusal):
    matmul.s[matmul.C].fuse(matmul.i, matmul.j)
    assert refusal(matmul.s[matmul.C].fuse, matmul.i, matmul.j) == (
        "fuse C (i, j): it was fused into i.j.fused\n"
        "  got       axis i of stage C\n"
        "  hint      the loops are now: i.j.fused, k"
    )


@pytest.mark.parametrize("kind", ["vectorize", "parallel", "unroll"])
def test_refuses_a_loop_that_would_lose_its_kind(matmul, refusal, kind):
    getattr(matmul.s[matmul.C], kind)(matmul.j)
    made = {"vectorize": "vectorized", "parallel": "parallel", "unroll": "unrolled"}[kind]
    assert refusal(matmul.s[matmul.C].fuse, matmul.i, matmul.j) == (
        f"fuse C (i, j): the loop is {made} already, and would lose that\n"
        f"  got       C.j, {made}\n"
        f"  hint      undo that step, and make the new loop {made} afterwards"
    )


def test_names_stay_short(matmul):
    axis = matmul.i
    for _ in range(6):
        axis = matmul.s[matmul.C].fuse(*matmul.s[matmul.C].split(axis, 2))
    assert axis.name == "fused_1"
    assert max(len(own.name) for own in matmul.s[matmul.C].all_iter_vars) < 100


def test_refuses_a_loop_that_grew_beyond_an_index(matmul, refusal):
    axis = matmul.i
    for _ in range(46):  # each split leaves room for nearly twice the iterations
        outer, inner = matmul.s[matmul.C].split(axis, max(axis.extent - 1, 1))
        axis = matmul.s[matmul.C].fuse(outer, inner)
    outer, inner = matmul.s[matmul.C].split(axis, axis.extent - 1)
    assert refusal(matmul.s[matmul.C].fuse, outer, inner).split(": ", 1)[1].splitlines()[0] == (
        "the loop would be too long"
    )
