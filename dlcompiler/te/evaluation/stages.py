"""Evaluation of one operation with NumPy, in blocks so that memory stays bounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.ir import Binary, Expr, IfThenElse, Reduce, Reducer, const
from dlcompiler.te.elements import NOWHERE, Array, Block, blocks, used_dimensions
from dlcompiler.te.reducers.laws import is_regroupable
from dlcompiler.te.tensor import ComputeOp, ScanOp, Tensor

BLOCK_POINTS = 2**19
"""Points computed at once: a few arrays of this size fit a second-level cache; [1]."""

FACTOR_ELEMENTS = 2**26
"""Most elements of the two factors if a sum of products is computed as a matrix product; [1]."""

EXACT_FLOAT64 = 2**53
"""All integers up to this are exact in float64."""

LIMB_BITS = 16
"""Bits of the parts into which large integers are split for multiplication."""

Arrays: TypeAlias = list[Array]


@dataclass(frozen=True)
class Domain:
    """Functions that evaluate elements, as values or as magnitudes."""

    element: Callable[[Expr, Block], Any]
    """Values of an expression over a block of the iteration space."""
    start: Callable[[Expr, Block], Any]
    """Start values of a reduction, over a block."""
    storage: Callable[[str], np.dtype[np.generic]]
    """NumPy dtype of the results for elements of a dtype."""
    ufunc: Callable[[Reducer], np.ufunc]
    """The NumPy function that combines two elements, for a reduction by one operation."""
    combine: Callable[[Reducer, Arrays, Arrays], Arrays]
    """Combines two partial results, for any other reduction."""


def compute_stage(op: ComputeOp, domain: Domain) -> dict[Tensor, Array]:
    """Compute all elements of the outputs of an operation.

    Returns
    -------
    dict of Tensor to ndarray
        Of the output's shape; contiguous.
    """
    return dict(zip(op.outputs, _results(op, Block.whole(op.axis), domain), strict=True))


def compute_scan(
    scan: ScanOp, arrays: dict[Any, Array], domain_of: Callable[[ComputeOp], Domain]
) -> None:
    """Compute all elements of the outputs of a scan, step by step.

    Parameters
    ----------
    scan
        The scan.
    arrays
        The arrays of the inits, and of the tensors that the cell reads. The results are added, and
        so are the tensors of the cell; their first rows, before the first step, are not computed.
    domain_of
        Returns the functions for an operation of the cell, which read from `arrays`.
    """
    cell: list[tuple[ComputeOp, Domain]] = []
    for op in scan.cell:
        assert isinstance(op, ComputeOp)
        cell.append((op, domain_of(op)))
        for tensor, body in zip(op.outputs, op.bodies, strict=True):
            dtype = domain_of(op).storage(body.dtype)
            arrays[tensor] = np.empty(tensor.static_shape, dtype)
    for n, output in enumerate(scan.outputs):
        result = arrays[scan.updates[n]]
        result[: scan.first] = arrays[scan.inits[n]]
        arrays[scan.states[n]] = arrays[output] = result
    for step in range(scan.first, scan.outputs[0].static_shape[0]):
        for op, domain in cell:
            row = _results(op, Block.whole(op.axis).row(step), domain)
            for tensor, result in zip(op.outputs, row, strict=True):
                arrays[tensor][step] = result[0]


def _results(op: ComputeOp, box: Block, domain: Domain) -> Arrays:
    """Return the values over a box of the operation's data axes."""
    body = op.body
    if not isinstance(body, Reduce):
        return [_plain(box, each, domain.element, domain) for each in op.bodies]
    if body.reducer.op is None:
        return _fold(box, body, domain)
    product = _matrix_product(box, body, domain)
    return [_reduction(box, body, domain) if product is None else product]


def _plain(box: Block, body: Expr, element: Callable[[Expr, Block], Any], domain: Domain) -> Array:
    result: Array = np.empty(box.extents, domain.storage(body.dtype))
    for block in blocks(box, BLOCK_POINTS):
        result[block.place_in(box)] = element(body, block)
    return result


