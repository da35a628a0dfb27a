"""rfactor: the nests it makes, conditions and starts, several results, and what it refuses."""

import re
from types import SimpleNamespace

import pytest

from dlcompiler import te
from dlcompiler.schedule import LEGAL, create_schedule


@pytest.fixture
def total():
    """C[i] = the sum of A[i, k, r] over k (11) and r (3), where positive, from 7."""
    A = te.placeholder((5, 11, 3), "int32", name="A")
    k, r = te.reduce_axis((0, 11), name="k"), te.reduce_axis((0, 3), name="r")
    C = te.compute(
        (5,),
        lambda i: te.sum(A[i, k, r], axis=[k, r], where=A[i, k, r] > 0, init=7),
        name="C",
    )
    return SimpleNamespace(s=create_schedule(C.op), A=A, C=C, k=k, r=r, args=[A, C])


def test_partial_results_of_a_split_loop(matmul, nest, golden, computes):
    s, C = matmul.s, matmul.C
    _, ki = s[C].split(matmul.k, 4)
    partial = s.rfactor(C, ki)
    assert (s[partial].name, partial.shape) == ("C.rf", (4, 4, 6))
    s[partial].parallel(s[partial].op.axis[0])
    golden("split", nest(matmul))
    computes(s)


def test_a_split_that_does_not_divide_is_padded_with_the_identity(total, nest, golden, computes):
    s, C = total.s, total.C
    _, ki = s[C].split(total.k, 4)
    partial = s.rfactor(C, ki, factor_axis=-1)
    s[partial].vectorize(s[partial].op.axis[-1])
    s[partial].compute_at(s[C], C.op.axis[0])
    golden("not_dividing", nest(total))
    computes(s)


def test_the_rest_keeps_its_loops(total, computes):
    s, C = total.s, total.C
    ko, ki = s[C].split(total.k, 4)
    ro, ri = s[C].split(total.r, 2)
    s[C].unroll(ri)
    s[C].reorder(ri, ki, ro, ko)
    partial = s[s.rfactor(C, ki)]
    assert partial.leaf_iter_vars[2:] == (ri, ro, ko)
    assert partial.state.kind(ri) == "unrolled"
    assert partial.op.reduce_axis == (ko, total.r)
    computes(s)


def test_the_stage_keeps_its_data_loops(matmul, computes):
    s, C = matmul.s, matmul.C
    io, ii = s[C].split(matmul.i, 3)
    s[C].reorder(matmul.k, io, ii, matmul.j)
    s[C].vectorize(matmul.j)
    s.rfactor(C, matmul.k, 1)
    (last,) = s[C].op.reduce_axis
    assert (last.name, s[C].leaf_iter_vars) == ("k.v", (io, ii, matmul.j, last))
    computes(s)


@pytest.mark.parametrize("places", [("k",), ("r",), ("k", "r")])
def test_without_a_loop_left_and_twice(total, computes, places):
    s, C = total.s, total.C
    first = s[C].fuse(total.k, total.r) if places == ("k", "r") else getattr(total, places[0])
    partial = s.rfactor(C, first)
    if s[partial].op.reduce_axis:
        s.rfactor(partial, s[partial].op.reduce_axis[0], 1)
    computes(s)


def test_of_a_fused_and_split_loop(total, computes):
    s, C = total.s, total.C
    fused = s[C].fuse(total.k, total.r)
    _, inner = s[C].split(fused, 7)
    s.rfactor(C, inner)
    computes(s)


@pytest.mark.parametrize("reduce", [te.sum, te.max, te.min, te.prod])
@pytest.mark.parametrize("extent", [0, 1, 7])
def test_every_reducer_on_awkward_extents(computes, reduce, extent):
    A = te.placeholder((3, extent), name="A")
    k = te.reduce_axis((0, extent), name="k")
    C = te.compute((3,), lambda i: reduce(A[i, k], axis=k), name="C")
    s = create_schedule(C.op)
    _, ki = s[C].split(k, 3)
    s.rfactor(C, ki)
    computes(s)


