"""Generate the documentation page about models of other libraries from the tables of converters."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from dlcompiler.graph.frontends import coreml, darknet, mxnet, onnx, tflite, torch
from dlcompiler.graph.frontends.onnx.control import CONTROL

HEAD = """\
# Models of other libraries

This page is written by `dlcompiler frontends` from the tables of converters,
`dlcompiler.graph.frontends`. [Graphs](GRAPHS.md) explains the functions.

{routes}

An operator that is not in the lists below may still come in: ONNX has functions for many operators,
and PyTorch has rules of decomposition; both are used.
"""

ROUTES = (
    ("ONNX", "`graph.from_onnx(path)`",
     "operator sets 1 to the newest one; floats, integers, and quantized models of the forms QDQ "
     "and QLinear, also with the quantized operators of ONNX Runtime; ONNX's own suite is a test"),
    ("PyTorch", "`graph.from_torch(model.eval(), args)`; "
     '`torch.compile(model, backend="dlcompiler")`',
     "inference of one shape; [PyTorch's own samples](TORCH_OPERATORS.md) are tried; quantized "
     "programs of PT2E (`quantized_decomposed`)"),
    ("TFLite", "`graph.from_tflite(path)`",
     "floats, and models quantized to 8 or 16 bits; operators are compared with TFLite's "
     "interpreter, and the seven models of `pyopen-wakeword` agree with it"),
    ("CoreML", "`graph.from_coreml(path)` of a `.mlmodel` or `.mlpackage`",
     "programs (MIL) and networks of layers, floats of 32 and 16 bits, compressed weights; models "
     "that coremltools 9 made of PyTorch's agree with PyTorch (CoreML itself runs on macOS only)"),
    ("Darknet", "`graph.from_darknet(cfg, weights)`",
     "inference of classifiers and of YOLO 2 to 4; layers are compared with their definitions, "
     "computed by NumPy, and small networks agree with OpenCV's reader; published weights were not "
     "tried"),
    ("MXNet", '`graph.from_mxnet(symbol, params, shapes={"data": (1, 3, 224, 224)})`',
     "the JSON of a symbol and the file of `mx.nd.save`, also of old versions, without the package "
     "`mxnet`; operators, layers of Gluon and four small models are compared with MXNet 1.9.1"),
    ("Keras 3", "a saved model by the backend torch: set `KERAS_BACKEND=torch`, then "
     '`graph.from_torch(keras.models.load_model("m.keras").eval(), args)`',
     "tried with convolutions, recurrent layers (unrolled) and attention of Keras 3.15"),
    ("JAX, TensorFlow, scikit-learn", "their exporters to ONNX or TFLite, then as above",
     "not tried"),
    ("Caffe2, CNTK", "only what they export as ONNX",
     "not tried: there is no reader of their own files"),
)  # fmt: skip
"""Library, how its models come in, and what is known of it."""


def frontend_page() -> str:
    """Return the page as Markdown."""
    routes = [f"| {' | '.join(row)} |" for row in (
        ("Library", "How its models come in", "State"), ("---",) * 3, *ROUTES
    )]  # fmt: skip
    own = onnx.OPERATORS.keys() | CONTROL.keys()
    lines = [
        HEAD.format(routes="\n".join(routes)), *_section("ONNX", own),
        *_section("ONNX Runtime (com.microsoft)", onnx.DOMAINS["com.microsoft"]),
        *_section("PyTorch (ATen)", torch.OPERATORS), *_section("TFLite", tflite.OPERATORS),
        *_section("CoreML programs (MIL)", coreml.OPERATORS),
        *_section("CoreML networks (layers)", coreml.LAYERS),
        *_section("Darknet (layers)", darknet.OPERATORS),
        *_section("MXNet", mxnet.OPERATORS),
    ]  # fmt: skip
    return "\n".join(lines)


def _section(title: str, names: Iterable[str]) -> list[str]:
    """Return a heading, and the names of operators as a paragraph."""
    ordered = sorted(names, key=str.lower)
    text = ", ".join(f"`{name}`" for name in ordered) + "."
    paragraph = textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)
    return [f"## Operators of {title}: {len(ordered)}\n", paragraph + "\n"]