def _reduction(box: Block, body: Reduce, domain: Domain) -> Array:
    """Reduce block by block, with one NumPy reduction over the reduction axes of each block."""
    ufunc, dtype = domain.ufunc(body.reducer), domain.storage(body.dtype)
    rank = len(box.axes)
    result = _plain(box, body.start[0], domain.start, domain)
    inner = tuple(range(rank, rank + len(body.axes)))
    for block in blocks(box.times(body.axes), BLOCK_POINTS):
        elements = np.broadcast_to(_counted_values(body, block, domain)[0], block.extents)
        place = block.place_in(box)
        if elements.size:
            result[place] = ufunc(result[place], ufunc.reduce(elements, axis=inner, dtype=dtype))
    return result


def _fold(box: Block, body: Reduce, domain: Domain) -> Arrays:
    """Compute a reduction by a user's reducer, block by block."""
    rank = len(box.axes)
    results = [_plain(box, start, domain.start, domain) for start in body.start]
    for block in blocks(box.times(body.axes), BLOCK_POINTS):
        if 0 in block.extents:
            continue
        points = (*block.extents[:rank], -1)
        terms = [*_counted_values(body, block, domain), domain.element(_counts(body), block)]
        values: Arrays = [np.broadcast_to(term, block.extents).reshape(points) for term in terms]
        place = block.place_in(box)
        before = [result[place] for result in results]
        merged = _merged(body, before, values, domain)
        for result, value in zip(results, merged, strict=True):
            result[place] = value
    return results


def _merged(body: Reduce, before: Arrays, values: Arrays, domain: Domain) -> Arrays:
    """Combine the values along the last dimension with the partial results `before`.

    If the reducer is associative, neighbours are combined in a tree: about log2(n) operations on
    whole arrays instead of n.
    """
    is_ordered = not any(np.isnan(array).any() for array in (*before, *values))
    if is_regroupable(body) or (is_ordered and is_regroupable(body, is_ordered=True)):
        return _merged_pairs(body, before, values[:-1], domain)
    return _merged_in_order(body, before, values, domain)


def _merged_pairs(body: Reduce, before: Arrays, values: Arrays, domain: Domain) -> Arrays:
    """Combine neighbours until one value is left.

    Each value is first combined with the identity, as the first step of a loop does: a reducer may
    treat its left argument, a partial result, differently from its right one.
    """
    nothing = [
        np.broadcast_to(np.asarray(domain.start(expr, NOWHERE), array.dtype), array.shape)
        for expr, array in zip(body.reducer.identities, values, strict=True)
    ]
    values = domain.combine(body.reducer, nothing, values)
    while (count := values[0].shape[-1]) > 1:
        even, odd = slice(0, count - count % 2, 2), slice(1, count, 2)
        merged = domain.combine(
            body.reducer, [v[..., even] for v in values], [v[..., odd] for v in values]
        )
        rest = [v[..., count - count % 2 :] for v in values]
        values = [np.concatenate(pair, axis=-1) for pair in zip(merged, rest, strict=True)]
    return domain.combine(body.reducer, before, [value[..., 0] for value in values])


def _merged_in_order(body: Reduce, before: Arrays, values: Arrays, domain: Domain) -> Arrays:
    """Combine one value after the other, as a loop nest does; skip those where `counts` is 0."""
    *values, counts = values
    for n in range(counts.shape[-1]):
        merged = domain.combine(body.reducer, before, [value[..., n] for value in values])
        chosen = counts[..., n] != 0
        before = [np.where(chosen, new, old) for new, old in zip(merged, before, strict=True)]
    return before


def _counts(body: Reduce) -> Expr:
    """Return 1 where the condition of a reduction holds, else 0."""
    if body.condition is None:
        return const(1, "int32")
    return IfThenElse(body.condition, const(1, "int32"), const(0, "int32"))


