"""Statements in the place of calls of intrinsics."""

import numpy as np

from dlcompiler import te
from dlcompiler.ir import IntrinsicCall, call_extern, decl_buffer, seq, verify_func, walk
from dlcompiler.lowering.intrinsics import intrinsic_statement
from dlcompiler.passes import lower_intrinsics
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.simulate import interpret
from tests.intrinsics import row_sum_schedule, row_sums, tiled
from tests.passes.examples import example


def program(rows, columns, at, **parts):
    s, args, leaves = row_sum_schedule(rows, columns)
    s[args[-1]].tensorize(leaves[at], row_sums(4, min(columns, 4), **parts))
    return lower(s, args, simple_mode=True)


def test_the_example_of_its_docstring():
    before = program(64, 2, 1)
    assert str(before) == example(lower_intrinsics, "Before")
    after = lower_intrinsics(before)
    verify_func(after)
    assert str(after) == example(lower_intrinsics, "After")


def test_what_the_code_generator_writes_stays():
    s, args, k = tiled(12, 32, 16, (6, 16, 8))
    s[args[-1]].tensorize(k, "gemm_f32_6x16x8")
    func = lower(s, args, simple_mode=True)
    assert lower_intrinsics(func) is func
    assert any(isinstance(node, IntrinsicCall) for node in walk(lower(s, args).body))


def test_the_statements_compute_what_is_declared():
    func = program(8, 12, 2)
    after = lower_intrinsics(func)
    verify_func(after)
    a = np.random.default_rng(0).integers(-9, 9, (8, 12)).astype("float32")
    for each in (func, after):
        c = np.full(8, np.nan, "float32")
        interpret(each, [a, c])
        np.testing.assert_array_equal(c, a.sum(axis=1))


def test_calls_from_outside_get_the_regions_and_their_strides():
    a, b = te.placeholder((8,), name="a"), te.placeholder((4, 8), name="b")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((4,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    binds = {
        a: decl_buffer((8,), name="a", strides=[1]),
        b: decl_buffer((4, 8), name="b", strides=[te.var("s1"), 1]),
        c: decl_buffer((4,), name="c", strides=[1]),
    }

    def carry_out(ins, outs):
        pointers = outs[0].access_ptr("w"), ins[0].access_ptr("r"), ins[1].access_ptr("r")
        update = call_extern("int32", "gemv_update", *pointers, 4, 8, ins[1].strides[0])
        return None, call_extern("int32", "gemv_reset", outs[0].access_ptr("w"), 4), update

    gemv = te.decl_tensor_intrin(c.op, carry_out, "gemv", binds)
    A, B = te.placeholder((3, 16), name="A"), te.placeholder((8, 16), name="B")
    r = te.reduce_axis((0, 16), name="r")
    C = te.compute((3, 8), lambda i, j: te.sum(A[i, r] * B[j, r], axis=r), name="C")
    s = create_schedule(C.op)
    j_outer, j_inner = s[C].split(C.op.axis[1], 4)
    r_outer, r_inner = s[C].split(r, 8)
    s[C].reorder(C.op.axis[0], j_outer, r_outer, j_inner, r_inner)
    s[C].tensorize(j_inner, gemv)
    func = lower_intrinsics(lower(s, [A, B, C], simple_mode=True))
    verify_func(func)
    assert [line.strip() for line in str(func).splitlines() if "call" in line] == [
        "call C gemv_reset(C[i, j.outer*4 : +4] (w), 4)",
        "call C gemv_update(C[i, j.outer*4 : +4] (rw), A[i, r.outer*8 : +8] (r), "
        "B[j.outer*4 : +4, r.outer*8 : +8] (r), 4, 8, 16)",
    ]


def test_statements_call_other_intrinsics_on_parts_of_their_operands():
    def copied(rows, columns, carry_out):
        a = te.placeholder((rows, columns), name="a")
        b = te.compute((rows, columns), lambda i, j: a[i, j], name="b")
        return te.decl_tensor_intrin(b.op, carry_out, f"copied_{rows}x{columns}")

    row = copied(1, 4, lambda ins, outs: "copy of a row")

    def columns_in_turn(ins, outs):
        boxes = ([buffer.region((0, j), (4, 1)) for buffer in (*outs, *ins)] for j in range(4))
        return seq(intrinsic_statement(row, "body", box, [(1, 0), (1, 0)], ()) for box in boxes)

    A = te.placeholder((2, 4, 3, 4), name="A")
    B = te.compute((2, 4, 3, 4), lambda n, i, m, j: A[n, i, m, j], name="B")
    s = create_schedule(B.op)
    n, i, m, j = B.op.axis
    s[B].reorder(n, m, i, j)
    s[B].tensorize(i, copied(4, 4, columns_in_turn))
    after = lower_intrinsics(lower(s, [A, B], simple_mode=True))
    verify_func(after)
    calls = [node for node in walk(after.body) if isinstance(node, IntrinsicCall)]
    assert [call.dims for call in calls] == [((3, 1), (3, 1))] * 4
    text = "B[n, 0 : +4, m, 2].transpose(3, 1) = copied_1x4(A[n, 0 : +4, m, 2].transpose(3, 1))"
    assert text in str(after)
    a, b = np.random.default_rng(0).random((2, 4, 3, 4), "float32"), np.zeros((2, 4, 3, 4), "f4")
    interpret(after, [a, b])
    np.testing.assert_array_equal(a, b)
