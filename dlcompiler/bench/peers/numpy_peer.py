"""NumPy: products, elementwise functions, reductions, movements and their compositions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dlcompiler.bench.peers.job import Absent, Array, Job, Offer
from dlcompiler.bench.peers.numpy_movements import MOVEMENTS
from dlcompiler.bench.peers.recurrences import by_numpy

EPSILON = 1e-5
"""Epsilon of layer norm: the default of torch and ONNX."""


def offers(job: Job) -> list[Offer]:
    """Return NumPy's way to compute the job, with all arrays allocated ahead.

    Raises
    ------
    Absent
        NumPy has no function for it.
    """
    if job.family in MOVEMENTS:
        return [MOVEMENTS[job.family](job)]
    if job.family not in _WAYS:
        raise Absent(f"NumPy has no {job.family}")
    out = job.result()
    return [Offer("functions with out=", _WAYS[job.family](job, out), lambda: out)]


def _product(job: Job, out: Array) -> Callable[[], object]:
    if job.given in ("float16", "bfloat16"):
        raise Absent(f"NumPy's products of {job.given} are plain loops")
    second = job.arrays.get("weight", job.arrays.get("other"))
    assert second is not None
    left, right = (
        np.swapaxes(array, -1, -2) if letter == "T" else array
        for array, letter in zip((job.arrays["data"], second), job.layout, strict=True)
    )
    finish = _epilogue(job, out)
    is_narrow = left.dtype != out.dtype and out.dtype.kind == "i"

    def call() -> None:
        if is_narrow:
            np.matmul(left.astype(out.dtype), right.astype(out.dtype), out=out)
        else:
            np.matmul(left, right, out=out)
        for step in finish:
            step()

    return call


def _epilogue(job: Job, out: Array) -> list[Callable[[], object]]:
    steps: list[Callable[[], object]] = []
    arrays = job.arrays
    zero, six = out.dtype.type(0), out.dtype.type(6)
    for step in job.epilogue:
        match step:
            case "bias" | "residual":
                steps.append(partial(np.add, out, arrays[step], out=out))
            case "relu":
                steps.append(partial(np.maximum, out, zero, out=out))
            case "relu6":
                steps.append(partial(np.clip, out, zero, six, out=out))
            case "tanh":
                steps.append(partial(np.tanh, out, out=out))
            case _:
                raise Absent(f"NumPy has no {step}")
    return steps


_FUNCTIONS = {
    **{
        name: getattr(np, name)
        for name in (
            *("negative", "abs", "sign", "square", "exp", "sin", "cos", "tanh", "floor", "ceil"),
            *("trunc", "add", "subtract", "multiply", "divide", "maximum", "minimum", "equal"),
            *("not_equal", "less", "less_equal", "greater", "greater_equal", "log", "sqrt"),
            *("power", "sinh", "cosh", "tan", "log1p", "expm1", "log2", "log10", "exp2", "hypot"),
            *("reciprocal", "isnan", "isinf", "isfinite", "floor_divide", "left_shift"),
            *("right_shift", "logical_not", "logical_and", "logical_or", "logical_xor"),
            *("bitwise_and", "bitwise_or", "bitwise_xor"),
        )
    },
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "tan2")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sinh", "cosh", "tanh")},
    "round": np.rint,
    "bitwise_not": np.invert,
    "floor_mod": np.mod,
    "trunc_mod": np.fmod,
}
"""Elementwise function -> NumPy's."""


def _elementwise(job: Job, out: Array) -> Callable[[], object]:
    x = job.arrays["data"]
    half, zero, six = (x.dtype.type(number) for number in (0.5, 0, 6))
    limits = [x.dtype.type(float(value)) for value in job.limits]
    calls: dict[str, Callable[[], object]] = {
        "copy": lambda: np.copyto(out, x),
        "scale": lambda: np.multiply(x, half, out=out),
        "relu": lambda: np.maximum(x, zero, out=out),
        "relu6": lambda: np.clip(x, zero, six, out=out),
        "clip": lambda: np.clip(x, *limits, out=out),
        "cast": lambda: np.copyto(out, x, casting="unsafe"),
        "where": partial(_where, job, out),
    }
    if job.function in _FUNCTIONS:
        return partial(_FUNCTIONS[job.function], *job.arrays.values(), out=out)
    if job.function not in calls:
        raise Absent(f"NumPy has no {job.function}")
    return calls[job.function]


def _where(job: Job, out: Array) -> None:
    np.copyto(out, job.arrays["other"])
    np.copyto(out, job.arrays["data"], where=job.arrays["condition"])


def _reduction(job: Job, out: Array) -> Callable[[], object]:
    x, axes = job.arrays["data"], job.axes("axes")
    ways: dict[str, Callable[..., object]] = {
        name: getattr(np, name)
        for name in ("sum", "max", "min", "mean", "prod", "all", "any", "argmax", "argmin",
                     "var", "std")
    }  # fmt: skip
    if job.function not in ways:
        raise Absent(f"NumPy has no {job.function}")
    keepdims = bool(job.sizes["keepdims"])
    if job.function.startswith("arg"):
        # NumPy's positions are int64, whatever `out` is.
        positions = np.empty(job.out, np.int64)
        axis = axes[0] if len(axes) == 1 else None
        find = partial(ways[job.function], x, axis=axis, out=positions, keepdims=keepdims)

        def call() -> None:
            find()
            np.copyto(out, positions, casting="same_kind")

        return call
    more: dict[str, Any] = {"dtype": out.dtype} if job.function in ("sum", "prod") else {}
    return partial(ways[job.function], x, axis=axes, out=out, keepdims=keepdims, **more)


