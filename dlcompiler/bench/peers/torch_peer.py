"""PyTorch, run eagerly; with constant weights also traced and optimised for inference."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from dlcompiler.bench.peers.job import Absent, Array, Job, Offer
from dlcompiler.bench.peers.numpy_peer import EPSILON
from dlcompiler.bench.peers.recurrences import by_torch
from dlcompiler.bench.peers.torch_functions import WITH_OUTPUT, numpy_of, tensor_of, writing
from dlcompiler.bench.peers.torch_movements import resized, split
from dlcompiler.runtime.timing import Clocked, time_call

_PRODUCTS = ("gemm", "dense", "batch_matmul")
_PROFILED_RUNS = 5
"""Number of calls after which the optimiser of the traced program has finished."""


def offers(job: Job) -> list[Offer]:
    """Return PyTorch's ways: with arrays allocated ahead where a function takes them.

    Raises
    ------
    Absent
        The package is not there, or has no function for it.
    """
    torch = torch_with(job.threads)
    tensors = {role: tensor_of(torch, array) for role, array in job.arrays.items()}
    if job.family in WITH_OUTPUT or _is_plain_product(job):
        return [_with_output(torch, job, tensors)]
    compute = _function(torch, job)
    found = [_calling(torch, "eager", lambda: compute(**tensors))]
    if job.known:
        found.append(_traced(torch, job, tensors, compute))
    return found


def seconds_on_gpu(job: Job) -> float:
    """Return the median time of a call on the NVIDIA GPU, by events of the device [s].

    Raises
    ------
    Absent
        The package or its GPU is not there, or it has no function for the job.
    """
    torch = torch_with(job.threads)
    if not torch.cuda.is_available():
        raise Absent("torch finds no GPU")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    tensors = {role: tensor_of(torch, array).cuda() for role, array in job.arrays.items()}
    compute = _function(torch, job)

    def seconds(calls: int) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(calls):
            compute(**tensors)
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    return time_call(Clocked(lambda: compute(**tensors), seconds)).median_s


def torch_with(threads: int) -> Any:
    """Return the package, with a number of threads and without gradients in this thread.

    Raises
    ------
    Absent
        It cannot be imported.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise Absent(f"torch cannot be imported: {error}") from error
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)  # of this thread, which does the calls
    return torch


def _is_plain_product(job: Job) -> bool:
    is_product = job.family in ("gemm", "batch_matmul") and job.dtype == job.given
    return is_product and not job.epilogue and not job.known


def _with_output(torch: Any, job: Job, tensors: Mapping[str, Any]) -> Offer:
    out = tensor_of(torch, job.result())
    if job.family in WITH_OUTPUT:
        call = writing(torch, job, tensors, out)
    else:
        left, right = _matrices(job, tensors["data"], tensors.get("weight", tensors.get("other")))
        call = partial(torch.matmul, left, right, out=out)
    return Offer("out=", call, lambda: numpy_of(torch, out))


def _matrices(job: Job, left: Any, right: Any) -> tuple[Any, Any]:
    """Return views of the factors of a product that are not transposed."""
    first, second = (letter == "T" for letter in job.layout)
    return (left.mT if first else left), (right.mT if second else right)


def _calling(torch: Any, way: str, compute: Callable[[], Any]) -> Offer:
    last: list[Any] = [None]

    def call() -> None:
        last[0] = compute()

    def result() -> Array | list[Array]:
        found = last[0]
        if isinstance(found, list):
            return [numpy_of(torch, each) for each in found]
        return numpy_of(torch, found)

    return Offer(way, call, result)


