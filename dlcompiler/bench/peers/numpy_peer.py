"""NumPy: products, elementwise functions, reductions and their compositions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dlcompiler.bench.peers.job import Absent, Array, Job, Offer
from dlcompiler.measurement.aligned import aligned

EPSILON = 1e-5
"""Epsilon of layer norm: the default of torch and ONNX."""


def offers(job: Job) -> list[Offer]:
    """Return NumPy's way to compute the job, with all arrays allocated ahead.

    Raises
    ------
    Absent
        NumPy has no function for it.
    """
    if job.family not in _WAYS:
        raise Absent(f"NumPy has no {job.family}")
    out = aligned(job.out)
    return [Offer("functions with out=", _WAYS[job.family](job, out), lambda: out)]


def _product(job: Job, out: Array) -> Callable[[], object]:
    data, second = job.arrays["data"], job.arrays.get("weight", job.arrays.get("other"))
    assert second is not None
    weight = second.T if job.family == "dense" else second
    finish = _epilogue(job, out)

    def call() -> None:
        np.matmul(data, weight, out=out)
        for step in finish:
            step()

    return call


def _epilogue(job: Job, out: Array) -> list[Callable[[], object]]:
    steps: list[Callable[[], object]] = []
    arrays = job.arrays
    for step in job.epilogue:
        match step:
            case "bias" | "residual":
                steps.append(partial(np.add, out, arrays[step], out=out))
            case "relu":
                steps.append(partial(np.maximum, out, np.float32(0), out=out))
            case "relu6":
                steps.append(partial(np.clip, out, np.float32(0), np.float32(6), out=out))
            case "tanh":
                steps.append(partial(np.tanh, out, out=out))
            case _:
                raise Absent(f"NumPy has no {step}")
    return steps


def _elementwise(job: Job, out: Array) -> Callable[[], object]:
    x = job.arrays["data"]
    y = job.arrays.get("other", x)
    factor = np.float32(0.5)
    calls: dict[str, Callable[[], object]] = {
        "copy": lambda: np.copyto(out, x),
        "scale": lambda: np.multiply(x, factor, out=out),
        "relu": lambda: np.maximum(x, np.float32(0), out=out),
        "exp": lambda: np.exp(x, out=out),
        "tanh": lambda: np.tanh(x, out=out),
        "add": lambda: np.add(x, y, out=out),
        "multiply": lambda: np.multiply(x, y, out=out),
    }
    if job.function not in calls:
        raise Absent(f"NumPy has no {job.function}")
    return calls[job.function]


def _reduction(job: Job, out: Array) -> Callable[[], object]:
    x = job.arrays["data"]
    ways: dict[str, Callable[..., object]] = {
        "sum": np.sum,
        "max": np.max,
        "min": np.min,
        "mean": np.mean,
    }
    reduce = ways[job.function]
    return lambda: reduce(x, axis=1, out=out)


def _softmax(job: Job, out: Array) -> Callable[[], object]:
    x = job.arrays["data"]
    is_log = job.family == "log_softmax"
    exponentials = np.empty_like(x)

    def call() -> None:
        np.subtract(x, x.max(axis=1, keepdims=True), out=out)
        np.exp(out, out=exponentials)
        total = exponentials.sum(axis=1, keepdims=True)
        if is_log:
            np.subtract(out, np.log(total), out=out)
        else:
            np.divide(exponentials, total, out=out)

    return call


def _layer_norm(job: Job, out: Array) -> Callable[[], object]:
    x, scale, shift = (job.arrays[role] for role in ("data", "scale", "shift"))

    def call() -> None:
        np.subtract(x, x.mean(axis=1, keepdims=True), out=out)
        variance = np.einsum("ij,ij->i", out, out)[:, None] / np.float32(x.shape[1])
        np.divide(out, np.sqrt(variance + np.float32(EPSILON)), out=out)
        np.multiply(out, scale, out=out)
        np.add(out, shift, out=out)

    return call


_WAYS: dict[str, Callable[[Job, Array], Callable[[], object]]] = {
    "gemm": _product,
    "dense": _product,
    "batch_matmul": _product,
    "elementwise": _elementwise,
    "reduction": _reduction,
    "softmax": _softmax,
    "log_softmax": _softmax,
    "layer_norm": _layer_norm,
}
