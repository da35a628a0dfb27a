"""A node of an ONNX model, as the converters of operators see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from dlcompiler.graph.frontends.onnx.reading import OPERATION
from dlcompiler.graph.frontends.origin import Origin
from dlcompiler.graph.ir import Constant, Expr, Tuple
from dlcompiler.graph.operators.base import Array

Outputs: TypeAlias = "Expr | Sequence[Expr | None]"
"""What a converter returns: the value of the only output, or of all; None for an optional without a
value. Outputs that it cannot compute are left out at the end, and refused if something reads them.
"""


@dataclass
class Node(Origin):
    """A node with its operands, as expressions; a sequence of tensors is a `Tuple`."""

    op_type: str
    version: int
    """Of the operator set that the model uses; [1]."""
    inputs: Sequence[Expr | None]
    """None for an operand that is left out, or an optional without a value."""
    outputs: Sequence[str]
    """Names of the outputs; "" for one that is left out."""
    attrs: Mapping[str, Any]
    shape_hint: ClassVar[str | None] = (
        "give the shapes of inputs: from_onnx(model, shapes={name: …})"
    )

    # -- operands ---------------------------------------------------------------------------------

    def input(self, i: int) -> Expr:
        """Return an operand that must be there."""
        found = self.optional(i)
        if found is None:
            self.fail(f"operand {i} is missing")
        return found

    def optional(self, i: int) -> Expr | None:
        """Return an operand; None if it is left out."""
        return self.inputs[i] if 0 <= i < len(self.inputs) else None

    def sequence(self, i: int) -> tuple[Expr, ...]:
        """Return the tensors of an operand that is a sequence."""
        value = self.input(i)
        if not isinstance(value, Tuple):
            self.fail(f"operand {i} is no sequence", got=str(self.types[value]))
        return value.fields

    def constant(self, i: int, what: str) -> Array:
        """Return an operand whose elements must be known, such as axes."""
        value = self.input(i)
        if not isinstance(value, Constant):
            self.fail(
                f"{what} are computed when the model runs",
                hint="give inputs that they depend on: from_onnx(model, constants={name: array})",
            )
        return value.value

    def integers(self, i: int, what: str) -> list[int]:
        """Return an operand that is a list of known integers."""
        return [int(n) for n in np.ravel(self.constant(i, what))]

    def listed(self, name: str, i: int, since: int) -> list[int] | None:
        """Return integers that were an attribute, and are an operand since a version."""
        if self.version < since:
            found = self.attrs.get(name)
            return None if found is None else [int(n) for n in found]
        return None if self.optional(i) is None else self.integers(i, name)

    # -- attributes -------------------------------------------------------------------------------

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or its default."""
        return self.attrs.get(name, default)

    def axis(self, default: int, rank: int) -> int:
        """Return the attribute ``axis``, counted from the front."""
        axis = int(self.attr("axis", default))
        if not -rank <= axis < max(rank, 1):
            self.fail("there is no such axis", got=f"axis {axis} of {rank} dimensions")
        return axis % max(rank, 1)

    def describe(self) -> str:
        """Return what is done, the operator and the name of the node."""
        name = self.name or next((name for name in self.outputs if name), "")
        return f"{OPERATION}: {self.op_type} {name}".strip()


Converter: TypeAlias = Callable[[Node], Outputs]
"""Returns the values of a node."""
