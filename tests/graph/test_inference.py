"""Type inference: types that follow, and errors that name what is wrong."""

import pytest

from dlcompiler.errors import GraphError
from dlcompiler.graph import op
from dlcompiler.graph.inference import infer_types, type_of, types_of
from dlcompiler.graph.ir import (
    ANY,
    Call,
    Function,
    FuncType,
    GlobalVar,
    If,
    Let,
    Module,
    Op,
    Span,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    as_expr,
)

F23 = TensorType((2, 3))
INT = TensorType((), "int32")


def test_types_of_data_flow():
    x = Var("x", F23)
    assert type_of(op.add(x, as_expr(1.0))) == F23
    assert type_of(op.less(x, 1.0)) == TensorType((2, 3), "bool")
    assert type_of(Tuple((x, as_expr(1)))).fields == (F23, INT)


def test_a_function_gets_its_types_from_its_use():
    a, f, x = Var("a"), Var("f"), Var("x", F23)
    value = Let(f, Function((a,), op.exp(a)), Call(f, (x,)))
    module = infer_types(Module.from_expr(value))
    assert module.main.result == F23
    assert module.main.body.var.type == FuncType((F23,), F23)


def test_a_recursive_function():
    loop, n = GlobalVar("loop"), Var("n", INT)
    body = If(n < 3, Call(loop, (n + 1,)), n)
    module = Module.from_expr(Call(loop, (as_expr(0),)), {"loop": Function((n,), body)})
    assert infer_types(module)["loop"].result == INT


def test_types_of_a_module_are_kept():
    module = Module.from_expr(op.exp(Var("x", F23)))
    assert types_of(module) is types_of(module)
    typed = infer_types(module)
    assert infer_types(typed) is typed


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ((ANY, 3), (1, 3), (ANY, 3)),
        ((ANY, 3), (5, 3), (5, 3)),
        ((ANY,), (ANY,), (ANY,)),
        ((2, 1), (3,), (2, 3)),
        ((), (2,), (2,)),
        ((0, 1), (1, 4), (0, 4)),
    ],
)
def test_shapes_are_broadcast(a, b, result):
    x, y = Var("x", TensorType(a)), Var("y", TensorType(b))
    assert type_of(op.add(x, y)) == TensorType(result)


def refusal(expr, functions=None):
    with pytest.raises(GraphError) as caught:
        types_of(Module.from_expr(expr, functions))
    return str(caught.value)


def test_shapes_that_do_not_fit():
    x, y = Var("x", F23), Var("y", TensorType((2, 4)))
    text = refusal(op.add(x, y, name="sum", span=Span("model.onnx", "Add_7", 12)))
    assert text == (
        "add sum: the shapes cannot be broadcast: dimension -1 has extents 3 and 4\n"
        "  got       lhs Tensor[(2, 3), float32], rhs Tensor[(2, 4), float32]\n"
        "  expected  equal extents, or 1\n"
        "  excerpt   from Add_7 (model.onnx:12)"
    )


def test_other_mistakes_name_what_is_wrong():
    x, n = Var("x", F23), Var("n", INT)
    assert "the dtypes differ" in refusal(op.add(x, n))
    assert "takes floats, not int32" in refusal(op.exp(n))
    assert "no graph operator has this name" in refusal(Call(Op("nn.con2d"), (x,)))
    assert "the types differ" in refusal(If(as_expr(True), x, n))
    assert "condition of an if" in refusal(If(n, x, x))
    assert "there is no field 2" in refusal(TupleGetItem(Tuple((x, n)), 2))
    assert "not a tuple" in refusal(TupleGetItem(x, 0))
    assert "no function f" in refusal(Call(GlobalVar("f"), (x,)))
    assert "the number of arguments" in refusal(Call(Function((), x), (x,)))
    assert "would contain itself" in refusal(_self_application())
    assert "the type of y is not known" in refusal(op.exp(Var("y")))


def _self_application():
    f = Var("f")
    return Function((f,), Call(f, (f,)))


def test_a_wrong_number_of_arguments():
    x = Var("x", F23)
    text = refusal(Call(op.add(x, x).op, (x,)))
    assert "the number of arguments is wrong" in text
    assert "lhs, rhs" in text
