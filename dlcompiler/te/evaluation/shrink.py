"""Shrinking of an expression to smaller shapes, because the oracle is slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Extent
from dlcompiler.te.access import check_accesses
from dlcompiler.te.recurrences import started
from dlcompiler.te.symbols import rebuild
from dlcompiler.te.tensor import ComputeOp, ExternOp, Operation, ScanOp, Tensor, post_order

Change: TypeAlias = Callable[[int], int]

SMALL = 4
"""Extents up to this are kept, since they are often windows, strides or channels; [1]."""
NEAR = 16
"""Extents that differ by at most this number shrink by the same number: they are assumed to differ
by a window or a padding; [1]."""


def shrunk(outputs: Sequence[Tensor]) -> Iterator[dict[Tensor, Tensor]]:
    """Yield smaller expressions of the same form, the largest first.

    Parameters
    ----------
    outputs
        Tensors of known shape.

    Yields
    ------
    dict of Tensor to Tensor
        From each tensor that the outputs depend on to the one of smaller shape. Equal extents stay
        equal, and the checks of `te.compute` find no read outside a tensor.
    """
    if any(isinstance(op, ExternOp) for op in post_order(outputs)):
        return  # the statements are written for these extents
    extents = sorted({extent for extent in _extents(outputs) if extent > SMALL})
    for size in (16, 8, 5):
        for change in (_moved(extents, size), _divided(extents, size)):
            if all(change(extent) == extent for extent in extents):
                continue
            known = _resized(outputs, change)
            if known is not None:
                yield known


def _extents(outputs: Sequence[Tensor]) -> Iterator[int]:
    for op in post_order(outputs):
        yield from op.outputs[0].static_shape
        yield from (axis.static_extent for axis in op.reduce_axis)


def _moved(extents: Sequence[int], size: int) -> Change:
    """Subtract the same number from extents that are near each other, so that windows fit."""
    clusters: list[tuple[int, int]] = []
    for extent in extents:
        if clusters and extent - clusters[-1][1] <= NEAR:
            clusters[-1] = (clusters[-1][0], extent)
        else:
            clusters.append((extent, extent))

    def change(number: int) -> int:
        for first, last in clusters:
            if first - NEAR // 2 <= number <= last + NEAR // 2:
                # The remainder by 4 is kept, so that small splits divide as before.
                return number - max(first - size - first % 4, 0)
        return number

    return change


def _divided(extents: Sequence[int], size: int) -> Change:
    """Divide all extents by the same factor, so that strides and packed blocks fit."""
    factor = 1
    while extents and -(-extents[-1] // factor) > size:
        factor *= 2
    return lambda number: -(-number // factor) if number > SMALL else number


def _resized(outputs: Sequence[Tensor], change: Change) -> dict[Tensor, Tensor] | None:
    """Return the expression with other extents; None if it would read outside a tensor."""

    def resize(extent: Extent, name: str) -> int:
        assert isinstance(extent, int), name
        return change(extent) if extent > SMALL else extent

    known = rebuild(outputs, resize, boundary=change)
    try:
        for op in _as_computed(post_order([known[output] for output in outputs])):
            for body in op.bodies:
                check_accesses(body, (*op.axis, *op.reduce_axis), f"shrink {op.name}")
    except ExpressionError:
        return None
    return known


def _as_computed(order: Sequence[Operation]) -> Iterator[ComputeOp]:
    """Yield all compute operations; those of a scan's cell begin at the first step."""
    firsts = {op: scan.first for scan in order if isinstance(scan, ScanOp) for op in scan.cell}
    for op in order:
        if isinstance(op, ComputeOp):
            yield started(op, firsts[op]) if op in firsts else op
