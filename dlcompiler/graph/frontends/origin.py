"""What the nodes of all imported models share: the making of calls, constants and refusals."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import DLCompilerError, GraphError
from dlcompiler.graph.interpreter import evaluate
from dlcompiler.graph.ir import Call, Constant, Expr, Module, Span, TensorType, Tuple
from dlcompiler.graph.operators import REGISTRY
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.operators.functions import call as make_call
from dlcompiler.graph.passes.tools import KnownTypes, attrs_of, operator_of


@dataclass
class Origin:
    """A node of a model from which calls are made; they have its name."""

    name: str
    types: KnownTypes
    span: Span | None = field(default=None, kw_only=True)
    made: int = field(default=0, init=False)
    shape_hint: ClassVar[str | None] = None
    """How a user gives a shape that is not known."""

    # -- operands ---------------------------------------------------------------------------------

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
                hint=self.shape_hint,
            )  # fmt: skip
        return known

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

    def transposed(self, value: Expr, axes: Sequence[int]) -> Expr:
        """Return a tensor with its dimensions in another order; a weight is permuted at once."""
        axes = tuple(axes)
        if axes == tuple(range(len(axes))):
            return value
        if isinstance(value, Constant):
            return Constant(np.ascontiguousarray(value.value.transpose(axes)), value.name)
        if isinstance(value, Call) and is_dequantized_weight(value):
            q, scale, zero = value.args
            axis = {}
            if self.rank(scale):
                axis["axis"] = axes.index(attrs_of(value)["axis"] % len(axes))
            return self.call("qnn.dequantize", self.transposed(q, axes), scale, zero, **axis)
        return self.call("transpose", value, axes=axes)

    def broadcast(self, value: Expr, shape: Sequence[int]) -> Expr:
        """Return a tensor, repeated to a shape if it has another one."""
        if self.type(value).shape == tuple(shape):
            return value
        return self.call("broadcast_to", value, shape=tuple(shape))

    # -- refusals ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def refusing(
        self, operation: str, operands: Sequence[Expr | None] | None = None
    ) -> Iterator[None]:
        """Name the node in what an operator refuses inside, such as operands that do not fit.

        Parameters
        ----------
        operation : str
            How the errors of this importer begin; these already say which node it is.
        operands : sequence of Expr or None
            Tensors of which the converter expects ranks and lengths that the format promises, as in
            ``n, c, h, w = shape``: its Python errors are refusals that show their types. Without,
            they pass.
        """
        try:
            yield
        except DLCompilerError as error:
            if error.operation.startswith(operation):
                raise
            self.fail(error.problem, got=error.got, expected=error.expected)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            if operands is None:
                raise
            types = [str(self.types[each]) for each in operands if each is not None]
            self.fail("its operands or attributes do not fit each other",
                      got=", ".join(types)[:200] or "no operands")  # fmt: skip

    def fail(self, problem: str, **details: Any) -> NoReturn:
        """Refuse the node.

        Raises
        ------
        GraphError
            Always.
        """
        raise GraphError(self.describe(), problem, **details)

    def describe(self) -> str:
        """Return what is done, and the name of the node."""
        return self.name


def constant_of(array: Array, dtype: str = "") -> Constant:
    """Return a constant, of another dtype if one is given."""
    return Constant(array.astype(dtypes.to_numpy(dtype), copy=False) if dtype else array)


def folded(value: Expr, types: KnownTypes, most: int) -> Expr:
    """Return the constant that a tensor is, if it depends on constants only.

    One with more than `most` elements, or with an extent that is not known, stays as it is. So do
    dequantized integers, if they are several: integer kernels read them as they are.
    """
    kind = types.tensor(value)
    if isinstance(value, Constant) or not is_static(kind) or elements(kind) > most:
        return value
    if not types.is_constant(value) or (elements(kind) > 1 and is_dequantized(value)):
        return value
    made = Constant(np.asarray(evaluate(Module.from_expr(value))))
    types[made] = kind
    return made


def is_dequantized(value: Expr) -> bool:
    """Tell whether a value is made of integers, and perhaps moved."""
    while operator_of(value) in ("transpose", "reshape", "squeeze", "expand_dims"):
        assert isinstance(value, Call)
        value = value.args[0]
    return operator_of(value) == "qnn.dequantize"


def is_dequantized_weight(value: Expr) -> bool:
    """Tell whether a value is made of integers that are a constant."""
    if operator_of(value) != "qnn.dequantize" or not isinstance(value, Call):
        return False
    return isinstance(value.args[0], Constant)


def is_static(kind: TensorType) -> bool:
    """Tell whether all extents are known."""
    return all(isinstance(n, int) for n in kind.shape)


def elements(kind: TensorType) -> int:
    """Return the number of elements of a tensor with known extents."""
    return math.prod(n for n in kind.shape if isinstance(n, int))
