"""Define products for GPUs: operands that reach beyond their matrices, filled up with zeros.

==========  ====================================================================================
``.left``   A as ``(k, m)``, in its own dtype; beyond the matrix it is 0
``.right``  B as ``(k, n)``, the same
``.wide``   each of them in the dtype of the sums, if that is another one
``.sums``   their product
``C``       the epilogue of the sums that are in the matrix
==========  ====================================================================================

Blocks of threads compute whole tiles: only the copies to shared memory and the stores into C have
conditions, and these only where a tile may reach beyond the matrix. The depth k is filled up to
a multiple of a power of two (`padded_depth`), since tensor cores multiply whole tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.errors import TargetError, TuningError
from dlcompiler.ops.gemm.product import Product
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.ops.widening import converted
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

EXTRA = 255
"""Additional rows and columns for the largest tile of a block: 256, less one."""
_UNITS = {"int8": 32, "float16": 16, "bfloat16": 16}
"""Depth of a product on tensor cores."""
_LEAST, _MOST = 4, 64
_WASTE = 8
"""The depth grows by at most 1/8, if it is not a multiple of the least unit."""


def padded_depth(k: int, dtype: str) -> int:
    """Return the number of steps of the reduction, with those that add 0.

    It is a multiple of what the tensor cores multiply at once, for dtypes that they have, and of
    the largest power of two that costs little.

    Examples
    --------
    >>> [padded_depth(k, "float32") for k in (0, 1, 65, 147, 1021, 4096)]
    [0, 4, 72, 160, 1024, 4096]
    >>> padded_depth(65, "float16"), padded_depth(65, "int8")
    (80, 96)
    """
    unit = least = _UNITS.get(dtype, _LEAST)
    while unit < _MOST and _up(k, 2 * unit) - k <= k // _WASTE:
        unit *= 2
    return _up(k, max(unit, least))


def _up(number: int, unit: int) -> int:
    return -(-number // unit) * unit


def refuse_stored(workload: Workload) -> None:
    """Refuse weights that are stored in another dtype than the data.

    Raises
    ------
    TargetError
        If the workload has such weights.
    """
    if "weight_dtype" in workload.as_dict():
        raise TargetError(
            f"schedule {workload.op} for a GPU", "weights have the dtype of the data on GPUs",
            got=f"weight_dtype={workload['weight_dtype']!r}", expected="no weight_dtype",
        )  # fmt: skip


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return A, B, the operands of the epilogue, and C."""
    refuse_stored(workload)
    product = Product.of(workload)
    if product.zero_point:
        raise TuningError(workload.op, "products on GPUs have no zero point",
                          got=f"zero_point={product.zero_point}")  # fmt: skip
    A, B = (te.placeholder(product.shapes[name], product.dtype, name) for name in "AB")
    depth = padded_depth(product.k, product.dtype)
    left = _left(product, A, depth, f"{workload.op}.left")
    right = _right(product, B, depth, f"{workload.op}.right")
    sums = sums_of(left, right, product.sums_dtype, f"{workload.op}.sums")
    operands = product.epilogue.placeholders(product.shapes["C"], product.sums_dtype)

    def element(*indices: Any) -> Any:
        value = product.epilogue.element(sums[indices], indices, operands)
        return converted(value, product.result_dtype)

    C = tensor(product.shapes["C"], with_names(element, len(product.batch), "ij"), "C")
    return A, B, *operands.values(), C


def sums_of(left: Tensor, right: Tensor, dtype: str, name: str) -> Tensor:
    """Define the sums over k of ``left[…, k, i] * right[…, k, j]``, in a dtype."""
    left, right = (_widened(factor, dtype, axes) for factor, axes in ((left, "ki"), (right, "kj")))
    *stack, depth, rows = left.shape
    k = over(depth)

    def element(*indices: Any) -> Any:
        *lead, i, j = indices
        return te.sum(left[(*lead, k, i)] * right[(*lead, k, j)], axis=k)

    return tensor((*stack, rows, right.shape[-1]), with_names(element, len(stack), "ij"), name)


def _widened(factor: Tensor, dtype: str, axes: str) -> Tensor:
    if factor.dtype == dtype:
        return factor
    convert = with_names(lambda *i: factor[i].astype(dtype), factor.ndim - 2, axes)
    return tensor(factor.shape, convert, f"{factor.name}.wide")


def with_names(element: Any, stacked: int, names: str) -> Any:
    """Return a function of the same indices whose parameters name the axes: b, i, j or i, j."""
    match stacked, names:
        case 0, "ij":
            return lambda i, j: element(i, j)
        case 0, "ki":
            return lambda k, i: element(k, i)
        case 0, _:
            return lambda k, j: element(k, j)
        case _, "ij":
            return lambda b, i, j: element(b, i, j)
        case _, "ki":
            return lambda b, k, i: element(b, k, i)
    return lambda b, k, j: element(b, k, j)


def beyond(extent: int) -> int:
    """Return the extent of a dimension that tiles may exceed; that of an empty one is 0."""
    return extent + EXTRA if extent else 0


def filled(value: Any, conditions: Sequence[Any]) -> Any:
    """Return a value where all conditions hold, otherwise 0."""
    if not conditions:
        return value
    return te.if_then_else(te.all(*conditions), value, te.const(0, value.dtype))


def _left(product: Product, A: Tensor, depth: int, name: str) -> Tensor:
    is_swapped = product.layout[0] == "T"

    def element(*indices: Any) -> Any:
        *lead, k, i = indices
        value = A[(*lead, k, i)] if is_swapped else A[(*lead, i, k)]
        return filled(value, [i < product.m, *([k < product.k] if depth != product.k else [])])

    shape = (*product.batch, depth, beyond(product.m))
    return tensor(shape, with_names(element, len(product.batch), "ki"), name)


def _right(product: Product, B: Tensor, depth: int, name: str) -> Tensor:
    width, is_swapped = product.packed, product.layout[1] == "T"
    columns = product.panels * width if width else product.n

    def element(*indices: Any) -> Any:
        *lead, k, j = indices
        if product.packed and product.goes_by_fours:
            value = B[j // width, k // 4, j % width, k % 4]
        elif width:
            value = B[j // width, k, j % width]
        else:
            value = B[(*lead, j, k)] if is_swapped else B[(*lead, k, j)]
        return filled(value, [j < columns, *([k < product.k] if depth != product.k else [])])

    shape = (*product.batch, depth, beyond(product.n))
    return tensor(shape, with_names(element, len(product.batch), "kj"), name)
