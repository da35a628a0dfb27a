"""Count the work of a tensor expression, independently of its schedule."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler import dtypes
from dlcompiler.arith import Analyzer, Interval
from dlcompiler.ir import Binary, Call, Expr, Reduce, TensorLoad, walk
from dlcompiler.ir.rewrite import Node
from dlcompiler.te import ComputeOp, ExternOp, ScanOp, Tensor, post_order

Region: TypeAlias = list[tuple[int, int]]
"""For each dimension, the first index and the one after the last."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of an expression."""

    flops: int
    """Arithmetic operations on floats; a multiply and an add count two, even when fused."""
    bytes: int
    """Size of all inputs and outputs, the least possible memory traffic [byte]."""

    @property
    def intensity(self) -> float:
        """Arithmetic intensity [flop/byte]."""
        return self.flops / self.bytes if self.bytes else math.inf


def work_of(outputs: Iterable[Tensor]) -> Work | None:
    """Count the operations in the definitions of `outputs` and of their producers.

    Only the elements of a producer that the outputs need are counted. The work is the same for a
    kernel that recomputes elements, or uses a better algorithm. None if outside code computes
    something, whose operations are unknown.
    """
    results = list(outputs)
    if any(isinstance(op, ExternOp) for op in post_order(results)):
        return None
    needed = {tensor: [(0, extent) for extent in tensor.static_shape] for tensor in results}
    flops = 0
    moved = sum(_bytes(tensor) for tensor in results)
    for op in reversed(post_order(results)):
        if isinstance(op, ScanOp):
            # A scan: the update computes the rows after those of the init.
            for tensor in op.input_tensors:
                first = op.first if tensor in op.updates else 0
                rows, *rest = tensor.static_shape
                needed[tensor] = [(first, rows), *((0, extent) for extent in rest)]
            continue
        if not isinstance(op, ComputeOp):
            moved += _bytes(op.output(0))
            continue
        region = _joint_region([needed[t] for t in op.outputs if t in needed])
        points = math.prod(end - first for first, end in region)
        points *= math.prod(axis.static_extent for axis in op.reduce_axis)
        flops += points * sum(expr_flops(body) for body in op.bodies)
        _add_needs(op, region, needed)
    return Work(flops, moved)


def _joint_region(regions: list[Region]) -> Region:
    """Return the smallest region that contains the needed regions of an operation's outputs."""
    joint = regions[0]
    for region in regions[1:]:
        joint = [*map(_union, joint, region)]
    return joint


def _bytes(tensor: Tensor) -> int:
    return math.prod(tensor.static_shape) * dtypes.bytes_of(tensor.dtype)


def _add_needs(op: ComputeOp, region: Region, needed: dict[Tensor, Region]) -> None:
    """Add to `needed` the regions of the tensors that `op` reads to compute `region`."""
    ranges = {
        axis.var: Interval(first, end - 1)
        for axis, (first, end) in zip(op.axis, region, strict=True)
    }
    ranges.update((axis.var, Interval(0, axis.static_extent - 1)) for axis in op.reduce_axis)
    is_empty = any(interval.high < interval.low for interval in ranges.values())
    analyzer = Analyzer(ranges)
    for load in (node for body in op.bodies for node in walk(body)):
        if not isinstance(load, TensorLoad) or not isinstance(load.tensor, Tensor):
            continue
        shape = load.tensor.static_shape
        read = [
            (0, 0) if is_empty else _span(analyzer.interval(index), extent)
            for index, extent in zip(load.indices, shape, strict=True)
        ]
        known = needed.get(load.tensor)
        needed[load.tensor] = read if known is None else [*map(_union, known, read)]


def _span(interval: Interval, extent: int) -> tuple[int, int]:
    first, end = max(interval.low, 0), min(interval.high + 1, extent)
    return int(first), int(max(first, end))


def _union(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    if a[0] == a[1] or b[0] == b[1]:
        return a if b[0] == b[1] else b
    return min(a[0], b[0]), max(a[1], b[1])


def float_dtypes(outputs: Iterable[Tensor]) -> set[str]:
    """Return the dtypes of the float operations in the definitions of `outputs`."""
    bodies = [body for op in post_order(outputs) if isinstance(op, ComputeOp) for body in op.bodies]
    return {dtype for body in bodies for node in walk(body) if (dtype := _float_dtype(node))}


def expr_flops(expr: Expr) -> int:
    """Count the float operations of one evaluation; a reduction adds one to combine.

    A part that an expression uses twice (``x * x``) is computed once.
    """
    return sum(bool(_float_dtype(node)) for node in walk(expr))


def _float_dtype(node: Node) -> str:
    """Return the dtype of an arithmetic operation on floats; '' for other nodes."""
    if not isinstance(node, Binary | Call | Reduce):
        return ""
    dtype = dtypes.element(node.dtype)
    return dtype if dtypes.is_float(dtype) else ""