def _traced(torch: Any, job: Job, tensors: Mapping[str, Any], compute: Callable[..., Any]) -> Offer:
    known = {role: tensors[role] for role in job.known}
    rest = {role: tensor for role, tensor in tensors.items() if role not in known}
    names = tuple(rest)

    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            for role, tensor in known.items():
                self.register_buffer(role, tensor)

        def forward(self, *inputs: Any) -> Any:
            weights = {role: getattr(self, role) for role in known}
            return compute(**dict(zip(names, inputs, strict=True)), **weights)

    inputs = tuple(rest.values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated, and is what is compared with
        program = torch.jit.optimize_for_inference(torch.jit.trace(Net().eval(), inputs))
    for _ in range(_PROFILED_RUNS):
        program(*inputs)
    return _calling(torch, "traced", lambda: program(*inputs))


def _function(torch: Any, job: Job) -> Callable[..., Any]:
    """Return the job as a function whose arguments are tensors named by role."""
    if job.family not in _FUNCTIONS:
        raise Absent(f"no way to compute {job.family} with torch is written here")
    return _FUNCTIONS[job.family](torch, job)


def _products(torch: Any, job: Job) -> Callable[..., Any]:
    if job.given == "int8":
        return _followed(torch, job, partial(_int8_product, torch, job))
    if job.family == "dense":
        return _followed(torch, job, torch.nn.functional.linear)
    return _followed(torch, job, partial(_product, torch, job))


def _convolutions(torch: Any, job: Job) -> Callable[..., Any]:
    return _followed(torch, job, partial(_convolution, torch, job))


def _softmax(torch: Any, job: Job) -> Callable[..., Any]:
    function = getattr(torch, job.family)
    return lambda data: function(data, job.sizes["axis"])


def _norm(torch: Any, job: Job) -> Callable[..., Any]:
    nn, row = torch.nn.functional, job.out[-1:]
    if job.family == "rms_norm":
        return lambda data, scale: nn.rms_norm(data, row, scale, EPSILON)
    return lambda data, scale, shift: nn.layer_norm(data, row, scale, shift, EPSILON)


def _group_norm(torch: Any, job: Job) -> Callable[..., Any]:
    nn = torch.nn.functional
    if job.family == "instance_norm":
        return lambda data, scale, shift: nn.instance_norm(
            data, weight=scale, bias=shift, eps=EPSILON
        )
    groups = job.sizes["groups"]
    return lambda data, scale, shift: nn.group_norm(data, groups, scale, shift, EPSILON)


def _attention(torch: Any, job: Job) -> Callable[..., Any]:
    attend, is_causal = torch.nn.functional.scaled_dot_product_attention, bool(job.sizes["causal"])

    def compute(query: Any, key: Any, value: Any, mask: Any = None) -> Any:
        shares = query.shape[1] != key.shape[1]
        return attend(query, key, value, mask, is_causal=is_causal, enable_gqa=shares)

    if is_causal and "mask" in job.arrays:
        raise Absent("torch has no causal attention with a mask")
    return compute


def _product(torch: Any, job: Job, x: Any, w: Any, b: Any) -> Any:
    left, right = _matrices(job, x, w)
    if b is None:
        return torch.matmul(left, right)
    return torch.addmm(b, left, right) if left.ndim == 2 else torch.matmul(left, right).add_(b)


def _int8_product(torch: Any, job: Job, x: Any, w: Any, b: Any) -> Any:
    """Return the int32 product of int8 matrices, by a function that PyTorch keeps private."""
    if x.ndim != 2:
        raise Absent("torch has no batched product of int8 with int32 sums")
    sums = torch._int_mm(*_matrices(job, x, w))
    return sums if b is None else sums.add_(b)


def _convolution(torch: Any, job: Job, x: Any, w: Any, b: Any) -> Any:
    """Convolve images; those in NHWC are what PyTorch calls ``channels_last``."""
    if job.given == "int8":
        raise Absent("torch has no convolution of int8 with int32 sums")
    window, borders = job.window, job.window.borders
    image = _channels_first(torch, job, x)
    if borders is None:
        top, left, bottom, right = window.padding
        image, borders = torch.nn.functional.pad(image, (left, right, top, bottom)), (0, 0)
    convolve = torch.nn.functional.conv2d
    return convolve(image, w, b, window.stride, borders, window.dilation, job.groups)


def _channels_first(torch: Any, job: Job, x: Any) -> Any:
    if job.layout not in ("NCHW", "NHWC"):
        raise Absent(f"torch has no layout {job.layout}")
    return x.permute(0, 3, 1, 2) if job.layout == "NHWC" else x


def _channels_last(job: Job, y: Any) -> Any:
    return y.permute(0, 2, 3, 1) if job.layout == "NHWC" else y


def _pooling(torch: Any, job: Job, data: Any) -> Any:
    nn, window = torch.nn.functional, job.window
    if window.borders is None:
        raise Absent("torch pools with the same padding on both sides only")
    ceil = bool(job.sizes["ceil_mode"])
    x = _channels_first(torch, job, data)
    given = window.kernel, window.stride, window.borders
    if job.function == "max":
        return _channels_last(job, nn.max_pool2d(x, *given, window.dilation, ceil))
    if window.dilation != (1, 1):
        raise Absent("torch has no dilation of an average")
    counts = bool(job.sizes["count_include_pad"])
    return _channels_last(job, nn.avg_pool2d(x, *given, ceil, counts))


def _batch_norm(torch: Any, job: Job) -> Callable[..., Any]:
    (axis,) = job.axes("axis")
    if axis != 1:
        along = [-1 if n == axis else 1 for n in range(len(job.out))]
        return lambda data, scale, shift: torch.addcmul(
            shift.reshape(along), data, scale.reshape(along)
        )
    zero, one = (
        torch.full((job.out[1],), value, dtype=getattr(torch, job.given)) for value in (0.0, 1.0)
    )
    return lambda data, scale, shift: torch.nn.functional.batch_norm(
        data, zero, one, scale, shift, False, 0.0, 0.0
    )


def _pad(torch: Any, job: Job, data: Any) -> Any:
    pairs = list(zip(job.sizes["before"], job.sizes["after"], strict=True))
    mode = {"edge": "replicate"}.get(job.sizes["mode"], job.sizes["mode"])
    if mode != "constant":
        while len(pairs) > data.ndim - 2 and len(pairs) > 1 and pairs[0] == (0, 0):
            pairs.pop(0)
    widths = [width for pair in reversed(pairs) for width in pair]
    return torch.nn.functional.pad(data, widths, mode=mode)


def _followed(torch: Any, job: Job, main: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """Return a product or convolution with its epilogue; steps in place where that is possible."""
    nn = torch.nn.functional
    activate = {
        "": lambda y: y,
        "relu": torch.relu_,
        "relu6": lambda y: nn.relu6(y, inplace=True),
        "gelu": nn.gelu,
        "silu": lambda y: nn.silu(y, inplace=True),
        "sigmoid": torch.sigmoid_,
        "tanh": torch.tanh_,
    }[job.activation]
    channels = job.arrays["weight" if "weight" in job.arrays else "other"].shape[0]
    kind = getattr(torch, job.dtype)
    zero, one = (torch.full((channels,), value, dtype=kind) for value in (0.0, 1.0))

    def compute(
        data: Any,
        weight: Any = None,
        bias: Any = None,
        scale: Any = None,
        shift: Any = None,
        residual: Any = None,
        other: Any = None,
    ) -> Any:
        if bias is not None and data.is_floating_point():
            bias = bias.to(data.dtype)  # of 16-bit floats
        y = main(data, other if weight is None else weight, bias)
        if scale is not None:
            y = nn.batch_norm(y, zero, one, scale, shift, False, 0.0, 0.0)
        if residual is not None:
            is_image = job.family not in _PRODUCTS
            y = y.add_(_channels_first(torch, job, residual) if is_image else residual)
        y = activate(y)
        return y if job.family in _PRODUCTS else _channels_last(job, y)

    return compute


_FUNCTIONS: dict[str, Callable[[Any, Job], Callable[..., Any]]] = {
    **dict.fromkeys(_PRODUCTS, _products),
    "conv2d": _convolutions,
    "depthwise": _convolutions,
    "pool2d": lambda torch, job: partial(_pooling, torch, job),
    "softmax": _softmax,
    "log_softmax": _softmax,
    "layer_norm": _norm,
    "rms_norm": _norm,
    "attention": _attention,
    **dict.fromkeys(("lstm", "gru", "rnn"), by_torch),
    "group_norm": _group_norm,
    "instance_norm": _group_norm,
    "batch_norm": _batch_norm,
    "pad": lambda torch, job: partial(_pad, torch, job),
    "flip": lambda torch, job: lambda data: torch.flip(data, job.axes("axis")),
    "resize2d": lambda torch, job: partial(resized, torch, job),
    "split": lambda torch, job: partial(split, torch, job),
}
"""Family -> returns the function of tensors by role."""
