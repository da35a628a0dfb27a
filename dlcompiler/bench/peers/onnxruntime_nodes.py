"""The jobs as nodes of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler.bench.peers.job import Absent, Array, Job
from dlcompiler.bench.peers.numpy_peer import EPSILON
from dlcompiler.bench.peers.onnxruntime_movements import MOVEMENTS, Node, Nodes
from dlcompiler.bench.peers.recurrences import by_onnx
from dlcompiler.dtypes import to_numpy


def nodes_of(job: Job) -> Nodes:
    """Return the nodes that compute a job, and the constants by name.

    Raises
    ------
    Absent
        No node computes it.
    """
    if job.family not in _MAKERS:
        raise Absent(f"no way to compute {job.family} with ONNX Runtime is written here")
    return _MAKERS[job.family](job)


def gives_positions(job: Job) -> bool:
    """Tell whether the result is of int64, whatever the job's dtype is."""
    return job.function in ("argmax", "argmin")


def _softmax(job: Job) -> Nodes:
    kind = {"softmax": "Softmax", "log_softmax": "LogSoftmax"}[job.family]
    return [(kind, ["data"], "out", {"axis": job.sizes["axis"]})], {}


def _norm(job: Job) -> Nodes:
    has_shift = "shift" in job.arrays
    kind = "LayerNormalization" if has_shift else "SimplifiedLayerNormalization"
    return [(kind, list(job.arrays), "out", {"axis": -1, "epsilon": EPSILON})], {}


def _group_norm(job: Job) -> Nodes:
    """Return InstanceNormalization; of groups, of their elements as those of one channel each."""
    attributes = {"epsilon": EPSILON}
    if job.family == "instance_norm":
        return [("InstanceNormalization", ["data", "scale", "shift"], "out", attributes)], {}
    kind, groups = to_numpy(job.given), job.sizes["groups"]
    along = (-1, *[1] * (len(job.out) - 2))
    shapes = {"rows": (job.out[0], groups, -1), "whole": job.out, "along": along}
    constants = {name: np.array(shape, np.int64) for name, shape in shapes.items()}
    constants |= {"ones": np.ones(groups, kind), "zeros": np.zeros(groups, kind)}
    return [
        ("Reshape", ["data", "rows"], "grouped", {}),
        ("InstanceNormalization", ["grouped", "ones", "zeros"], "normal", attributes),
        ("Reshape", ["normal", "whole"], "image", {}),
        ("Reshape", ["scale", "along"], "factor", {}),
        ("Reshape", ["shift", "along"], "term", {}),
        ("Mul", ["image", "factor"], "scaled", {}),
        ("Add", ["scaled", "term"], "out", {}),
    ], constants


def _attention(job: Job) -> Nodes:
    """Return products and a softmax: the opset has no attention of its own."""
    query, key = job.arrays["query"], job.arrays["key"]
    if job.sizes["causal"] or query.shape[1] != key.shape[1]:
        raise Absent("no causal attention, or one with shared keys, is written here")
    scale = np.array(1 / np.sqrt(query.shape[-1]), to_numpy(job.given))
    has_mask = "mask" in job.arrays
    masked: list[Node] = [("Add", ["scaled", "mask"], "masked", {})] if has_mask else []
    return [
        ("Transpose", ["key"], "keys", {"perm": [0, 1, 3, 2]}),
        ("MatMul", ["query", "keys"], "products", {}),
        ("Mul", ["products", "scale"], "scaled", {}),
        *masked,
        ("Softmax", ["masked" if has_mask else "scaled"], "weights", {"axis": -1}),
        ("MatMul", ["weights", "value"], "out", {}),
    ], {"scale": scale}


def _normalised(job: Job) -> Nodes:
    if job.axes("axis") != (1,):
        raise Absent("BatchNormalization takes channels in the second dimension only")
    return [_batch_norm(["data"])], _statistics(job, job.out[1])


def _transpose(job: Job) -> Nodes:
    return [("Transpose", ["data"], "out", {"perm": job.axes("axes")})], {}


def _cumsum(job: Job) -> Nodes:
    constants = {"axis": np.array(job.axes("axis")[0], np.int64)}
    return [("CumSum", ["data", "axis"], "out", {})], constants


def _concatenate(job: Job) -> Nodes:
    return [("Concat", list(job.arrays), "out", {"axis": job.sizes["axis"]})], {}


