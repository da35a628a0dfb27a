"""The book's MXNet baselines, implemented with NumPy under the same names."""

from __future__ import annotations

import timeit
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler.compat.d2ltvm.benchmarks import (
    bench_workload,
    conv_gflop,
    depthwise_conv_gflop,
)
from dlcompiler.compat.d2ltvm.data import get_abc, get_bn_data, get_conv_data
from dlcompiler.compat.windows import conv2d, padded, windows

Timer = Callable[[int], float]
Numbers = npt.NDArray[np.float64]


class Baseline(np.ndarray[Any, np.dtype[Any]]):
    """A NumPy array with those methods of MXNet's arrays that the book calls."""

    def asnumpy(self) -> npt.NDArray[Any]:
        """Return a copy as a plain NumPy array."""
        return np.array(self)

    def wait_to_read(self) -> None:
        """Do nothing: NumPy calls are synchronous."""


def _baseline(array: Any) -> Baseline:
    return np.ascontiguousarray(array, dtype="float32").view(Baseline)


def _timer(call: Callable[[], object]) -> Timer:
    return timeit.Timer(call).timeit


# -- matrix product --------------------------------------------------------------------------------


def np_matmul_timer(n: int) -> Timer:
    """Return a workload: NumPy's matrix product of size (n, n)."""
    a, b, c = get_abc((n, n))
    return _timer(lambda: np.dot(a, b, out=c))


def matmul_timer_mxnet(n: int, ctx: str = "cpu") -> Timer:
    """Return a workload: the matrix product of size (n, n)."""
    del ctx
    return np_matmul_timer(n)


def bench_matmul_mxnet(sizes: Sequence[int], ctx: str = "cpu") -> list[float]:
    """Return the speed of products of matrices [GFLOP/s]."""
    return [2 * int(n) ** 3 / 1e9 / bench_workload(matmul_timer_mxnet(int(n), ctx)) for n in sizes]


# -- convolution -----------------------------------------------------------------------------------


def get_conv_data_mxnet(
    oc: int, ic: int, n: int, k: int, p: int, s: int, ctx: str = "cpu", conv_type: str = "direct"
) -> tuple[Baseline, ...]:
    """Return data (1, ic, n, n), filters, bias of zeros (oc,) and an empty result (1, oc, …)."""
    del ctx
    data, weight, out = get_conv_data(oc, ic, n, k, p, s, _baseline, conv_type)
    return data[np.newaxis], weight, _baseline(np.zeros(oc)), out[np.newaxis]


def conv_mxnet(data: Any, weight: Any, bias: Any, out: Any, k: int, p: int, s: int) -> None:
    """Convolve into `out`."""
    del k
    out[...] = conv2d(data, weight, (s, s), (p, p), (p, p)) + bias[:, np.newaxis, np.newaxis]


def depthwise_conv_mxnet(
    data: Any, weight: Any, bias: Any, out: Any, k: int, p: int, s: int
) -> None:
    """Convolve each channel with its own filter, into `out`."""
    del k
    kernel = (weight.shape[2], weight.shape[3])
    seen = windows(padded(data, (p, p), (p, p)), kernel, (s, s))
    product = np.einsum("nchwij,cij->nchw", seen, weight[:, 0], optimize=True)
    out[...] = product + bias[:, np.newaxis, np.newaxis]


def conv_timer_mxnet(c: int, n: int, k: int, ctx: str = "cpu") -> Timer:
    """Return a workload: a convolution that keeps the image's size."""
    p = (k - 1) // 2
    data, weight, bias, out = get_conv_data_mxnet(c, c, n, k, p, 1, ctx)
    return _timer(lambda: conv_mxnet(data, weight, bias, out, k, p, 1))


def depthwise_conv_timer_mxnet(c: int, n: int, k: int, ctx: str = "cpu") -> Timer:
    """Return a workload: a depthwise convolution that keeps the image's size."""
    p = (k - 1) // 2
    data, weight, bias, out = get_conv_data_mxnet(c, c, n, k, p, 1, ctx, "depthwise")
    return _timer(lambda: depthwise_conv_mxnet(data, weight, bias, out, k, p, 1))