def _softmax(job: Job, out: Array) -> Callable[[], object]:
    x, (axis,) = job.arrays["data"], job.axes("axis")
    is_log = job.family == "log_softmax"
    exponentials = np.empty_like(x)

    def call() -> None:
        np.subtract(x, x.max(axis=axis, keepdims=True), out=out)
        np.exp(out, out=exponentials)
        total = exponentials.sum(axis=axis, keepdims=True)
        if is_log:
            np.subtract(out, np.log(total), out=out)
        else:
            np.divide(exponentials, total, out=out)

    return call


def _norm(job: Job, out: Array) -> Callable[[], object]:
    """Return layer norm, or with the root mean square, which has no shift."""
    x, scale = job.arrays["data"], job.arrays["scale"]
    shift = job.arrays.get("shift")
    length, epsilon = x.dtype.type(x.shape[-1]), x.dtype.type(EPSILON)

    def call() -> None:
        centred = x
        if shift is not None:
            centred = np.subtract(x, x.mean(axis=-1, keepdims=True), out=out)
        variance = np.einsum("...j,...j->...", centred, centred)[..., None] / length
        np.divide(centred, np.sqrt(variance + epsilon), out=out)
        np.multiply(out, scale, out=out)
        if shift is not None:
            np.add(out, shift, out=out)

    return call


def _group_norm(job: Job, out: Array) -> Callable[[], object]:
    """Return the normalisation of groups of channels, or of single channels."""
    x, groups = job.arrays["data"], job.sizes.get("groups", job.out[1])
    rows, along = (job.out[0] * groups, -1), (-1, *[1] * (x.ndim - 2))
    scale, shift = (job.arrays[role].reshape(along) for role in ("scale", "shift"))
    data, centred = x.reshape(rows), out.reshape(rows)
    epsilon = x.dtype.type(EPSILON)

    def call() -> None:
        np.subtract(data, data.mean(axis=-1, keepdims=True), out=centred)
        variance = np.einsum("ij,ij->i", centred, centred)[:, None] / x.dtype.type(data.shape[1])
        np.divide(centred, np.sqrt(variance + epsilon), out=centred)
        np.multiply(out, scale, out=out)
        np.add(out, shift, out=out)

    return call


def _attention(job: Job, out: Array) -> Callable[[], object]:
    query, key, value = (job.arrays[role] for role in ("query", "key", "value"))
    mask = job.arrays.get("mask")
    share = query.shape[1] // key.shape[1]
    scale = query.dtype.type(1 / np.sqrt(query.shape[-1]))
    scores = np.empty((*query.shape[:-1], key.shape[-2]), query.dtype)
    hidden = np.tri(*scores.shape[-2:]) == 0 if job.sizes["causal"] else None

    def call() -> None:
        keys, values = (
            np.repeat(each, share, axis=1) if share > 1 else each for each in (key, value)
        )
        np.matmul(query, np.swapaxes(keys, -1, -2), out=scores)
        np.multiply(scores, scale, out=scores)
        if mask is not None:
            np.add(scores, mask, out=scores)
        if hidden is not None:
            np.copyto(scores, scores.dtype.type(-np.inf), where=hidden)
        np.subtract(scores, scores.max(axis=-1, keepdims=True), out=scores)
        np.exp(scores, out=scores)
        np.divide(scores, scores.sum(axis=-1, keepdims=True), out=scores)
        np.matmul(scores, values, out=out)

    return call


def _batch_norm(job: Job, out: Array) -> Callable[[], object]:
    x, (axis,) = job.arrays["data"], job.axes("axis")
    along = tuple(-1 if n == axis else 1 for n in range(x.ndim))
    scale, shift = (job.arrays[role].reshape(along) for role in ("scale", "shift"))

    def call() -> None:
        np.multiply(x, scale, out=out)
        np.add(out, shift, out=out)

    return call


def _cumsum(job: Job, out: Array) -> Callable[[], object]:
    return partial(np.cumsum, job.arrays["data"], job.axes("axis")[0], dtype=out.dtype, out=out)


def _transpose(job: Job, out: Array) -> Callable[[], object]:
    return partial(np.copyto, out, np.transpose(job.arrays["data"], job.axes("axes")))


def _pad(job: Job, out: Array) -> Callable[[], object]:
    x, mode = job.arrays["data"], job.sizes["mode"]
    pairs = list(zip(job.sizes["before"], job.sizes["after"], strict=True))
    if min(map(min, pairs)) < 0:
        raise Absent("NumPy's pad takes no negative widths")
    if mode != "constant":
        # np.pad has no out=: it makes the array.
        return lambda: np.copyto(out, np.pad(x, pairs, mode=mode))
    inner = tuple(slice(a, a + extent) for (a, _), extent in zip(pairs, x.shape, strict=True))

    def call() -> None:
        out.fill(0)
        out[inner] = x

    return call


def _concatenate(job: Job, out: Array) -> Callable[[], object]:
    parts = list(job.arrays.values())
    return partial(np.concatenate, parts, axis=job.sizes["axis"], out=out)


_WAYS: dict[str, Callable[[Job, Array], Callable[[], object]]] = {
    "gemm": _product,
    "dense": _product,
    "batch_matmul": _product,
    "elementwise": _elementwise,
    "reduction": _reduction,
    "softmax": _softmax,
    "log_softmax": _softmax,
    "layer_norm": _norm,
    "rms_norm": _norm,
    "attention": _attention,
    **dict.fromkeys(("lstm", "gru", "rnn"), by_numpy),
    "group_norm": _group_norm,
    "instance_norm": _group_norm,
    "batch_norm": _batch_norm,
    "cumsum": _cumsum,
    "transpose": _transpose,
    "pad": _pad,
    "concatenate": _concatenate,
}
