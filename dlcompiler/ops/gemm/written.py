"""Products that a user wrote as one reduction: recognise them, and schedule them like `MATMUL`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_

from dlcompiler import te
from dlcompiler.ir import Binary, Reduce, TensorLoad, Var
from dlcompiler.ops.gemm.definition import Stages
from dlcompiler.ops.gemm.product import MAX_EXTENT, batch_matmul_workload, matmul_workload
from dlcompiler.ops.gemm.schedule import schedule_stages
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

DTYPES = ("float32", "float64")
"""Dtypes whose sums have the same dtype, so that the copies convert nothing."""


@dataclass(frozen=True, eq=False)
class Factors:
    """The operands of a product that a user wrote, and how they are stored."""

    left: TensorLoad
    right: TensorLoad
    layout: str
    """A letter for each operand: ``N``, or ``T`` for one that is stored transposed."""


def product_of(tensor: Tensor) -> Workload | None:
    """Return the workload that a tensor is the result of; None if it is no product.

    Parameters
    ----------
    tensor
        A tensor as it was written, before any step of a schedule.

    Returns
    -------
    Workload or None
        Of ``matmul`` for ``sum(A[i, k] * B[k, j])`` of float32 or float64 and constant extents,
        where A and B may be stored transposed; of ``batch_matmul`` for stacks of matrices.

    Examples
    --------
    >>> A, B = te.placeholder((64, 48), name="A"), te.placeholder((32, 48), name="B")
    >>> k = te.reduce_axis((0, 48), name="k")
    >>> C = te.compute((64, 32), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    >>> product_of(C).params
    (('m', 64), ('n', 32), ('k', 48), ('dtype', 'float32'), ('layout', 'NT'))
    """
    found = _factors(tensor)
    if found is None:
        return None
    axes = (*tensor.op.axis, *tensor.op.reduce_axis)
    if not all(isinstance(axis.extent, int) and 0 < axis.extent <= MAX_EXTENT for axis in axes):
        return None
    *stack, m, n, k = (axis.static_extent for axis in axes)
    if not stack:
        return matmul_workload(m=m, n=n, k=k, dtype=tensor.dtype, layout=found.layout)
    return batch_matmul_workload(
        batch=stack[0], m=m, n=n, k=k, dtype=tensor.dtype, layout=found.layout
    )


def _factors(tensor: Tensor) -> Factors | None:
    """Return the operands of a sum over k of ``A[i, k] * B[k, j]``; None for other tensors."""
    op = tensor.op
    if not isinstance(op, te.ComputeOp) or tensor.dtype not in DTYPES or len(op.bodies) != 1:
        return None
    if len(op.axis) not in (2, 3) or len(op.reduce_axis) != 1:
        return None
    match op.bodies[0]:
        case Reduce(values=(Binary("mul", TensorLoad() as a, TensorLoad() as b),)) as total:
            pass
        case _:
            return None
    if total.reducer.op != "add" or total.condition is not None or total.init:
        return None
    if a.tensor is b.tensor or tensor.dtype != a.dtype:
        return None
    *stack, i, j, k = (axis.var for axis in (*op.axis, *op.reduce_axis))
    for left, right in ((a, b), (b, a)):
        layout = _letter(left, stack, (i, k)) + _letter(right, stack, (k, j))
        if len(layout) == 2:
            return Factors(left, right, layout)
    return None


def _letter(load: TensorLoad, stack: Sequence[Var], pair: tuple[Var, Var]) -> str:
    """Return ``N`` if a load has these indices, ``T`` if the last two are swapped, '' otherwise."""
    for letter, wanted in (("N", pair), ("T", pair[::-1])):
        own = (*stack, *wanted)
        if len(load.indices) == len(own) and all(map(is_, load.indices, own)):
            return letter
    return ""


def schedule_product(s: Schedule, tensor: Tensor, cfg: Config, target: Target) -> None:
    """Apply a config of ``matmul`` or ``batch_matmul`` to a product that a user wrote.

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
    found = _factors(tensor)
    assert found is not None, "the caller has asked product_of"
    read = tensor.op.input_tensors
    A, B = (next(t for t in read if t is load.tensor) for load in (found.left, found.right))
    sums = s.cache_write(tensor, "local")
    left, right = s.cache_read(A, "global", [sums]), s.cache_read(B, "global", [sums])
    swapped = (letter == "T" for letter in found.layout)
    schedule_stages(s, tensor, Stages(left, right, sums, *swapped), cfg, target)
