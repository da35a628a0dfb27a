"""Operators of TFLite compute what its own interpreter computes, or are refused with a reason."""

import numpy as np
import pytest

pytest.importorskip("tflite", reason="the package tflite is not installed: pip install tflite")
pytest.importorskip("flatbuffers", reason="flatbuffers is not installed")

from dlcompiler import graph
from dlcompiler.errors import GraphError
from tests.graph.frontends.tflite_models import CASES, POSITIVE, Case, floats, model_of

litert = pytest.importorskip(
    "ai_edge_litert.interpreter", reason="TFLite's interpreter is not installed: ai-edge-litert"
)


def arrays_for(case):
    """Return arrays for the inputs of a case, the same ones each time."""
    numbers = np.random.default_rng(0)
    return [
        numbers.integers(0, 2, shape).astype(bool) if dtype == "bool"
        else numbers.integers(1, 5, shape).astype(dtype) if dtype == "int32"
        else numbers.uniform(0.1 if case.op in POSITIVE else -3, 3, shape).astype(dtype)
        for shape, dtype in case.inputs
    ]  # fmt: skip


def by_interpreter(case, arrays):
    """Return the file of a case with the right shapes, and what TFLite computes."""
    data = model_of(case, [()] * len(case.results))
    plain = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    runner = litert.Interpreter(model_content=data, experimental_op_resolver_type=plain)
    runner.allocate_tensors()
    for detail, array in zip(runner.get_input_details(), arrays, strict=True):
        runner.set_tensor(detail["index"], array)
    runner.invoke()
    found = [runner.get_tensor(detail["index"]) for detail in runner.get_output_details()]
    return model_of(case, [array.shape for array in found]), found


@pytest.mark.campaign
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op.lower())
def test_an_operator_computes_the_same(case):
    arrays = arrays_for(case)
    data, expected = by_interpreter(case, arrays)
    module = graph.from_tflite(data)
    for found in (graph.evaluate(module, *arrays), graph.build(module)(*arrays)):
        outputs = found if isinstance(found, tuple) else (found,)
        for got, want in zip(outputs, expected, strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_other_shapes_than_the_file_has():
    case = Case("RESHAPE", [(1, 4), np.asarray([-1, 2], "int32")])
    data, _ = by_interpreter(case, arrays_for(case))
    module = graph.from_tflite(data, shapes={"t0": (3, 4)})
    assert graph.type_of(module["main"].body).shape == (6, 2)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "not a TFLite file"),
        (b"\0\0\0\0TFL3", "no graph"),
        (b"\xff\xff\0\0TFL3", "damaged"),
        (7, "not a model"),
        ("no such file", "cannot be read"),
        (model_of(Case("LSH_PROJECTION", [(2, 3)]), [(2, 3)]), "there is no such operator"),
        (model_of(Case("ABS", [(2, 3)]), [(3, 2)]), "another type in the file"),
        (model_of(Case("ADD", [(2, 3), floats(4)]), [(2, 3)]), "ADD t2"),
    ],
)
def test_refusals(data, problem):
    with pytest.raises(GraphError, match=problem):
        graph.from_tflite(data)


def test_the_package_is_asked_for(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tflite", None)
    with pytest.raises(GraphError, match="cannot be imported"):
        graph.from_tflite(b"")
