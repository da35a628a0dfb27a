"""What is computed: inlined chains, tensors read twice, several outputs, types, chosen values."""

import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule


def test_inlined_chain(computes, nest, golden):
    A = te.placeholder((6,), name="A")
    P = te.compute((6,), lambda i: A[i] * 2.0, name="P")
    Q = te.compute((5,), lambda i: P[i + 1] - P[i], name="Q")
    C = te.compute((5,), lambda i: Q[4 - i] * Q[i], name="C")
    s = create_schedule(C.op)
    s[Q].compute_inline()
    s[P].compute_inline()
    golden("inlined_chain", nest(s))
    computes(s)


def test_a_tensor_read_twice_in_one_place(computes):
    A = te.placeholder((6,), name="A")
    P = te.compute((6,), lambda i: A[i] - 1.0, name="P")
    C = te.compute((6,), lambda i: P[i] * P[i], name="C")
    s = create_schedule(C.op)
    s[P].compute_at(s[C], C.op.axis[0])
    computes(s)


def test_several_outputs_of_which_one_reads_the_other(computes, nest, golden):
    A = te.placeholder((6,), name="A")
    B = te.compute((6,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((6,), lambda i: B[5 - i] * 2.0, name="C")
    s = create_schedule([C.op, B.op])
    s[B].vectorize(B.op.axis[0])
    golden("several_outputs", nest(s))
    computes(s)


def test_two_outputs_from_one_stage(computes):
    A = te.placeholder((6,), name="A")
    P = te.compute((6,), lambda i: A[i] * A[i], name="P")
    B = te.compute((6,), lambda i: P[i] + 1.0, name="B")
    C = te.compute((6,), lambda i: P[i] - 1.0, name="C")
    s = create_schedule([B.op, C.op])
    s[P].compute_inline()
    computes(s)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "float64"])
def test_types(computes, dtype):
    A = te.placeholder((9,), dtype, name="A")
    P = te.compute((9,), lambda i: A[i] * 100 + i.astype(dtype), name="P")
    C = te.compute((9,), lambda i: P[8 - i] - P[i], name="C")
    s = create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], 4)
    s[P].compute_at(s[C], outer)
    s[C].vectorize(inner)
    computes(s)


def test_conditions_and_casts(computes):
    A = te.placeholder((4, 9), "int32", name="A")
    P = te.compute((4, 9), lambda i, j: te.select(A[i, j] > 0, A[i, j], -A[i, j]), name="P")
    C = te.compute(
        (4, 9),
        lambda i, j: te.if_then_else(
            te.any(te.all(i > 0, j < 8), P[i, j] == 3), P[i, j].astype("float32"), -0.5
        ),
        name="C",
    )
    s = create_schedule(C.op)
    _, inner = s[C].split(C.op.axis[1], 4)
    s[C].vectorize(inner)
    s[P].compute_at(s[C], C.op.axis[0])
    computes(s)


def test_prefix_sum_by_a_condition(computes):
    A = te.placeholder((7,), name="A")
    k = te.reduce_axis((0, 7), name="k")
    C = te.compute((7,), lambda i: te.sum(te.if_then_else(k <= i, A[k], 0.0), axis=k), name="C")
    s = create_schedule(C.op)
    s[C].reorder(k, C.op.axis[0])
    s[C].vectorize(C.op.axis[0])
    computes(s)


def test_an_intermediate_tensor_may_be_an_argument():
    A = te.placeholder((4,), name="A")
    P = te.compute((4,), lambda i: A[i] * 2.0, name="P")
    C = te.compute((4,), lambda i: P[i] + 1.0, name="C")
    s = create_schedule(C.op)
    func = lower(s, [A, P, C])
    assert [buffer.name for buffer in func.outputs] == ["P", "C"]


@pytest.mark.parametrize("how", ["attached", "inlined"])
def test_refuses_an_argument_that_is_not_stored_as_a_whole(how):
    A = te.placeholder((4,), name="A")
    P = te.compute((4,), lambda i: A[i] * 2.0, name="P")
    C = te.compute((4,), lambda i: P[i] + 1.0, name="C")
    s = create_schedule(C.op)
    if how == "attached":
        s[P].compute_at(s[C], C.op.axis[0])
    else:
        s[P].compute_inline()
    with pytest.raises(ScheduleError) as error:
        lower(s, [A, P, C])
    assert str(error.value) == (
        "lower main: the argument P is not stored as a whole\n"
        "  hint      call s[P].compute_root(), or leave it out of the arguments"
    )