def bench_conv_mxnet(sizes: Sequence[Any], ctx: str = "cpu") -> list[float]:
    """Return the speed of convolutions [GFLOP/s]; sizes as in `bench_conv_tvm`."""
    found = []
    for c, n, k in (map(int, size) for size in sizes):
        seconds = bench_workload(conv_timer_mxnet(c, n, k, ctx))
        found.append(conv_gflop(c, c, n, k, (k - 1) // 2, 1) / seconds)
    return found


def bench_depthwise_conv_mxnet(sizes: Sequence[Any], ctx: str = "cpu") -> list[float]:
    """Return the speed of depthwise convolutions [GFLOP/s]."""
    found = []
    for c, n, k in (map(int, size) for size in sizes):
        seconds = bench_workload(depthwise_conv_timer_mxnet(c, n, k, ctx))
        found.append(depthwise_conv_gflop(c, n, k, (k - 1) // 2, 1) / seconds)
    return found


# -- pooling ---------------------------------------------------------------------------------------


def get_pool_data_mxnet(
    c: int, n: int, k: int, p: int, s: int, ctx: str = "cpu"
) -> tuple[Baseline, ...]:
    """Return data (1, c, n, n) and an empty result."""
    data, _, _, out = get_conv_data_mxnet(c, c, n, k, p, s, ctx)
    return data, out


def pool_mxnet(pool_type: str, data: Any, out: Any, k: int, p: int, s: int) -> None:
    """Pool into `out` by ``"max"`` or ``"avg"``; the mean includes the border."""
    border = -np.inf if pool_type == "max" else 0.0
    seen = windows(padded(data, (p, p), (p, p), border), (k, k), (s, s))
    out[...] = seen.max(axis=(-2, -1)) if pool_type == "max" else seen.mean(axis=(-2, -1))


def pooling_timer_mxnet(pool_type: str, c: int, n: int, k: int, ctx: str = "cpu") -> Timer:
    """Return a workload: pooling with a border and a step of 1."""
    data, out = get_pool_data_mxnet(c, n, k, 1, 1, ctx)
    return _timer(lambda: pool_mxnet(pool_type, data, out, k, 1, 1))


def bench_pooling_mxnet(pool_type: str, sizes: Sequence[Any], ctx: str = "cpu") -> list[float]:
    """Return the times of pooling [s]."""
    return [
        bench_workload(pooling_timer_mxnet(pool_type, int(c), int(n), int(k), ctx))
        for c, n, k in sizes
    ]


# -- batch normalization ---------------------------------------------------------------------------


def get_bn_data_mxnet(c: int, n: int, ctx: str = "cpu") -> tuple[Baseline, ...]:
    """Return data (1, c, n, n), mean, variance, gamma, beta (c,), and an empty result."""
    del ctx
    data, *parts, out = get_bn_data(c, n, _baseline)
    return data[np.newaxis], *(part.reshape(c) for part in parts), out[np.newaxis]


def batch_norm_mxnet(
    data: Any, mean: Any, var: Any, gamma: Any, beta: Any, out: Any, eps: float = 1e-5
) -> None:
    """Normalize into `out`."""
    column = (slice(None), np.newaxis, np.newaxis)
    scale = gamma[column] / np.sqrt(var[column] + np.float32(eps))
    out[...] = (data - mean[column]) * scale + beta[column]


def bn_timer_mxnet(c: int, n: int, ctx: str = "cpu") -> Timer:
    """Return a workload: batch normalization."""
    data, mean, var, gamma, beta, out = get_bn_data_mxnet(c, n, ctx)
    return _timer(lambda: batch_norm_mxnet(data, mean, var, gamma, beta, out))


def bench_bn_mxnet(sizes: Sequence[Any], ctx: str = "cpu") -> list[float]:
    """Return the times of batch normalization [s]."""
    return [bench_workload(bn_timer_mxnet(int(c), int(n), ctx)) for c, n in sizes]
