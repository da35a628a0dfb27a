"""Helpers to define operators: tensors, reduction axes, dimension arguments, and tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Axis, TensorLoad, walk

ELEMWISE = "elemwise"
"""Tag of operators whose element reads each tensor at the same indices."""
BROADCAST = "broadcast"
"""Tag of elementwise operators that may also repeat a tensor along a dimension."""
INJECTIVE = "injective"
"""Tag of operators whose element reads one element of each tensor, at any index."""
COMM_REDUCE = "comm_reduce"
"""Tag of reductions."""
COMM_REDUCE_IDX = "comm_reduce_idx"
"""Tag of reductions to an index, such as argmax."""


def tensor(shape: Any, element: Callable[..., Any], name: str, tag: str = "") -> te.Tensor:
    """Define a tensor by a function that returns one element."""
    made: te.Tensor = te.compute(tuple(shape), element, name=name, tag=tag)
    return made


def over(extent: Any, name: str = "k") -> Axis:
    """Declare an axis to reduce over."""
    return te.reduce_axis((0, extent), name=name)


def dimensions(axis: Any, ndim: int, operation: str) -> tuple[int, ...]:
    """Return the dimensions in `axis`; None is all, negative numbers count from the last.

    Raises
    ------
    ExpressionError
        There is no such dimension.
    """
    given = range(ndim) if axis is None else axis if isinstance(axis, list | tuple) else (axis,)
    found = tuple(sorted({int(n) + ndim if n < 0 else int(n) for n in given}))
    if any(not 0 <= n < ndim for n in found):
        raise ExpressionError(operation, "no such dimension", got=axis, expected=f"below {ndim}")
    return found


def along(x: te.Tensor, n: int, reduce: Any, name: str) -> te.Tensor:
    """Reduce a tensor along one dimension."""
    k = over(x.shape[n])
    shape = without(x.shape, n)
    return tensor(shape, lambda *i: reduce(x[(*i[:n], k, *i[n:])], axis=k), name=name)


def without(items: Sequence[Any], n: int) -> tuple[Any, ...]:
    """Remove dimension `n` from indices or extents."""
    return (*items[:n], *items[n + 1 :])


def reduced(result: te.Tensor) -> tuple[te.Tensor, tuple[int, ...]]:
    """Return the operand of a reduction, and its reduced dimensions in ascending order."""
    op = result.op
    assert isinstance(op, te.ComputeOp)
    gone = {id(axis.var) for axis in op.reduce_axis}
    loads = [node for node in walk(op.bodies[0]) if isinstance(node, TensorLoad)]
    load = next((x for x in loads if any(id(i) in gone for i in x.indices)), loads[0])
    assert isinstance(load.tensor, te.Tensor)
    return load.tensor, tuple(n for n, index in enumerate(load.indices) if id(index) in gone)
