"""ONNX Runtime on a whole model: its session reads the same file."""

from __future__ import annotations

import importlib

from dlcompiler.bench.peers.job import Absent, Array, ModelJob, Offer
from dlcompiler.bench.peers.onnxruntime_peer import element_type, session_of
from dlcompiler.measurement.aligned import aligned


def offer(job: ModelJob) -> Offer:
    """Return a session, bound to arrays if its results have the ranks that the file declares.

    Raises
    ------
    Absent
        The package is not there, or refuses the model.
    """
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise Absent(f"onnxruntime cannot be imported: {error}") from error
    session = session_of(runtime, job.path, job.threads)
    feeds = {node.name: job.inputs[node.name] for node in session.get_inputs()}
    outputs = session.get_outputs()
    names = [node.name for node in outputs]
    # The shapes of results are known after a run only.
    found: list[Array] = session.run(names, feeds)
    if any(len(node.shape) != array.ndim for node, array in zip(outputs, found, strict=True)):
        # Results of another rank than the file declares: only a session that is not bound has them.
        return Offer("session", lambda: session.run(names, feeds), lambda: found)
    results = [aligned(array.shape, array.dtype) for array in found]
    binding = session.io_binding()
    for name, array in feeds.items():
        kind = element_type(array)
        binding.bind_input(name, "cpu", 0, kind, array.shape, array.ctypes.data)
    for name, array in zip(names, results, strict=True):
        kind = element_type(array)
        binding.bind_output(name, "cpu", 0, kind, array.shape, array.ctypes.data)

    def call() -> object:
        return session.run_with_iobinding(binding), feeds, results

    return Offer("bound session", call, lambda: results)