def _pad(job: Job) -> Nodes:
    widths = np.array([*job.sizes["before"], *job.sizes["after"]], np.int64)
    return [("Pad", ["data", "widths"], "out", {"mode": job.sizes["mode"]})], {"widths": widths}


def _pooling(job: Job) -> Nodes:
    more = {n: value for n, value in _conv_attributes(job).items() if n != "group"}
    kind = {"max": "MaxPool", "avg": "AveragePool"}[job.function]
    more["ceil_mode"] = job.sizes["ceil_mode"]
    if job.function == "avg":
        more["count_include_pad"] = job.sizes["count_include_pad"]
    return [(kind, ["data"], "out", more)], {}


def _reduction(job: Job) -> Nodes:
    axes, keepdims = job.axes("axes"), {"keepdims": job.sizes["keepdims"]}
    if gives_positions(job):
        if len(axes) > 1:
            raise Absent("ArgMax takes one dimension")
        kind = {"argmax": "ArgMax", "argmin": "ArgMin"}[job.function]
        return [(kind, ["data"], "out", {"axis": axes[0], **keepdims})], {}
    if job.function not in _REDUCTIONS:
        raise Absent(f"no node of its opset computes {job.function}")
    kind = f"Reduce{_REDUCTIONS[job.function]}"
    return [(kind, ["data", "axes"], "out", keepdims)], {"axes": np.array(axes, np.int64)}


_REDUCTIONS = {
    "sum": "Sum", "max": "Max", "min": "Min", "mean": "Mean", "prod": "Prod",
    "logsumexp": "LogSumExp", "l1_norm": "L1", "l2_norm": "L2", "sum_of_squares": "SumSquare",
}  # fmt: skip
"""Reduction -> the end of the name of its node."""
_KINDS = {
    "add": "Add", "multiply": "Mul", "subtract": "Sub", "divide": "Div", "maximum": "Max",
    "minimum": "Min", "equal": "Equal", "less": "Less", "less_equal": "LessOrEqual",
    "greater": "Greater", "greater_equal": "GreaterOrEqual", "relu": "Relu", "exp": "Exp",
    "tanh": "Tanh", "sigmoid": "Sigmoid", "negative": "Neg", "abs": "Abs", "sign": "Sign",
    "sin": "Sin", "cos": "Cos", "erf": "Erf", "floor": "Floor", "ceil": "Ceil", "round": "Round",
    "log": "Log", "sqrt": "Sqrt", "power": "Pow", "hard_swish": "HardSwish",
    "hard_sigmoid": "HardSigmoid", "elu": "Elu", "softplus": "Softplus", "mish": "Mish",
    "softsign": "Softsign", "where": "Where", "tan": "Tan", "atan": "Atan",
    "leaky_relu": "LeakyRelu", "gelu": "Gelu", "selu": "Selu", "celu": "Celu", "prelu": "PRelu",
    "thresholded_relu": "ThresholdedRelu", "reciprocal": "Reciprocal", "asin": "Asin",
    "acos": "Acos", "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh",
    "atanh": "Atanh", "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor",
    "logical_not": "Not", "isnan": "IsNaN", "isinf": "IsInf",
}  # fmt: skip
"""Elementwise function -> the node that computes it."""


def _elementwise(job: Job) -> Nodes:
    roles, kind = list(job.arrays), to_numpy(job.given)
    match job.function:
        case "scale":
            return [("Mul", ["data", "half"], "out", {})], {"half": np.array(0.5, kind)}
        case "relu6":
            limits = {"low": np.array(0, kind), "high": np.array(6, kind)}
            return [("Clip", ["data", "low", "high"], "out", {})], limits
        case "gelu_tanh":
            return [("Gelu", ["data"], "out", {"approximate": "tanh"})], {}
        case "clip":
            low, high = job.limits
            limits = {"low": np.array(low, kind), "high": np.array(high, kind)}
            return [("Clip", ["data", "low", "high"], "out", {})], limits
    if job.function in _KINDS:
        options = {name: float(value) for name, value in job.options.items()}
        if job.function == "hard_sigmoid":  # ONNX has another default
            options = {"alpha": 1 / 6, **options}
        return [(_KINDS[job.function], roles, "out", options)], {}
    if job.function == "copy":
        raise Absent("a model of one copy is optimised away")
    raise Absent(f"no node of its opset computes {job.function} alone")


