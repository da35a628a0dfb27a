"""Loop IR built statement by statement: what it means, and what it refuses."""

import numpy as np
import pytest

from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Builder, ExternCall, PrimFunc, Var, call_packed, decl_buffer, verify_func
from dlcompiler.simulate import interpret

A = decl_buffer((4, 5), "float32", name="A")
B = decl_buffer((4, 5), "float32", name="B")


def _func(stmt):
    func = PrimFunc("f", (A, B), (B,), stmt)
    verify_func(func)
    return func


def _run(stmt):
    a = np.arange(20, dtype="float32").reshape(4, 5)
    b = np.zeros((4, 5), "float32")
    interpret(_func(stmt), [a, b])
    return a, b


def test_loops_conditions_and_memory():
    ib = Builder()
    a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
    with ib.for_range(1, 4, name="i") as i:
        row = ib.allocate("float32", (5,), name="row")
        with ib.for_range(0, 5, name="j", kind="vectorize") as j:
            row[j] = a[i, j] * 2
        with ib.for_range(0, 5, name="j") as j:
            with ib.if_scope(i < 3):
                b[i, j] = row[j]
            with ib.else_scope():
                b[i, j] = -row[j]
    stmt = ib.get()
    assert str(_func(stmt)).splitlines()[1:] == [
        "    for i in range(3):",
        "        allocate row: float32[5]",
        "        for j in vectorized(5):",
        "            row[j] = A[i + 1, j]*2.0",
        "        for j_1 in range(5):",
        "            if i + 1 < 3:",
        "                B[i + 1, j_1] = row[j_1]",
        "            else:",
        "                B[i + 1, j_1] = -row[j_1]",
    ]
    a, b = _run(stmt)
    assert np.array_equal(b[1:3], a[1:3] * 2)
    assert np.array_equal(b[3], -a[3] * 2)
    assert not b[0].any()


def test_one_index_counts_the_elements():
    ib = Builder()
    a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
    with ib.for_range(0, 20) as n:
        b[n] = a[19 - n]
    a, b = _run(ib.get())
    assert np.array_equal(b.ravel(), a.ravel()[::-1])


def test_a_value_is_named():
    ib = Builder()
    a, b = ib.buffer_ptr(A), ib.buffer_ptr(B)
    with ib.for_range(0, 20) as n:
        x = ib.let("x", a[n] + 1)
        b[n] = x * x
    a, b = _run(ib.get())
    assert np.array_equal(b, (a + 1) ** 2)


def test_a_likely_condition_and_an_index_as_a_value():
    ib = Builder()
    b = ib.buffer_ptr(B)
    with ib.for_range(0, 20) as n, ib.if_scope(ib.likely(n < 7)):
        b[n] = n
    _, b = _run(ib.get())
    assert np.array_equal(b.ravel()[:7], np.arange(7))
    assert not b.ravel()[7:].any()


def test_a_loop_without_iterations():
    ib = Builder()
    b = ib.buffer_ptr(B)
    with ib.for_range(3, 1) as i:
        b[i, 0] = 1.0
    assert not _run(ib.get())[1].any()


def test_statements_of_another_builder():
    inner = Builder()
    inner.buffer_ptr(B)[0, 0] = 3.0
    ib = Builder()
    ib.emit(inner.get())
    ib.emit(B.vstore((0, 1), A.vload((1, 0), "float32x4")))
    a, b = _run(ib.get())
    assert b[0].tolist() == [3.0, *a[1, :4]]


def test_nothing_is_a_program_too():
    assert "pass" in str(_func(Builder().get()))


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        (lambda ib: ib.emit(A.vload((0, 0))), "emit: not a statement"),
        (lambda ib: ib.else_scope().__enter__(), "no if_scope stands directly before it"),
        (lambda ib: ib.if_scope(True).__enter__(), "the condition is a Python bool"),
        (lambda ib: ib.for_range(0, 4, kind="threads").__enter__(), "no such kind of loop"),
        (lambda ib: ib.for_range(0, 4.5).__enter__(), "an index must be an integer"),
        (lambda ib: ib.allocate("float32", (4,), scope="shared"), "no such memory"),
        (lambda ib: ib.allocate("float33", (4,)), "not the name of a data type"),
        (lambda ib: ib.buffer_ptr("A"), "not a buffer"),
        (lambda ib: ib.buffer_ptr(A, shape=(20,)), "another shape is not supported"),
        (lambda ib: ib.buffer_ptr(A)[0, 0, 0], "wrong number of indices"),
        (lambda ib: ib.buffer_ptr(A)[1.5], "an index must be an integer"),
        (
            lambda ib: ib.buffer_ptr(B).__setitem__((0, 0), Var("x", "int32")),
            "the value has another dtype",
        ),
    ],
)
def test_what_is_refused(mistake, text):
    with pytest.raises(ExpressionError, match=text):
        mistake(Builder())


def test_a_scope_that_is_open():
    ib = Builder()
    with pytest.raises(ExpressionError, match="a scope is still open"), ib.for_range(0, 4):
        ib.get()


def test_a_call_in_a_loop_prints_its_regions():
    ib = Builder()
    with ib.for_range(0, 4, name="i") as i:
        ib.emit(call_packed("row", A.region((i, 0), (1, 5), "r"), B.region((i, 0), (1, 5), "w"), i))
    (call,) = [ib.get().body]
    assert isinstance(call, ExternCall)
    assert "call row(A[i, 0 : +5] (r), B[i, 0 : +5] (w), i)" in str(_func(ib.get()))
