"""What a hybrid script may not say: each refusal names the line of the user's source."""

# ruff: noqa: F401, F821, F841 - these are mistakes in scripts

import re
from pathlib import Path

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ExpressionError

A = te.placeholder((4, 3), name="A")
OTHER = "text"


def _while(a):
    b = output_tensor((4,), "float32")
    while True:  # here
        b[0] = 1.0
    return b


def _unknown_function(a):
    b = output_tensor((4,), "float32")
    b[0] = print(a[0, 0])  # here
    return b


def _unknown_name(a):
    b = output_tensor((4,), "float32")
    b[0] = nowhere  # here
    return b


def _text_around(a):
    b = output_tensor((4,), "float32")
    b[0] = OTHER  # here
    return b


def _over(a):
    b = output_tensor((4,), "float32")
    for i in range(4):
        x = a[i, 0]
        b[i] = x
    b[0] = x  # here
    return b


def _lambda(a):
    b = output_tensor((4,), "float32")
    b[0] = (lambda: 1.0)()  # here
    return b


def _attribute(a):
    b = output_tensor((4,), "float32")
    b[0] = a.__class__  # here
    return b


def _comprehension(a):
    b = output_tensor((4,), "float32")
    b[0] = sum([a[i, 0] for i in range(4)])  # here
    return b


def _import(a):
    b = output_tensor((4,), "float32")
    import os  # here

    return b


def _list_loop(a):
    b = output_tensor((4,), "float32")
    for i in [0, 1]:  # here
        b[i] = 1.0
    return b


def _strange_loop(a):
    b = output_tensor((4,), "float32")
    for i in enumerate(4):  # here
        b[i] = 1.0
    return b


def _step(a):
    b = output_tensor((4,), "float32")
    for i in range(0, 4, 2):  # here
        b[i] = 1.0
    return b


def _thread(a):
    b = output_tensor((4,), "float32")
    for i in bind("lane.x", 4):  # here
        b[i] = 1.0
    return b


def _copies(a):
    b = output_tensor((4,), "float32")
    for i in range(4):
        for j in const_range(i):  # here
            b[j] = 1.0
    return b


def _writes_input(a):
    b = output_tensor((4,), "float32")
    a[0, 0] = 1.0  # here
    return b


def _assigns_argument(a):
    b = output_tensor((4,), "float32")
    a = 1.0  # here
    return b


def _assigns_loop(a):
    b = output_tensor((4,), "float32")
    for i in range(4):
        i = 2  # here
        b[i] = 1.0
    return b


def _narrows(a):
    b = output_tensor((4,), "float32")
    s = 0
    for i in range(4):
        s = s + a[i, 0]  # here
        b[i] = s
    return b


def _indices(a):
    b = output_tensor((4,), "float32")
    b[0] = a[1]  # here
    return b


def _whole(a):
    b = output_tensor((4,), "float32")
    b[0] = a + 1.0  # here
    return b


def _dimension(a):
    b = output_tensor((4,), "float32")
    b[0] = a.shape[2]  # here
    return b


def _bad_dtype(a):
    b = output_tensor((4,), "float33")  # here
    return b


def _output_in_loop(a):
    for _i in range(4):
        b = output_tensor((4,), "float32")  # here
    return b


def _twice(a):
    b = output_tensor((4,), "float32")
    b = output_tensor((5,), "float32")
    return b


def _early(a):
    b = output_tensor((4,), "float32")
    for _i in range(4):
        return b  # here


def _returns_input(a):
    b = output_tensor((4,), "float32")
    b[0] = 1.0
    return a  # here


def _behind(a):
    b = output_tensor((4,), "float32")
    return b
    b[0] = 1.0  # here


def _float_index(a):
    b = output_tensor((4,), "float32")
    b[0] = a[0.5, 1]  # here
    return b


def _arguments(a):
    b = output_tensor((4,), "float32")
    b[0] = exp(a[0, 0], 2.0)  # here
    return b


def _joins_numbers(a):
    b = output_tensor((4,), "float32")
    b[0] = a[0, 0] or 1.0  # here
    return b


def _loop_again(a):
    b = output_tensor((4,), "float32")
    for i in range(4):
        for i in range(2):  # here
            b[i] = 1.0
    return b


def _dtype_twice(a):
    b = output_tensor((4,), "float32", dtype="int32")  # here
    return b


def _no_shape(a):
    b = output_tensor(dtype="int32")  # here
    return b


def _other_keyword(a):
    t = allocate((4,), memory="local")  # here
    return t


def _scope_of_an_output(a):
    b = output_tensor((4,), "int32", "local")  # here
    return b


