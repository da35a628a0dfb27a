"""One operation of a tensor expression computed with NumPy, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dlcompiler.ir import Binary, Expr, IfThenElse, Reduce, Reducer
from dlcompiler.te.elements import Array, Block, blocks, used_dimensions
from dlcompiler.te.tensor import ComputeOp, Tensor

BLOCK_POINTS = 2**19
"""Points computed at a time: a few arrays of this size stay in a second-level cache."""

FACTOR_ELEMENTS = 2**26
"""Most elements of the two factors of a sum of products that is computed as a matrix product."""

EXACT_FLOAT64 = 2**53

Arrays: TypeAlias = list[Array]


@dataclass(frozen=True)
class Domain:
    """What is computed of each element: its value, or a bound of it."""

    element: Callable[[Expr, Block], Any]
    """Values of an expression over a block of the iteration space."""
    start: Callable[[Expr, Block], Any]
    """Values of what a reduction starts from."""
    storage: Callable[[str], np.dtype[np.generic]]
    """NumPy dtype of the results for elements of a dtype."""
    ufunc: Callable[[Reducer], np.ufunc]
    """How two elements of a reduction by one operation are combined."""
    combine: Callable[[Reducer, Arrays, Arrays], Arrays]
    """How the values of two partial results of any other reduction are combined."""


def compute_stage(op: ComputeOp, domain: Domain) -> dict[Tensor, Array]:
    """Compute all elements of the outputs of an operation.

    Returns
    -------
    dict of Tensor to ndarray
        Of the output's shape; contiguous.
    """
    return dict(zip(op.outputs, _results(op, domain), strict=True))


def _results(op: ComputeOp, domain: Domain) -> Arrays:
    body = op.body
    if not isinstance(body, Reduce):
        return [_plain(op, each, domain.element, domain) for each in op.bodies]
    if body.reducer.op is None:
        return _fold(op, body, domain)
    product = _matrix_product(op, body, domain)
    return [_reduction(op, body, domain) if product is None else product]


def _plain(
    op: ComputeOp, body: Expr, element: Callable[[Expr, Block], Any], domain: Domain
) -> Array:
    result: Array = np.empty([axis.static_extent for axis in op.axis], domain.storage(body.dtype))
    for block in blocks(op.axis, BLOCK_POINTS):
        result[block.place] = element(body, block)
    return result


def _reduction(op: ComputeOp, body: Reduce, domain: Domain) -> Array:
    """Combine the elements block by block, over the reduction axes of each at once."""
    ufunc, dtype = domain.ufunc(body.reducer), domain.storage(body.dtype)
    rank = len(op.axis)
    result = _plain(op, body.start[0], domain.start, domain)
    inner = tuple(range(rank, rank + len(body.axes)))
    (value,) = _counted_values(body)
    for block in blocks((*op.axis, *body.axes), BLOCK_POINTS):
        elements = np.broadcast_to(domain.element(value, block), block.extents)
        place = block.place[:rank]
        if elements.size:
            result[place] = ufunc(result[place], ufunc.reduce(elements, axis=inner, dtype=dtype))
    return result


def _fold(op: ComputeOp, body: Reduce, domain: Domain) -> Arrays:
    """Combine neighbours until one is left: in order, as an associative reduction allows."""
    rank = len(op.axis)
    results = [_plain(op, start, domain.start, domain) for start in body.start]
    counted = _counted_values(body)
    for block in blocks((*op.axis, *body.axes), BLOCK_POINTS):
        if 0 in block.extents:
            continue
        points = (*block.extents[:rank], -1)
        values: Arrays = [
            np.broadcast_to(domain.element(value, block), block.extents).reshape(points)
            for value in counted
        ]
        while (count := values[0].shape[-1]) > 1:
            even, odd = slice(0, count - count % 2, 2), slice(1, count, 2)
            merged = domain.combine(
                body.reducer, [v[..., even] for v in values], [v[..., odd] for v in values]
            )
            rest = [v[..., count - count % 2 :] for v in values]
            values = [np.concatenate(pair, axis=-1) for pair in zip(merged, rest, strict=True)]
        place = block.place[:rank]
        partial = [value[..., 0] for value in values]
        merged = domain.combine(body.reducer, [result[place] for result in results], partial)
        for result, value in zip(results, merged, strict=True):
            result[place] = value
    return results


def _counted_values(body: Reduce) -> tuple[Expr, ...]:
    """Return what is combined: the identity where the condition does not hold."""
    if body.condition is None:
        return body.values
    identities = body.reducer.identity_of(body.values)
    return tuple(
        IfThenElse(body.condition, value, identity)
        for value, identity in zip(body.values, identities, strict=True)
    )


def _matrix_product(op: ComputeOp, body: Reduce, domain: Domain) -> Array | None:
    """Compute a sum of products as one (batched) matrix product of its two factors.

    Each factor is evaluated only over the axes it depends on, which is what makes this cheap:
    n² + n² elements instead of n³ for a matrix product. None if it would not be cheaper, or if
    the products must be rounded one by one.
    """
    match body:
        case Reduce(Reducer(op="add"), (Binary("mul", x, y),), _, None, ()) if body.dtype not in (
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
