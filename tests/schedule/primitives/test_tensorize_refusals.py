"""What tensorize refuses, and what a tensorized loop forbids."""

import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError, TargetError
from dlcompiler.ir import decl_buffer
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import Pending, create_schedule
from tests.intrinsics import dots, product, row_sum_schedule, row_sums, tiled


@pytest.fixture
def tile():
    """A product in tiles of 6×16, with 8 values of k: the schedule, C, and the loop of a tile."""
    s, args, k = tiled(12, 32, 16, (6, 16, 8))
    return s, args[-1], k


def refused(call, *args):
    with pytest.raises(ScheduleError) as error:
        call(*args)
    return str(error.value)


# -- both sides are shown --------------------------------------------------------------------------


def test_extents(tile, refusal):
    s, C, k = tile
    assert refusal(s[C].tensorize, k, "gemm_f32_6x16x4") == (
        "tensorize C.k.inner: the loops do not compute what gemm_f32_6x16x4 declares\n"
        "  got       float32 C[i, j] = sum(A[i, k]*B[k, j], axis=[k]) for i < 6, j < 16, k < 8\n"
        "  expected  float32 C[i, j] = sum(A[i, k]*B[k, j], axis=[k]) for i < 6, j < 16, k < 4\n"
        "  because   the reduced axes have the extents 8, declared are 4\n"
        "  hint      split loops to the declared extents, and reorder the others outside C.k.inner"
    )
    text = refusal(s[C].tensorize, k, "gemm_f32_4x16x8")
    assert "because   the data axes have the extents 6 x 16, declared are 4 x 16\n" in text


def test_rank(tile, refusal):
    s, C, k = tile
    text = refusal(s[C].tensorize, k, "gemv_f32_16x8")
    assert "because   the data axes have the extents 6 x 16, declared are 16\n" in text


def test_dtypes(refusal):
    _A, _B, C = product(4, 16, 8, "float64")
    s = create_schedule(C.op)
    assert refusal(s[C].tensorize, C.op.axis[0], "gemm_f32_4x16x8").endswith(
        "because   A[i, k]*B[k, j] is float64, A[i, k]*B[k, j] float32"
    )
    _, _, D = dots(4, 16, 3, "int8")
    s = create_schedule(D.op)
    assert refusal(s[D].tensorize, D.op.axis[1], "dot4_u8s8_16x3").endswith(
        "because   X[i, g, q] is int8, X[g, q] uint8"
    )


