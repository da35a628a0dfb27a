"""Define images that are read at given positions: grid sampling."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler import te
from dlcompiler.ops.helpers import INJECTIVE, tensor
from dlcompiler.te import Tensor

CUBIC_ALPHA = -0.75
"""Slope of the cubic kernel, as in PyTorch and ONNX."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How an image is read."""

    method: str
    """``"nearest"``, ``"linear"`` or ``"cubic"``."""
    padding: str
    """What is outside: ``"zeros"``, ``"border"``: the nearest element, or ``"reflection"``."""
    align_corners: bool
    """Positions -1 and 1 are the centres of the outermost elements, not their edges."""


def sample(data: Tensor, grid: Tensor, of: Sampling) -> Tensor:
    """Define an image that is read at positions.

    Parameters
    ----------
    data : Tensor
        Images, of shape ``(n, c, h, w)`` or ``(n, c, d, h, w)``.
    grid : Tensor
        Positions from -1 to 1, of shape ``(n, k, …)``: the position in the last dimension first.
    of : Sampling
        How it is read.

    Returns
    -------
    Tensor
        Of the shape ``(n, c, …)``.
    """
    sizes = data.static_shape[2:]
    rank = len(sizes)
    shape = (*data.shape[:2], *grid.shape[2:])

    def element(n: Any, c: Any, *out: Any) -> Any:
        taps = [taps_of(grid[(n, rank - 1 - d, *out)], size, of) for d, size in enumerate(sizes)]
        total: Any = None
        for chosen in itertools.product(*taps):
            weight: Any = None
            for _, factor in chosen:
                weight = factor if weight is None or factor is None else weight * factor
            read = _read(data, (n, c), [place for place, _ in chosen], of)
            term = read if weight is None else read * weight
            total = term if total is None else total + term
        return total

    return tensor(shape, element, "T_grid_sample", INJECTIVE)


def _read(data: Tensor, lead: Sequence[Any], places: Sequence[Any], of: Sampling) -> Any:
    sizes = data.static_shape[2:]
    if of.padding != "zeros":
        inside = [te.minimum(te.maximum(p, 0), n - 1) for p, n in zip(places, sizes, strict=True)]
        return data[(*lead, *inside)]
    tests = [test for p, n in zip(places, sizes, strict=True) for test in (p >= 0, p < n)]
    return te.if_then_else(te.all(*tests), data[(*lead, *places)], te.const(0, data.dtype))


def taps_of(position: Any, size: int, of: Sampling) -> list[tuple[Any, Any]]:
    """Return the elements along a dimension that are read for a position, with their weights.

    Parameters
    ----------
    position : Expr
        From -1 to 1.
    size : int
        Extent of the dimension; [1].
    of : Sampling
        How it is read.

    Returns
    -------
    list of (Expr, Expr or None)
        An index, which may be outside the image, and a weight; None for a weight of 1.
    """
    return _taps(_unnormalised(position, size, of), size, of)


def _unnormalised(g: Any, size: int, of: Sampling) -> Any:
    """Return a position in elements from one between -1 and 1."""
    one, half = te.const(1, g.dtype), te.const(0.5, g.dtype)
    if of.align_corners:
        return (g + one) * te.const((size - 1) / 2, g.dtype)
    return ((g + one) * te.const(size, g.dtype) - one) * half


def _bounded(x: Any, size: int, of: Sampling) -> Any:
    """Move a position into the image; with zeros around, only so near that it has elements."""
    low, high = (-2, size + 1) if of.padding == "zeros" else (0, size - 1)
    x = _reflected(x, size, of) if of.padding == "reflection" else x
    return te.minimum(te.maximum(x, te.const(low, x.dtype)), te.const(high, x.dtype))


def _reflected(x: Any, size: int, of: Sampling) -> Any:
    """Mirror a position at the outermost elements, or at their edges."""
    first, span = (0.0, size - 1) if of.align_corners else (-0.5, size)
    if span == 0:
        return te.const(0, x.dtype) * x
    low, width = te.const(first, x.dtype), te.const(span, x.dtype)
    beyond = te.abs(x - low)
    rest = te.fmod(beyond, width)
    turns = te.floor(beyond / width) * te.const(0.5, x.dtype)
    return te.select(turns == te.floor(turns), rest, width - rest) + low


def _index(x: Any) -> Any:
    return x.astype("int64").astype("index")


def _taps(x: Any, size: int, of: Sampling) -> list[tuple[Any, Any]]:
    """Return the elements along a dimension that are read, with their weights."""
    if of.method == "nearest":
        return [(_index(te.round(_bounded(x, size, of))), None)]
    one = te.const(1, x.dtype)
    if of.method == "linear":
        x = _bounded(x, size, of)
        first = te.floor(x)
        weight = x - first
        return [(_index(first), one - weight), (_index(first) + 1, weight)]
    first = te.floor(x)
    t = x - first
    weights = [_far(t + one), _near(t), _near(one - t), _far(te.const(2, x.dtype) - t)]
    places = [first + te.const(n - 1, x.dtype) for n in range(4)]
    return [(_index(_bounded(p, size, of)), w) for p, w in zip(places, weights, strict=True)]


def _near(t: Any) -> Any:
    """Return the weight of an element at a distance of at most 1."""
    inner = (_number(CUBIC_ALPHA + 2, t) * t - _number(CUBIC_ALPHA + 3, t)) * t
    return inner * t + _number(1, t)


def _far(t: Any) -> Any:
    """Return the weight of an element at a distance from 1 to 2."""
    inner = (_number(CUBIC_ALPHA, t) * t - _number(5 * CUBIC_ALPHA, t)) * t
    return (inner + _number(8 * CUBIC_ALPHA, t)) * t - _number(4 * CUBIC_ALPHA, t)


def _number(value: float, like: Any) -> Any:
    return te.const(value, like.dtype)


def affine_grid(theta: Tensor, target: Sequence[int]) -> Tensor:
    """Define positions from matrices: a row of a matrix times (x, y, 1).

    Parameters
    ----------
    theta : Tensor
        Matrices, of shape ``(n, 2, 3)``.
    target : sequence of int
        Height and width of the result.

    Returns
    -------
    Tensor
        Positions, of shape ``(n, 2, h, w)``; those of the outermost elements are -1 and 1.
    """
    height, width = target

    def place(k: Any, extent: int) -> Any:
        step = te.const(2 / max(extent - 1, 1), theta.dtype)
        return k.astype(theta.dtype) * step - te.const(1, theta.dtype)

    def element(n: Any, k: Any, y: Any, x: Any) -> Any:
        return theta[n, k, 0] * place(x, width) + theta[n, k, 1] * place(y, height) + theta[n, k, 2]

    return tensor((theta.shape[0], 2, height, width), element, "T_affine_grid", INJECTIVE)
