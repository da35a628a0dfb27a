"""An operator of a TFLite model, as the converters see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dlcompiler.graph.frontends.origin import Origin
from dlcompiler.graph.frontends.tflite.reading import OPERATION
from dlcompiler.graph.ir import Constant, Expr, TensorType
from dlcompiler.graph.operators.base import Array

Outputs: TypeAlias = "Expr | Sequence[Expr]"


@dataclass
class TfliteNode(Origin):
    """An operator with its operands, as expressions."""

    op_name: str
    inputs: Sequence[Expr | None]
    """None for an operand that is left out."""
    results: Sequence[TensorType]
    """The types of its outputs, as the file has them."""
    options: Any
    """The table of its options; None: it has none."""

    def input(self, i: int) -> Expr:
        """Return an operand that must be there."""
        found = self.optional(i)
        if found is None:
            self.fail(f"operand {i} is missing")
        return found

    def optional(self, i: int) -> Expr | None:
        """Return an operand; None if it is left out."""
        return self.inputs[i] if i < len(self.inputs) else None

    def constant(self, i: int, what: str) -> Array:
        """Return an operand whose elements must be known, such as axes."""
        value = self.input(i)
        if not isinstance(value, Constant):
            self.fail(f"{what} are computed when the model runs")
        return value.value

    def integers(self, i: int, what: str) -> list[int]:
        """Return an operand that is a list of known integers."""
        return [int(n) for n in np.ravel(self.constant(i, what))]

    def option(self, name: str, default: Any = 0) -> Any:
        """Return an option by its name in the schema, such as ``StrideH``."""
        return default if self.options is None else getattr(self.options, name)()

    @property
    def out_dtype(self) -> str:
        """The dtype of the first output, as the file has it."""
        return self.results[0].dtype

    def activated(self, value: Expr) -> Expr:
        """Return a result with the function of the option ``fused_activation_function``."""
        number = int(self.option("FusedActivationFunction"))
        match number:
            case 0:
                return value
            case 1:
                return self.call("nn.relu", value)
            case 2:
                return self.call("clip", value, a_min=-1.0, a_max=1.0)
            case 3:
                return self.call("nn.relu6", value)
            case 4:
                return self.call("tanh", value)
        self.fail("its activation is not known", got=f"number {number}")

    def describe(self) -> str:
        """Return what is done, the operator and the name of its result."""
        return f"{OPERATION}: {self.op_name} {self.name}".strip()


Converter: TypeAlias = Callable[[TfliteNode], Outputs]
"""Returns the values of an operator."""
