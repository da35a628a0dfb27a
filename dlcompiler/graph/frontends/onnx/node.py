"""A node of an ONNX model, as the converters of operators see it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.onnx.reading import OPERATION
from dlcompiler.graph.ir import Call, Constant, Expr, Span, TensorType, Tuple
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.operators.functions import call as make_call
from dlcompiler.graph.passes.tools import KnownTypes

Outputs: TypeAlias = "Expr | Sequence[Expr | None]"
"""What a converter returns: the value of the only output, or of all; None for one that it cannot
compute, which is refused if something reads it."""


@dataclass
class Node:
    """A node with its operands, as expressions."""

    op_type: str
    name: str
    version: int
    """Of the operator set that the model uses; [1]."""
    inputs: Sequence[Expr | None]
    """None for an operand that is left out."""
    outputs: Sequence[str]
    """Names of the outputs; "" for one that is left out."""
    attrs: Mapping[str, Any]
    types: KnownTypes
    span: Span | None = None
    made: int = field(default=0, init=False)

    # -- operands ---------------------------------------------------------------------------------

    def input(self, i: int) -> Expr:
        """Return an operand that must be there."""
        found = self.optional(i)
        if found is None:
            self.fail(f"operand {i} is missing")
        return found

    def optional(self, i: int) -> Expr | None:
        """Return an operand; None if it is left out."""
        return self.inputs[i] if i < len(self.inputs) else None

    def type(self, value: Expr) -> TensorType:
        """Return the type of a tensor."""
        kind = self.types[value]
        if not isinstance(kind, TensorType):
            self.fail("an operand is no tensor", got=str(kind))
        return kind

    def dtype(self, value: Expr) -> str:
        """Return the dtype of a tensor."""
        return self.type(value).dtype

    def rank(self, value: Expr) -> int:
        """Return the number of dimensions of a tensor."""
        return self.type(value).rank

    def shape(self, value: Expr) -> tuple[int, ...]:
        """Return the shape of a tensor, all of which must be known."""
        shape = self.type(value).shape
        known = tuple(n for n in shape if isinstance(n, int))
        if len(known) < len(shape):
            self.fail(
                "it needs a shape that is not known", got=str(self.type(value)),
                hint="give the shapes of inputs: from_onnx(model, shapes={name: …})",
            )  # fmt: skip
        return known

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

    # -- results ----------------------------------------------------------------------------------

    def call(self, name: str, *args: Expr, **attrs: Any) -> Call:
        """Return a call of an operator of graphs that is named after the node."""
        self.made += 1
        own = self.name if self.made == 1 or not self.name else f"{self.name}.{self.made}"
        return make_call(REGISTRY[name], args, attrs, own, self.span)

    def scalar(self, value: float | bool, like: Expr | str) -> Constant:
        """Return a number of the dtype of another tensor."""
        dtype = like if isinstance(like, str) else self.dtype(like)
        return constant_of(np.asarray(value), dtype)

    def cast(self, value: Expr, dtype: str) -> Expr:
        """Return a tensor as one of another dtype."""
        return value if self.dtype(value) == dtype else self.call("cast", value, dtype=dtype)

    def tuple(self, values: Sequence[Expr]) -> Tuple:
        """Return tensors as one operand."""
        return Tuple(tuple(values))

    def reshape(self, value: Expr, shape: Sequence[int]) -> Expr:
        """Return a tensor with the same elements in another shape."""
        if self.type(value).shape == tuple(shape):
            return value
        return self.call("reshape", value, newshape=tuple(shape), allowzero=0 in shape)

    # -- refusals ---------------------------------------------------------------------------------

    def fail(self, problem: str, **details: Any) -> NoReturn:
        """Refuse the node.

        Raises
        ------
        GraphError
            Always.
        """
        raise GraphError(f"{OPERATION}: {self.describe()}", problem, **details)

    def describe(self) -> str:
        """Return the name and the operator of the node."""
        name = self.name or next((name for name in self.outputs if name), "")
        return f"{self.op_type} {name}".strip()


Converter: TypeAlias = Callable[[Node], Outputs]
"""Returns the values of a node."""


def constant_of(array: Array, dtype: str = "") -> Constant:
    """Return a constant, of another dtype if one is given."""
    return Constant(array.astype(dtypes.to_numpy(dtype), copy=False) if dtype else array)


def is_static(kind: TensorType) -> bool:
    """Tell whether all extents are known."""
    return all(isinstance(n, int) for n in kind.shape)


def elements(kind: TensorType) -> int:
    """Return the number of elements of a tensor with known extents."""
    return math.prod(n for n in kind.shape if isinstance(n, int))
