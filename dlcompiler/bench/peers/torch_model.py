"""PyTorch on a whole model: the nodes of an ONNX file, eager, or compiled by ``torch.compile``.

A function is chosen for each node before the first call. The operators are those of the models of
`dlcompiler.bench.onnx_export`; a file with another one is refused.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dlcompiler.bench.peers.job import Absent, ModelJob, Offer
from dlcompiler.bench.peers.torch_functions import numpy_of, tensor_of
from dlcompiler.bench.peers.torch_peer import torch_with

Apply: TypeAlias = Callable[..., Any]
Attributes: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Step:
    """A node: its function, and the names of its operands and results."""

    apply: Apply
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    last: tuple[str, ...]
    """Operands that no later node reads: their memory is given back."""


@dataclass(frozen=True, slots=True)
class _Nodes:
    """The nodes of a file as functions of PyTorch, and the tensors that they begin with."""

    steps: Sequence[_Step]
    weights: Mapping[str, Any]
    inputs: Mapping[str, Any]
    outputs: Sequence[str]
    """Names of the results."""

    def run(self, weights: Mapping[str, Any], inputs: Mapping[str, Any]) -> list[Any]:
        """Run the nodes one after another, and return the results."""
        values = {**weights, **inputs}
        for step in self.steps:
            results = step.apply(*(values[name] for name in step.inputs))
            if len(step.outputs) == 1:
                values[step.outputs[0]] = results
            else:
                values.update(zip(step.outputs, results, strict=True))
            for name in step.last:
                del values[name]
        return [values[name] for name in self.outputs]


def offer(job: ModelJob) -> Offer:
    """Return the eager run of a model.

    Raises
    ------
    Absent
        A package is not there, or an operator has no function here.
    """
    torch = torch_with(job.threads)
    nodes = _nodes(torch, job)
    return _offer(torch, "eager", lambda: nodes.run(nodes.weights, nodes.inputs))


def compiled_offer(job: ModelJob) -> Offer:
    """Return the run of a model that ``torch.compile`` compiled, with its weights as constants.

    Raises
    ------
    Absent
        A package is not there, or an operator has no function here.
    """
    torch = torch_with(job.threads)
    nodes = _nodes(torch, job)
    network = torch.nn.Module()
    fixed = [name for name, tensor in nodes.weights.items() if tensor.is_floating_point()]
    network.fixed = torch.nn.ParameterList(
        torch.nn.Parameter(nodes.weights[name], requires_grad=False) for name in fixed
    )

    def forward(*inputs: Any) -> list[Any]:
        weights = {**nodes.weights, **dict(zip(fixed, network.fixed, strict=True))}
        return nodes.run(weights, dict(zip(nodes.inputs, inputs, strict=True)))

    network.forward = forward
    compiled = torch.compile(network.eval())
    made = _offer(torch, "compiled", lambda: compiled(*nodes.inputs.values()))
    options: Any = importlib.import_module("torch._inductor.config")
    with options.patch(freezing=True):  # weights become constants, and are packed once
        made.call()
    return made


def _offer(torch: Any, way: str, run: Callable[[], Sequence[Any]]) -> Offer:
    found: list[Any] = []

    def call() -> None:
        found[:] = run()

    return Offer(way, call, lambda: [numpy_of(torch, tensor) for tensor in found])


def _nodes(torch: Any, job: ModelJob) -> _Nodes:
    try:
        onnx = importlib.import_module("onnx")
    except ImportError as error:
        raise Absent(f"onnx cannot be imported: {error}") from error
    graph = onnx.load(job.path).graph
    weights = {
        tensor.name: tensor_of(torch, onnx.numpy_helper.to_array(tensor).copy())
        for tensor in graph.initializer
    }
    inputs = {name: tensor_of(torch, array) for name, array in job.inputs.items()}
    names = [value.name for value in graph.output]
    steps = _steps(torch, onnx, graph.node, weights, {*weights, *inputs, *names})
    return _Nodes(steps, weights, inputs, names)


def _steps(
    torch: Any, onnx: Any, nodes: Sequence[Any], weights: Attributes, kept: set[str]
) -> list[_Step]:
    """Return the steps of a model; the values of `kept` stay until the end of a call."""
    steps: list[_Step] = []
    for node in reversed(nodes):
        if node.op_type not in _FUNCTIONS or node.domain:
            raise Absent(f"no function of PyTorch is chosen here for {node.op_type}")
        attrs = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        fixed = [weights.get(name) for name in node.input]
        apply, count = _FUNCTIONS[node.op_type](torch, attrs, fixed)
        inputs = tuple(node.input[:count])
        last = tuple({*inputs} - kept)
        kept = {*kept, *last}
        steps.append(_Step(apply, inputs, tuple(node.output), last))
    return steps[::-1]


_ALL = 1 << 10
"""All operands are given to the function in a call."""
Made: TypeAlias = tuple[Apply, int]
"""A function, and how many operands it is given in a call; the others are known before."""


def _conv(torch: Any, attrs: Attributes, fixed: Sequence[Any]) -> Made:
    stride, dilation = attrs.get("strides", [1, 1]), attrs.get("dilations", [1, 1])
    padding, group = _borders(attrs), attrs.get("group", 1)

    def apply(x: Any, weight: Any, bias: Any = None) -> Any:
        return torch.conv2d(x, weight, bias, stride, padding, dilation, group)

    return apply, _ALL


def _conv_transpose(torch: Any, attrs: Attributes, fixed: Sequence[Any]) -> Made:
    stride, dilation = attrs.get("strides", [1, 1]), attrs.get("dilations", [1, 1])
    padding, group = _borders(attrs), attrs.get("group", 1)
    more = attrs.get("output_padding", [0, 0])

    def apply(x: Any, weight: Any, bias: Any = None) -> Any:
        return torch.conv_transpose2d(x, weight, bias, stride, padding, more, group, dilation)

    return apply, _ALL


def _borders(attrs: Attributes) -> list[int]:
    """Return the padding of height and width, which is the same on both sides."""
    pads = list(attrs.get("pads", [0, 0, 0, 0]))
    if len(pads) != 4 or pads[:2] != pads[2:] or attrs.get("auto_pad", b"NOTSET") != b"NOTSET":
        raise Absent("windows are not of two dimensions, or padded differently on the two sides")
    return pads[:2]


def _gemm(torch: Any, attrs: Attributes, fixed: Sequence[Any]) -> Made:
    if attrs.get("transA") or not attrs.get("transB") or len(fixed) not in (2, 3):
        raise Absent("Gemm is not a linear layer")
    if (attrs.get("alpha", 1.0), attrs.get("beta", 1.0)) != (1.0, 1.0):
        raise Absent("Gemm has factors")
    return torch.nn.functional.linear, _ALL


def _batch_norm(torch: Any, attrs: Attributes, fixed: Sequence[Any]) -> Made:
    epsilon = attrs.get("epsilon", 1e-5)

    def apply(x: Any, scale: Any, shift: Any, mean: Any, variance: Any) -> Any:
        return torch.nn.functional.batch_norm(x, mean, variance, scale, shift, False, 0.0, epsilon)

    return apply, _ALL


def _layer_norm(torch: Any, attrs: Attributes, fixed: Sequence[Any]) -> Made:
    epsilon, shape = attrs.get("epsilon", 1e-5), list(_known(fixed[1]).shape)
    if attrs.get("axis", -1) != -1:
        raise Absent("LayerNormalization is not along the last dimension")
    return lambda x, scale, shift: torch.layer_norm(x, shape, scale, shift, epsilon), _ALL


def _max_pool(torch: Any, attrs: Attributes, fixed: Sequence[Any]) -> Made:
    kernel, stride = attrs["kernel_shape"], attrs.get("strides", [1, 1])
    padding, ceil = _borders(attrs), bool(attrs.get("ceil_mode", 0))
    return lambda x: torch.max_pool2d(x, kernel, stride, padding, 1, ceil), _ALL


def _clip(torch: Any, attrs: Attributes, fixed: Sequence[Any]) -> Made:
    low, high = (_known(limit).item() for limit in fixed[1:3])
    return lambda x: torch.clamp(x, low, high), 1


def _gather(torch: Any, attrs: Attributes, fixed: Sequence[Any]) -> Made:
    if attrs.get("axis", 0) != 0:
        raise Absent("Gather is no embedding")
    return lambda table, rows: torch.nn.functional.embedding(rows, table), _ALL


def _split(torch: Any, attrs: Attributes, fixed: Sequence[Any]) -> Made:
    parts, axis = attrs["num_outputs"], attrs.get("axis", 0)
    return lambda x: torch.chunk(x, parts, axis), 1


def _reshape(torch: Any, attrs: Attributes, fixed: Sequence[Any]) -> Made:
    shape = _known(fixed[1]).tolist()
    return lambda x: x.reshape(shape), 1


def _mean(torch: Any, attrs: Attributes, fixed: Sequence[Any]) -> Made:
    axes, keeps = tuple(_known(fixed[1]).tolist()), bool(attrs.get("keepdims", 1))
    return lambda x: x.mean(axes, keepdim=keeps), 1


def _squeeze(torch: Any, attrs: Attributes, fixed: Sequence[Any]) -> Made:
    axes = tuple(_known(fixed[1]).tolist())
    return lambda x: x.squeeze(axes), 1


def _concat(torch: Any, attrs: Attributes, fixed: Sequence[Any]) -> Made:
    axis = attrs["axis"]
    return lambda *parts: torch.cat(parts, axis), _ALL


def _softmax(torch: Any, attrs: Attributes, fixed: Sequence[Any]) -> Made:
    axis = attrs.get("axis", -1)
    return lambda x: torch.softmax(x, axis), _ALL


def _transpose(torch: Any, attrs: Attributes, fixed: Sequence[Any]) -> Made:
    axes = attrs["perm"]
    return lambda x: x.permute(axes), _ALL


def _known(value: Any) -> Any:
    if value is None:
        raise Absent("an operand is no weight")
    return value


def _plain(name: str) -> Callable[[Any, Attributes, Sequence[Any]], Made]:
    """Return the choice of a function of PyTorch with the same operands."""
    return lambda torch, attrs, fixed: (getattr(torch, name), _ALL)


_FUNCTIONS: Mapping[str, Callable[[Any, Attributes, Sequence[Any]], Made]] = {
    "Add": _plain("add"),
    "BatchNormalization": _batch_norm,
    "Clip": _clip,
    "Concat": _concat,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Flatten": lambda torch, attrs, fixed: (lambda x: x.flatten(1), _ALL),
    "Gather": _gather,
    "Gelu": lambda torch, attrs, fixed: (torch.nn.functional.gelu, _ALL),
    "Gemm": _gemm,
    "GlobalAveragePool": lambda torch, attrs, fixed: (lambda x: x.mean((2, 3), keepdim=True), _ALL),
    "LayerNormalization": _layer_norm,
    "MatMul": _plain("matmul"),
    "MaxPool": _max_pool,
    "Mul": _plain("mul"),
    "ReduceMean": _mean,
    "Relu": _plain("relu"),
    "Reshape": _reshape,
    "Sigmoid": _plain("sigmoid"),
    "Softmax": _softmax,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tanh": _plain("tanh"),
    "Transpose": _transpose,
}
