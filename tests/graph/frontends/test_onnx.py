"""Models of ONNX: names, errors, weights in other files, and files that are damaged."""

import contextlib

import numpy as np
import pytest

from dlcompiler.errors import DLCompilerError, GraphError
from dlcompiler.graph import ANY, TensorType, build, evaluate, from_onnx
from dlcompiler.graph.frontends.onnx import onnx_inputs

pytest.importorskip("onnx", reason="onnx is not installed: pip install onnx")

import onnx
from onnx import helper, numpy_helper

from tests.graph.frontends.onnx_models import FLOAT, a_model, model_of, tensor


def test_a_model_keeps_its_names_and_computes_shapes_ahead():
    module = from_onnx(a_model())
    assert {call.name for call in module.calls().values()} == {"conv1", "relu1", "flat", "head"}
    assert [param.name for param in module.main.params] == ["x"]
    x = np.random.default_rng(1).random((2, 3, 6, 6), "float32")
    np.testing.assert_allclose(build(module)(x), evaluate(module, x), rtol=1e-4)


@pytest.mark.parametrize("as_source", ["path", "text", "bytes", "proto"])
def test_sources(as_source, tmp_path):
    model = a_model()
    path = tmp_path / "a model.onnx"
    path.write_bytes(model.SerializeToString())
    source = {"path": path, "text": str(path), "bytes": path.read_bytes(), "proto": model}
    assert len(from_onnx(source[as_source]).calls()) == 4


def test_inputs_are_known_before_the_import():
    model = a_model()
    model.graph.input.append(tensor("w", 4, 3, 3, 3))  # older models list their weights
    model.graph.input.append(tensor("open", "rows", -1, 2))
    model.graph.input.append(tensor("no rank"))
    model.graph.input[-1].type.tensor_type.ClearField("shape")
    assert onnx_inputs(model) == {
        "x": TensorType((2, 3, 6, 6)), "open": TensorType((ANY, ANY, 2)), "no rank": None,
    }  # fmt: skip
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, (2,)))
    model.graph.input.append(helper.make_value_info("list", kind))
    with pytest.raises(GraphError, match="input 'list' is no tensor"):
        onnx_inputs(model)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda m: setattr(m.graph.node[1], "op_type", "Rolu"), "relu1: there is no such operator"),
        (lambda m: setattr(m.graph.node[1], "domain", "com.other"), "domain that is not imported"),
        (lambda m: m.graph.node[1].input.pop(), "operand 0 is missing"),
        (lambda m: m.graph.node[1].input.__setitem__(0, "q"), "nothing computes"),
        (lambda m: setattr(m.opset_import[0], "version", 999), "unknown version"),
        (lambda m: m.graph.output.pop(), "no outputs"),
        (lambda m: m.ClearField("graph"), "without a graph"),
        (lambda m: setattr(m.graph.initializer[0], "raw_data", b"1"), "'w' cannot be read"),
        (lambda m: m.graph.initializer[0].dims.append(-3), "a shape that no tensor has"),
        (lambda m: m.graph.initializer[0].dims.append(2**40), "a shape that no tensor has"),
        (lambda m: m.graph.node[0].attribute[0].ints.pop(), "conv1"),
        (lambda m: setattr(m.graph.node[0].attribute[0], "type", 1), "pads is of another kind"),
        (lambda m: m.graph.node[5].attribute.pop(), "attribute axis is missing"),
        (lambda m: m.graph.initializer[0].dims.pop(), "'w' cannot be read|lacks|dimensions"),
        (lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 8), "unknown dtype"),
    ],
)
def test_refusals(change, problem):
    model = a_model()
    change(model)
    with pytest.raises(GraphError, match=problem):
        from_onnx(model)


def test_attributes_of_other_versions_are_left_out():
    node = helper.make_node("Relu", ["x"], ["y"], "r", alpha=[1.0, 2.0])
    module = from_onnx(model_of([node], [tensor("x", 2)], [tensor("y", 2)]))
    np.testing.assert_array_equal(evaluate(module, np.array([-1, 1], "f")), [0, 1])


