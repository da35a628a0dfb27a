"""PyTorch, run eagerly; with constant weights also traced and optimised for inference."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from dlcompiler.bench.peers.job import Absent, Job, Offer
from dlcompiler.bench.peers.numpy_peer import EPSILON
from dlcompiler.measurement.aligned import aligned
from dlcompiler.runtime.timing import Clocked, time_call

_PROFILED_RUNS = 5
"""Number of calls after which the optimiser of the traced program has finished."""


def offers(job: Job) -> list[Offer]:
    """Return PyTorch's ways: with arrays allocated ahead where a function takes them.

    Raises
    ------
    Absent
        The package is not there, or has no function for it.
    """
    torch = _torch(job.threads)
    tensors = {role: torch.from_numpy(array) for role, array in job.arrays.items()}
    if job.family in ("elementwise", "reduction", "batch_matmul") or _is_plain_product(job):
        return [_with_output(torch, job, tensors)]
    compute = _function(torch, job)
    found = [_calling("eager", lambda: compute(**tensors))]
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
    torch = _torch(job.threads)
    if not torch.cuda.is_available():
        raise Absent("torch finds no GPU")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    tensors = {role: torch.from_numpy(array).cuda() for role, array in job.arrays.items()}
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


def _torch(threads: int) -> Any:
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise Absent(f"torch cannot be imported: {error}") from error
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)  # of this thread, which does the calls
    return torch


def _is_plain_product(job: Job) -> bool:
    return job.family == "gemm" and not job.epilogue and not job.known


def _with_output(torch: Any, job: Job, tensors: Mapping[str, Any]) -> Offer:
    out = torch.from_numpy(aligned(job.out))
    x = tensors["data"]
    other = tensors.get("other", tensors.get("weight"))
    calls: dict[str, Callable[[], object]] = {
        "": lambda: torch.matmul(x, other, out=out),
        "copy": lambda: out.copy_(x),
        "scale": lambda: torch.mul(x, 0.5, out=out),
        "relu": lambda: torch.clamp_min(x, 0, out=out),
        "exp": lambda: torch.exp(x, out=out),
        "tanh": lambda: torch.tanh(x, out=out),
        "sigmoid": lambda: torch.sigmoid(x, out=out),
        "add": lambda: torch.add(x, other, out=out),
        "multiply": lambda: torch.mul(x, other, out=out),
        "sum": lambda: torch.sum(x, 1, out=out),
        "max": lambda: torch.amax(x, 1, out=out),
        "min": lambda: torch.amin(x, 1, out=out),
        "mean": lambda: torch.mean(x, 1, out=out),
    }
    return Offer("out=", calls[job.function], out.numpy)


def _calling(way: str, compute: Callable[[], Any]) -> Offer:
    last: list[Any] = [None]

    def call() -> None:
        last[0] = compute()

    return Offer(way, call, lambda: last[0].numpy())


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
    return _calling("traced", lambda: program(*inputs))


def _function(torch: Any, job: Job) -> Callable[..., Any]:
    """Return the job as a function whose arguments are tensors named by role."""
    nn = torch.nn.functional
    match job.family:
        case "gemm":
            return _followed(torch, job, lambda x, w, b: _matmul(torch, x, w, b))
        case "dense":
            return _followed(torch, job, lambda x, w, b: nn.linear(x, w, b))
        case "conv2d" | "depthwise":
            groups = job.sizes["channels"] if job.family == "depthwise" else 1
            stride, padding = job.sizes["stride"], job.sizes["padding"]
            return _followed(
                torch, job, lambda x, w, b: nn.conv2d(x, w, b, stride, padding, 1, groups)
            )
        case "pool2d":
            pool = {"max": nn.max_pool2d, "avg": nn.avg_pool2d}[job.function]
            window = [job.sizes[name] for name in ("kernel", "stride", "padding")]
            return lambda data: pool(data, *window)
        case "softmax":
            return lambda data: torch.softmax(data, -1)
        case "log_softmax":
            return lambda data: torch.log_softmax(data, -1)
        case "layer_norm":
            return lambda data, scale, shift: nn.layer_norm(
                data, (job.sizes["columns"],), scale, shift, EPSILON
            )
    raise Absent(f"no way to compute {job.family} with torch is written here")


def _matmul(torch: Any, x: Any, w: Any, b: Any) -> Any:
    return torch.mm(x, w) if b is None else torch.addmm(b, x, w)


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
    zero, one = (torch.full((job.out[1],), value) for value in (0.0, 1.0))

    def compute(
        data: Any,
        weight: Any,
        bias: Any = None,
        scale: Any = None,
        shift: Any = None,
        residual: Any = None,
    ) -> Any:
        y = main(data, weight, bias)
        if scale is not None:
            y = nn.batch_norm(y, zero, one, scale, shift, False, 0.0, 0.0)
        if residual is not None:
            y = y.add_(residual)
        return activate(y)

    return compute