def _counted_values(body: Reduce, block: Block, domain: Domain) -> Arrays:
    """Return the values to combine, replaced by the identity where the condition is false."""
    if body.condition is None:
        return [domain.element(value, block) for value in body.values]
    counts = domain.element(_counts(body), block) != 0
    identities = body.reducer.identity_of(body.values)
    # `start` gives the identity: the magnitude of an infinite one is 0, as of no value.
    return [
        np.where(
            counts,
            domain.element(IfThenElse(body.condition, value, identity), block),
            domain.start(identity, NOWHERE),
        )
        for value, identity in zip(body.values, identities, strict=True)
    ]


def _matrix_product(box: Block, body: Reduce, domain: Domain) -> Array | None:
    """Compute a sum of products as one (batched) matrix product of its two factors.

    Each factor is evaluated only over the axes it depends on: for a matrix product, n² + n²
    elements instead of n³. Returns None if this is not cheaper, or if each product must be rounded
    to a 16-bit float.
    """
    match body:
        case Reduce(Reducer(op="add"), (Binary("mul", x, y),), _, None, ()):
            factors = (x, y)
        case _:
            return None
    if dtypes.is_float(body.dtype) and domain.storage(body.dtype).itemsize == 2:
        return None
    block = box.times(body.axes)
    rank = len(box.axes)
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
    """Reshape values over a block to a stack of matrices, shape ``(batch, rows, columns)``."""
    kept = [*batch, *rows, *columns]
    shape = [block.extents[n] if n in kept else 1 for n in range(len(block.axes))]
    rest = [n for n in range(len(block.axes)) if n not in kept]
    array = np.broadcast_to(values, shape).transpose(*kept, *rest)
    sizes = (math.prod(block.extents[n] for n in group) for group in (batch, rows, columns))
    return array.reshape(tuple(sizes))


def _unpack(product: Array, block: Block, order: list[int], rank: int) -> Array:
    """Reshape a stack of matrices to the dimensions of the axes, in their order."""
    missing = [n for n in range(rank) if n not in order]
    shape = [block.extents[n] for n in order] + [1] * len(missing)
    back = np.argsort([*order, *missing])
    result = product.reshape(shape).transpose(back)
    return np.ascontiguousarray(np.broadcast_to(result, block.extents[:rank]))


def _multiply(left: Array, right: Array) -> Array | None:
    """Multiply stacks of matrices; None if integers cannot be multiplied exactly by float64."""
    dtype = left.dtype
    if np.issubdtype(dtype, np.floating):
        product: Array = left @ right
        return product
    depth = left.shape[-1]
    if _largest(left) * _largest(right) * depth < EXACT_FLOAT64:
        exact: Array = left.astype(np.float64) @ right.astype(np.float64)
        return exact.astype(np.int64).astype(dtype)
    if np.issubdtype(dtype, np.integer) and depth << (2 * LIMB_BITS) < EXACT_FLOAT64:
        return _wrapped_product(left, right)
    return None


def _wrapped_product(left: Array, right: Array) -> Array:
    """Multiply stacks of matrices of large integers, which wrap.

    Each number is split into limbs of 16 bits, whose products are exact in float64. Products beyond
    the width of the dtype are multiples of its range, so they are left out.
    """
    dtype = left.dtype
    shifts = range(0, 8 * dtype.itemsize, LIMB_BITS)
    total = np.zeros((), np.uint64)
    for a in shifts:
        for b in shifts:
            if a + b < 8 * dtype.itemsize:
                part = _limb(left, a) @ _limb(right, b)
                total = total + (part.astype(np.uint64) << np.uint64(a + b))
    return np.asarray(total).astype(dtype)


def _limb(values: Array, shift: int) -> Array:
    bits = values.astype(np.uint64) >> np.uint64(shift)
    limb: Array = (bits & np.uint64((1 << LIMB_BITS) - 1)).astype(np.float64)
    return limb


def _largest(values: Array) -> int:
    return max(abs(int(values.max())), abs(int(values.min())))
