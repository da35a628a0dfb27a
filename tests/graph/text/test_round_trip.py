"""The text form: what is printed is read back to an equal module."""

import numpy as np
import pytest

from dlcompiler.errors import GraphError
from dlcompiler.graph import op
from dlcompiler.graph.inference import infer_types
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Function,
    GlobalVar,
    If,
    Let,
    Module,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    as_expr,
    modules_equal,
)
from dlcompiler.graph.text import module_text, parse, parse_expr
from tests.graph.random_graphs import RandomGraph
from tests.share import share_of

F32 = TensorType((2, 3))


@pytest.mark.campaign
def test_random_graphs_are_read_back():
    for seed in range(share_of(1000, at_least=50)):
        module = RandomGraph(seed).module()
        text = module_text(module)
        again = parse(text)
        assert modules_equal(module, again), f"seed {seed}"
        assert module_text(again) == text, f"seed {seed}"
        typed = infer_types(module)
        assert modules_equal(typed, parse(module_text(typed))), f"seed {seed}"


def test_text(golden):
    x = Var("x", F32)
    y = op.nn.leaky_relu(op.add(x, 1.0), alpha=0.1)
    pair = Tuple((y, op.multiply(y, np.ones((2, 3), "float32"))))
    golden("module", module_text(Module.from_expr(TupleGetItem(pair, 1))))


def test_scopes(golden):
    x, v, f, n = Var("x", F32), Var("v"), Var("f"), Var("n", TensorType((), "int32"))
    count = Function((n,), If(n < 10, Call(f, (n + 1,)), n))
    shared = op.exp(x)
    body = Let(v, shared + 1.0, If(as_expr(True), v * shared, op.negative(v)))
    golden(
        "scopes",
        module_text(Module.from_expr(Tuple((body, Let(f, count, Call(f, (as_expr(0),))))))),
    )


@pytest.mark.parametrize(
    "value",
    [
        np.float32(0.1), np.float64(1e300), np.float16(6e-8), np.int64(-(2**63)), np.uint8(255),
        np.bool_(True), np.int32(-5), np.float32("nan"), np.float64("-inf"), np.float32(-0.0),
    ],
    ids=repr,
)  # fmt: skip
def test_numbers_keep_their_bits(value):
    module = Module.from_expr(Constant(np.asarray(value)))
    again = parse(module_text(module)).main.body
    assert again.value.dtype == value.dtype
    assert again.value.tobytes() == value.tobytes()


@pytest.mark.parametrize(
    "name", ["a b", 'x"y', "%0", "0", "", "é", "a.b", "if", "\n", "*/", "\x00"]
)
def test_hostile_names_are_text(name):
    x = Var(name, F32)
    same = Var(name, F32)
    loop = Module.from_expr(
        Function((x, same), op.add(x, same)), {name + "f": Function((), as_expr(1))}
    )
    text = module_text(loop, notes={loop.main.body: name})
    again = parse(text)
    assert modules_equal(loop, again)
    assert set(again.functions) == set(loop.functions)


def test_attributes_keep_their_kinds():
    attrs = {"i": 1, "f": 1.0, "b": True, "n": None, "s": '"\n', "t": (1, (2.5, "x")), "e": ()}
    call = Call(op.copy(as_expr(1)).op, (Var("x", F32),), attrs)
    module = Module.from_expr(call)
    assert modules_equal(module, parse(module_text(module)))
    other = Module.from_expr(Call(call.op, call.args, {**attrs, "i": 1.0}))
    assert not modules_equal(module, other)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("def @main(%x: Tensor[(2), float32]) { %y }", (1, 39), "no variable y"),
        ("def @main( { }", (1, 12), "a name"),
        ("add(1,", (1, 7), "'('"),
        ("def @a() { 1 } def @a() { 2 }", (1, 20), "a second function a"),
        ("add(1, 2", (1, 9), "')'"),
        ("%0 = 1; %0 = 2; %0", (1, 9), "a second value %0"),
        ("%3", (1, 1), "no value %3"),
        ("1i7", (1, 1), "not a number of a dtype"),
        ("300u8", (1, 1), "uint8"),
        ("meta[relay.Constant][0]", (1, 22), "the metadata has 0 constants"),
        ("fn (%x: Tensor[(-1), float32]) { %x }", (1, 17), "an extent"),
        ("fn (%x: Tensor[(1), float33]) { %x }", (1, 9), "not a type"),
        ("fn (%x, %x) { %x }", (1, 9), "a second parameter x"),
        ("copy(1, x=y)", (1, 11), "a value"),
        (f"copy(1, x={'9' * 5000})", (1, 11), "not a value"),
        ("copy(1, x=1e999f)", (1, 11), "not a value"),
        (f"(1, 1).{'9' * 5000}", (1, 7), "not an extent or a place"),
        (f"fn (%x: Tensor[({'9' * 5000}), int8]) {{ %x }}", (1, 17), "not an extent"),
        (f"meta[relay.Constant][{'9' * 5000}]", (1, 22), "not an extent or a place"),
        ("1e400f", (1, 1), "float32"),
        ("1e10f16", (1, 1), "float16"),
        ("@", (1, 1), "no token"),
        ("\n\n  §", (3, 3), "no token"),
    ],
)
def test_a_wrong_text_is_refused_with_its_place(text, place, words):
    with pytest.raises(GraphError) as caught:
        parse(text)
    assert caught.value.place == place
    assert words in str(caught.value)


@pytest.mark.parametrize("open_", ["(", "if (True) {", "add(", "fn () {", "%0 = ("])
def test_deep_nesting_is_refused(open_):
    with pytest.raises(GraphError, match="nested more than"):
        parse(open_ * 5000)


@pytest.mark.parametrize(
    "metadata",
    ["{", "[]", '{"relay.Constant": 1}', '{"relay.Constant": [{"dtype": "float32"}]}',
     '{"relay.Constant": [{"dtype": "float32", "shape": [2], "data": "AAAA"}]}',
     '{"relay.Constant": [{"dtype": "object", "shape": [], "data": ""}]}'],
)  # fmt: skip
def test_damaged_metadata_is_refused(metadata):
    with pytest.raises(GraphError, match="the metadata cannot be read"):
        parse(f"1\n#[metadata]\n{metadata}")


@pytest.mark.campaign
def test_long_chains_are_printed_and_read():
    x = Var("x", F32)
    value = x
    for _ in range(20_000):
        value = op.nn.relu(value)
    module = Module.from_expr(value)
    assert modules_equal(module, parse(module_text(module)))


def test_an_expression_is_read_with_its_variables():
    x = Var("x", F32)
    call = parse_expr("add(%x, 2f)", {"x": x})
    assert call.args[0] is x


def test_a_global_function_may_call_itself():
    text = """def @main(%n: int32) { @f(%n) }
        def @f(%n: int32) -> int32 { if (less(%n, 9)) { @f(add(%n, 1)) } else { %n } }"""
    module = parse(text)
    assert isinstance(module.main.body.op, GlobalVar)
    assert infer_types(module).main.result == TensorType((), "int32")


def test_a_let_with_several_uses_is_printed_once():
    v, x = Var("v"), Var("x", F32)
    shared = Let(v, op.exp(x), op.add(v, x))
    chosen = If(as_expr(True), shared, op.negative(shared))
    text = module_text(Module.from_expr(Tuple((chosen, shared))))
    assert text.count("exp(") == 1
    assert modules_equal(parse(text), Module.from_expr(Tuple((chosen, shared))))
