"""How much work a tensor expression asks for, whatever its schedule."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.ir import Binary, Call, Expr, Reduce, walk
from dlcompiler.te import ComputeOp, PlaceholderOp, Tensor, post_order


@dataclass(frozen=True, slots=True)
class Work:
    """The work of an expression."""

    flops: int
    """Arithmetic operations on floats; a multiply and an add count two, even when fused."""
    bytes: int
    """Size of all inputs and outputs: what must be moved at least [byte]."""

    @property
    def intensity(self) -> float:
        """Arithmetic intensity [flop/byte]."""
        return self.flops / self.bytes if self.bytes else math.inf


def work_of(outputs: Iterable[Tensor]) -> Work:
    """Count the operations that the definitions of `outputs` and their producers write down.

    A kernel that recomputes, or skips by a better algorithm, is measured against the same work.
    """
    results = list(outputs)
    flops = 0
    moved = sum(_bytes(tensor) for tensor in results)
    for op in post_order(results):
        if isinstance(op, PlaceholderOp):
            moved += _bytes(op.output(0))
        else:
            flops += _op_flops(op)
    return Work(flops, moved)


def _bytes(tensor: Tensor) -> int:
    return math.prod(tensor.shape) * dtypes.bytes_of(tensor.dtype)


def _op_flops(op: ComputeOp) -> int:
    points = math.prod(axis.extent for axis in (*op.axis, *op.reduce_axis))
    return points * expr_flops(op.body)


def expr_flops(expr: Expr) -> int:
    """Count the float operations of one evaluation; a reduction adds one to combine.

    A part that an expression uses twice (``x * x``) is computed once.
    """
    return sum(
        isinstance(node, Binary | Call | Reduce) and dtypes.is_float(dtypes.element(node.dtype))
        for node in walk(expr)
    )
