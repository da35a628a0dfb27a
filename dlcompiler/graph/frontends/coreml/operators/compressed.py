"""Weights that are stored in fewer bits, and become constants when the model is imported."""

from __future__ import annotations

import math

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.frontends.coreml.messages import OPERATION
from dlcompiler.graph.frontends.coreml.node import Operation, OperationConverter
from dlcompiler.graph.frontends.coreml.reading import unpacked
from dlcompiler.graph.frontends.files import checked_shape
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import Expr
from dlcompiler.graph.operators.base import Array


def _wanted(node: Operation) -> tuple[int, ...]:
    return checked_shape(tuple(node.integers("shape")), OPERATION, "a weight")


def _affine(node: Operation) -> Expr:
    """Return scale * (data - zero point), with one of each, or one for each slice."""
    data, axis = node.array("quantized_data"), node.integer("axis")
    shape = [1] * data.ndim
    shape[node.axis(axis, data.ndim)] = -1
    scale, zero = (node.array(name).astype(np.float64) for name in ("scale", "zero_point"))
    scale, zero = (part.reshape(shape) if part.ndim else part for part in (scale, zero))
    return constant_of(np.asarray(scale * (data - zero)), node.out_dtype)


def _blockwise(node: Operation) -> Expr:
    """Return scale * (data - offset), with one of each for each block."""
    data, scale = node.array("data"), node.array("scale")
    offset = node.array("offset") if node.has("offset") else np.zeros_like(scale)
    parts = [_repeated(node, part.astype(np.float64), data.shape) for part in (scale, offset)]
    return constant_of(np.asarray(parts[0] * (data - parts[1])), node.out_dtype)


def _repeated(node: Operation, array: Array, shape: tuple[int, ...]) -> Array:
    """Return an array whose elements are repeated along all dimensions."""
    if len(array.shape) != len(shape) or any(
        not small or large % small for small, large in zip(array.shape, shape, strict=True)
    ):
        node.fail("its blocks do not fit the data", got=f"{array.shape} of {shape}")
    for axis, extent in enumerate(shape):
        array = np.repeat(array, extent // array.shape[axis], axis)
    return array


def _table(node: Operation) -> Expr:
    """Return the elements of a table at indices of a few bits."""
    table = node.array("lut")
    if not node.has("shape"):
        return _tables(node, table)
    shape, bits = _wanted(node), (table.size - 1).bit_length()
    if table.ndim != 1 or bits not in (1, 2, 4, 6, 8) or table.size != 1 << bits:
        node.fail("its table has another size", got=str(table.shape), expected="2, 4, 16, 64, 256")
    data = node.array("indices").astype(np.uint8).tobytes()
    indices = unpacked(data, bits, math.prod(shape), "a weight", is_low_first=True)
    return constant_of(table[indices].reshape(shape))


def _tables(node: Operation, table: Array) -> Expr:
    """Return the elements of tables, of which each block of weights has its own.

    Tables are (blocks along each dimension…, entries, 1).
    """
    indices = node.array("indices")
    if table.ndim != indices.ndim + 2 or table.shape[-1] != 1:
        node.fail("its tables have vectors as entries", got=str(table.shape))
    if indices.size and int(indices.max()) >= table.shape[-2]:
        node.fail("its indices are outside of the tables", got=str(int(indices.max())))
    blocks = table.shape[:-2]
    numbers = _repeated(node, np.arange(math.prod(blocks)).reshape(blocks), indices.shape)
    return constant_of(table.reshape(-1, table.shape[-2])[numbers, indices])


def _sparse(node: Operation) -> Expr:
    """Return zeros, and the data where a mask has a bit."""
    data, mask = node.array("nonzero_data"), node.array("mask")
    shape = _wanted(node) if node.has("shape") else mask.shape
    bits = (
        unpacked(mask.astype(np.uint8).tobytes(), 1, math.prod(shape), "a mask", is_low_first=True)
        if node.has("shape") else mask.reshape(-1)
    )  # fmt: skip
    if int(bits.sum()) != data.size:
        node.fail("its mask has another number of elements", got=str(int(bits.sum())),
                  expected=str(data.size))  # fmt: skip
    found = np.zeros(bits.shape, data.dtype)
    found[bits.astype(bool)] = data.reshape(-1)
    return constant_of(found.reshape(shape))


def _cast(node: Operation) -> Expr:
    return constant_of(node.array("source_val").astype(dtypes.to_numpy(node.out_dtype)))


TABLE: dict[str, OperationConverter] = {
    "constexpr_affine_dequantize": _affine, "constexpr_blockwise_shift_scale": _blockwise,
    "constexpr_lut_to_dense": _table, "constexpr_sparse_to_dense": _sparse,
    "constexpr_cast": _cast,
}  # fmt: skip
"""The converters of this module."""