def _followed(job: Job) -> Nodes:
    """Return a product or convolution and its epilogue."""
    steps, constants = _main(job)
    for step in job.epilogue:
        match step:
            case "batch_norm":
                constants |= _statistics(job, job.out[1])
                steps.append(_batch_norm([]))
            case "residual":
                steps.append(("Add", ["residual"], "", {}))
            case "relu6":
                kind = to_numpy(job.dtype)
                constants |= {"low": np.array(0, kind), "high": np.array(6, kind)}
                steps.append(("Clip", ["low", "high"], "", {}))
            case "silu":
                raise Absent("no node of its opset computes silu")
            case "relu" | "gelu" | "sigmoid" | "tanh":
                steps.append((step.capitalize(), [], "", {}))
    return _chained(steps), constants


def _main(job: Job) -> Nodes:
    """Return a product or convolution, with its bias if there is one."""
    roles = ["data", "other" if job.family == "batch_matmul" else "weight"]
    has_bias = "bias" in job.epilogue
    is_narrow = job.given == "int8"
    added: list[Node] = [("Add", ["bias"], "", {})] if has_bias else []
    if job.family in ("conv2d", "depthwise"):
        main = [*roles, *(["bias"] if has_bias and not is_narrow else [])]
        if not is_narrow:
            return [("Conv", main, "", _conv_attributes(job))], {}
        if has_bias:
            raise Absent("ConvInteger has no bias")
        return [("ConvInteger", main, "", _conv_attributes(job))], {}
    kind = "MatMulInteger" if is_narrow else "MatMul"
    if job.layout == "NN" and (is_narrow or job.family == "batch_matmul" or not has_bias):
        return [(kind, roles, "", {}), *added], {}
    if is_narrow or job.family == "batch_matmul":
        return _transposed(job, kind, roles, added)
    first, second = (int(letter == "T") for letter in job.layout)
    main = [*roles, *(["bias"] if has_bias else [])]
    return [("Gemm", main, "", {"transA": first, "transB": second})], {}


def _transposed(job: Job, kind: str, roles: list[str], added: list[Node]) -> Nodes:
    """Return a product of matrices of which one is transposed by a node before."""
    if job.layout[0] == "T":
        raise Absent(f"no node computes the layout {job.layout} alone")
    order = [*range(len(job.out) - 2), len(job.out) - 1, len(job.out) - 2]
    turned: Node = ("Transpose", [roles[1]], "turned", {"perm": order})
    return [turned, (kind, [roles[0], "turned"], "", {}), *added], {}


def _batch_norm(inputs: list[str]) -> Node:
    every = [*inputs, "scale", "shift", "mean", "variance"]
    return "BatchNormalization", every, "out" if inputs else "", {"epsilon": 0.0}


def _statistics(job: Job, channels: int) -> dict[str, Array]:
    kind = to_numpy(job.dtype)
    return {"mean": np.zeros(channels, kind), "variance": np.ones(channels, kind)}


def _chained(steps: Sequence[Node]) -> list[Node]:
    """Name the results of nodes; each node takes the previous result as its first input."""
    names = [f"step{n}" for n in range(len(steps) - 1)] + ["out"]
    chained: list[Node] = []
    before: list[str] = []
    for (kind, inputs, own, more), name in zip(steps, names, strict=True):
        # A node that names its result is read by name.
        out = own or name
        chained.append((kind, [*before, *inputs], out if name != "out" else "out", more))
        before = [] if own and name != "out" else [out]
    return chained


def _conv_attributes(job: Job) -> dict[str, Any]:
    if job.layout != "NCHW":
        raise Absent(f"ONNX Runtime has no layout {job.layout}")
    window = job.window
    return {
        "kernel_shape": window.kernel,
        "strides": window.stride,
        "pads": window.padding,
        "dilations": window.dilation,
        "group": 1 if job.family == "pool2d" else job.groups,
    }


_MAKERS: dict[str, Callable[[Job], Nodes]] = {
    **dict.fromkeys(("gemm", "dense", "batch_matmul", "conv2d", "depthwise"), _followed),
    "pool2d": _pooling,
    "softmax": _softmax,
    "log_softmax": _softmax,
    "layer_norm": _norm,
    "rms_norm": _norm,
    "attention": _attention,
    **dict.fromkeys(("lstm", "gru", "rnn"), by_onnx),
    "group_norm": _group_norm,
    "instance_norm": _group_norm,
    "batch_norm": _normalised,
    "reduction": _reduction,
    "elementwise": _elementwise,
    "cumsum": _cumsum,
    "transpose": _transpose,
    "concatenate": _concatenate,
    "pad": _pad,
    **MOVEMENTS,
}
