"""Products that a user wrote as one reduction: recognise them, and schedule them like `MATMUL`."""

from __future__ import annotations

from dlcompiler import te
from dlcompiler.ir import Binary, Reduce, TensorLoad
from dlcompiler.ops.gemm.definition import Stages
from dlcompiler.ops.gemm.product import MAX_EXTENT, matmul_workload
from dlcompiler.ops.gemm.schedule import schedule_stages
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

DTYPES = ("float32", "float64")
"""Dtypes whose sums have the same dtype, so that the copies convert nothing."""


def product_of(tensor: Tensor) -> Workload | None:
    """Return the workload of ``matmul`` that a tensor is the result of; None if it is no product.

    Parameters
    ----------
    tensor
        A tensor as it was written, before any step of a schedule.

    Returns
    -------
    Workload or None
        For ``sum(A[i, k] * B[k, j])`` of float32 or float64, and constant extents.

    Examples
    --------
    >>> A, B = te.placeholder((64, 48), name="A"), te.placeholder((48, 32), name="B")
    >>> k = te.reduce_axis((0, 48), name="k")
    >>> C = te.compute((64, 32), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    >>> product_of(C)
    Workload(op='matmul', params=(('m', 64), ('n', 32), ('k', 48), ('dtype', 'float32')))
    """
    if _factors(tensor) is None:
        return None
    axes = (*tensor.op.axis, *tensor.op.reduce_axis)
    if not all(isinstance(axis.extent, int) and 0 < axis.extent <= MAX_EXTENT for axis in axes):
        return None
    m, n, k = (axis.static_extent for axis in axes)
    return matmul_workload(m=m, n=n, k=k, dtype=tensor.dtype)


def _factors(tensor: Tensor) -> tuple[TensorLoad, TensorLoad] | None:
    """Return the loads of A and of B of a sum over k of ``A[i, k] * B[k, j]``; None of others."""
    op = tensor.op
    if not isinstance(op, te.ComputeOp) or tensor.dtype not in DTYPES or len(op.bodies) != 1:
        return None
    if len(op.axis) != 2 or len(op.reduce_axis) != 1:
        return None
    match op.bodies[0]:
        case Reduce(values=(Binary("mul", TensorLoad() as a, TensorLoad() as b),)) as total:
            pass
        case _:
            return None
    if total.reducer.op != "add" or total.condition is not None or total.init:
        return None
    (i, j), (k,) = op.axis, op.reduce_axis
    for left, right in ((a, b), (b, a)):
        wanted = ((i.var, k.var), (k.var, j.var))
        if all(
            len(load.indices) == 2 and all(x is y for x, y in zip(load.indices, own, strict=True))
            for load, own in zip((left, right), wanted, strict=True)
        ):
            is_same = left.tensor is right.tensor
            return None if is_same or tensor.dtype != left.dtype else (left, right)
    return None


def schedule_product(s: Schedule, tensor: Tensor, cfg: Config, target: Target) -> None:
    """Apply a config of ``matmul`` to a product that a user wrote.

    Copies of A, B and of the result take the place of the stages that the operator defines.

    Parameters
    ----------
    s
        A schedule without steps.
    tensor
        A tensor for which `product_of` returns a workload.
    cfg
        A config of the space of that workload.
    target
        A CPU.

    Raises
    ------
    ScheduleError
        If a primitive refuses a value of the config.
    """
    loads = _factors(tensor)
    assert loads is not None, "the caller has asked product_of"
    read = tensor.op.input_tensors
    A, B = (next(each for each in read if each is load.tensor) for load in loads)
    sums = s.cache_write(tensor, "local")
    left, right = s.cache_read(A, "global", [sums]), s.cache_read(B, "global", [sums])
    schedule_stages(s, tensor, Stages(left, right, sums), cfg, target)
