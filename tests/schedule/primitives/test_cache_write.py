"""cache_write: the nests it makes, and what it refuses."""

from types import SimpleNamespace

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule


@pytest.fixture
def packed():
    """C doubles, and D reads C transposed."""
    A = te.placeholder((12, 8), name="A")
    C = te.compute((12, 8), lambda i, j: A[i, j] * 2.0, name="C")
    D = te.compute((8, 12), lambda i, j: C[j, i] + 1.0, name="D")
    return SimpleNamespace(s=create_schedule(D.op), A=A, C=C, D=D, args=[A, D])


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


@pytest.mark.parametrize("scope", ["sharde", "", None, 3, ["local"]])
def test_refuses_an_unknown_scope(matmul, refusal, scope):
    assert refusal(matmul.s.cache_write, matmul.C, scope) == (
        "cache_write C: no such memory scope\n"
        f"  got       {scope!r}\n"
        "  hint      known scopes: global, local, shared, warp"
    )


@pytest.mark.parametrize("primitive", ["vectorize", "unroll", "parallel"])
def test_refuses_to_lose_an_annotation(matmul, refusal, primitive):
    getattr(matmul.s[matmul.C], primitive)(matmul.j)
    kind = {"vectorize": "vectorized", "unroll": "unrolled"}.get(primitive, primitive)
    assert refusal(matmul.s.cache_write, matmul.C, "local") == (
        f"cache_write C: the loop is {kind} already, and would lose that\n"
        f"  got       C.j, {kind}\n"
        f"  hint      undo that step, and make the new loop {kind} afterwards"
    )


# -- layouts --------------------------------------------------------------------------------------


def test_the_data_loops_are_the_layout_of_the_cache(packed, nest, golden, computes):
    s, C = packed.s, packed.C
    i, j = C.op.axis
    io, ii = s[C].split(i, 4)
    s[C].reorder(j, io, ii)
    cached = s.cache_write(C, "global")
    assert s[cached].op.output(0).shape == (8, 3, 4)
    s[C].compute_inline()
    golden("layout", nest(packed))
    computes(s)


def test_a_layout_is_padded_where_splits_do_not_divide(packed, nest, golden, computes):
    s, C = packed.s, packed.C
    i, j = C.op.axis
    _, ii = s[C].split(i, 5)
    s[C].split(ii, 3)
    jo, _ = s[C].split(j, nparts=3)
    s[C].reorder(jo, s[C].leaf_iter_vars[0])
    cached = s.cache_write(C, "local")
    s[cached].vectorize(s[cached].op.axis[-1])
    golden("padded_layout", nest(packed))
    computes(s)


def test_a_fused_layout_attached_inside_a_reader(packed, computes):
    s, C, D = packed.s, packed.C, packed.D
    fused = s[C].fuse(*C.op.axis)
    s[C].split(fused, 7)
    cached = s.cache_write(C, "local")
    s[C].compute_inline()
    s[cached].compute_at(s[D], D.op.axis[0])
    computes(s)


def test_reduction_loops_move_as_they_are(matmul, nest, golden, computes):
    s, C = matmul.s, matmul.C
    ko, ki = s[C].split(matmul.k, 3)
    s[C].unroll(ki)
    _, ii = s[C].split(matmul.i, 3)
    s[C].reorder(ko, matmul.j, ki, ii)
    cached = s.cache_write(C, "local")
    assert [s[cached].state.paths[leaf] for leaf in s[cached].leaf_iter_vars] == [
        "i.outer.c", "k.outer", "j.c", "k.inner", "i.inner.c",
    ]  # fmt: skip
    golden("reduction_layout", nest(matmul))
    computes(s)


def test_a_padded_reduction_with_a_condition_and_a_start(computes):
    A = te.placeholder((7, 5), "int32", name="A")
    k = te.reduce_axis((0, 5), name="k")
    C = te.compute(
        (7,), lambda i: te.sum(A[i, k], axis=k, where=A[i, k] > 0, init=A[i, 0]), name="C"
    )
    s = create_schedule(C.op)
    s[C].split(C.op.axis[0], 4)
    s.cache_write(C, "local")
    computes(s)


