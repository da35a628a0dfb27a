"""What an intrinsic of a user computes: its tensor expression, on many elements at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler.ir import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Reduce,
    Select,
    TensorLoad,
    Var,
)
from dlcompiler.ir.function_values import call_function
from dlcompiler.ir.numeric import cast_function
from dlcompiler.ir.operations import BINARY, COMPARISONS

Values = npt.NDArray[Any]
Indices = npt.NDArray[np.int64]
COMBINERS: MappingProxyType[str, Any] = MappingProxyType(
    {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
)
"""Operation of a reducer -> what combines arrays."""


@dataclass(frozen=True, eq=False)
class Formula:
    """The values of an intrinsic, by NumPy, with a first axis for the updates."""

    shapes: tuple[tuple[int, ...], ...]
    """Shape of each input, as the intrinsic declares it."""
    inputs: tuple[Any, ...]
    """Its placeholders, in order."""
    axes: tuple[Var, ...]
    """Variables of the result's axes, then of those that are summed."""
    extents: tuple[int, ...]
    value: Expr
    summed: int
    """Number of axes that are summed; [1]."""
    result: str
    """Dtype of the result."""
    element: tuple[int, ...]
    """Shape of the result's element in its memory."""
    accumulates: bool
    """Whether an update is combined with its result, or replaces it."""
    combiner: Any = np.add
    """What combines the values of a reduction."""
    identity: Any = 0

    def products(self, memories: Sequence[Values], elements: Sequence[Indices]) -> Values:
        """Return what each update adds, or its result; (updates, *element)."""
        gathered = [m[e] for m, e in zip(memories, elements, strict=True)]
        return self._evaluated(gathered, len(elements[0]))

    def one(self, inputs: Sequence[Values]) -> Values:
        """Return what one update adds, or its result; (*element,)."""
        result: Values = self._evaluated([each[None] for each in inputs], 1)[0]
        return result

    def _evaluated(self, gathered: Sequence[Values], count: int) -> Values:
        shaped = {
            tensor: each.reshape(count, *shape)
            for tensor, each, shape in zip(self.inputs, gathered, self.shapes, strict=True)
        }
        with np.errstate(all="ignore"):
            found = np.asarray(self._of(self.value, shaped))
            found = np.broadcast_to(found, (count, *self.extents))
            if self.summed:
                own = tuple(range(found.ndim - self.summed, found.ndim))
                found = self.combiner.reduce(found, axis=own, dtype=self.result)
        return found.astype(self.result, copy=False).reshape(count, *self.element)

    def _of(self, expr: Expr, given: dict[Any, Values]) -> Any:
        match expr:
            case Const(value):
                return np.asarray(value, expr.dtype if expr.dtype != "index" else "int64")
            case TensorLoad(tensor, indices):
                return self._load(given[tensor], indices, given)
            case Var():
                place = self.axes.index(expr)
                along = np.arange(self.extents[place])
                return along.reshape([1, *(-1 if n == place else 1 for n in range(len(self.axes)))])
            case Cast(value):
                convert = cast_function(value.dtype, expr.dtype, vector=True)
                return np.asarray(convert(self._of(value, given)))
            case Binary(op, a, b):
                return BINARY[op].arrays(self._of(a, given), self._of(b, given))
            case Compare(op, a, b):
                return COMPARISONS[op].arrays(self._of(a, given), self._of(b, given))
            case Select(condition, a, b) | IfThenElse(condition, a, b):
                return np.where(*(self._of(part, given) for part in (condition, a, b)))
            case Call(name, args):
                function = call_function(name, args[0].dtype)
                return function(*(self._of(arg, given) for arg in args))
        raise NotImplementedError(str(expr))

    def _load(self, values: Values, indices: Sequence[Expr], given: dict[Any, Values]) -> Values:
        """Return elements of an input; (updates, *axes), each axis whole or of extent 1."""
        count = len(values)
        updates = np.arange(count).reshape([count, *[1] * len(self.axes)])
        loaded: Values = values[(updates, *(self._of(index, given) for index in indices))]
        return loaded


def formula_of(intrinsic: Any, element: tuple[int, ...]) -> Formula | None:
    """Return what an intrinsic computes; None for a reduction that NumPy does not have.

    Parameters
    ----------
    intrinsic
        A `te.TensorIntrin`.
    element
        Shape of the result's element in its memory.
    """
    op = intrinsic.op
    body, axes = op.body, [(axis.var, axis.extent) for axis in op.axis]
    summed = 0
    combiner, identity = COMBINERS["add"], 0.0
    if isinstance(body, Reduce):
        combined = body.reducer.op or ""
        if combined not in COMBINERS or body.condition is not None or body.init:
            return None
        combiner = COMBINERS[combined]
        identity = body.reducer.identity(body.dtype).value
        axes += [(axis.var, axis.extent) for axis in body.axes]
        summed, body = len(body.axes), body.values[0]
    return Formula(
        tuple(tensor.static_shape for tensor in intrinsic.inputs), tuple(intrinsic.inputs),
        tuple(var for var, _ in axes), tuple(int(extent) for _, extent in axes), body, summed,
        intrinsic.output.dtype, element, bool(summed), combiner, identity,
    )  # fmt: skip
