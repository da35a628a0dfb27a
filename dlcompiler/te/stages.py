"""One operation of a tensor expression computed with NumPy, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler.ir import Binary, Expr, Reduce, Reducer
from dlcompiler.te.elements import Array, Block, blocks, used_dimensions
from dlcompiler.te.tensor import ComputeOp

BLOCK_POINTS = 2**19
"""Points computed at a time: a few arrays of this size stay in a second-level cache."""

FACTOR_ELEMENTS = 2**26
"""Most elements of the two factors of a sum of products that is computed as a matrix product."""

EXACT_FLOAT64 = 2**53


@dataclass(frozen=True)
class Domain:
    """What is computed of each element: its value, or a bound of it."""

    element: Callable[[Expr, Block], Any]
    """Values of an expression over a block of the iteration space."""
    storage: Callable[[str], np.dtype[np.generic]]
    """NumPy dtype of the results for elements of a dtype."""
    ufunc: Callable[[Reducer], np.ufunc]
    """How two elements of a reduction are combined."""
    identity: Callable[[Reducer, str], Any]
    """The result of a reduction over nothing."""


def compute_stage(op: ComputeOp, domain: Domain) -> Array:
    """Compute all elements of the output of an operation.

    Returns
    -------
    ndarray
        Of the output's shape; contiguous.
    """
    body = op.body
    if not isinstance(body, Reduce):
        result: Array = np.empty([axis.extent for axis in op.axis], domain.storage(body.dtype))
        for block in blocks(op.axis, BLOCK_POINTS):
            result[block.place] = domain.element(body, block)
    else:
        product = _matrix_product(op, body, domain)
        result = _reduction(op, body, domain) if product is None else product
    return result


def _reduction(op: ComputeOp, body: Reduce, domain: Domain) -> Array:
    """Combine the elements block by block, over the reduction axes of each at once."""
    ufunc, dtype = domain.ufunc(body.reducer), domain.storage(body.dtype)
    identity = domain.identity(body.reducer, body.dtype)
    rank = len(op.axis)
    result: Array = np.full([axis.extent for axis in op.axis], identity, dtype)
    inner = tuple(range(rank, rank + len(body.axes)))
    for block in blocks((*op.axis, *body.axes), BLOCK_POINTS):
        elements = np.broadcast_to(domain.element(body.value, block), block.extents)
        place = block.place[:rank]
        partial = ufunc.reduce(elements, axis=inner, dtype=dtype, initial=identity)
        result[place] = ufunc(result[place], partial)
    return result


def _matrix_product(op: ComputeOp, body: Reduce, domain: Domain) -> Array | None:
    """Compute a sum of products as one (batched) matrix product of its two factors.

    Each factor is evaluated only over the axes it depends on, which is what makes this cheap:
    n² + n² elements instead of n³ for a matrix product. None if it would not be cheaper, or if
    the products must be rounded one by one.
    """
    match body:
        case Reduce(Reducer(op="add"), Binary("mul", x, y), _) if body.dtype not in (
            "float16",
            "bfloat16",
        ):
            factors = (x, y)
        case _:
            return None
    block = Block.whole((*op.axis, *body.axes))
    rank = len(op.axis)
    reduced = list(range(rank, len(block.axes)))
    uses = [used_dimensions((factor,), block) | set(reduced) for factor in factors]
    sizes = [math.prod(block.extents[n] for n in used) for used in uses]
    total = math.prod(block.extents)
    if not total or sum(sizes) > FACTOR_ELEMENTS or 4 * sum(sizes) > total:
        return None
    batch = [n for n in range(rank) if n in uses[0] and n in uses[1]]
    rows = [n for n in range(rank) if n in uses[0] and n not in uses[1]]
    columns = [n for n in range(rank) if n in uses[1] and n not in uses[0]]
    left = _matrices(domain.element(x, block), block, batch, rows, reduced)
    right = _matrices(domain.element(y, block), block, batch, reduced, columns)
    product = _multiply(left, right)
    if product is None:
        return None
    return _unpack(product, block, [*batch, *rows, *columns], rank)


def _matrices(
    values: Any, block: Block, batch: list[int], rows: list[int], columns: list[int]
) -> Array:
    """Return values over a block as a stack of matrices; the other dimensions have extent 1."""
    kept = [*batch, *rows, *columns]
    shape = [block.extents[n] if n in kept else 1 for n in range(len(block.axes))]
    rest = [n for n in range(len(block.axes)) if n not in kept]
    array = np.broadcast_to(values, shape).transpose(*kept, *rest)
    sizes = (math.prod(block.extents[n] for n in group) for group in (batch, rows, columns))
    return array.reshape(tuple(sizes))


def _unpack(product: Array, block: Block, order: list[int], rank: int) -> Array:
    """Give a stack of matrices its dimensions back, in the order of the axes."""
    missing = [n for n in range(rank) if n not in order]
    shape = [block.extents[n] for n in order] + [1] * len(missing)
    back = np.argsort([*order, *missing])
    result = product.reshape(shape).transpose(back)
    return np.ascontiguousarray(np.broadcast_to(result, block.extents[:rank]))


def _multiply(left: Array, right: Array) -> Array | None:
    """Multiply stacks of matrices; of integers, in float64 if that is exact, else None."""
    dtype = left.dtype
    if np.issubdtype(dtype, np.floating):
        product: Array = left @ right
        return product
    bound = _largest(left) * _largest(right) * left.shape[-1]
    if bound >= EXACT_FLOAT64:
        return None
    exact: Array = left.astype(np.float64) @ right.astype(np.float64)
    return exact.astype(np.int64).astype(dtype)


def _largest(values: Array) -> int:
    return max(abs(int(values.max())), abs(int(values.min())))
