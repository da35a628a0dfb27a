"""The cases of ONNX's own backend suite, and which of them are expected to be refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from dlcompiler.errors import GraphError
from dlcompiler.graph import build, evaluate
from dlcompiler.graph.frontends import from_onnx

STORED = ("simple", "pytorch-operator", "pytorch-converted")
"""Kinds whose models are files; those of the kind `node` are made when they are loaded (15 s)."""

LIGHT = tuple(sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx")))
"""Models of whole networks, whose weights are made when they run."""

REFUSED = {
    r"its tensors have an unknown dtype": "strings, floats of 8 bits, integers of 2 and 4 bits",
    r"ai\.onnx\.(preview|ml|preview\.training) ": "operators of other domains",
    r"at random, as in training|RandomUniformLike|Bernoulli": "random numbers",
    r"no such operator here": "an operator without a converter",
    r"peepholes": "an LSTM whose gates look at the cell",
    r"of an old version, with batches": "a Scan of opset 8",
    r"when the model runs|a shape that is not known": "shapes that only a run decides",
}
"""What the error of a refused case says -> why it is refused."""

ROUNDED = re.compile(r"test_attention_.*(bf16|fp16)")
"""Cases whose expected values were rounded to 16 bits after each step."""

LOOSE = {"float16": 2e-3, "bfloat16": 2e-2}
"""Relative tolerance of 16-bit results; that of the suite is 1e-3."""


_PROTOS = {
    "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
    "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
    "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
}


def value_in(path: Path, kind):
    """Return the value of a file of the suite: an array, a list of arrays, or None."""
    proto, read = _PROTOS[kind.WhichOneof("value")]
    message = proto()
    message.ParseFromString(path.read_bytes())
    return read(message)


def as_value(value):
    """Return a value of the suite as an array, a list of arrays, or None."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return value if value is None or isinstance(value, list) else np.asarray(value)


def cases(kinds):
    """Return the cases of some kinds, without those that only spell out an operator's function."""
    found = [case for kind in kinds for case in load_model_tests(kind=kind)]
    return [case for case in found if not case.name.endswith("_expanded")]


def light_outcome(path):
    """Return "passed" or "wrong: …" of a network, compiled for the suite's input."""
    model = onnx.load(path)
    weights = {tensor.name for tensor in model.graph.initializer}
    (value,) = (value for value in model.graph.input if value.name not in weights)
    shape = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    x = (np.arange(count).reshape(shape) / count).astype("float32")
    found = build(from_onnx(model, shapes={value.name: shape}))(x)
    (expected,) = model.graph.output
    wanted = value_in(path.with_name(f"{path.stem}_output_0.pb"), expected.type)
    is_close = found.shape == wanted.shape and np.allclose(found, wanted, 2e-3, 1e-7)
    return "passed" if is_close else "wrong: other values"


def data_of(case, model):
    """Return the inputs by name and the outputs of the first set of data."""
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    names = [value.name for value in inputs]
    if case.data_sets:
        given, expected = ([as_value(v) for v in part] for part in case.data_sets[0])
    else:
        folder = Path(case.model_dir) / "test_data_set_0"
        given, expected = (
            [value_in(folder / f"{part}_{n}.pb", value.type) for n, value in enumerate(values)]
            for part, values in (("input", inputs), ("output", model.graph.output))
        )
    return dict(zip(names, given, strict=False)), expected


def imported(model, inputs):
    """Import a model for these inputs; if need be, with integers and small ones as constants."""
    shapes = {name: shape_of(x) for name, x in inputs.items() if x is not None}
    absent = {name: x for name, x in inputs.items() if x is None}
    try:
        return from_onnx(model, shapes=shapes, constants=absent)
    except GraphError as error:
        if "when the model runs" not in str(error):
            raise
    arrays = {name: x for name, x in inputs.items() if isinstance(x, np.ndarray)}
    small = {name: x for name, x in arrays.items() if x.dtype.kind in "iub" or x.size <= 8}
    return from_onnx(model, shapes=shapes, constants=small | absent)


def shape_of(value):
    """Return the shape of an array, or of the arrays of a list."""
    return [shape_of(part) for part in value] if isinstance(value, list) else value.shape


def leaves(value):
    """Return the arrays of a value, from left to right."""
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def outcome(case, *, is_compiled):
    """Return "passed", "refused: …" or "wrong: …"; any other error is one of the importer."""
    model = case.model or onnx.load(Path(case.model_dir) / "model.onnx")
    inputs, expected = data_of(case, model)
    try:
        module = imported(model, inputs)
    except GraphError as error:
        reason = next((why for text, why in REFUSED.items() if re.search(text, str(error))), None)
        return f"refused: {reason or error}"
    args = [inputs[param.name] for param in module.main.params]
    found = build(module)(*leaves(args)) if is_compiled else evaluate(module, *args)
    values, wanted = leaves(found), leaves(expected)
    if len(values) != len(wanted):
        return f"wrong: {len(values)} tensors, expected {len(wanted)}"
    for ours, theirs in zip(values, wanted, strict=True):
        ours = np.asarray(ours)
        if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
            return f"wrong: {ours.dtype}{ours.shape}, expected {theirs.dtype}{theirs.shape}"
        rtol = LOOSE.get(str(ours.dtype), 1e-3)
        if not np.allclose(
            ours.astype(complex), theirs.astype(complex), rtol, 1e-5, equal_nan=True
        ):
            return "wrong: other values"
    return "passed"
