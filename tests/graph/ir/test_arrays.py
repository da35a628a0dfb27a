"""Numbers become constants and arguments without a silent change of their values."""

import pytest

from dlcompiler.errors import CallError, GraphError
from dlcompiler.graph import as_expr, constant, evaluate, infer_types, op, var
from dlcompiler.graph.ir import Module, Tuple, TupleGetItem

SMALL = var("x", (1,), "int8")


@pytest.mark.parametrize(
    "make",
    [
        lambda: SMALL + 300,
        lambda: var("x", (1,), "uint8") + (-1),
        lambda: var("x", (1,), "float16") + 1e6,
        lambda: as_expr(1e300),
        lambda: constant(300, "int8"),
        lambda: constant([1.5], "int32"),
        lambda: constant([float("nan")], "int32"),
        lambda: constant(1e300),
        lambda: constant([1, [2, 3]]),
        lambda: constant(2**70),
    ],
)
def test_numbers_that_the_dtype_does_not_hold(make):
    with pytest.raises(GraphError, match=r"hold|not an array|beyond"):
        make()


def test_a_number_beside_bools_is_no_bool():
    with pytest.raises(GraphError, match="dtypes differ"):
        infer_types(Module.from_expr(var("x", (1,), "bool") < 2))


def test_integers_that_need_64_bits_have_them():
    assert constant(2**40).value == 2**40
    assert constant([2**31]).value.tolist() == [2**31]
    assert constant([1, 2]).type.dtype == "int32"


@pytest.mark.parametrize("value", [[300], [1.5], [float("nan")], ["a"], [None], [2**70], [1, [2]]])
def test_lists_that_are_no_argument(value):
    with pytest.raises(CallError, match="argument x does not fit"):
        evaluate(op.copy(SMALL), value)


@pytest.mark.parametrize("index", [1.5, True, "0", None])
def test_a_field_has_a_number(index):
    with pytest.raises(GraphError, match="not an integer"):
        TupleGetItem(Tuple((SMALL, SMALL)), index)


def test_attributes_have_64_bits():
    with pytest.raises(GraphError, match="beyond 64 bits"):
        op.reshape(SMALL, newshape=(10**5000,))
