"""tensorize: intrinsics in the place of loops, and what they do not fit."""

import itertools
import json

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    Assert,
    For,
    IntrinsicCall,
    Load,
    Store,
    Var,
    compare,
    index_const,
    seq,
    walk,
)
from dlcompiler.measurement import verify
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.moves.suggestions import suggestion
from dlcompiler.schedule.saved.document import Saved, from_data, to_data
from dlcompiler.schedule.trace import Trace
from tests.intrinsics import dots, product, row_sum_schedule, row_sums, tiled


def nest(s, args):
    return str(lower(s, args, simple_mode=True)).partition("\n")[2]


def modes(s, args):
    calls = [n for n in walk(lower(s, args, simple_mode=True).body) if isinstance(n, IntrinsicCall)]
    return sorted(call.mode for call in calls)


# -- what it makes ---------------------------------------------------------------------------------


def test_reset_and_update_where_part_of_the_reduction_is_outside():
    s, args, k = tiled(12, 32, 16, (6, 16, 8))
    s[args[-1]].tensorize(k, te.tensor_intrin("gemm_f32_6x16x8"))
    assert nest(s, args) == (
        "    for i.outer in range(2):\n"
        "        for j.outer in range(2):\n"
        "            C[i.outer*6 : +6, j.outer*16 : +16] = gemm_f32_6x16x8.reset()\n"
        "            for k.outer in range(2):\n"
        "                C[i.outer*6 : +6, j.outer*16 : +16] += gemm_f32_6x16x8("
        "A[i.outer*6 : +6, k.outer*8 : +8], B[k.outer*8 : +8, j.outer*16 : +16])\n"
    )
    verify(s, args)


def test_body_where_all_of_the_reduction_is_inside():
    s, args, _ = tiled(12, 32, 16, (6, 16, 16))
    C = args[-1]
    s[C].tensorize(s[C].leaf_iter_vars[2], te.tensor_intrin("gemm_f32_6x16x16"))
    assert modes(s, args) == ["body"]
    verify(s, args)


def test_a_whole_nest():
    A, B, C = product(4, 8, 3)
    s = create_schedule(C.op)
    s[C].tensorize(C.op.axis[0], te.tensor_intrin("gemm_f32_4x8x3"))
    assert nest(s, [A, B, C]) == (
        "    C[0 : +4, 0 : +8] = gemm_f32_4x8x3(A[0 : +4, 0 : +3], B[0 : +3, 0 : +8])\n"
    )
    verify(s, [A, B, C])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_order_of_the_inner_loops_is_free(order):
    s, args, _ = tiled(6, 16, 8, (3, 8, 4))
    C = args[-1]
    leaves = s[C].leaf_iter_vars
    inner = [leaves[3:][n] for n in order]
    s[C].reorder(*leaves[:3], *inner)
    s[C].tensorize(inner[0], te.tensor_intrin("gemm_f32_3x8x4"))
    assert modes(s, args) == ["reset", "update"]


def test_data_loops_between_reduction_loops_are_in_the_reset_too():
    A, B, C = product(6, 32, 8)
    s = create_schedule(C.op)
    (i, j), (k,) = C.op.axis, C.op.reduce_axis
    j_outer, j_inner = s[C].split(j, 16)
    k_outer, k_inner = s[C].split(k, 4)
    s[C].reorder(k_outer, j_outer, i, k_inner, j_inner)
    s[C].tensorize(k_inner, "gemv_f32_16x4")
    assert nest(s, [A, B, C]) == (
        "    for j.outer.init in range(2):\n"
        "        for i.init in range(6):\n"
        "            C[i.init, j.outer.init*16 : +16] = gemv_f32_16x4.reset()\n"
        "    for k.outer in range(2):\n"
        "        for j.outer in range(2):\n"
        "            for i in range(6):\n"
        "                C[i, j.outer*16 : +16] += gemv_f32_16x4("
        "A[i, k.outer*4 : +4], B[k.outer*4 : +4, j.outer*16 : +16])\n"
    )
    verify(s, [A, B, C])