CASES = [
    (_joins_numbers, "'and' and 'or' join conditions"),
    (_loop_again, "the loop variable i is already a name of the script"),
    (_while, "this statement is not part of hybrid script"),
    (_unknown_function, "print is not a function of hybrid script"),
    (_unknown_name, "nowhere is not defined here"),
    (_text_around, "OTHER is not defined here"),
    (_over, r"(?s)x is not defined here.*it is assigned in a loop or a branch that has ended"),
    (_lambda, "this expression is not part of hybrid script"),
    (_attribute, "this expression is not part of hybrid script"),
    (_comprehension, "this expression is not part of hybrid script"),
    (_import, "this statement is not part of hybrid script"),
    (_list_loop, "this statement is not part of hybrid script"),
    (_strange_loop, "not a loop of hybrid script"),
    (_step, "not a loop of hybrid script"),
    (_thread, "no such thread axis"),
    (_copies, "the bounds of const_range must be known numbers"),
    (_writes_input, "an input cannot be written to"),
    (_assigns_argument, "a cannot be assigned"),
    (_assigns_loop, "i cannot be assigned"),
    (_narrows, "the dtype of s cannot represent the value"),
    (_dtype_twice, r"(?s)output_tensor takes a shape and a dtype.*expected  output_tensor\(shape"),
    (_no_shape, "output_tensor takes a shape and a dtype"),
    (_other_keyword, r"(?s)allocate takes a shape.*expected  allocate\(shape, dtype, scope\)"),
    (_scope_of_an_output, "output_tensor takes a shape and a dtype"),
    (_indices, "wrong number of indices"),
    (_whole, "not a number"),
    (_dimension, "no such dimension"),
    (_bad_dtype, "not the name of a data type"),
    (_output_in_loop, "an output must be made outside all loops"),
    (_early, "this statement is not part of hybrid script"),
    (_returns_input, "a script must return arrays made by output_tensor"),
    (_behind, "return must be the last statement"),
    (_float_index, "an index must be an integer"),
    (_arguments, "wrong number of arguments"),
]


@pytest.mark.parametrize(
    ("function", "text"), CASES, ids=lambda case: getattr(case, "__name__", "")
)
def test_a_refusal_names_its_line(function, text):
    with pytest.raises(ExpressionError, match=text) as caught:
        te.hybrid.script(function)(A)
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    first = function.__code__.co_firstlineno
    line = next(n for n in range(first, len(source)) if source[n - 1].endswith("# here"))
    where = re.match(r"te\.hybrid \w+, line (\d+) of test_hybrid_refusals\.py", str(caught.value))
    assert where is not None
    assert int(where[1]) == line
    assert caught.value.excerpt == source[line - 1].strip()


@pytest.mark.parametrize(
    ("function", "args", "text"),
    [
        (_twice, (A,), "an array cannot be assigned again"),
        (_while, (A, A), "(?s)te.hybrid _while: wrong arguments.*too many positional"),
        (_while, (A, ["x"]), "wrong arguments"),
        (_while, (), "(?s)te.hybrid _while: wrong arguments.*missing a required argument: 'a'"),
        (_while, ((),), r"(?s)te.hybrid _while: the arguments hold neither a.*got       \(\)"),
        (_while, ([(), ((),)],), "the arguments hold neither a tensor nor an array"),
        (_while, (None,), "_while: the argument a is neither a tensor, nor an array, nor a number"),
        (_while, ({"a": A},), "the argument a is neither a tensor, nor an array, nor a number"),
        (_while, ((np.zeros(3), "x"),), "(?s)the argument a is neither.*got       'x'"),
        (lambda a: a, (A,), "not a function that is defined by def"),
        (np.sin, (A,), "not a Python function"),
    ],
)
def test_other_refusals(function, args, text):
    with pytest.raises(ExpressionError, match=text):
        te.hybrid.script(function)(*args)


def _item_by_loop(arrays):
    b = output_tensor((4,), "float32")
    for i in range(4):
        b[i] = arrays[i][i, 0]
    return b


def _item_behind(arrays):
    b = output_tensor((4,), "float32")
    b[0] = arrays[2][0, 0]
    return b


def _item_as_number(arrays):
    b = output_tensor((4,), "float32")
    b[0] = arrays[1]
    return b


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (_item_by_loop, r"(?s)item must be known.*arrays\[i\].*loop over it with const_range"),
        (_item_behind, "no such item"),
        (_item_as_number, "not a number"),
    ],
)
def test_items_of_tuples(function, text):
    with pytest.raises(ExpressionError, match=text):
        te.hybrid.script(function)((A, A))


def test_arguments_that_are_none():
    def two(a, b):
        c = output_tensor((4,), "float32")
        return c

    with pytest.raises(ExpressionError, match="the argument b is neither a tensor nor a number"):
        te.hybrid.script(two)(A, "text")

    def default(a, b=1):
        c = output_tensor((4,), "float32")
        return c

    with pytest.raises(ExpressionError, match="parameters must be plain names"):
        te.hybrid.script(default)(A)

    def nothing(a):
        b = output_tensor((4,), "float32")

    with pytest.raises(ExpressionError, match="a script must return arrays made by output_tensor"):
        te.hybrid.script(nothing)(A)


def test_statements_are_checked_as_any():
    @te.hybrid.script
    def beyond(a):
        b = output_tensor((4,), "float32")
        for i in range(4):
            b[i] = a[i, 3]
        return b

    with pytest.raises(ExpressionError, match="the code uses an element outside its buffer"):
        beyond(A)


def _plus(a, n):
    b = output_tensor((4,), "float32")
    for i in range(4):
        b[i] = a[i, 0] + n
    return b


def test_arguments_may_be_given_by_name():
    plus = te.hybrid.script(_plus)
    assert plus(n=2, a=A).shape == (4,)
    np.testing.assert_array_equal(plus(np.ones((4, 3), "float32"), n=2), np.full(4, 3.0))
    with pytest.raises(ExpressionError, match=r"te\.hybrid _plus: wrong arguments"):
        plus(A, m=2)
