"""Operations and layers of CoreML models, as the converters see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler.graph.frontends.coreml.messages import OPERATION, Message
from dlcompiler.graph.frontends.coreml.weights import weights_of
from dlcompiler.graph.frontends.origin import Origin, constant_of
from dlcompiler.graph.ir import Constant, Expr
from dlcompiler.graph.operators.base import Array

MOST_NUMBERS = 4096
"""Most axes, extents or bounds of an operator; [1]."""

Outputs: TypeAlias = "Expr | Sequence[Expr]"
Operand: TypeAlias = "Expr | str"
Extents: TypeAlias = "tuple[int | None, ...]"
"""Extents of a tensor; None: an open one."""


@dataclass
class CoremlOrigin(Origin):
    """A node of CoreML: the base of operations (MIL) and of layers."""

    op_name: str

    def describe(self) -> str:
        """Return what is done, the operator and the name of its result."""
        return f"{OPERATION}: {self.op_name} {self.name}".strip()

    def listed(self, numbers: Sequence[int] | Array, what: str) -> list[int]:
        """Return axes, extents or bounds as a list of a limited length."""
        if len(numbers) > MOST_NUMBERS:
            self.fail(f"it has too many numbers as {what}", got=str(len(numbers)),
                      expected=f"at most {MOST_NUMBERS}")  # fmt: skip
        return [int(n) for n in numbers]

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis, counted from the front."""
        if not -rank <= axis < rank:
            self.fail("there is no such axis", got=f"axis {axis} of {rank} dimensions")
        return axis % rank

    def axes(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        """Return axes in order, counted from the front."""
        return tuple(sorted({self.axis(axis, rank) for axis in axes}))


@dataclass
class Operation(CoremlOrigin):
    """An operation of a program (MIL) with its operands."""

    inputs: Mapping[str, Sequence[Operand]]
    """Name of a parameter -> its operands."""
    results: Sequence[tuple[str, Extents]]
    """Dtypes and shapes of its results, as the file has them."""

    @property
    def out_dtype(self) -> str:
        """The dtype of the first result, as the file has it."""
        return self.results[0][0]

    def has(self, name: str) -> bool:
        """Tell whether a parameter is given."""
        return bool(self.inputs.get(name))

    def inputs_of(self, name: str) -> list[Expr]:
        """Return the tensors of a parameter."""
        found = [each for each in self.inputs.get(name, ()) if not isinstance(each, str)]
        if not found or len(found) < len(self.inputs[name]):
            self.fail(f"it has no tensor {name}")
        return found

    def input(self, name: str = "x") -> Expr:
        """Return the tensor of a parameter."""
        return self.inputs_of(name)[0]

    def array(self, name: str) -> Array:
        """Return a parameter that must be known."""
        value = self.input(name)
        if not isinstance(value, Constant):
            self.fail(f"{name} is computed when the model runs")
        return value.value

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """Return a list of known integers."""
        if not self.has(name) and default is not None:
            return list(default)
        array = self.array(name)
        if array.dtype.kind not in "iub":
            self.fail(f"{name} has no integers", got=str(array.dtype))
        return self.listed(array.reshape(-1), name)

    def integer(self, name: str, default: int | None = None) -> int:
        """Return a known integer."""
        found = self.integers(name, None if default is None else [default])
        if len(found) != 1:
            self.fail(f"{name} is no single number", got=repr(found)[:100])
        return found[0]

    def number(self, name: str, default: float | None = None) -> float:
        """Return a known number."""
        if not self.has(name) and default is not None:
            return default
        array = self.array(name)
        if array.size != 1:
            self.fail(f"{name} is no single number", got=repr(array.shape))
        return float(array.reshape(-1)[0])

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a known truth value."""
        return bool(self.integer(name, int(default)))

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text."""
        found = self.inputs.get(name, ())
        if not found and default is not None:
            return default
        if len(found) != 1 or not isinstance(found[0], str):
            self.fail(f"{name} is no text")
        return found[0]


@dataclass
class Layer(CoremlOrigin):
    """A layer of a network with its operands."""

    inputs: Sequence[Expr]
    params: Message
    count: int
    """Number of its results."""

    def input(self, i: int = 0) -> Expr:
        """Return an operand that must be there."""
        if i >= len(self.inputs):
            self.fail(f"operand {i} is missing")
        return self.inputs[i]

    def weights(self, name: str, shape: Sequence[int], axis: int = 0) -> Constant:
        """Return weights by their name; `axis` is that of the output channels."""
        given = self.params[name]
        if given is None:
            self.fail(f"its {name} are missing")
        what = f"array {name} of {self.name!r}"
        return constant_of(weights_of(given, tuple(shape), what, axis))

    def integers(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """Return a list of integers; the default if it is empty."""
        return self.listed(self.params[name], name) or list(default)


OperationConverter: TypeAlias = Callable[[Operation], Outputs]
"""Returns the values of an operation."""
LayerConverter: TypeAlias = Callable[[Layer], Outputs]
"""Returns the values of a layer."""
