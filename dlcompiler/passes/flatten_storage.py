"""Flatten internal buffers to one dimension, including strides and padding.

*Before*::

    def main(A: float32[4, 16], C: float32[4, 16]):
        allocate B: float32[4, 16]
        for i in range(4):
            for j in range(16):
                B[i, j] = A[i, j] + 1.0
        for i in range(4):
            for j in vectorized(16):
                C[i, j] = B[i, j]*2.0

*After*::

    def main(A: float32[4, 16], C: float32[4, 16]):
        allocate B: float32[64]
        for i in range(4):
            for j in range(16):
                B[i*16 + j] = A[i, j] + 1.0
        for i in range(4):
            for j in vectorized(16):
                C[i, j] = B[i*16 + j]*2.0

Rows that `storage_align` keeps 20 elements apart become ``B[i*20 + j]`` of 76 elements. A buffer
``float32[4 | 16, 2]``, with a separator between its axes, becomes ``float32[4 | 32]``: memory of
several dimensions gets an index for each.

The code generators of this project support strides, and dimensions are easier to read, so no
pipeline contains this pass. `storage_rewrite` flattens buffers that share memory and differ in
shape; a generator for a language without strides runs it on all buffers.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from dlcompiler import dtypes
from dlcompiler.ir import (
    Allocate,
    Broadcast,
    Buffer,
    Expr,
    Extent,
    Load,
    Prefetch,
    PrimFunc,
    Ramp,
    Region,
    Stmt,
    Store,
    binary,
    extent_binary,
    extent_expr,
    extent_product,
    index_const,
    rewrite,
    walk,
    walk_statements,
)
from dlcompiler.ir.operations import BinaryOp
from dlcompiler.ir.rewrite import Node

T = TypeVar("T")


def flatten_storage(func: PrimFunc, *, only: Collection[Buffer] | None = None) -> PrimFunc:
    """Flatten the buffers that a function allocates to the dimensions of their memory, mostly one.

    Parameters
    ----------
    func
        Any function; its parameters keep their shapes, and so do buffers that intrinsics work on.
    only
        The buffers to flatten; all by default, but those that calls from outside get.
    """
    own = [node.buffer for node in walk_statements(func.body) if isinstance(node, Allocate)]
    fixed = {node.buffer for node in walk(func.body) if isinstance(node, Region)}
    chosen = [buffer for buffer in own if buffer not in fixed and (only is None or buffer in only)]
    flat = {buffer: flat_buffer(buffer) for buffer in chosen if not is_flat(buffer)}
    return func.with_body(with_flat_accesses(func.body, flat)) if flat else func


def is_flat(buffer: Buffer) -> bool:
    """Tell whether a buffer has as many dimensions as its memory; a single one has no gaps."""
    if buffer.separators:
        return len(buffer.shape) == 1 + len(buffer.separators)
    return len(buffer.shape) == 1 and buffer.strides == (1,)


def flat_buffer(buffer: Buffer) -> Buffer:
    """Return a buffer flattened to one dimension, or to the dimensions of its memory."""
    if buffer.separators:
        shape = tuple(extent_product(part) for part in _parts(buffer, buffer.shape))
        return Buffer(
            buffer.name, shape, buffer.dtype, buffer.scope,
            alignment=buffer.alignment, separators=tuple(range(1, len(shape))),
        )  # fmt: skip
    return replace(buffer, shape=(elements_spanned(buffer),), strides=(1,))


def elements_spanned(buffer: Buffer) -> Extent:
    """Return the number of elements that a buffer spans, gaps included."""
    if buffer.is_static:
        if 0 in buffer.shape:
            return 0
        steps = zip(buffer.static_shape, buffer.static_strides, strict=True)
        return 1 + sum((extent - 1) * stride for extent, stride in steps)
    if not buffer.shape:
        return 1
    return extent_binary("mul", buffer.shape[0], buffer.strides[0])


def with_flat_accesses(stmt: Stmt, flat: Mapping[Buffer, Buffer]) -> Stmt:
    """Replace buffers, all accesses and allocations of them, by one-dimensional ones."""

    def rule(node: Node) -> Node:
        match node:
            case Load() | Store() | Prefetch() if node.buffer in flat:
                indices = flat_indices(node.buffer, node.indices)
                return replace(node, buffer=flat[node.buffer], indices=indices)
            case Allocate() if node.buffer in flat:
                return replace(node, buffer=flat[node.buffer])
        return node

    return rewrite(stmt, rule)


def flat_indices(buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Return the indices of an element in the buffer that `flat_buffer` returns."""
    if not buffer.separators:
        return (flat_index(buffer, indices),)
    parts = zip(_parts(buffer, buffer.shape), _parts(buffer, indices), strict=True)
    return tuple(
        flat_index(replace(buffer, shape=s, strides=(), separators=()), i) for s, i in parts
    )


def _parts(buffer: Buffer, items: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """Split `items`, one per dimension of a buffer, by the dimensions of its memory."""
    for first, end in itertools.pairwise((0, *buffer.separators, len(items))):
        yield items[first:end]


def flat_index(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
    """Return the offset of an element from the first [elements]; a vector for vector indices."""
    total: Expr | None = None
    for index, stride in zip(indices, buffer.strides, strict=True):
        term = index if isinstance(stride, int) and stride == 1 else _times(index, stride)
        total = term if total is None else _plus(total, term)
    return index_const(0) if total is None else total


def _times(index: Expr, stride: Extent) -> Expr:
    factor = extent_expr(stride)
    match index:
        case Ramp(base, step, lanes):
            return Ramp(binary("mul", base, factor), binary("mul", step, factor), lanes)
        case Broadcast(value, lanes):
            return Broadcast(binary("mul", value, factor), lanes)
    return binary("mul", index, factor)


def _plus(a: Expr, b: Expr) -> Expr:
    op: BinaryOp = "add"
    match a, b:
        case Ramp(base, step, lanes), Ramp(other, by, _):
            return Ramp(binary(op, base, other), binary(op, step, by), lanes)
        case Ramp(base, step, lanes), Broadcast(value, _):
            return Ramp(binary(op, base, value), step, lanes)
        case Ramp(base, step, lanes), _ if dtypes.lanes(b.dtype) == 1:
            return Ramp(binary(op, base, b), step, lanes)
        case Broadcast() | _, Ramp() if not isinstance(a, Ramp):
            return _plus(b, a)
    return binary(op, a, b)
