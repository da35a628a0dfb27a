"""Write the models of `dlcompiler.graph.builders` as ONNX, so that other libraries can run them.

Only the operators of these models are known. A bias that follows a convolution or a dense layer
becomes its third operand, as exporters of other libraries write it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from dlcompiler.dtypes import to_numpy
from dlcompiler.errors import GraphError, UserError
from dlcompiler.graph import infer_types, types_of
from dlcompiler.graph.inference import Types
from dlcompiler.graph.ir import (
    Call,
    Constant,
    Expr,
    Module,
    Node,
    Op,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    post_order,
)
from dlcompiler.graph.operators import find

OPERATION = "write a model as ONNX"
OPSET = 20
"""The first version of the operator set with Gelu."""
_IR_VERSION = 9
Attributes: TypeAlias = Mapping[str, Any]


def onnx_of(module: Module) -> bytes:
    """Return a model as an ONNX file.

    Parameters
    ----------
    module : Module
        A model of the builders, with its weights as constants.

    Raises
    ------
    GraphError
        An operator is not known here.
    UserError
        The package `onnx` is missing.
    """
    try:
        onnx = importlib.import_module("onnx")
    except ImportError as error:
        raise UserError(OPERATION, "the package onnx cannot be imported", got=str(error),
                        hint="pip install onnx") from None  # fmt: skip
    typed = infer_types(module)
    writer = _Writer(onnx.helper, types_of(typed))
    body = typed.main.body
    for node in post_order(body):
        writer.write(node)
    outputs = body.fields if isinstance(body, Tuple) else (body,)
    graph = onnx.helper.make_graph(
        writer.nodes, "model", [writer.described(param) for param in typed.main.params],
        [writer.described(output) for output in outputs],
        [onnx.numpy_helper.from_array(array, name) for name, array in writer.weights.items()],
    )  # fmt: skip
    opset = onnx.helper.make_opsetid("", OPSET)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=_IR_VERSION)
    return bytes(model.SerializeToString())


@dataclass
class _Writer:
    """The nodes and weights of a model, while its graph is read."""

    helper: Any
    types: Types
    nodes: list[Any] = field(default_factory=list)
    weights: dict[str, Any] = field(default_factory=dict)
    names: dict[Node, str] = field(default_factory=dict)
    biased: dict[Node, Any] = field(default_factory=dict)
    """Call of a convolution or a dense layer -> its node."""

    def write(self, node: Node) -> None:
        """Add what computes a node of the graph."""
        match node:
            case Var():
                self.names[node] = node.name
            case Constant(value):
                self.names[node] = self.weight(value, node.name)
            case TupleGetItem(Call() as call, index):
                self.names[node] = f"{self.names[call]}.{index}" if index else self.names[call]
            case Call(Op(), args):
                self.names[node] = self.call(node, args)

    def weight(self, array: Any, name: str = "") -> str:
        """Return the name of a new weight."""
        made = name if name and name not in self.weights else f"{name}w{len(self.weights)}"
        self.weights[made] = np.asarray(array)
        return made

    def indices(self, values: Any) -> str:
        """Return the name of a weight with whole numbers."""
        return self.weight(np.array(values, np.int64))

    def node(self, kind: str, inputs: list[str], name: str, count: int = 1, **attrs: Any) -> str:
        """Add a node, and return the name of its first result."""
        outputs = [f"{name}.{n}" if n else name for n in range(count)]
        self.nodes.append(self.helper.make_node(kind, inputs, outputs, name, **attrs))
        return name

    def call(self, call: Call, args: tuple[Expr, ...]) -> str:
        """Add the nodes of a call, and return the name of its first result."""
        assert isinstance(call.op, Op)
        convert = _CONVERTERS.get(call.op.name)
        if convert is None:
            raise GraphError(OPERATION, "an operator is not known here", got=call.op.name)
        attrs = find(call.op.name, call).complete(call)
        name = f"{call.name or call.op.name}.{len(self.nodes)}.out"
        if call.op.name == "nn.bias_add" and args[0] in self.biased:
            product = self.biased.pop(args[0])
            product.input.append(self.names[args[1]])
            return self.names[args[0]]
        flat = [each for arg in args for each in (arg.fields if isinstance(arg, Tuple) else (arg,))]
        made = convert(self, [self.names[arg] for arg in flat], name, attrs)
        if call.op.name in _BIASED:
            self.biased[call] = self.nodes[-1]
        return made

    def described(self, value: Expr) -> Any:
        """Return the name and the type of an input or a result."""
        kind = self.types[value]
        assert isinstance(kind, TensorType)
        element = self.helper.np_dtype_to_tensor_dtype(to_numpy(kind.dtype))
        return self.helper.make_tensor_value_info(self.names_of(value), element, kind.shape)

    def names_of(self, value: Expr) -> str:
        """Return the name of a value; a parameter may be unused."""
        return value.name if isinstance(value, Var) else self.names[value]


def _simple(kind: str) -> Callable[[_Writer, list[str], str, Attributes], str]:
    """Return the converter of an operator that ONNX has with the same operands."""
    return lambda w, inputs, name, attrs: w.node(kind, inputs, name)


def _conv(w: _Writer, inputs: list[str], name: str, attrs: Attributes) -> str:
    return w.node(
        "Conv", inputs, name, strides=attrs["strides"], pads=attrs["padding"],
        dilations=attrs["dilation"], group=attrs["groups"], kernel_shape=attrs["kernel_size"],
    )  # fmt: skip


def _conv_transpose(w: _Writer, inputs: list[str], name: str, attrs: Attributes) -> str:
    return w.node(
        "ConvTranspose", inputs, name, strides=attrs["strides"], pads=attrs["padding"],
        dilations=attrs["dilation"], group=attrs["groups"], kernel_shape=attrs["kernel_size"],
        output_padding=attrs["output_padding"],
    )  # fmt: skip


def _max_pool(w: _Writer, inputs: list[str], name: str, attrs: Attributes) -> str:
    return w.node(
        "MaxPool", inputs, name, strides=attrs["strides"], pads=attrs["padding"],
        kernel_shape=attrs["pool_size"], ceil_mode=int(attrs["ceil_mode"]),
    )  # fmt: skip


def _bias_add(w: _Writer, inputs: list[str], name: str, attrs: Attributes) -> str:
    raise GraphError(OPERATION, "a bias follows no convolution and no dense layer", got=name)


def _clip(w: _Writer, inputs: list[str], name: str, attrs: Attributes) -> str:
    limits = [w.weight(np.float32(attrs[side])) for side in ("a_min", "a_max")]
    return w.node("Clip", [*inputs, *limits], name)


def _split(w: _Writer, inputs: list[str], name: str, attrs: Attributes) -> str:
    count = attrs["indices_or_sections"]
    return w.node("Split", inputs, name, count, axis=attrs["axis"], num_outputs=count)


def _batch_matmul(w: _Writer, inputs: list[str], name: str, attrs: Attributes) -> str:
    factors = [
        w.node("Transpose", [factor], f"{name}.{side}", perm=(0, 2, 1))
        if attrs[f"transpose_{side}"]
        else factor
        for factor, side in zip(inputs, "ab", strict=True)
    ]
    return w.node("MatMul", factors, name)


def _zeros(w: _Writer, inputs: list[str], name: str, attrs: Attributes) -> str:
    return w.weight(np.zeros(attrs["shape"], to_numpy(attrs["dtype"])), name)


_BIASED = ("nn.conv2d", "nn.conv2d_transpose", "nn.dense")
"""Operators whose node takes a bias."""
_CONVERTERS: dict[str, Callable[[_Writer, list[str], str, Attributes], str]] = {
    "nn.conv2d": _conv,
    "nn.conv2d_transpose": _conv_transpose,
    "nn.dense": lambda w, inputs, name, attrs: w.node("Gemm", inputs, name, transB=1),
    "nn.bias_add": _bias_add,
    "nn.batch_norm": lambda w, inputs, name, attrs: w.node(
        "BatchNormalization", inputs, name, epsilon=attrs["epsilon"]
    ),
    "nn.layer_norm": lambda w, inputs, name, attrs: w.node(
        "LayerNormalization", inputs, name, axis=attrs["axis"], epsilon=attrs["epsilon"]
    ),
    "nn.max_pool2d": _max_pool,
    "nn.global_avg_pool2d": _simple("GlobalAveragePool"),
    "nn.batch_flatten": _simple("Flatten"),
    "nn.dropout": lambda w, inputs, name, attrs: inputs[0],
    "nn.softmax": lambda w, inputs, name, attrs: w.node(
        "Softmax", inputs, name, axis=attrs["axis"]
    ),
    "nn.relu": _simple("Relu"),
    "nn.gelu": _simple("Gelu"),
    "nn.batch_matmul": _batch_matmul,
    "add": _simple("Add"),
    "multiply": _simple("Mul"),
    "tanh": _simple("Tanh"),
    "sigmoid": _simple("Sigmoid"),
    "clip": _clip,
    "concatenate": lambda w, inputs, name, attrs: w.node(
        "Concat", inputs, name, axis=attrs["axis"]
    ),
    "take": lambda w, inputs, name, attrs: w.node("Gather", inputs, name, axis=attrs["axis"]),
    "split": _split,
    "squeeze": lambda w, inputs, name, attrs: w.node(
        "Squeeze", [*inputs, w.indices(attrs["axis"])], name
    ),
    "reshape": lambda w, inputs, name, attrs: w.node(
        "Reshape", [*inputs, w.indices(attrs["newshape"])], name
    ),
    "transpose": lambda w, inputs, name, attrs: w.node(
        "Transpose", inputs, name, perm=attrs["axes"]
    ),
    "mean": lambda w, inputs, name, attrs: w.node(
        "ReduceMean", [*inputs, w.indices(attrs["axis"])], name, keepdims=int(attrs["keepdims"])
    ),
    "zeros": _zeros,
}
