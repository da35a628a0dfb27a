"""Expected results of operators on blocks, from plain arrays: images NCHW, weights OIHW."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dlcompiler.ops.base import Array, Reference
from dlcompiler.ops.packed.extents import (
    BATCH_MATMUL,
    DENSE,
    DEPTHWISE,
    TRANSPOSE,
    Extents,
    extents_of,
)
from dlcompiler.ops.packed.sums import define
from dlcompiler.ops.packed.tail import tail_of
from dlcompiler.ops.packed.weights import outputs_first, prepack
from dlcompiler.space import Workload

_BIAS = 1 << 12
"""Random numbers of int32 are at most about this; [1]."""


def reference(workload: Workload, seed: int) -> Reference:
    """Return random blocks, the exact result, and the plain arrays of weights."""
    e, generator = extents_of(workload), np.random.default_rng(seed)
    *inputs, result = define(workload)
    shapes = {given.op.name: (given.static_shape, given.dtype) for given in inputs}
    plain: dict[str, Array] = {}
    if "weight" in shapes:
        plain["weight"] = _random(generator, _plain_weight(workload), "int8")
    if "bias" in shapes:
        plain["bias"] = _random(generator, (e.filters * e.blocks.outputs,), "int32")
    packed = prepack(workload, plain)
    arrays = {
        name: packed[name] if name in packed else _random(generator, shape, dtype)
        for name, (shape, dtype) in shapes.items()
    }
    sums = _sums(workload, unblocked(arrays["data"]), plain.get("weight"))
    blocked = blocks_of_images(sums, e.blocks.batch, e.blocks.outputs)
    expected = tail_of(workload).exact(blocked, arrays)
    name = result.op.name
    return Reference(arrays, {name: expected}, {name: np.zeros(expected.shape)}, plain)


def _random(generator: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Array:
    most = 127 if dtype == "int8" else _BIAS
    return generator.integers(-most - 1, most, shape, dtype, endpoint=True)


def _plain_weight(workload: Workload) -> tuple[int, ...]:
    """Return the shape of plain weights."""
    w = workload
    if w.op == DENSE:
        return w["n"], w["k"]
    if w.op == BATCH_MATMUL:
        return w["batch"], w["n"], w["k"]
    kernel = w["kernel_h"], w["kernel_w"]
    if w.op == DEPTHWISE:
        return w["c"], w["multiplier"], *kernel
    if w.op == TRANSPOSE:
        return w["c"], w["o"], *kernel
    return w["o"], w["c"] // w["groups"], *kernel


def blocks_of_images(images: Array, batch: int, block: int) -> Array:
    """Return images NCHW in blocks: ``(n, c, h, w, batch, block)``."""
    n, c, h, w = images.shape
    split = images.reshape(n // batch, batch, c // block, block, h, w)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 5, 1, 3))


def unblocked(blocks: Array) -> Array:
    """Return blocks ``(n, c, h, w, batch, block)`` as images NCHW."""
    n, c, h, w, batch, block = blocks.shape
    return blocks.transpose(0, 4, 1, 5, 2, 3).reshape(n * batch, c * block, h, w)


def _sums(workload: Workload, image: Array, weight: Array | None) -> npt.NDArray[np.int64]:
    """Return the sums of images NCHW."""
    e = extents_of(workload)
    if weight is None:
        weight = np.full((image.shape[1], 1, *e.kernel), e.scale)
    weight = outputs_first(workload, weight).astype(np.float64)
    groups = image.shape[1] // weight.shape[1]
    find = _transposed if e.up else _convolved
    return find(e, image.astype(np.float64), weight, groups).astype(np.int64)


def _convolved(e: Extents, image: Array, weight: Array, groups: int) -> Array:
    above, left = e.padding
    image = np.pad(image, ((0, 0), (0, 0), (above, above), (left, left)))
    rows, columns = e.out
    sums: Array = np.zeros((len(image), len(weight), rows, columns))
    for p, q in np.ndindex(*e.kernel):
        seen = image[:, :, p :: e.stride, q :: e.stride][:, :, :rows, :columns]
        sums += _products(seen, weight[:, :, p, q], groups)
    return sums


def _transposed(e: Extents, image: Array, weight: Array, groups: int) -> Array:
    (above, left), (rows, columns) = e.padding, e.out
    n, _, height, width = image.shape
    down, across = above + rows + e.kernel[0], left + columns + e.kernel[1]
    whole = np.zeros((n, len(weight), down, across))
    for p, q in np.ndindex(*e.kernel):
        found = _products(image, weight[:, :, p, q], groups)
        below, right = p + (height - 1) * e.up + 1, q + (width - 1) * e.up + 1
        whole[:, :, p : below : e.up, q : right : e.up] += found
    return whole[:, :, above : above + rows, left : left + columns]


def _products(image: Array, weight: Array, groups: int) -> Array:
    """Return the products of each pixel's channels with weights (outputs, inputs of a group)."""
    n, c, h, w = image.shape
    grouped = image.reshape(n, groups, c // groups, h, w)
    matrices = weight.reshape(groups, -1, c // groups)
    found: Array = np.einsum("ngchw,goc->ngohw", grouped, matrices, optimize=True)
    return found.reshape(n, -1, h, w)
