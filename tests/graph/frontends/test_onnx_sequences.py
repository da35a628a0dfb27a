"""Sequences and optionals of ONNX, which are known when a model is imported."""

import numpy as np
import pytest

pytest.importorskip("onnx", reason="onnx is not installed: pip install onnx")

import onnx
from onnx import helper, numpy_helper

from dlcompiler.errors import GraphError
from dlcompiler.graph import build, evaluate, from_onnx
from tests.graph.frontends.onnx_models import FLOAT, model_of, tensor

X = np.arange(10, dtype="float32").reshape(5, 2)


def imported(nodes, outputs, inputs=None, opset=18, names=(), **known):
    """Import nodes that read x, and integers by their names."""
    weights = [numpy_helper.from_array(np.array(v, "int64"), name) for name, v in known.items()]
    made = [helper.make_node(op, given, results, **attrs) for op, given, results, attrs in nodes]
    results = [tensor(name, None) for name in outputs]
    model = model_of(made, inputs or [tensor("x", 5, 2)], results, weights, opset)
    return from_onnx(model, **dict(names))


def sequence(name):
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, None))
    return helper.make_value_info(name, kind)


def optional(name):
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [2]))
    return helper.make_value_info(name, kind)


def parts_of(module, *args):
    return [part.tolist() for part in evaluate(module, *args)]


@pytest.mark.parametrize(
    ("sizes", "attrs", "wanted"),
    [
        (None, {}, [X[n : n + 1] for n in range(5)]),
        (None, {"axis": -1, "keepdims": 0}, [X[:, 0], X[:, 1]]),
        (2, {}, [X[:2], X[2:4], X[4:]]),
        (7, {}, [X]),
        ([1, 0, 4], {}, [X[:1], X[1:1], X[1:]]),
        ([1, 1], {"axis": 1, "keepdims": 0}, [X[:, :1], X[:, 1:]]),
    ],
)
def test_split(sizes, attrs, wanted):
    given = ["x"] if sizes is None else ["x", "n"]
    known = {} if sizes is None else {"n": sizes}
    module = imported([("SplitToSequence", given, ["y"], attrs)], ["y"], **known)
    assert parts_of(module, X) == [part.tolist() for part in wanted]


@pytest.mark.parametrize("sizes", [[1, 1], [6, -1], 0])
def test_split_refuses(sizes):
    with pytest.raises(GraphError, match=r"parts are not the whole|size of a part"):
        imported([("SplitToSequence", ["x", "n"], ["y"], {})], ["y"], n=sizes)


def test_insert_erase_and_read():
    nodes = [
        ("Neg", ["x"], ["a"], {}),
        ("SequenceEmpty", [], ["s0"], {}),
        ("SequenceInsert", ["s0", "x"], ["s1"], {}),
        ("SequenceInsert", ["s1", "a", "first"], ["s2"], {}),
        ("SequenceInsert", ["s2", "x", "before"], ["s3"], {}),
        ("SequenceErase", ["s3", "first"], ["s4"], {}),
        ("SequenceErase", ["s3"], ["s5"], {}),
        ("SequenceAt", ["s3", "before"], ["at"], {}),
        ("SequenceLength", ["s3"], ["n"], {}),
        ("ConcatFromSequence", ["s4"], ["rows"], {"axis": -1}),
        ("ConcatFromSequence", ["s5"], ["stack"], {"axis": -1, "new_axis": 1}),
    ]
    module = imported(nodes, ["at", "n", "rows", "stack"], first=0, before=-1)
    at, n, rows, stack = evaluate(module, X)
    np.testing.assert_array_equal(at, X)
    assert n == 3
    np.testing.assert_array_equal(rows, np.concatenate([X, X], 1))
    np.testing.assert_array_equal(stack, np.stack([-X, X], 2))
    for op in ("SequenceAt", "SequenceErase"):
        with pytest.raises(GraphError, match="no such place"):
            imported([*nodes, (op, ["s3", "far"], ["z"], {})], ["z"], first=0, before=-1, far=3)