def test_several_results(computes, nest, total, golden):
    A = te.placeholder((7,), name="A")
    k = te.reduce_axis((0, 7), name="k")
    M, V = te.compute((), lambda: te.argmax(A[k], axis=k), name="M")
    s = create_schedule(M.op)
    _, ki = s[M].split(k, 3)
    partial = s.rfactor(M, ki)
    assert [tensor.name for tensor in partial] == ["M.rf.v0", "M.rf.v1"]
    total.s, total.args = s, [A, M, V]
    golden("several_results", nest(total))
    computes(s)


def test_what_is_attached_follows_its_reader(computes):
    A = te.placeholder((4, 9), name="A")
    P = te.compute((4, 9), lambda i, j: A[i, j] * 2.0, name="P")
    k = te.reduce_axis((0, 9), name="k")
    C = te.compute((4,), lambda i: te.sum(P[i, k], axis=k), name="C")
    s = create_schedule(C.op)
    ko, ki = s[C].split(k, 4)
    s[P].compute_at(s[C], ko)
    s.rfactor(C, ki)
    assert s[P].state.attachment.stage == "C.rf"
    computes(s)


# -- reducers of one's own ------------------------------------------------------------------------


def first_of_equals():
    """An argmax that takes whichever of equals comes first: associative, not commutative."""

    def combine(x, y):
        return te.select(x[1] >= y[1], x[0], y[0]), te.select(x[1] >= y[1], x[1], y[1])

    return te.comm_reducer(combine, lambda i, v: (te.const(-1, i), te.min_value(v)), name="first")


@pytest.fixture
def first():
    A = te.placeholder((12,), name="A")
    k = te.reduce_axis((0, 12), name="k")
    M, _ = te.compute((), lambda: first_of_equals()((k, A[k]), axis=k), name="M")
    return SimpleNamespace(s=create_schedule(M.op), M=M, k=k)


def test_refuses_to_swap_values_that_do_not_commute(first, refusal):
    _, inner = first.s[first.M].split(first.k, 4)
    text = refusal(first.s.rfactor, first.M, inner)
    assert text.startswith(
        "rfactor M.k.inner: the reducer first of M is not commutative: another order gives "
        "another result\n"
        "  because   f(("
    )
    assert text.endswith(
        "  hint      let equal values be decided by their position, as te.argmax does, or keep "
        "the order"
    )
    found = re.search(r"f\((.*), (\(.*)\) is (.*), but f\(\2, \1\) is (.*)\n", text)
    assert (found[3], found[4]) == (found[1], found[2])


def test_the_outermost_loop_keeps_the_order(first, computes):
    outer, inner = first.s[first.M].split(first.k, 4)
    assert not first.s.can("reorder", inner, outer)
    first.s.rfactor(first.M, outer)
    computes(first.s)


def test_refuses_a_maximum_that_nan_moves(refusal):
    A = te.placeholder((12,), name="A")
    k = te.reduce_axis((0, 12), name="k")
    larger = te.comm_reducer(lambda x, y: te.select(x > y, x, y), te.min_value, name="larger")
    M = te.compute((), lambda: larger(A[k], axis=k), name="M")
    text = refusal(create_schedule(M.op).rfactor, M, k)
    assert text.startswith("rfactor M.k: the reducer larger of M is not associative: ")
    assert "nan" in text
    assert text.endswith(
        "  hint      let NaN always lose, as in te.argmax, or always win, as in te.max: te.isnan "
        "asks for it"
    )