def test_names_that_are_no_text():
    data = model_of([helper.make_node("Relu", ["x"], ["y"], "NAME")], [tensor("x", 2)],
                    [tensor("y", 2)]).SerializeToString()  # fmt: skip
    module = from_onnx(data.replace(b"NAME", b"N\xff\xfeE"))
    assert [name[0] for name in module.calls()] == ["N"]


def test_ranks_that_no_converter_expects():
    node = helper.make_node("LSTM", ["x", "w", "w"], ["y"], "l", hidden_size=1)
    model = model_of([node], [tensor("x", 2, 3), tensor("w", 1, 1)], [tensor("y", 1)])
    with pytest.raises(GraphError, match="LSTM l: its operands or attributes do not fit") as caught:
        from_onnx(model)
    assert "(2, 3)" in caught.value.got, "it shows what the operands are, not where Python failed"


def test_what_is_no_model(tmp_path):
    with pytest.raises(GraphError, match="cannot be read"):
        from_onnx(tmp_path / "missing.onnx")
    with pytest.raises(GraphError, match="not a model"):
        from_onnx(17)
    with pytest.raises(GraphError, match="ONNX file"):
        from_onnx(b"\xff" * 100)


def test_shapes_and_constants_of_inputs():
    x = tensor("x", "batch", 3)
    axes = helper.make_tensor_value_info("axes", onnx.TensorProto.INT64, [1])
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], "sum")
    model = model_of([node], [x, axes], [tensor("y", None, None)])
    with pytest.raises(GraphError, match="computed when the model runs") as error:
        from_onnx(model)
    assert "constants=" in error.value.hint
    module = from_onnx(model, shapes={"x": (2, 3)}, constants={"axes": [1]})
    np.testing.assert_array_equal(evaluate(module, np.ones((2, 3), "float32")), [[3], [3]])
    with pytest.raises(GraphError, match="no such input"):
        from_onnx(model, shapes={"z": (1,)})


@pytest.mark.parametrize("place", ["weights.bin", "../weights.bin", "/etc/passwd", "sub/../../w"])
def test_weights_in_another_file(place, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    weight = np.arange(12, dtype="float32").reshape(3, 4)
    (folder / "weights.bin").write_bytes(weight.tobytes())
    (tmp_path / "weights.bin").write_bytes(weight.tobytes())
    stored = numpy_helper.from_array(weight, "w")
    stored.ClearField("raw_data")
    stored.data_location = onnx.TensorProto.EXTERNAL
    entry = stored.external_data.add()
    entry.key, entry.value = "location", place
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "head")
    model = model_of([node], [tensor("x", 2, 3)], [tensor("y", 2, 4)], [stored])
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    if place != "weights.bin":
        with pytest.raises(GraphError, match="outside of the model's folder"):
            from_onnx(path)
        return
    np.testing.assert_array_equal(evaluate(from_onnx(path), np.eye(2, 3, dtype="f")), weight[:2])
    with pytest.raises(GraphError, match="in another file"):
        from_onnx(path.read_bytes())


def test_branches_and_loops_that_are_known():
    branches = {
        name: helper.make_graph([helper.make_node(op, ["x"], [name], name)], name, [],
                                [tensor(name, 2)])
        for name, op in (("then_branch", "Exp"), ("else_branch", "Neg"))
    }  # fmt: skip
    condition = numpy_helper.from_array(np.array(False), "c")
    node = helper.make_node("If", ["c"], ["y"], "choose", **branches)
    module = from_onnx(model_of([node], [tensor("x", 2)], [tensor("y", 2)], [condition]))
    np.testing.assert_array_equal(evaluate(module, np.ones(2, "f")), [-1, -1])


def test_a_file_that_ends_early_is_refused_or_right():
    data = a_model().SerializeToString()
    for n in range(100):
        with contextlib.suppress(DLCompilerError):
            from_onnx(data[: len(data) * n // 100])
