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

REFUSED = {
    r"its tensors have an unknown dtype": "strings, floats of 8 bits, integers of 2 and 4 bits",
    r"is no tensor|Sequence|Optional|SplitToSequence": "sequences and optionals",
    r"ai\.onnx\.(preview|ml|preview\.training) ": "operators of other domains",
    r"at random, as in training|RandomUniformLike|Bernoulli": "random numbers",
    r"moments of a batch, as in training": "training",
    r"no such operator here": "an operator without a converter",
    r"scales are of blocks": "quantization by blocks",
    r"antialias|half_pixel_symmetric": "a mode of Resize",
    r"peepholes": "an LSTM whose gates look at the cell",
    r"a value is read that nothing computes": "the positions of MaxPool's elements",
    r"when the model runs|a shape that is not known": "shapes that only a run decides",
}
"""What the error of a refused case says -> why it is refused."""

ROUNDED = re.compile(r"test_attention_.*(bf16|fp16)")
"""Cases whose expected values were rounded to 16 bits after each step."""

LOOSE = {"float16": 2e-3, "bfloat16": 2e-2}
"""Relative tolerance of 16-bit results; that of the suite is 1e-3."""


def arrays_in(path: Path) -> np.ndarray:
    """Return the array of a file of the suite."""
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def as_array(value):
    """Return a value of the suite as an array; sequences of tensors are no arrays."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return value if isinstance(value, list) else np.asarray(value)


def cases(kinds):
    """Return the cases of some kinds, without those that only spell out an operator's function."""
    found = [case for kind in kinds for case in load_model_tests(kind=kind)]
    return [case for case in found if not case.name.endswith("_expanded")]


def data_of(case, model):
    """Return the inputs by name and the outputs of the first set of data."""
    weights = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in weights]
    if case.data_sets:
        given, expected = ([as_array(v) for v in part] for part in case.data_sets[0])
    else:
        folder = Path(case.model_dir) / "test_data_set_0"
        given, expected = (
            [arrays_in(path) for path in sorted(folder.glob(f"{part}_*.pb"), key=_number)]
            for part in ("input", "output")
        )
    return dict(zip(names, given, strict=False)), expected


def _number(path):
    return int(path.stem.rpartition("_")[2])


def imported(model, inputs):
    """Import a model for these inputs; if need be, with integers and small ones as constants."""
    arrays = {name: x for name, x in inputs.items() if isinstance(x, np.ndarray)}
    shapes = {name: x.shape for name, x in arrays.items()}
    try:
        return from_onnx(model, shapes=shapes)
    except GraphError as error:
        if "when the model runs" not in str(error):
            raise
    small = {name: x for name, x in arrays.items() if x.dtype.kind in "iub" or x.size <= 8}
    return from_onnx(model, shapes=shapes, constants=small)


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
    found = build(module)(*args) if is_compiled else evaluate(module, *args)
    for ours, theirs in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
        ours = np.asarray(ours)
        if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
            return f"wrong: {ours.dtype}{ours.shape}, expected {theirs.dtype}{theirs.shape}"
        rtol = LOOSE.get(str(ours.dtype), 1e-3)
        if not np.allclose(
            ours.astype(complex), theirs.astype(complex), rtol, 1e-5, equal_nan=True
        ):
            return "wrong: other values"
    return "passed"
