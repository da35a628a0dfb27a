"""Reductions of floats in one or two passes: variance, standard deviation, logsumexp, norms.

A second pass reads what the first has found for the same result: the mean, or the largest element.
Each pass is one stage, so that `lanes.schedule_reduction` computes both for a row before the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.ops import reductions
from dlcompiler.ops.helpers import ELEMWISE, dimensions, tensor
from dlcompiler.ops.rounding import Wide
from dlcompiler.te import Tensor


def variance(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Define the mean of squared distances from the mean; it is NaN for no elements."""
    return _of_distances(data, axis, keepdims, "var", lambda value: value)


def deviation(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Define the standard deviation: the root of `variance`."""
    return _of_distances(data, axis, keepdims, "std", te.sqrt)


def _of_distances(
    data: Tensor, axis: Any, keepdims: bool, name: str, root: Callable[[Any], Any]
) -> Tensor:
    gone = dimensions(axis, data.ndim, name)
    count = math.prod(data.static_shape[n] for n in gone)
    inverse = te.const(1 / count if count else math.nan, data.dtype)
    total = _summed(data, gone, keepdims, f"{name}_sum", lambda value, at: value)

    def square(value: Any, at: tuple[Any, ...]) -> Any:
        distance = value - total[at] * inverse
        return distance * distance

    squares = _summed(data, gone, keepdims, f"{name}_squares", square)
    return tensor(
        squares.shape, lambda *i: root(squares[i] * inverse), f"{data.name}_{name}", ELEMWISE
    )


def logsumexp(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Define ``log(sum(exp(x)))``; the largest element is subtracted before the power."""
    gone = dimensions(axis, data.ndim, "logsumexp")
    zero = te.const(0, data.dtype)
    largest = reductions.max(data, gone, keepdims)

    def base(at: tuple[Any, ...]) -> Any:
        return te.select(te.isinf(largest[at]), zero, largest[at])

    powers = _summed(data, gone, keepdims, "powers_sum", lambda value, at: te.exp(value - base(at)))
    return tensor(
        powers.shape, lambda *i: te.log(powers[i]) + base(i), f"{data.name}_logsumexp", ELEMWISE
    )


def l1_norm(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Define the sum of absolute values."""
    gone = dimensions(axis, data.ndim, "l1_norm")
    return _summed(data, gone, keepdims, "l1_norm", lambda value, at: te.abs(value))


def sum_of_squares(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Define the sum of squares."""
    gone = dimensions(axis, data.ndim, "sum_of_squares")
    return _summed(data, gone, keepdims, "squares", lambda value, at: value * value)


def l2_norm(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Define the root of the sum of squares."""
    squares = sum_of_squares(data, axis, keepdims)
    return tensor(squares.shape, lambda *i: te.sqrt(squares[i]), f"{data.name}_l2_norm", ELEMWISE)


def _summed(
    data: Tensor, gone: Sequence[int], keepdims: bool, name: str, term: Callable[..., Any]
) -> Tensor:
    """Add up terms; `term` gets an element, and the place of the result that it is added to."""
    return reductions.summed(data, gone, keepdims, term, name)


def _logsumexp_of(x: Wide, **where: Any) -> Wide:
    largest = x.max(initial=-np.inf, **{**where, "keepdims": True})
    base = np.where(np.isinf(largest), 0, largest)
    total = np.log(np.exp(x - base).sum(**{**where, "keepdims": True})) + base
    wanted = x.sum(**where)
    return np.asarray(total.reshape(wanted.shape))


FUNCTIONS: dict[str, tuple[Callable[..., Tensor], Callable[..., Any]]] = {
    "var": (variance, np.var),
    "std": (deviation, np.std),
    "logsumexp": (logsumexp, _logsumexp_of),
    "l1_norm": (l1_norm, lambda x, **where: np.sum(np.abs(x), **where)),
    "l2_norm": (l2_norm, lambda x, **where: np.sqrt(np.sum(np.square(x), **where))),
    "sum_of_squares": (sum_of_squares, lambda x, **where: np.sum(np.square(x), **where)),
}
"""Name -> the function of an operand, dimensions, and whether to keep them; and that of NumPy."""


def exact(name: str, x: Wide, axis: Any, keepdims: bool, unit: float) -> tuple[Wide, Wide]:
    """Return a reduction in float64 and its error bound.

    Parameters
    ----------
    name : str
        A key of `FUNCTIONS`.
    x : array
        The operand in float64.
    axis, keepdims
        As in NumPy.
    unit : float
        Unit roundoff of the computation.

    Notes
    -----
    A sum of n terms is off by ``n·u`` of the sum of their absolute values. A distance from the mean
    is off by ``(n + 2)·u`` of the mean of absolute values; the variance by twice the product of
    both. **Source:** N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1.
    """
    with np.errstate(all="ignore"):
        found, bound = _exact(name, x, axis, unit)
    kept = np.asarray(found), np.asarray(bound)
    return kept if keepdims else (_squeezed(kept[0], axis), _squeezed(kept[1], axis))


def _squeezed(values: Wide, axis: Any) -> Wide:
    return np.asarray(np.squeeze(values, axis))


def _exact(name: str, x: Wide, axis: Any, unit: float) -> tuple[Wide, Wide]:
    axes = tuple(axis) if isinstance(axis, Sequence) else axis
    n = math.prod(x.shape[k] for k in axes)
    sums: dict[str, Any] = {"axis": axes, "keepdims": True}
    if name in ("var", "std"):
        size = np.abs(x).sum(**sums) / n if n else np.full(x.sum(**sums).shape, np.nan)
        distance = np.abs(x - x.sum(**sums) / max(n, 1))
        found = np.square(distance).sum(**sums) / n if n else size
        off = 2 * (n + 2) * unit * size
        error = 2 * (n + 4) * unit * found + 2 * off * distance.sum(**sums) / max(n, 1) + off**2
        if name == "var":
            return found, error
        root = np.sqrt(found)
        return root, np.minimum(error / np.maximum(root, 1e-300), np.sqrt(error)) + unit * root
    if name == "logsumexp":
        largest = x.max(initial=-np.inf, **sums)
        base = np.where(np.isinf(largest), 0, largest)
        powers = np.exp(x - base)
        total = powers.sum(**sums)
        off = (powers * (np.abs(x - base) + 4)).sum(**sums) + n * total
        result = np.log(total) + base
        return result, 2 * unit * (off / np.maximum(total, 1e-300) + 4 * np.abs(np.log(total)) + 2
                                   + np.abs(result))  # fmt: skip
    if name == "l1_norm":
        total = np.abs(x).sum(**sums)
        return total, 2 * (n + 2) * unit * total
    total = np.square(x).sum(**sums)
    if name == "sum_of_squares":
        return total, 2 * (n + 2) * unit * total
    return np.sqrt(total), 2 * (n + 4) * unit * np.sqrt(total)