def test_transposed_operands(refusal):
    A, B = te.placeholder((8, 4), name="A"), te.placeholder((8, 16), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((4, 16), lambda i, j: te.sum(A[k, i] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    assert refusal(s[C].tensorize, C.op.axis[0], "gemm_f32_4x16x8").endswith(
        "because   A[k, i] is read where A[i, k] is declared"
    )


def test_another_reduction_or_none(refusal):
    A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 16), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((4, 16), lambda i, j: te.max(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    assert refusal(s[C].tensorize, C.op.axis[0], "gemm_f32_4x16x8").endswith(
        "because   max where sum is declared"
    )
    C = te.compute((4, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k, where=k < 7), name="C")
    s = create_schedule(C.op)
    assert refusal(s[C].tensorize, C.op.axis[0], "gemm_f32_4x16x8").endswith(
        "because   the reduction has where= or init="
    )
    a = te.placeholder((4,), name="a")
    twice = te.compute((4,), lambda i: a[i] * 2.0, name="c")
    intrin = te.decl_tensor_intrin(twice.op, lambda i, o: "fma_tile", "twice")
    s, args, leaves = row_sum_schedule(4, 1, inner=1)
    assert (
        refusal(s[args[-1]].tensorize, leaves[2], intrin)
        .splitlines()[-1]
        .endswith("one is a reduction, the other is not")
    )


def test_another_expression(refusal):
    A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 16), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((4, 16), lambda i, j: te.sum(A[i, k] * 2.0 + B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    assert refusal(s[C].tensorize, C.op.axis[0], "gemm_f32_4x16x8").endswith(
        "because   A[i, k]*2.0 + B[k, j] where A[i, k]*B[k, j] is declared"
    )


def test_one_declared_tensor_for_two(refusal):
    a = te.placeholder((4,), name="a")
    square = te.compute((4,), lambda i: a[i] * a[i], name="c")
    intrin = te.decl_tensor_intrin(square.op, lambda i, o: "fma_tile", "square")
    A, B = te.placeholder((8,), name="A"), te.placeholder((8,), name="B")
    C = te.compute((4,), lambda i: A[i] * B[i + 1], name="C")
    s = create_schedule(C.op)
    assert refusal(s[C].tensorize, C.op.axis[0], intrin).endswith(
        "because   B[i + 1] is read where a[i] is declared, and a begins at A[0]"
    )
    D = te.compute((4,), lambda i: A[i] * A[i + 1], name="D")
    s = create_schedule(D.op)
    assert refusal(s[D].tensorize, D.op.axis[0], intrin).endswith(
        "because   A[i + 1] is read where a[i] is declared, and a begins at A[0]"
    )


# -- loops that are no box -------------------------------------------------------------------------


def test_a_tail(refusal):
    _A, _B, C = product(7, 16, 8)
    s = create_schedule(C.op)
    i_outer, i_inner = s[C].split(C.op.axis[0], 4)
    assert refusal(s[C].tensorize, i_inner, "gemm_f32_4x16x8") == (
        "tensorize C.i.inner: the intrinsic would compute iterations that do not exist\n"
        "  got       only those where i.outer*4 + i.inner < 7\n"
        "  hint      split by a factor that divides the extent, or treat the rest in a tensor that "
        "is padded"
    )
    del i_outer


def test_the_outer_loop_of_a_split_inside(refusal):
    _A, _B, C = product(16, 16, 8)
    s = create_schedule(C.op)
    i_outer, i_inner = s[C].split(C.op.axis[0], 4)
    s[C].reorder(i_inner, i_outer)
    assert refusal(s[C].tensorize, i_outer, "gemm_f32_4x16x8") == (
        "tensorize C.i.outer: the loops run through no box of known size\n"
        "  got       those from C.i.outer inwards\n"
        "  hint      split by numbers, and put the inner loops of the splits innermost"
    )


def test_symbolic_extents(refusal):
    n = te.size_var("n")
    A, B = te.placeholder((n, 8), name="A"), te.placeholder((8, 16), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((n, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    assert "the loops run through no box of known size" in refusal(
        s[C].tensorize, C.op.axis[0], "gemm_f32_4x16x8"
    )


def test_an_index_that_is_read_from_a_tensor(refusal):
    A, rows = te.placeholder((9, 4), name="A"), te.placeholder((4,), "int32", "rows")
    k = te.reduce_axis((0, 4), name="k")
    C = te.compute((4,), lambda i: te.sum(A[rows[i], k], axis=k), name="C")
    s = create_schedule(C.op)
    assert (
        refusal(s[C].tensorize, C.op.axis[0], row_sums())
        .splitlines()[-1]
        .endswith("A[index(rows[i]), k] is read where a[i, k] is declared")
    )


# -- parts and strides -----------------------------------------------------------------------------


def test_no_update(refusal):
    s, args, leaves = row_sum_schedule(8, 12)
    assert refusal(s[args[-1]].tensorize, leaves[2], row_sums(only=("body",))) == (
        "tensorize C.i.inner: row_sums has no update, and part of the reduction is outside of it\n"
        "  hint      tensorize with all reduction loops inside, or declare (body, reset, update)"
    )


def test_strides_that_the_intrinsic_cannot_have(refusal):
    A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 16, 3), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((3, 4, 16), lambda x, i, j: te.sum(A[i, k] * B[k, j, x], axis=k), name="C")
    s = create_schedule(C.op)
    assert refusal(s[C].tensorize, C.op.axis[1], "gemm_f32_4x16x8") == (
        "tensorize C.i: the elements of B lie too far apart\n"
        "  got       a stride of 3 along dimension 1\n"
        "  expected  1, as dimension 1 of B has in gemm_f32_4x16x8\n"
        "  hint      store B in another layout: pack it, or s.cache_read and transform_layout"
    )


def test_where_operands_begin(refusal):
    a = te.placeholder((4,), name="a")
    c = te.compute((4,), lambda i: a[i] * 2.0, name="c")
    binds = {a: decl_buffer((4,), name="a", strides=[1], offset_factor=4)}
    intrin = te.decl_tensor_intrin(c.op, lambda i, o: "fma_tile", "aligned", binds)

    def schedule(columns, shift):
        A = te.placeholder((3, columns), name="A")
        C = te.compute((3, 4), lambda i, j: A[i, j + shift] * 2.0, name="C")
        s = create_schedule(C.op)
        return s[C], C.op.axis[1]

    stage, j = schedule(8, 4)
    stage.tensorize(j, intrin)
    stage, j = schedule(8, 2)
    assert refusal(stage.tensorize, j, intrin) == (
        "tensorize C.j: A would not begin at an aligned element\n"
        "  got       i*8 + 2 elements from the start of A\n"
        "  expected  a multiple of 4, the offset_factor of a"
    )
    stage, j = schedule(6, 0)
    assert "i*6 elements from the start of A" in refusal(stage.tensorize, j, intrin)


def test_padding_afterwards(refusal):
    _A, B, C = product(6, 16, 16)
    s = create_schedule(C.op)
    packed = s.cache_read(B, "global", [C])
    s[C].tensorize(C.op.axis[0], "gemm_f32_6x16x16")
    rows, columns = s[packed].op.axis
    s[packed].storage_align(rows, 8, 4)
    assert "the elements of B.global lie too far apart" in refusal(
        s[packed].storage_align, columns, 8, 2
    )


# -- what is no intrinsic --------------------------------------------------------------------------


def test_names_and_things(tile, refusal):
    s, C, k = tile
    assert refusal(s[C].tensorize, k, "gemm_f32_6x16") == (
        "tensorize C.k.inner: no such tensor intrinsic\n"
        "  got       'gemm_f32_6x16'\n"
        "  hint      did you mean gemm_f32_mxnxk, with numbers?"
    )
    assert refusal(s[C].tensorize, k, "none of these").startswith(
        "tensorize C.k.inner: no such tensor intrinsic\n"
        "  got       'none of these'\n"
        "  hint      known: gemm_f32_mxnxk, gemv_f32_nxk, dot4_u8s8_nxg, dot4_s8s8_nxg, "
    )
    assert refusal(s[C].tensorize, k, C) == (
        "tensorize C.k.inner: not a tensor intrinsic\n"
        "  got       Tensor(C: float32[12, 32])\n"
        '  hint      te.tensor_intrin("gemm_f32_6x16x64"), or one of te.decl_tensor_intrin'
    )


def test_a_stage_without_loops(refusal):
    A, _B, C = product(4, 16, 8)
    s = create_schedule(C.op)
    assert refusal(s[A].tensorize, C.op.axis[0], "gemm_f32_4x16x8") == (
        "tensorize A.i: A is an input: it has no loops"
    )


# -- beside other steps ----------------------------------------------------------------------------


def test_a_second_one(tile, refusal):
    s, C, k = tile
    s[C].tensorize(k, "gemm_f32_6x16x8")
    assert refusal(s[C].tensorize, s[C].leaf_iter_vars[2], "gemm_f32_6x16x16") == (
        "tensorize C.k.outer: C has an intrinsic already\n"
        "  got       gemm_f32_6x16x8 at C.k.inner\n"
        "  hint      one stage has one: undo that step, or cache_write and tensorize the cache"
    )


def test_loops_inside_that_are_more_than_serial(tile, refusal):
    s, C, k = tile
    inner = s[C].leaf_iter_vars[-1]
    s[C].vectorize(inner)
    assert refusal(s[C].tensorize, k, "gemm_f32_6x16x8") == (
        "tensorize C.k.inner: a loop that is part of gemm_f32_6x16x8 cannot be vectorized\n"
        "  got       C.j.inner\n"
        "  because   its instructions are given, with vectors of their own\n"
        "  hint      leave the loops of an intrinsic serial; those around it may be parallel or "
        "unrolled"
    )
    s.undo()
    s[C].bind(inner, te.thread_axis("threadIdx.x"))
    assert "cannot be threadIdx.x" in refusal(s[C].tensorize, k, "gemm_f32_6x16x8")
    s.undo()
    s[C].pragma(inner, "auto_unroll_max_step", 4)
    assert "cannot be given the pragma auto_unroll_max_step" in refusal(
        s[C].tensorize, k, "gemm_f32_6x16x8"
    )
    s.undo()
    s[C].unroll(k)
    assert "the loop is unrolled already" in refusal(s[C].tensorize, k, "gemm_f32_6x16x8")


@pytest.mark.parametrize(
    ("primitive", "args"),
    [("vectorize", ()), ("unroll", ()), ("parallel", ()), ("split", (2,))],
)
def test_steps_on_loops_of_an_intrinsic(tile, refusal, primitive, args):
    s, C, k = tile
    s[C].tensorize(k, "gemm_f32_6x16x8")
    for leaf in (k, s[C].leaf_iter_vars[-2]):
        text = refusal(getattr(s[C], primitive), leaf, *args)
        if primitive != "parallel" or leaf.kind == "data":
            assert "part of the intrinsic gemm_f32_6x16x8" in text


def test_a_vectorized_loop_around(tile, refusal):
    s, C, k = tile
    s[C].tensorize(k, "gemm_f32_6x16x8")
    outer = s[C].leaf_iter_vars[1]
    assert "a loop around gemm_f32_6x16x8 cannot be vectorized" in refusal(s[C].vectorize, outer)


def test_reordering_what_is_inside_and_what_is_not(tile, refusal):
    s, C, k = tile
    s[C].tensorize(k, "gemm_f32_6x16x8")
    *_, i_inner, j_inner = s[C].leaf_iter_vars
    i_outer, j_outer = s[C].leaf_iter_vars[:2]
    s[C].reorder(j_outer, i_outer)
    s[C].reorder(j_inner, i_inner)
    assert "the loops run through no box" in refusal(s[C].reorder, i_inner, i_outer)


def test_stages_inside(refusal):
    _A, B, C = product(6, 16, 8)
    s = create_schedule(C.op)
    packed = s.cache_read(B, "local", [C])
    s[packed].compute_at(s[C], C.op.axis[1])
    assert refusal(s[C].tensorize, C.op.axis[0], "gemm_f32_6x16x8") == (
        "tensorize C.i: B.local cannot be computed inside gemm_f32_6x16x8\n"
        "  got       attached at C.j\n"
        "  hint      attach B.local at a loop around C.i"
    )
    s[packed].compute_root()
    s[C].tensorize(C.op.axis[0], "gemm_f32_6x16x8")
    assert "B.local cannot be computed inside" in refusal(s[packed].compute_at, s[C], C.op.axis[1])


def test_inlining_into_it_and_inlining_it(refusal):
    A, B = te.placeholder((6, 8), name="A"), te.placeholder((8, 16), name="B")
    P = te.compute((8, 16), lambda k, j: B[k, j] * 2.0, name="P")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((6, 16), lambda i, j: te.sum(A[i, k] * P[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    s[C].tensorize(C.op.axis[0], "gemm_f32_6x16x8")
    assert refusal(s[P].compute_inline).splitlines()[-1] == (
        "  because   B[k, j]*2.0 where B[k, j] is declared"
    )
    a = te.placeholder((16,), name="a")
    one = te.compute((16,), lambda i: a[i] + 1.0, name="c")
    intrin = te.decl_tensor_intrin(one.op, lambda i, o: "fma_tile", "one")
    A = te.placeholder((16,), name="A")
    Q = te.compute((16,), lambda i: A[i] + 1.0, name="Q")
    R = te.compute((16,), lambda i: Q[i] * 2.0, name="R")
    s = create_schedule(R.op)
    s[Q].tensorize(Q.op.axis[0], intrin)
    assert "one would be lost: Q.i is no loop any more" in refusal(s[Q].compute_inline)


def test_caches_of_it(tile):
    s, C, k = tile
    s[C].tensorize(k, "gemm_f32_6x16x8")
    before = s.state
    assert "gemm_f32_6x16x8" in refused(s.cache_write, C, "local")
    assert "gemm_f32_6x16x8" in refused(s.rfactor, C, s[C].leaf_iter_vars[2])
    assert s.state is before


def test_an_emitter_that_there_is_not():
    _, _, c = product(4, 16, 8)
    intrin = te.decl_tensor_intrin(c.op, lambda i, o: "no_such", "mine")
    A, B, C = product(4, 16, 8)
    s = create_schedule(C.op)
    s[C].tensorize(C.op.axis[0], intrin)
    assert "C[0 : +4, 0 : +16] = mine(" in str(lower(s, [A, B, C]))
    with pytest.raises(TargetError) as error:
        build(s, [A, B, C])
    assert str(error.value) == (
        "generate LLVM code for C[0 : +4, 0 : +16] = mine(A[0 : +4, 0 : +8], B[0 : +8, 0 : +16]): "
        "no emitter of this name\n"
        "  got       'no_such'\n"
        "  expected  fma_tile, dot4, bits"
    )


def test_a_padded_stage_that_is_an_argument():
    a = te.placeholder((4, 4), name="a")
    c = te.compute((4, 4), lambda i, j: a[i, j] * 2.0, name="c")
    intrin = te.decl_tensor_intrin(c.op, lambda i, o: "fma_tile", "twice", binds={a: (8, 1)})
    A = te.placeholder((4, 4), name="A")
    P = te.compute((4, 4), lambda i, j: A[i, j] + 1.0, name="P")
    C = te.compute((4, 4), lambda i, j: P[i, j] * 2.0, name="C")
    s = create_schedule(C.op)
    s[P].storage_align(P.op.axis[0], 8, 0)
    s[C].tensorize(C.op.axis[0], intrin)
    assert "twice(P[0 : +4, 0 : +4])" in str(lower(s, [A, C], simple_mode=True))
    with pytest.raises(ScheduleError) as error:
        lower(s, [A, P, C])
    assert str(error.value) == (
        "lower main: the elements of P lie too far apart for twice\n"
        "  got       a stride of 4 along dimension 0\n"
        "  expected  8\n"
        "  hint      leave P out of the arguments"
    )


def test_several_outputs(refusal):
    A = te.placeholder((4,), name="A")
    P, _ = te.compute((4,), lambda i: (A[i] * 2.0, A[i] + 1.0), name="P")
    twice = te.compute((4,), lambda i: A[i] * 2.0, name="c")
    intrin = te.decl_tensor_intrin(twice.op, lambda i, o: "fma_tile", "twice")
    s = create_schedule(P.op)
    assert refusal(s[P].tensorize, P.op.axis[0], intrin) == (
        "tensorize P.i: P has several outputs, and an intrinsic one\n  got       P.v0, P.v1"
    )


def test_before_it_is_known_where_stages_are_computed():
    A, B, C = product(6, 16, 8)
    D = te.compute((6, 16), lambda i, j: C[i, j] + 1.0, name="D")
    E = te.compute((6, 16), lambda i, j: D[i, j] * C[i, j], name="E")
    s = create_schedule(E.op)
    s[C].compute_at(s[E], E.op.axis[0])
    verdict = s.can("tensorize", s[C], s[C].op.axis[1], "gemv_f32_16x4")
    assert isinstance(verdict, Pending)
    s[C].tensorize(s[C].op.axis[1], "gemv_f32_16x4")
    with pytest.raises(ScheduleError, match="the reduced axes have the extents 8, declared are 4"):
        s[D].compute_at(s[E], E.op.axis[0])
    s.undo()
    s[C].tensorize(s[C].op.axis[1], "gemv_f32_16x8")
    s[D].compute_at(s[E], E.op.axis[0])
    assert "C[0, 0 : +16] = gemv_f32_16x8(A[i, 0 : +8]" in str(lower(s, [A, B, E]))


def test_a_circular_buffer(refusal):
    A, W = te.placeholder((20, 8), name="A"), te.placeholder((8, 16), name="W")
    P = te.compute((20, 8), lambda y, k: A[y, k] * 2.0, name="P")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((4, 4, 16), lambda y, i, j: te.sum(P[y * 2 + i, k] * W[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    y, i, _ = C.op.axis
    s[P].compute_at(s[C], y)
    s[C].tensorize(i, "gemm_f32_4x16x8")
    assert "P is in a circular buffer, where a box may wrap around" in refusal(s[P].rolling_buffer)
    s.undo()
    s[P].rolling_buffer()
    assert "P is in a circular buffer" in refusal(s[C].tensorize, i, "gemm_f32_4x16x8")
