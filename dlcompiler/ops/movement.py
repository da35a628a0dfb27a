"""The frame of operators that move elements: a result is an element of an operand, or a constant.

Such an operator is a workload, a list of operands, a definition, and a function on NumPy arrays.
Its results are exact. `dlcompiler.ops.injective` schedules all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.ops.base import Operator, Reference, as_expected
from dlcompiler.ops.injective import injective_schedules
from dlcompiler.ops.rounding import Array
from dlcompiler.ops.shapes import FLOATS, INTEGERS, shape_of
from dlcompiler.space import Workload
from dlcompiler.te import PlaceholderOp, Tensor

DTYPES = (*FLOATS, *INTEGERS, "bool")
"""Dtypes of elements that are only moved."""
_MOST = 100


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a workload."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    most: int = _MOST
    """Random elements are below it: for indices, the extent of a dimension."""


def of_data(work: Workload) -> list[Operand]:
    """Return the only operand of a workload with the parameters ``shape`` and ``dtype``."""
    return [Operand("data", shape_of(work["shape"]), work["dtype"])]


def movement(
    name: str,
    workload: Callable[..., Workload],
    operands: Callable[[Workload], list[Operand]],
    element: Callable[..., Tensor | Sequence[Tensor]],
    on_arrays: Callable[..., Array | Sequence[Array]],
) -> Operator:
    """Return an operator that moves elements of its operands.

    Parameters
    ----------
    name : str
        Name in the registry.
    workload : callable
        Makes the workload from named parameters.
    operands : callable
        Returns the operands of a workload.
    element : callable
        Returns the result, or results of one shape, from the workload and the operands' tensors.
    on_arrays : callable
        The same on NumPy arrays.
    """

    def define(work: Workload) -> tuple[Tensor, ...]:
        parts = [te.placeholder(each.shape, each.dtype, each.name) for each in operands(work)]
        made = element(work, *parts)
        return (*parts, made) if isinstance(made, Tensor) else (*parts, *made)

    def reference(work: Workload, seed: int) -> Reference:
        generator = np.random.default_rng(seed)
        arrays = {each.name: _drawn(each, generator) for each in operands(work)}
        outs = [tensor for tensor in define(work) if not isinstance(tensor.op, PlaceholderOp)]
        found = on_arrays(work, *arrays.values())
        values = [found] if isinstance(found, np.ndarray) else list(found)
        expected = {
            out.name: as_expected(value, out.dtype) for out, value in zip(outs, values, strict=True)
        }
        return Reference(arrays, expected, {n: np.zeros(v.shape) for n, v in expected.items()})

    return Operator(
        name,
        workload,
        define,
        reference,
        injective_schedules(define),
    )


def _drawn(operand: Operand, generator: np.random.Generator) -> Array:
    most = 2 if dtypes.is_bool(operand.dtype) else max(operand.most, 1)
    return generator.integers(0, most, operand.shape).astype(dtypes.to_numpy(operand.dtype))
