"""Index checks of reads under conditions, through shared indices, and with symbolic sizes."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ExpressionError, ProgramError
from dlcompiler.pipeline import build, lower
from dlcompiler.schedule import create_schedule
from tests.lowering.gathers import WAYS, I, T, runs, table


def test_symbolic_sizes():
    n, w = te.var("n"), te.var("w")
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: te.if_then_else(i + w < n, A[i + w], 0.0), name="C")
    kernel = build(create_schedule(C.op), [A, w, C])
    a, out = np.arange(6, dtype="float32"), np.empty(6, "float32")
    kernel(a, 2, out)
    assert out.tolist() == [2, 3, 4, 5, 0, 0]
    with pytest.raises(ProgramError, match="index -1 in dimension 0 of extent 6, at i=0"):
        kernel(a, -1, out)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("divide", [te.floormod, te.floordiv, te.truncmod, te.truncdiv])
def test_what_is_read_is_divided_by_a_symbol(divide, way):
    n = te.var("n")
    source = te.placeholder((n,), "int32", name="source")
    J = te.placeholder((4,), "int32", name="J")
    P = te.compute((6,), lambda i: source[divide(i, n)], name="P")
    C = te.compute((4,), lambda i: P[te.floormod(J[i], 6)], name="C")
    s = create_schedule(C.op)
    s[P].compute_inline()
    numbers, out = np.arange(7, dtype="int32") * 3, np.empty(4, "int32")
    runs(s, [source, J, C], way)(numbers, np.array([5, 2, 9, -1], "int32"), out)
    assert np.array_equal(out, numbers[[0, 0, 0, 0] if "div" in divide.__name__ else [5, 2, 3, 5]])


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_read_where_another_axis_is_empty(way):
    n = te.var("n")
    A = te.placeholder((4, n), "int32", name="A")
    C = te.compute((2, n), lambda i, j: A[I[i], j], name="C")
    run = runs(create_schedule(C.op), [A, I, C], way)
    index = np.full(40, 9, "int32")
    run(np.empty((4, 0), "int32"), index, np.empty((2, 0), "int32"))
    with pytest.raises(ProgramError, match="is outside A"):
        run(np.empty((4, 1), "int32"), index, np.empty((2, 1), "int32"))


@pytest.mark.parametrize("way", WAYS)
def test_a_reduction_over_nothing_reads_only_its_start(way):
    n = te.var("n")
    A, k = te.placeholder((4, n), "int32", name="A"), te.reduce_axis((0, n), name="k")
    C = te.compute((2,), lambda i: te.sum(A[I[5], k], axis=k, init=I[I[i]]), name="C")
    run = runs(create_schedule(C.op), [A, I, C], way)
    index, out = np.arange(40, dtype="int32"), np.empty(2, "int32")
    run(np.empty((4, 0), "int32"), index, out)
    assert out.tolist() == [0, 1]
    with pytest.raises(ProgramError, match="is outside A"):
        run(np.empty((4, 1), "int32"), index, out)
    index[1] = 77
    with pytest.raises(ProgramError, match="is outside I"):
        run(np.empty((4, 0), "int32"), index, out)


@pytest.mark.parametrize("way", WAYS)
def test_an_index_of_an_index_that_another_read_shares(way):
    S = te.compute((1,), lambda i: I[I[i]], name="S")
    C = te.compute((1,), lambda i: T[S[0], 0] + S[i].astype("float32"), name="C")
    s = create_schedule(C.op)
    s[S].compute_inline()
    run, index = runs(s, [T, I, C], way), np.full(40, 3, "int32")
    run(table, index, out := np.empty(1, "float32"))
    assert out[0] == table[3, 0] + 3
    index[0] = 2**30  # I[I[0]] must not be read before I[0] is known to be inside
    with pytest.raises(ProgramError, match=r"is outside I"):
        run(table, index, out)


def under_conditions(element_at, count=12):
    """Return a sum in which one element of a tensor stands under many conditions."""

    def body(i):
        element, total = element_at(i), te.const(0, "int32")
        for n in range(count):
            total = total + te.if_then_else(i > n, element, 0)
        return total

    return te.compute((20,), body, name="C")


def test_an_element_under_too_many_conditions_is_not_read_unchecked():
    P = te.compute((20,), lambda i: I[I[i]], name="P")
    C = under_conditions(lambda i: P[i])
    s = create_schedule(C.op)
    assert lower(s, [I, C])
    s[P].compute_inline()
    with pytest.raises(ExpressionError) as caught:
        lower(s, [I, C])
    assert str(caught.value) == (
        "lower: it is not proved that I[index(I[i])] lies inside I\n"
        "  because   more than 8 combinations of conditions lead to it\n"
        "  hint      compute the stage that contains it at a loop or at the root, not inline"
    )


@pytest.mark.parametrize("extent", [50, te.var("n")])
def test_too_many_conditions_in_an_expression(extent):
    A = te.placeholder((extent,), "int32", name="A")
    with pytest.raises(ExpressionError, match=r"not proved that A.* lies inside A"):
        under_conditions(lambda i: A[I[i]])
    C = under_conditions(lambda i: A[I[i]], count=8)
    assert str(lower(create_schedule(C.op), [A, I, C], simple_mode=True)).count("assert") == 8