def test_several_outputs(nest, packed, golden, computes):
    A = te.placeholder((5, 3), name="A")
    P, Q = te.compute((5, 3), lambda i, j: (A[i, j] + 1.0, A[i, j] * 2.0), name="P")
    s = create_schedule(P.op)
    _, ii = s[P].split(P.op.axis[0], 2)
    s[P].reorder(P.op.axis[1], ii)
    cached = s.cache_write([P, Q], "local")
    assert [tensor.name for tensor in cached] == ["P.local.v0", "P.local.v1"]
    packed.s, packed.args = s, [A, P, Q]
    golden("several_outputs", nest(packed))
    computes(s)


def test_results_of_one_reduction(computes):
    A = te.placeholder((5, 7), "int32", name="A")
    k = te.reduce_axis((0, 7), name="k")
    where, largest = te.compute((5,), lambda i: te.argmax(A[i, k], axis=k), name="M")
    s = create_schedule(where.op)
    s[where].split(where.op.axis[0], 3)
    cached, _ = s.cache_write([where, largest], "local")
    s[cached].compute_at(s[where], where.op.axis[0])
    computes(s)


def test_refuses_some_of_several_outputs(refusal):
    A = te.placeholder((5,), name="A")
    P, _ = te.compute((5,), lambda i: (A[i] + 1.0, A[i] * 2.0), name="P")
    s = create_schedule(P.op)
    assert refusal(s.cache_write, P, "local") == (
        "cache_write P: takes all outputs of one operation\n"
        "  got       P.v0\n"
        "  hint      s.cache_write([P.v0, P.v1], …)"
    )
    assert refusal(s.cache_write, [P, P], "local").startswith("cache_write P: takes all outputs")
    assert refusal(s.cache_write, [], "local").startswith("cache_write: takes all outputs")
    assert refusal(s.cache_write, P.op, "local").startswith("cache_write P: not a tensor")


def test_refuses_a_loop_that_became_a_dimension(packed, refusal):
    s, C = packed.s, packed.C
    outer, _ = s[C].split(C.op.axis[0], 4)
    s.cache_write(C, "local")
    assert refusal(s[C].unroll, outer) == (
        "unroll C.i.outer: the axis is gone: its stage has other loops now\n"
        "  got       axis i.outer, gone since: cache_write C local\n"
        "  hint      take the loops that the stages have now: s[C].leaf_iter_vars"
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


def test_what_is_attached_follows_the_computation(packed, nest, golden, computes):
    A = te.placeholder((8,), name="A")
    P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
    D = te.compute((8,), lambda i: P[i] + 1.0, name="D")
    s = create_schedule(D.op)
    outer, _ = s[D].split(D.op.axis[0], 3)
    s[P].compute_at(s[D], outer)
    s.cache_write(D, "local")
    packed.s, packed.args = s, [A, D]
    golden("attached_inside", nest(packed))
    computes(s)


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


def test_refuses_a_layout_padded_too_far(refusal):
    A = te.placeholder((9, 2**36 + 1), "int8", name="A")
    C = te.compute(A.shape, lambda i, j: A[i, j], name="C")
    s = create_schedule(C.op)
    s[C].split(C.op.axis[0], 8)
    assert refusal(s.cache_write, C, "local") == (
        "cache_write C: C.local would be too large\n"
        "  got       1099511627792 elements\n"
        "  hint      split by factors that divide the extents; at most 1099511627776 elements"
    )


def test_refuses_more_stages_than_passes_can_walk(refusal):
    T = te.placeholder((4,), name="A")
    for _ in range(199):
        T = increased(T)
    s = create_schedule(T.op)
    assert refusal(s.cache_write, T, "local") == (
        f"cache_write {s[T].name}: the schedule would have too many stages\n"
        "  got       201\n"
        "  hint      cache fewer tensors: at most 200 stages"
    )


def increased(T):
    return te.compute(T.shape, lambda i: T[i] + 1.0)
