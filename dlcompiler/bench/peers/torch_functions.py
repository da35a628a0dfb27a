"""PyTorch's functions that write into an array: elementwise, reductions, movements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from dlcompiler.bench.peers.job import Absent, Array, Job
from dlcompiler.bench.peers.torch_movements import WRITING
from dlcompiler.dtypes import from_numpy, to_numpy

WITH_OUTPUT = ("elementwise", "reduction", "cumsum", "transpose", "concatenate", *WRITING)
"""Families whose functions take an array for the result."""


def tensor_of(torch: Any, array: Array) -> Any:
    """Return an array as a tensor that shares its memory, also one of bfloat16."""
    if from_numpy(array.dtype) == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def numpy_of(torch: Any, tensor: Any) -> Array:
    """Return a tensor as an array that shares its memory, also one of bfloat16."""
    if tensor.dtype == torch.bfloat16:
        return np.asarray(tensor.view(torch.int16).numpy()).view(to_numpy("bfloat16"))
    return np.asarray(tensor.numpy())


def writing(torch: Any, job: Job, tensors: Mapping[str, Any], out: Any) -> Callable[[], object]:
    """Return the call that writes the result of a job into `out`."""
    x: Any = tensors.get("data")
    if job.family in WRITING:
        return WRITING[job.family](torch, job, tensors, out)
    match job.family:
        case "elementwise":
            return _elementwise(torch, job, tuple(tensors.values()), out)
        case "reduction":
            return _reduction(torch, job, x, out)
        case "cumsum":
            return partial(torch.cumsum, x, job.axes("axis")[0], dtype=out.dtype, out=out)
        case "transpose":
            return partial(out.copy_, x.permute(job.axes("axes")))
    return partial(torch.cat, tuple(tensors.values()), job.sizes["axis"], out=out)


_NAMES = {
    "not_equal": "ne", "equal": "eq", "less": "lt", "less_equal": "le", "greater": "gt",
    "greater_equal": "ge", "multiply": "mul", "subtract": "sub", "divide": "div",
    "power": "pow", "floor_mod": "remainder", "trunc_mod": "fmod",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift",
}  # fmt: skip
"""Elementwise function -> PyTorch's name, where they differ."""
_ACTIVATIONS = {
    "leaky_relu": "leaky_relu", "hard_swish": "hardswish", "hard_sigmoid": "hardsigmoid",
    "elu": "elu", "softplus": "softplus", "silu": "silu", "gelu": "gelu", "mish": "mish",
    "log_sigmoid": "log_sigmoid",
}  # fmt: skip
"""Activation -> its name in ``torch._C._nn``, where there are forms that write into an array."""


_WITHOUT_OUTPUT = ("isnan", "isinf", "isfinite", "selu", "celu", "prelu")


def _elementwise(torch: Any, job: Job, operands: tuple[Any, ...], out: Any) -> Callable[[], object]:
    x, name = operands[0], job.function
    special: dict[str, Callable[[], object]] = {
        "copy": lambda: out.copy_(x),
        "scale": lambda: torch.mul(x, 0.5, out=out),
        "relu": lambda: torch.clamp_min(x, 0, out=out),
        "relu6": lambda: torch.clamp(x, 0, 6, out=out),
        "gelu_tanh": lambda: torch._C._nn.gelu(x, approximate="tanh", out=out),
        "clip": partial(torch.clamp, x, *job.limits, out=out),
        "cast": lambda: out.copy_(x),
    }
    if name in special:
        return special[name]
    if name in _ACTIVATIONS:
        if job.options and name not in ("leaky_relu", "elu"):
            raise Absent(f"torch has no options of {name}")
        factors = map(float, job.options.values())
        return partial(getattr(torch._C._nn, _ACTIVATIONS[name]), x, *factors, out=out)
    function = getattr(torch, _NAMES.get(name, name), None)
    if function is None or name in _WITHOUT_OUTPUT:
        raise Absent(f"torch has no {name} that writes into an array")
    return partial(function, *operands, out=out)


def _reduction(torch: Any, job: Job, x: Any, out: Any) -> Callable[[], object]:
    axes, name, keeps = job.axes("axes"), job.function, bool(job.sizes["keepdims"])
    one = axes[0] if len(axes) == 1 else None
    match name:
        case "max" | "min":
            return partial(getattr(torch, f"a{name}"), x, axes, keeps, out=out)
        case "sum" | "mean":
            return partial(getattr(torch, name), x, axes, keeps, dtype=out.dtype, out=out)
        case "all" | "any":
            return partial(getattr(torch, name), x, axes, keeps, out=out)
        case "argmax" | "argmin":
            positions = torch.empty(job.out, dtype=torch.int64)
            find = getattr(torch, name)
            return lambda: out.copy_(find(x, one, keeps, out=positions))
        case "var" | "std":
            return partial(getattr(torch, name), x, axes, correction=0, keepdim=keeps, out=out)
        case "logsumexp":
            return partial(torch.logsumexp, x, axes, keeps, out=out)
        case "l1_norm" | "l2_norm":
            return partial(torch.linalg.vector_norm, x, int(name[1]), axes, keeps, out=out)
        case "prod" if one is not None:
            return partial(torch.prod, x, one, keeps, dtype=out.dtype, out=out)
    raise Absent(f"no way to compute {name} along {axes} with torch is written here")
