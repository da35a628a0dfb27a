"""ONNX Runtime: the job as a model of standard nodes, which its optimiser may fuse and pack."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from dlcompiler.bench.peers.job import Absent, Array, Job, Offer
from dlcompiler.bench.peers.onnxruntime_nodes import gives_positions, nodes_of
from dlcompiler.dtypes import from_numpy, to_numpy
from dlcompiler.measurement.aligned import aligned
from dlcompiler.ops.shapes import FLOATS, INTEGERS

_BFLOAT16 = 16
"""The number of bfloat16 in ONNX, for which NumPy has no type of its own."""
_DTYPES = (*FLOATS, *INTEGERS, "bool")
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


def session_of(runtime: Any, model: bytes | str, threads: int) -> Any:
    """Return a session on the CPU.

    Parameters
    ----------
    runtime : module
        The package.
    model : bytes or str
        The model, or the path of its file.
    threads : int
        Number of threads of an operator; operators run one after another.

    Raises
    ------
    Absent
        The runtime refuses the model.
    """
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its classes are private
        raise Absent(f"ONNX Runtime refuses the model: {error}") from error


def _session(runtime: Any, job: Job, model: bytes) -> Offer:
    session = session_of(runtime, model, job.threads)
    binding = session.io_binding()
    out = aligned(job.out, np.int64) if gives_positions(job) else job.result()
    arrays = {role: array for role, array in job.arrays.items() if role not in job.known}
    for role, array in arrays.items():
        binding.bind_input(role, "cpu", 0, element_type(array), array.shape, array.ctypes.data)
    binding.bind_output("out", "cpu", 0, element_type(out), out.shape, out.ctypes.data)
    keep = (arrays, out)  # the binding has addresses only

    def call() -> object:
        return session.run_with_iobinding(binding), keep

    return Offer("bound session", call, lambda: out)


def element_type(array: Array) -> Any:
    """Return the type of an array's elements as a binding takes it."""
    return _BFLOAT16 if from_numpy(array.dtype) == "bfloat16" else array.dtype.type


def _model(onnx: Any, job: Job) -> bytes:
    """Return the job as a serialised model."""
    helper = onnx.helper
    nodes, constants = nodes_of(job)
    constants |= {role: job.arrays[role] for role in job.known}
    kinds = {name: helper.np_dtype_to_tensor_dtype(to_numpy(name)) for name in _DTYPES}
    result = "int64" if gives_positions(job) else job.dtype
    described = [
        *(
            helper.make_tensor_value_info(role, kinds[from_numpy(array.dtype)], array.shape)
            for role, array in job.arrays.items()
            if role not in job.known
        ),
        helper.make_tensor_value_info("out", kinds[result], job.out),
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