def test_operands_in_the_other_order_and_constants_of_the_index():
    A, B = te.placeholder((9, 10), name="A"), te.placeholder((10, 20), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((4, 16), lambda i, j: te.sum(B[k + 2, j + 1] * A[i + 5, k], axis=k), name="C")
    s = create_schedule(C.op)
    s[C].tensorize(C.op.axis[0], "gemm_f32_4x16x8")
    assert "A[5 : +4, 0 : +8], B[2 : +8, 1 : +16]" in nest(s, [A, B, C])
    verify(s, [A, B, C])


def test_a_reduction_axis_that_does_not_begin_at_0():
    A, B = te.placeholder((4, 12), name="A"), te.placeholder((12, 16), name="B")
    k = te.reduce_axis((3, 11), name="k")
    C = te.compute((4, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    s[C].tensorize(C.op.axis[0], "gemm_f32_4x16x8")
    assert "A[0 : +4, 3 : +8], B[3 : +8, 0 : +16]" in nest(s, [A, B, C])
    verify(s, [A, B, C])


def test_dimensions_that_stand_still_may_lie_between():
    A, B = te.placeholder((4, 3, 8), name="A"), te.placeholder((8, 5, 16), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute(
        (3, 4, 5, 16), lambda x, i, y, j: te.sum(A[i, x, k] * B[k, y, j], axis=k), name="C"
    )
    s = create_schedule(C.op)
    x, i, y, j = C.op.axis
    s[C].reorder(x, y, i, j)
    s[C].tensorize(i, "gemm_f32_4x16x8")
    assert "C[x, 0 : +4, y, 0 : +16] = gemm_f32_4x16x8(A[0 : +4, x, 0 : +8], B[0 : +8, y" in nest(
        s, [A, B, C]
    )
    verify(s, [A, B, C])


def test_a_stage_that_is_attached_computes_its_part():
    A, B, C = product(12, 32, 16)
    D = te.compute((12, 32), lambda i, j: C[i, j] + 1.0, name="D")
    s = create_schedule(D.op)
    i_outer, j_outer, _, _ = s[D].tile(*D.op.axis, 6, 16)
    s[C].compute_at(s[D], j_outer)
    s[C].tensorize(s[C].op.axis[0], "gemm_f32_6x16x16")
    s[D].parallel(i_outer)
    assert "C[0 : +6, 0 : +16] = gemm_f32_6x16x16(A[i.outer*6 : +6, 0 : +16]" in nest(s, [A, B, D])
    verify(s, [A, B, D])


def test_inputs_that_are_packed_are_read_where_they_are():
    A, B, C = product(6, 32, 16)
    s = create_schedule(C.op)
    packed = s.cache_read(B, "global", [C])
    j_outer, j_inner = s[C].split(C.op.axis[1], 16)
    s[C].reorder(j_outer, C.op.axis[0], C.op.reduce_axis[0], j_inner)
    s[packed].compute_at(s[C], j_outer)
    s[C].tensorize(C.op.axis[0], "gemm_f32_6x16x16")
    assert "B.global[0 : +16, 0 : +16]" in nest(s, [A, B, C])
    verify(s, [A, B, C])


def test_inputs_that_are_kept_twice():
    A, B, C = product(12, 32, 16)
    s = create_schedule(C.op)
    rows = s.cache_read(A, "global", [C])
    _, i_outer, j_inner, _ = s[C].tile(C.op.axis[1], C.op.axis[0], 16, 6)
    s[rows].compute_at(s[C], i_outer)
    s[rows].double_buffer()
    s[C].tensorize(j_inner, "gemm_f32_6x16x16")
    assert "gemm_f32_6x16x16(A.global[1, 0 : +6, 0 : +16]" in str(lower(s, [A, B, C]))
    verify(s, [A, B, C])


def test_virtual_threads_around():
    A, B, C = product(12, 32, 16)
    s = create_schedule(C.op)
    rows = s.cache_read(A, "local", [C])
    i_outer, j_outer, i_inner, _ = s[C].tile(*C.op.axis, 6, 16)
    s[C].bind(i_outer, te.thread_axis("vthread"))
    s[C].bind(j_outer, te.thread_axis("threadIdx.x"))
    s[rows].compute_at(s[C], j_outer)
    s[C].tensorize(i_inner, "gemm_f32_6x16x16")
    text = str(lower(s, [A, B, C], target="gpu"))
    assert "gemm_f32_6x16x16(A.local[1, 0 : +6, 0 : +16]" in text
    verify(s, [A, B, C], target="gpu")


def test_an_unrolled_loop_and_a_parallel_one_around():
    s, args, k = tiled(12, 32, 8, (6, 16, 8))
    C = args[-1]
    i_outer, j_outer, *_ = s[C].leaf_iter_vars
    s[C].parallel(i_outer)
    s[C].unroll(j_outer)
    s[C].tensorize(k, "gemm_f32_6x16x8")
    assert "C[i.outer*6 : +6, 16 : +16] += gemm" in str(lower(s, args))
    verify(s, args)


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_symbolic_loops_around(rows):
    n = te.size_var("n")
    A, B = te.placeholder((n, 8), name="A"), te.placeholder((8, 16), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((n, 16), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    s[C].tensorize(C.op.axis[1], "gemv_f32_16x8")
    kernel = build(s, [A, B, C])
    generator = np.random.default_rng(rows)
    a, b = generator.integers(-4, 5, (rows, 8)), generator.integers(-4, 5, (8, 16))
    a, b = a.astype("float32"), b.astype("float32")
    c = np.full((rows, 16), np.nan, "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


# -- intrinsics given as statements ----------------------------------------------------------------


@pytest.mark.parametrize("only", [("body", "reset", "update"), ("update",), ("update", "body")])
@pytest.mark.parametrize(("rows", "columns", "at"), [(8, 12, 2), (4, 4, 0), (8, 4, 1)])
def test_statements_and_what_stands_for_missing_parts(rows, columns, at, only):
    s, args, leaves = row_sum_schedule(rows, columns)
    s[args[-1]].tensorize(leaves[at], row_sums(only=only))
    verify(s, args)


def test_without_a_reset_plain_assignments():
    s, args, leaves = row_sum_schedule(8, 12)
    s[args[-1]].tensorize(leaves[2], row_sums(only=("update",)))
    assert nest(s, args) == (
        "    for i.outer in range(2):\n"
        "        for i in range(4):\n"
        "            C[i.outer*4 + i] = 0.0\n"
        "        for k.outer in range(3):\n"
        "            C[i.outer*4 : +4] += row_sums(A[i.outer*4 : +4, k.outer*4 : +4])\n"
    )


def test_strides_of_the_region_reach_the_statements():
    a = te.placeholder((4, 4), name="a")
    c = te.compute((4, 4), lambda i, j: a[i, j] * 2.0, name="c")

    def carry_out(ins, outs):
        i, j = Var("i"), Var("j")
        twice = Store(outs[0], (i, j), Load(ins[0], (i, j)) * 2.0)
        loops = For(i, index_const(4), "serial", For(j, index_const(4), "vectorized", twice))
        return seq((Assert(compare("eq", ins[0].strides[0], 12), "another stride"), loops))

    intrin = te.decl_tensor_intrin(c.op, carry_out, "twice", binds={a: (None, 1)})
    A = te.placeholder((8, 12), name="A")
    C = te.compute((8, 12), lambda i, j: A[i, j] * 2.0, name="C")
    s = create_schedule(C.op)
    _, _, i_inner, _ = s[C].tile(*C.op.axis, 4, 4)
    s[C].tensorize(i_inner, intrin)
    assert "C[i.outer*4, j.outer*4 : +4] = A[i.outer*4, j.outer*4 : +4]*broadcast(2.0, 4)" in (
        str(lower(s, [A, C])).replace("i.outer*4 + i", "i.outer*4")
    )
    verify(s, [A, C])


# -- steps as data ---------------------------------------------------------------------------------


def test_the_python_and_the_json_of_a_step():
    s, args, k = tiled(12, 32, 16, (6, 16, 8))
    s[args[-1]].tensorize(k, te.tensor_intrin("gemm_f32_6x16x8"))
    line = 's[C].tensorize(k_inner, te.tensor_intrin("gemm_f32_6x16x8"))'
    assert s.trace.to_python().splitlines()[-1] == line
    again, fresh, _ = tiled(18, 16, 16, (6, 16, 8))
    again = create_schedule(fresh[-1].op)
    Trace.from_json(s.trace.to_json()).replay(again)
    assert "gemm_f32_6x16x8.reset()" in nest(again, fresh)


def test_a_schedule_that_is_saved():
    s, args, k = tiled(12, 32, 16, (6, 16, 8))
    s[args[-1]].tensorize(k, "gemm_f32_6x16x8")
    read = from_data(json.loads(json.dumps(to_data(Saved(s, tuple(args))))))
    assert nest(read.schedule, list(read.args)) == nest(s, args)


def test_a_users_intrinsic_is_found_again_by_what_it_says():
    s, args, leaves = row_sum_schedule(8, 12)
    intrin = row_sums()
    s[args[-1]].tensorize(leaves[2], intrin)
    text = s.trace.to_json()
    assert intrin.id in text
    again, fresh, _ = row_sum_schedule(8, 12)
    again = create_schedule(fresh[-1].op)
    Trace.from_json(text).replay(again)
    assert nest(again, fresh) == nest(s, args)
    lost = text.replace(intrin.id, "row_sums#00000000")
    with pytest.raises(ScheduleError) as error:
        Trace.from_json(lost).replay(create_schedule(fresh[-1].op))
    assert str(error.value) == (
        "tensorize C.i.inner: no such tensor intrinsic\n"
        "  got       'row_sums#00000000'\n"
        "  hint      declare it before: te.decl_tensor_intrin(…), with the same name and contents"
    )


def test_undo_and_redo():
    s, args, k = tiled(12, 32, 16, (6, 16, 8))
    C = args[-1]
    before = nest(s, args)
    s[C].tensorize(k, "gemm_f32_6x16x8")
    after = nest(s, args)
    s.undo()
    assert nest(s, args) == before
    s.redo()
    assert nest(s, args) == after


# -- asking ----------------------------------------------------------------------------------------


def test_moves_offer_the_shipped_ones_of_the_sizes_that_are_there():
    s, args, _ = tiled(12, 32, 16, (6, 16, 8))
    found = {m.targets: m.verdict for m in s.moves(args[-1]) if m.primitive == "tensorize"}
    assert {targets: bool(verdict) for targets, verdict in found.items()} == {
        ("C.i.outer", "gemm_f32_12x32x16"): True,
        ("C.j.outer", "gemm_f32_6x32x16"): True,
        ("C.k.outer", "gemm_f32_6x16x16"): True,
        ("C.k.inner", "gemm_f32_6x16x8"): True,
    }
    assert s.can("tensorize", s[args[-1]].leaf_iter_vars[3], "gemm_f32_6x16x8")
    _X, _W, D = dots(4, 16, 3, "uint8")
    s = create_schedule(D.op)
    offered = [m.targets[1] for m in s.moves(D) if m.primitive == "tensorize"]
    assert offered == ["dot4_u8s8_16x3"]


def test_the_nearest_change_to_a_refused_one():
    s, _args, k = tiled(12, 32, 16, (6, 16, 8))
    found = suggestion(s, "tensorize", "C", {"axis": k, "intrin": "gemm_f32_6x16x4"})
    assert found.text == "tensorize k.inner with gemm_f32_6x16x8 instead"


def test_what_is_offered_may_be_refused_with_its_reason():
    A, B = te.placeholder((8, 4), name="A"), te.placeholder((16, 4), name="B")
    k = te.reduce_axis((0, 4), name="k")
    C = te.compute((8, 16), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    s = create_schedule(C.op)
    (move, *_) = (m for m in s.moves(C) if m.primitive == "tensorize")
    assert not move.verdict
    assert move.verdict.because.startswith("B[j, k] is read where B[k, j] is declared")
    assert move not in s.legal_moves(C)