def test_refuses_an_identity_that_is_none(refusal):
    A = te.placeholder((12,), "int32", name="A")
    k = te.reduce_axis((0, 12), name="k")
    add = te.comm_reducer(lambda x, y: x + y, lambda t: te.const(1, t), name="add")
    C = te.compute((), lambda: add(A[k], axis=k), name="C")
    s = create_schedule(C.op)
    outer, inner = s[C].split(k, 4)
    for axis in (outer, inner):
        text = refusal(s.rfactor, C, axis)
        assert text.startswith(
            f"rfactor C.{axis.name}: the identity of the reducer add of C is wrong: it changes "
            "what it is combined with\n"
            "  because   f("
        )
        assert text.endswith(
            "  hint      let the function of the identity return what changes nothing: 0 for a sum"
        )
    s[C].reorder(inner, outer)  # no group, no identity


def test_refuses_a_reducer_that_is_not_associative(refusal):
    A = te.placeholder((12,), "int32", name="A")
    k = te.reduce_axis((0, 12), name="k")
    mean = te.comm_reducer(lambda x, y: (x + y) // 2, lambda t: te.const(0, t), name="mean")
    C = te.compute((), lambda: mean(A[k], axis=k), name="C")
    text = refusal(create_schedule(C.op).rfactor, C, k)
    assert text.startswith("rfactor C.k: the reducer mean of C is not associative")
    assert "f(f(" in text


def test_a_reducer_that_rounds_may_be_factored():
    A = te.placeholder((12,), name="A")
    k = te.reduce_axis((0, 12), name="k")
    norm = te.comm_reducer(
        lambda x, y: te.sqrt(x * x + y * y), lambda t: te.const(0, t), name="norm"
    )
    C = te.compute((), lambda: norm(A[k], axis=k), name="C")
    assert create_schedule(C.op).can("rfactor", C, k) == LEGAL


# -- refusals -------------------------------------------------------------------------------------


def test_refuses_a_data_loop(matmul, refusal):
    assert refusal(matmul.s.rfactor, matmul.C, matmul.i) == (
        "rfactor C.i: only a reduction loop can be factored\n"
        "  got       C.i, a data loop\n"
        "  hint      the reduction loops are: k"
    )


def test_refuses_a_loop_that_was_split(matmul, refusal):
    matmul.s[matmul.C].split(matmul.k, 4)
    assert refusal(matmul.s.rfactor, matmul.C, matmul.k) == (
        "rfactor C.k: it was split into k.outer and k.inner\n"
        "  got       axis k of stage C\n"
        "  hint      the loops are now: i, j, k.outer, k.inner"
    )


def test_refuses_to_lose_an_annotation(matmul, refusal):
    matmul.s[matmul.C].unroll(matmul.k)
    assert refusal(matmul.s.rfactor, matmul.C, matmul.k).startswith(
        "rfactor C.k: the loop is unrolled already, and would lose that"
    )


def test_refuses_what_does_not_reduce(chain, refusal):
    assert refusal(chain.s.rfactor, chain.D, chain.D.op.axis[0]) == (
        "rfactor D.i: D is not a reduction"
    )
    assert refusal(chain.s.rfactor, chain.A, chain.D.op.axis[0]).startswith(
        "rfactor A.i: A is an input"
    )


@pytest.mark.parametrize("place", [3, -4, 1.5, True, "0"])
def test_refuses_a_place_out_of_range(matmul, refusal, place):
    assert refusal(matmul.s.rfactor, matmul.C, matmul.k, place) == (
        "rfactor C.k: factor_axis is no dimension of the partial results\n"
        f"  got       {place!r}\n"
        "  hint      -3 to 2: they have one dimension more than C"
    )


def test_axes_that_begin_elsewhere(computes):
    A = te.placeholder((7, 9), "int32", name="A")
    k, q = te.reduce_axis((2, 7), name="k"), te.reduce_axis((1, 9), name="q")
    C = te.compute((3,), lambda i: te.sum(A[k, q] + i.astype("int32"), axis=[k, q]), name="C")
    s = create_schedule(C.op)
    s[C].unroll(C.op.axis[0])
    s[C].unroll(k)
    s.rfactor(C, q)
    computes(s)
