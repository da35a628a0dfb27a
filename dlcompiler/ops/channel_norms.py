"""Define normalisations over any dimensions: of channels, groups of channels, and responses.

`dlcompiler.ops.norms` has those of rows, with their schedules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.ops import reductions
from dlcompiler.ops.helpers import ELEMWISE, over, tensor
from dlcompiler.ops.transforms import pad, reshape
from dlcompiler.te import Tensor


def standardised(data: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    """Define ``(x - mean) / sqrt(variance + epsilon)``, with the moments over some dimensions.

    Parameters
    ----------
    data : Tensor
        Floats.
    axes : sequence of int
        The dimensions over which mean and variance are taken.
    epsilon : float
        Keeps the root from 0.
    """
    gone = list(axes)
    mean = reductions.mean(data, gone, True)
    variance = reductions.variance(data, mean, gone, True)
    root = tensor(
        variance.shape,
        lambda *i: _inverse_root(variance[i] + te.const(epsilon, data.dtype)),
        "inverse_deviation", ELEMWISE,
    )  # fmt: skip

    def element(*i: Any) -> Any:
        at = tuple(0 if n in gone else k for n, k in enumerate(i))
        return (data[i] - mean[at]) * root[at]

    return tensor(data.shape, element, "standardised", "broadcast")


def scaled(data: Tensor, scale: Tensor | None, shift: Tensor | None, axis: int) -> Tensor:
    """Define ``x * scale[c] + shift[c]``, where c is the index along a dimension."""

    def element(*i: Any) -> Any:
        value = data[i]
        value = value if scale is None else value * scale[i[axis]]
        return value if shift is None else value + shift[i[axis]]

    return tensor(data.shape, element, "scaled", "broadcast")


def grouped(
    data: Tensor, axis: int, groups: int, apply: Callable[[Tensor, list[int]], Tensor]
) -> Tensor:
    """Apply a function to groups of channels: it gets the tensor and the dimensions of a group.

    The dimensions of a group are those behind the number of the group, and all dimensions but the
    first and the channels.
    """
    shape = data.static_shape
    split = (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])
    inside = [n for n in range(1, len(split)) if n != axis]
    return reshape(apply(reshape(data, split), inside), shape)


def power_of_means(data: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    """Define ``x / sqrt(mean of squares + epsilon)``, with the mean over some dimensions."""
    count = math.prod(data.static_shape[n] for n in axes)
    inverse = te.const(1 / max(count, 1), data.dtype)
    return _divided(
        data, axes, lambda total: _inverse_root(total * inverse + te.const(epsilon, data.dtype))
    )


def l2_normalize(data: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    """Define ``x / sqrt(max(sum of squares, epsilon))``, with the sum over some dimensions."""
    return _divided(
        data, axes,
        lambda total: _inverse_root(te.maximum(total, te.const(epsilon, data.dtype))),
    )  # fmt: skip


def _divided(data: Tensor, axes: Sequence[int], factor: Callable[[Any], Any]) -> Tensor:
    """Multiply elements by a function of the sum of squares over some dimensions."""
    gone = list(axes)
    squares = tensor(data.shape, lambda *i: data[i] * data[i], "squares", ELEMWISE)
    total = reductions.sum(squares, gone, True)
    root = tensor(total.shape, lambda *i: factor(total[i]), "inverse_root", ELEMWISE)

    def element(*i: Any) -> Any:
        return data[i] * root[tuple(0 if n in gone else k for n, k in enumerate(i))]

    return tensor(data.shape, element, "normalized", "broadcast")


def _inverse_root(value: Any) -> Any:
    return te.const(1, value.dtype) / te.sqrt(value)


def local_response_norm(
    data: Tensor, axis: int, size: int, bias: float, alpha: float, beta: float
) -> Tensor:
    """Define ``x / (bias + alpha / size * sum of squares beside x) ** beta``.

    The sum is over `size` elements along a dimension; ``size // 2`` of them are before x.

    Notes
    -----
    **Source:** A. Krizhevsky, I. Sutskever, G. E. Hinton, "ImageNet classification with deep
    convolutional neural networks", 2012, section 3.3.
    """
    before, after = [0] * len(data.shape), [0] * len(data.shape)
    before[axis], after[axis] = size // 2, (size - 1) // 2
    framed = pad(data, before, after, 0)
    k = over(size, "k")

    def beside(*i: Any) -> Any:
        value = framed[(*i[:axis], i[axis] + k, *i[axis + 1 :])]
        return te.sum(value * value, axis=k)

    squares = tensor(data.shape, beside, "lrn_squares")

    def element(*i: Any) -> Any:
        base = te.const(bias, data.dtype) + te.const(alpha / size, data.dtype) * squares[i]
        return data[i] / te.power(base, te.const(beta, data.dtype))

    return tensor(data.shape, element, "lrn", ELEMWISE)
