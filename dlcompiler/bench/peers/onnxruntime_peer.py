"""ONNX Runtime: the job as a model of standard nodes, which its optimiser may fuse and pack."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dlcompiler.bench.peers.job import Absent, Array, Job, Offer
from dlcompiler.bench.peers.numpy_peer import EPSILON
from dlcompiler.measurement.aligned import aligned

OPSET = 20
"""The first version of the operator set with Gelu."""
_IR_VERSION = 9


def offers(job: Job) -> list[Offer]:
    """Return ONNX Runtime's way: a session with inputs and output bound to arrays.

    Weights that are known ahead are initialisers of the model, which the runtime packs.

    Raises
    ------
    Absent
        The package is not there, or has no node for it.
    """
    try:
        runtime, onnx = map(importlib.import_module, ("onnxruntime", "onnx"))
    except ImportError as error:
        raise Absent(f"onnxruntime or onnx cannot be imported: {error}") from error
    model = _model(onnx, job)
    return [_session(runtime, job, model)]


def _session(runtime: Any, job: Job, model: bytes) -> Offer:
    options = runtime.SessionOptions()
    options.intra_op_num_threads = job.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    out = aligned(job.out)
    arrays = {role: array for role, array in job.arrays.items() if role not in job.known}
    for role, array in arrays.items():
        binding.bind_input(role, "cpu", 0, np.float32, array.shape, array.ctypes.data)
    binding.bind_output("out", "cpu", 0, np.float32, out.shape, out.ctypes.data)
    keep = (arrays, out)  # the binding has addresses only

    def call() -> object:
        return session.run_with_iobinding(binding), keep

    return Offer("bound session", call, lambda: out)


def _model(onnx: Any, job: Job) -> bytes:
    """Return the job as a serialised model."""
    helper = onnx.helper
    nodes, constants = _nodes(job)
    constants |= {role: job.arrays[role] for role in job.known}
    described = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in [
            *((role, array.shape) for role, array in job.arrays.items() if role not in job.known),
            ("out", job.out),
        ]
    ]
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, [out], **more) for kind, inputs, out, more in nodes],
        "job",
        described[:-1],
        described[-1:],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model.ir_version = _IR_VERSION
    serialised: bytes = model.SerializeToString()
    return serialised


_Node = tuple[str, Sequence[str], str, Mapping[str, Any]]


def _nodes(job: Job) -> tuple[list[_Node], dict[str, Array]]:
    """Return the kind, inputs, output and attributes of each node, and the constants by name."""
    match job.family:
        case "gemm" | "dense" | "conv2d" | "depthwise":
            return _followed(job)
        case "batch_matmul":
            return [("MatMul", ["data", "other"], "out", {})], {}
        case "pool2d":
            more = {n: value for n, value in _conv_attributes(job).items() if n != "group"}
            kind = {"max": "MaxPool", "avg": "AveragePool"}[job.function]
            more |= {"count_include_pad": 1} if job.function == "avg" else {}
            return [(kind, ["data"], "out", more)], {}
        case "softmax":
            return [("Softmax", ["data"], "out", {"axis": -1})], {}
        case "log_softmax":
            return [("LogSoftmax", ["data"], "out", {"axis": -1})], {}
        case "layer_norm":
            more = {"axis": -1, "epsilon": EPSILON}
            return [("LayerNormalization", ["data", "scale", "shift"], "out", more)], {}
        case "reduction":
            kind = f"Reduce{job.function.capitalize()}"
            axes = {"axes": np.array([1], np.int64)}
            return [(kind, ["data", "axes"], "out", {"keepdims": 0})], axes
        case "elementwise":
            return _elementwise(job)
    raise Absent(f"no way to compute {job.family} with ONNX Runtime is written here")


def _elementwise(job: Job) -> tuple[list[_Node], dict[str, Array]]:
    match job.function:
        case "add":
            return [("Add", ["data", "other"], "out", {})], {}
        case "multiply":
            return [("Mul", ["data", "other"], "out", {})], {}
        case "scale":
            return [("Mul", ["data", "half"], "out", {})], {"half": np.array(0.5, np.float32)}
        case "relu" | "exp" | "tanh" | "sigmoid":
            return [(job.function.capitalize(), ["data"], "out", {})], {}
    raise Absent(f"a model of one {job.function} is optimised away")


def _followed(job: Job) -> tuple[list[_Node], dict[str, Array]]:
    """Return a product or convolution and its epilogue."""
    steps: list[_Node] = []
    constants: dict[str, Array] = {}
    main = ["data", "weight", *(["bias"] if "bias" in job.epilogue else [])]
    if job.family in ("conv2d", "depthwise"):
        steps.append(("Conv", main, "", _conv_attributes(job)))
    elif job.family == "gemm" and len(main) == 2:
        steps.append(("MatMul", main, "", {}))
    else:
        steps.append(("Gemm", main, "", {"transB": int(job.family == "dense")}))
    for step in job.epilogue:
        match step:
            case "batch_norm":
                channels = job.out[1]
                constants |= {
                    "mean": np.zeros(channels, np.float32),
                    "variance": np.ones(channels, np.float32),
                }
                inputs = ["scale", "shift", "mean", "variance"]
                steps.append(("BatchNormalization", inputs, "", {"epsilon": 0.0}))
            case "residual":
                steps.append(("Add", ["residual"], "", {}))
            case "relu6":
                constants |= {"low": np.array(0, np.float32), "high": np.array(6, np.float32)}
                steps.append(("Clip", ["low", "high"], "", {}))
            case "silu":
                raise Absent("no node of its opset computes silu")
            case "relu" | "gelu" | "sigmoid" | "tanh":
                steps.append((step.capitalize(), [], "", {}))
    return _chained(steps), constants


def _chained(steps: Sequence[_Node]) -> list[_Node]:
    """Name the results of nodes; each node takes the previous result as its first input."""
    names = [f"step{n}" for n in range(len(steps) - 1)] + ["out"]
    chained: list[_Node] = []
    for n, ((kind, inputs, _, more), out) in enumerate(zip(steps, names, strict=True)):
        before = [] if n == 0 else [names[n - 1]]
        chained.append((kind, [*before, *inputs], out, more))
    return chained


def _conv_attributes(job: Job) -> dict[str, Any]:
    kernel, stride, padding = (job.sizes[name] for name in ("kernel", "stride", "padding"))
    return {
        "kernel_shape": [kernel] * 2,
        "strides": [stride] * 2,
        "pads": [padding] * 4,
        "group": job.sizes["channels"] if job.family == "depthwise" else 1,
    }
