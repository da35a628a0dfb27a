"""Every dtype as argument, intermediate, reduction and result of a kernel."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import dtypes, te
from dlcompiler.pipeline import lower
from dlcompiler.simulate import interpret
from tests.scalars.agreement import DATA


def _negated(x):
    return te.if_then_else(x, te.const(False, "bool"), te.const(True, "bool"))


@pytest.mark.parametrize("dtype", DATA)
def test_arguments_intermediates_and_reductions(dtype):
    rows, columns = 6, 16
    A = te.placeholder((rows, columns), dtype, name="A")
    if dtype == "bool":
        P = te.compute(A.shape, lambda i, j: _negated(A[i, j]), name="P")
        summed = lambda x: x.astype("int32")  # noqa: E731
    else:
        P = te.compute(A.shape, lambda i, j: A[i, j] * 2 + 1, name="P")
        summed = lambda x: x  # noqa: E731
    k, q = te.reduce_axis((0, columns), "k"), te.reduce_axis((0, columns), "q")
    S = te.compute((rows,), lambda i: te.sum(summed(A[i, k]), axis=k), name="S")
    M = te.compute((rows,), lambda i: te.max(summed(P[i, q]), axis=q), name="M")
    C = te.compute(A.shape, lambda i, j: summed(P[i, j]) - M[i] + S[i], name="C")
    s = te.create_schedule([C.op, S.op])
    s[M].compute_at(s[C], C.op.axis[0])
    s[P].compute_at(s[C], C.op.axis[0])
    s[P].vectorize(P.op.axis[1])
    s[C].vectorize(C.op.axis[1])
    values = np.random.default_rng(3).integers(0, 4, A.shape).astype(dtypes.to_numpy(dtype))
    right = te.evaluate([C, S], [values])
    for run in ("machine", "interpreter"):
        arrays = [values, *(np.zeros(x.shape, x.dtype) for x in (C, S))]
        if run == "machine":
            dlc.build(s, [A, C, S])(*arrays)
        else:
            interpret(lower(s, [A, C, S], simple_mode=True), arrays)
        for got, expected in zip(arrays[1:], right, strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "bool"])
def test_verify_in_a_worker(dtype):
    A = te.placeholder((4, 8), dtype, name="A")
    other = _negated if dtype == "bool" else lambda x: x * x - x
    B = te.compute(A.shape, lambda i, j: other(A[i, j]), name="B")
    s = te.create_schedule(B.op)
    s[B].vectorize(B.op.axis[1])
    assert dlc.verify(s, [A, B]).worst <= 1


def test_a_wrong_array_for_bfloat16():
    A = te.placeholder((4,), "bfloat16", name="A")
    B = te.compute((4,), lambda i: A[i], name="B")
    f = dlc.build(te.create_schedule(B.op), [A, B])
    with pytest.raises(dlc.errors.CallError) as caught:
        f(np.zeros(4, "float32"), np.zeros(4, "bfloat16"))
    assert str(caught.value) == (
        "call main: argument 1 (A): wrong dtype\n"
        "  got       float32\n"
        "  expected  bfloat16\n"
        "  hint      x.astype('bfloat16')"
    )


@pytest.mark.parametrize(("combine", "identity"), [(te.all, True), (te.any, False)])
def test_conditions_are_reduced_by_a_reduction_of_ones_own(combine, identity):
    reduce = te.comm_reducer(combine, lambda dtype: te.const(identity, dtype), name="joined")
    A = te.placeholder((6, 8), "bool", name="A")
    k = te.reduce_axis((0, 8), "k")
    C = te.compute((6,), lambda i: reduce(A[i, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    outer, _ = s[C].split(k, factor=4)
    s.rfactor(C, outer)
    values = np.random.default_rng(2).random((6, 8)) > (0.1 if identity else 0.9)
    result = np.zeros(6, bool)
    dlc.build(s, [A, C])(values, result)
    expected = values.all(axis=1) if identity else values.any(axis=1)
    assert expected.any()
    assert not expected.all()
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(te.evaluate(C, [values]), expected)
