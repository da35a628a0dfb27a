"""A call of an ATen operator, as the converters of operators see it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.frontends.origin import Origin, constant_of
from dlcompiler.graph.frontends.torch.package import OPERATION, dtype_of, torch_package
from dlcompiler.graph.ir import Constant, Expr

Outputs: TypeAlias = "Expr | Sequence[Expr | None]"
"""What a converter returns: the value of the only result, or of all; None for one that it cannot
compute, which is refused if something reads it."""


@dataclass
class AtenNode(Origin):
    """A call with its arguments by name: expressions for tensors, else what Python has."""

    op_name: str
    """Such as ``add.Tensor``."""
    given: Mapping[str, Any]
    meanings: Mapping[str, Any]
    """The arguments as PyTorch traced them: tensors without elements, and numbers."""
    result: Any
    """The result as PyTorch traced it: a tensor without elements, or several."""

    # -- arguments --------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Any:
        """Return an argument: an expression, a number, a list; None if it is left out."""
        return self.given[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return an argument, or a default if this operator has none of that name."""
        return self.given.get(name, default)

    def tensor(self, name: str) -> Expr:
        """Return an argument that must be a tensor."""
        found = self.given.get(name)
        if not isinstance(found, Expr):
            self.fail(f"argument {name} is no tensor", got=repr(found)[:100])
        return found

    def tensors(self, name: str) -> list[Expr]:
        """Return an argument that is a list of tensors."""
        found = self.given.get(name)
        if not isinstance(found, Sequence) or not all(isinstance(x, Expr) for x in found):
            self.fail(f"argument {name} is no list of tensors", got=repr(found)[:100])
        return list(found)

    def operand(self, name: str, dtype: str) -> Expr:
        """Return an argument, a tensor or a number, as a tensor of a dtype."""
        found = self.given.get(name)
        if isinstance(found, Expr):
            return self.cast(found, dtype)
        if not isinstance(found, bool | int | float):
            self.fail(f"argument {name} is no tensor and no number", got=repr(found)[:100])
        return self.number(found, dtype)

    def number(self, value: float | bool, dtype: str) -> Constant:
        """Return a number as a constant; integers wrap, as PyTorch's do."""
        made = np.asarray(value)
        if made.dtype.kind == "f" and not dtypes.is_float(dtype):
            made = np.asarray(math.trunc(value)) if math.isfinite(value) else made
        with np.errstate(over="ignore", invalid="ignore"):
            return constant_of(made, dtype)

    def listed(self, name: str, rank: int, default: int = 1) -> tuple[int, ...]:
        """Return an argument with an integer for each spatial dimension, or one for all."""
        found = self.given.get(name)
        if found is None or found == []:
            return (default,) * rank
        values = [found] if isinstance(found, int) else list(found)
        values = values * rank if len(values) == 1 else values
        if len(values) != rank or not all(type(n) is int for n in values):
            self.fail(f"{name} does not fit the images", got=repr(found))
        return tuple(values)

    def axis(self, name: str, rank: int, default: int | None = None) -> int:
        """Return an argument that is a dimension, counted from the front."""
        found = self.given.get(name)
        found = default if found is None else found
        if type(found) is not int or not -max(rank, 1) <= found < max(rank, 1):
            self.fail("there is no such dimension", got=f"{name}={found} of {rank}")
        return found % max(rank, 1)

    def axes(self, name: str, rank: int) -> tuple[int, ...]:
        """Return an argument that is a list of dimensions; all of them if it is empty."""
        found = self.given.get(name)
        if found is None or found == []:
            return tuple(range(rank))
        found = [found] if isinstance(found, int) else found
        return tuple(sorted({int(axis) % max(rank, 1) for axis in found})) if rank else ()

    # -- dtypes -----------------------------------------------------------------------------------

    @property
    def out_dtype(self) -> str:
        """The dtype of the result, or of the first one."""
        result = self.result[0] if isinstance(self.result, tuple | list) else self.result
        return dtype_of(result.dtype)

    @property
    def out_shape(self) -> tuple[int, ...]:
        """The shape of the result, or of the first one."""
        result = self.result[0] if isinstance(self.result, tuple | list) else self.result
        return tuple(result.shape)

    def common_dtype(self, a: str, b: str) -> str:
        """Return the dtype to which PyTorch takes two arguments before it compares them."""
        return dtype_of(torch_package().result_type(self.meanings[a], self.meanings[b]))

    # -- refusals ---------------------------------------------------------------------------------

    def describe(self) -> str:
        """Return what is done, the operator and the name of the call."""
        return f"{OPERATION}: {self.op_name} {self.name}".strip()


Converter: TypeAlias = Callable[[AtenNode], Outputs]
"""Returns the results of a call."""