def test_sequences_as_inputs_and_outputs():
    nodes = [("SequenceInsert", ["s", "x", "first"], ["y"], {})]
    inputs = [sequence("s"), tensor("x", 5, 2)]
    shapes = {"s": [(2,), (1, 3)]}
    module = imported(nodes, ["y"], inputs, names={"shapes": shapes}, first=1)
    s = [np.ones(2, "f"), np.zeros((1, 3), "f")]
    wanted = [s[0].tolist(), X.tolist(), s[1].tolist()]
    assert parts_of(module, s, X) == wanted
    assert [part.tolist() for part in build(module)(*s, X)] == wanted
    assert parts_of(imported(nodes, ["y"], inputs, names={"constants": {"s": s}}, first=1), X) == (
        wanted
    )
    with pytest.raises(GraphError, match="sequence of unknown length") as error:
        imported(nodes, ["y"], inputs, first=1)
    assert "shapes=" in error.value.hint


def test_a_body_for_each_tensor():
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Shape", ["a"], ["d"])],
        "body", [tensor("a", None), tensor("b", None)],
        [tensor("c", None), helper.make_tensor_value_info("d", onnx.TensorProto.INT64, None)],
    )  # fmt: skip
    nodes = [("SplitToSequence", ["x", "n"], ["s"], {}),
             ("SequenceMap", ["s", "b"], ["y", "z"], {"body": body}),
             ("ConcatFromSequence", ["z"], ["shapes"], {"axis": 0})]  # fmt: skip
    module = imported(nodes, ["y", "shapes"], [tensor("x", 5, 2), tensor("b", 1)], n=3)
    parts, shapes = evaluate(module, X, np.ones(1, "f"))
    assert [part.tolist() for part in parts] == [(X[:3] + 1).tolist(), (X[3:] + 1).tolist()]
    assert shapes.tolist() == [3, 2, 2, 2]


def test_optionals():
    nodes = [("OptionalHasElement", ["o"], ["has"], {}), ("Identity", ["o"], ["p"], {}),
             ("OptionalHasElement", ["p"], ["still"], {})]  # fmt: skip
    with_value = imported(nodes, ["has", "still"], [optional("o")])
    assert [bool(v) for v in evaluate(with_value, np.ones(2, "f"))] == [True, True]
    absent = {"constants": {"o": None}}
    without = imported(nodes, ["has", "still"], [optional("o")], names=absent)
    assert [bool(v) for v in evaluate(without)] == [False, False]
    get = [("OptionalGetElement", ["o"], ["v"], {})]
    with pytest.raises(GraphError, match="the optional has no value"):
        imported(get, ["v"], [optional("o")], names=absent)
    with pytest.raises(GraphError, match="an output is an optional without a value"):
        imported(nodes, ["p"], [optional("o")], names=absent)
    with pytest.raises(GraphError, match="is None, but no optional"):
        imported([("Neg", ["x"], ["y"], {})], ["y"], names={"constants": {"x": None}})


def test_optionals_that_nodes_make():
    kind = helper.make_tensor_type_proto(FLOAT, [5, 2])
    nodes = [("Optional", [], ["none"], {"type": kind}), ("Optional", ["x"], ["some"], {}),
             ("OptionalHasElement", ["none"], ["a"], {}),
             ("OptionalHasElement", ["some"], ["b"], {}),
             ("OptionalGetElement", ["some"], ["c"], {})]  # fmt: skip
    a, b, c = evaluate(imported(nodes, ["a", "b", "c"]), X)
    assert (bool(a), bool(b)) == (False, True)
    np.testing.assert_array_equal(c, X)


@pytest.mark.parametrize("op", ["Neg", "Concat", "Shape", "MatMul", "ReduceSum", "Gelu"])
def test_a_sequence_is_no_tensor(op):
    nodes = [("SequenceConstruct", ["x", "x"], ["s"], {}), (op, ["s", "s"][: 1 + (op == "MatMul")],
             ["y"], {"axis": 0} if op == "Concat" else {})]  # fmt: skip
    with pytest.raises(GraphError, match=r"no tensor|not a tensor|tuple"):
        imported(nodes, ["y"], opset=20)
