"""Fourier transforms, as products with a matrix that is known, and the matrix of mel filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.onnx.reading import dtype_of
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import Expr
from dlcompiler.graph.operators.base import Array

MOST_ELEMENTS = 1 << 24
"""Most elements of the matrix of a transform; [1]."""


def _dft(node: Node) -> Expr:
    x = node.input(0)
    shape, rank = node.shape(x), node.rank(x)
    axis = int(node.attr("axis", 1))
    if node.version >= 20:
        axis = -2 if node.optional(2) is None else _whole(node, 2, "its axis")
    if rank < 2 or shape[-1] not in (1, 2) or not -rank <= axis < rank or axis % rank == rank - 1:
        node.fail("no signal along this axis", got=f"axis {axis} of {node.type(x)}",
                  expected="a last dimension of 1 or 2, and an axis before it")  # fmt: skip
    is_inverse, is_onesided = bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0))
    axis %= rank
    length = 2 * (shape[axis] - 1) if is_inverse and is_onesided else shape[axis]
    if node.optional(1) is not None:
        length = _whole(node, 1, "its length")
    matrix = _matrix(node, (shape[axis], shape[-1]), length, is_inverse, is_onesided)
    others = [n for n in range(rank - 1) if n != axis]
    order = (*others, axis, rank - 1)
    turned = _transformed(node, node.call("transpose", x, axes=order), matrix)
    back = tuple(order.index(n) for n in range(rank))
    return node.call("transpose", turned, axes=back)


def _stft(node: Node) -> Expr:
    x = node.input(0)
    if node.rank(x) == 2:
        x = node.call("expand_dims", x, axis=2, num_newaxis=1)
    if node.rank(x) != 3 or node.shape(x)[2] not in (1, 2):
        node.fail("no batch of signals", got=str(node.type(x)))
    extent, parts = node.shape(x)[1:]
    step, window = _whole(node, 1, "its step"), node.optional(2)
    length = extent if window is None else node.shape(window)[0]
    if node.optional(3) is not None:
        length = _whole(node, 3, "the length of a frame")
    if not 0 < length <= extent or step < 1 or length * (extent // step + 1) > MOST_ELEMENTS:
        node.fail("no such frames", got=f"length {length}, step {step}, {extent} elements")
    begins = np.arange(0, extent - length + 1, step)
    places = constant_of(begins[:, None] + np.arange(length), "int64")
    frames: Expr = node.call("take", x, places, axis=1)
    if window is not None:
        if node.shape(window) != (length,):
            node.fail("the window has not the length of a frame", got=str(node.type(window)))
        frames = node.call("multiply", frames, node.reshape(window, (length, 1)))
    matrix = _matrix(node, (length, parts), length, False, bool(node.attr("onesided", 1)))
    return _transformed(node, frames, matrix)


def _matrix(
    node: Node, shape: tuple[int, int], length: int, is_inverse: bool, is_onesided: bool
) -> Array:
    """Return what a transform makes of each element, real or imaginary, of a signal.

    Its dimensions are element and part of the signal, then element and part of the result.
    """
    count, parts = shape
    if length < 1 or 4 * count * length > MOST_ELEMENTS:
        node.fail("no transform of this length", got=f"{count} elements, length {length}",
                  expected=f"a matrix of at most {MOST_ELEMENTS:,} elements")  # fmt: skip
    units = np.eye(count)
    rows = np.stack([units, 1j * units][:parts], axis=1)
    if is_inverse and is_onesided:
        return np.fft.irfft(rows, length)[..., None]
    made = (np.fft.ifft if is_inverse else np.fft.fft)(rows, length)
    if is_onesided:
        made = made[..., : length // 2 + 1]
    return np.stack([made.real, made.imag], axis=-1)


def _transformed(node: Node, x: Expr, matrix: Array) -> Expr:
    """Return the transforms of signals along the last dimensions, by a matrix."""
    count, parts, bins, results = matrix.shape
    dtype, lead = node.dtype(x), node.shape(x)[:-2]
    wide = "float32" if dtype in ("float16", "bfloat16") else dtype
    rows = node.reshape(node.cast(x, wide), (int(np.prod(lead)), count * parts))
    weight = constant_of(matrix.reshape(count * parts, bins * results).T.copy(), wide)
    made = node.cast(node.call("nn.dense", rows, weight), dtype)
    return node.reshape(made, (*lead, bins, results))


def _whole(node: Node, i: int, what: str) -> int:
    found = node.integers(i, what)
    if len(found) != 1:
        node.fail(f"{what} is no number", got=repr(found)[:100])
    return found[0]


def _mel_weight_matrix(node: Node) -> Expr:
    """Return the matrix that takes a spectrum to the energies of mel filters.

    **Source:** the ONNX specification, MelWeightMatrix 17.
    """
    filters, length, rate = (_whole(node, i, "its sizes") for i in range(3))
    low, high = (float(np.ravel(node.constant(i, "its bounds"))[0]) for i in (3, 4))
    rows = length // 2 + 1
    if min(filters, length, rate) < 1 or rows * filters > MOST_ELEMENTS or low <= -700:
        node.fail("no such filters", got=f"{filters} of {length} at {rate} Hz")
    first, last = (2595 * np.log10(1 + hertz / 700) for hertz in (low, high))
    mels = first + np.arange(filters + 2) * (last - first) / (filters + 2)
    edges = ((length + 1) * 700 * (10 ** (mels / 2595) - 1) // rate).astype(np.int64)
    if edges.min() < 0 or edges.max() >= rows:
        node.fail("a filter is beyond the spectrum", got=f"{low} to {high} Hz at {rate} Hz")
    made = np.zeros((rows, filters))
    for n, (left, centre, right) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        made[left : centre + 1, n] = np.linspace(0, 1, centre - left + 1) if centre > left else 1
        made[centre:right, n] = 1 - np.arange(right - centre) / max(right - centre, 1)
    return constant_of(made, dtype_of(int(node.attr("output_datatype", 1))))


TABLE: dict[str, Callable[[Node], Any]] = {
    "DFT": _dft, "STFT": _stft, "MelWeightMatrix": _mel_weight_matrix,
}  # fmt: skip
"""The converters of this module."""
