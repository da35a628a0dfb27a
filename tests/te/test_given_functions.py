"""Functions that a user gives, with the wrong parameters or the wrong results."""

import pytest

from dlcompiler import te
from dlcompiler.compat import tvm
from dlcompiler.errors import ExpressionError, ScheduleError

A = te.placeholder((4, 8), name="A")
a = te.placeholder((4,), name="a")
k = te.reduce_axis((0, 8), name="k")


def zero(dtype):
    return te.const(0, dtype)


def _reduced(combine, identity, values=lambda x: x):
    reducer = te.comm_reducer(combine, identity, "mine")
    return te.compute((4,), lambda i: reducer(values(A[i, k]), axis=k))


def _twice(x):
    return (x, x)


COMBINES = "te.comm_reducer mine: the function that combines"
BEGINS = "te.comm_reducer mine: the function of the identity"
FAILS = ": the call of the given function fails"


@pytest.mark.parametrize(
    ("combine", "identity", "values", "first", "parts"),
    [
        (lambda x: x, zero, lambda x: x, COMBINES + FAILS, "f(x, y), each one value"),
        (lambda x, y, z: x, zero, lambda x: x, COMBINES + FAILS, "missing 1 required"),
        (lambda x, y: x[0], zero, lambda x: x, COMBINES + FAILS, "f(x, y), each one value"),
        (lambda x, y: x * y, zero, _twice, COMBINES + FAILS, "each a tuple of 2 values"),
        (lambda x, y: x[2], zero, _twice, COMBINES + FAILS, "IndexError"),
        (lambda x, y: 1 // 0, zero, lambda x: x, COMBINES + FAILS, "ZeroDivisionError"),
        (lambda x, y: None, zero, lambda x: x, COMBINES + ": not a value", "None"),
        (lambda x, y: (x, y), zero, lambda x: x, COMBINES + ": wrong number of values", "2"),
        (lambda x, y: x + y, lambda: 0, lambda x: x, BEGINS + FAILS, "f('float32')"),
        (lambda x, y: x, lambda d: (0, 0), _twice, BEGINS + FAILS, "f('float32', 'float32')"),
        (lambda x, y: x + y, lambda d: "0", lambda x: x, BEGINS + ": not a value", "'0'"),
        (lambda x, y: x + y, 0, lambda x: x, BEGINS + ": not a function", "got       0"),
        (
            lambda x, y: x,
            zero,
            lambda x: (),
            "te.comm_reducer mine: there are no values to reduce",
            "()",
        ),
    ],
)
def test_reducers_are_refused_by_their_functions(combine, identity, values, first, parts):
    with pytest.raises(ExpressionError) as caught:
        _reduced(combine, identity, values)
    assert str(caught.value).splitlines()[0] == first
    assert parts in str(caught.value)


def test_the_error_of_the_users_code_is_the_cause():
    with pytest.raises(ExpressionError) as caught:
        _reduced(lambda x, y: x["a"], zero)
    assert isinstance(caught.value.__cause__, TypeError)


def test_a_classic_reducer_of_operands_is_refused_alike():
    reducer = tvm.te.comm_reducer(lambda x: x, zero, "mine")
    with pytest.raises(ExpressionError, match=r"te\.comm_reducer mine: the call of the given"):
        reducer(a[0], a[1])


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda ins: None, "takes 1 positional argument but 2 were given"),
        (None, "not a function"),
    ],
)
def test_functions_that_return_statements(function, text):
    with pytest.raises(ExpressionError, match=text):
        te.extern((4,), [a], function)
    b = te.compute((4,), lambda i: a[i] * 2.0, name="b")
    with pytest.raises(ExpressionError, match=text):
        te.decl_tensor_intrin(b.op, function)


def test_an_extern_without_inputs_takes_an_empty_list():
    with pytest.raises(ExpressionError, match=r"te\.extern extern: an input is not a tensor"):
        te.extern((4,), None, lambda ins, outs: None)


def test_functions_of_axes():
    with pytest.raises(ExpressionError, match=r"te\.compute compute: the parameters of the funct"):
        te.compute((4,), max)
    with pytest.raises(
        ExpressionError, match="the function has parameters that can be given only by name"
    ):
        te.compute((4,), lambda i, *, j: a[i])


@pytest.mark.parametrize(
    ("function", "problem"),
    [(max, "the function does more than"), (lambda i: i[0], "the function of the axes fails")],
)
def test_index_maps(function, problem):
    copy = te.compute((4,), lambda i: a[i], name="copy")
    last = te.compute((4,), lambda i: copy[i], name="last")
    s = te.create_schedule(last.op)
    with pytest.raises(ScheduleError, match=f"transform_layout copy: {problem}"):
        s[copy].transform_layout(function)
