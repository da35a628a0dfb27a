"""Constructors of expressions and types with Relay's arguments.

Each is a class, so that ``isinstance(node, relay.Call)`` works; what it makes is a node of
`dlcompiler.graph`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes, graph
from dlcompiler.compat.arrays import NDArray
from dlcompiler.compat.missing import Named
from dlcompiler.errors import GraphError
from dlcompiler.graph.ir import Op as GraphOp
from dlcompiler.graph.ir import op as operator_node
from dlcompiler.graph.ir.nodes import EXPRESSIONS
from dlcompiler.graph.operators import find


class TupleWrapper(Named):
    """A result that is a tuple of known length: it can be indexed, iterated over and unpacked."""

    classic = "tvm.relay.TupleWrapper"

    def __init__(self, tuple_value: graph.Expr, size: int) -> None:
        self.tuple_value = tuple_value
        """The expression."""
        self.size = size
        """Number of its fields; [1]."""

    def __getitem__(self, index: int) -> graph.TupleGetItem:
        if not -self.size <= index < self.size:
            raise IndexError(f"field {index} of a tuple of {self.size}")
        return graph.TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[graph.TupleGetItem]:
        return (self[index] for index in range(self.size))

    def astuple(self) -> graph.Expr:
        """Return the expression."""
        return self.tuple_value

    def astext(self, show_meta_data: bool = True) -> str:
        """Return the expression as text."""
        return self.tuple_value.astext(show_meta_data)

    @property
    def checked_type(self) -> graph.Type:
        """The type that inference finds."""
        return self.tuple_value.checked_type


def as_expr(value: Any) -> graph.Expr:
    """Return an argument of classic code as an expression: also arrays of TVM, and tuples."""
    if isinstance(value, TupleWrapper):
        return value.tuple_value
    if isinstance(value, NDArray):
        return graph.Constant(value.data)
    if isinstance(value, list | tuple):
        return graph.Tuple(tuple(map(as_expr, value)))
    return graph.as_expr(value)


class _Made(type):
    """Class of constructors: what they make is an instance of them."""

    nodes: tuple[type, ...] = ()

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.nodes)


class Expr(metaclass=_Made):
    """Any expression, for ``isinstance``."""

    nodes = (*EXPRESSIONS, GraphOp)

    def __new__(cls) -> Any:
        """Refuse: other constructors make expressions."""
        raise GraphError("relay.Expr", "is not made itself", expected="relay.Call, relay.Var, …")


class Var(metaclass=_Made):
    """A variable."""

    nodes = (graph.Var,)

    def __new__(cls, name_hint: str, type_annotation: graph.Type | None = None) -> Any:
        """Make a variable.

        Parameters
        ----------
        name_hint : str
            Its name.
        type_annotation : Type, optional
            Its type; None: inference finds it.
        """
        return graph.Var(name_hint, type_annotation)


class Constant(metaclass=_Made):
    """A tensor that is part of a graph."""

    nodes = (graph.Constant,)

    def __new__(cls, data: Any) -> Any:
        """Make a constant of an array."""
        return graph.Constant(data.data if isinstance(data, NDArray) else np.asarray(data))


class Call(metaclass=_Made):
    """A call of an operator or a function."""

    nodes = (graph.Call,)

    def __new__(
        cls, op: Any, args: Sequence[Any], attrs: Any = None, type_args: object = None,
        span: graph.Span | None = None,
    ) -> Any:  # fmt: skip
        """Make a call.

        Parameters
        ----------
        op : Op or Expr
            What is called.
        args : sequence
            Arguments.
        attrs : mapping, optional
            Attributes of an operator.
        type_args
            Accepted, without effect.
        span : Span, optional
            Where it comes from.
        """
        del type_args
        return graph.Call(op, tuple(map(as_expr, args)), dict(attrs or {}), span=span)


class Tuple(metaclass=_Made):
    """Several values as one."""

    nodes = (graph.Tuple,)

    def __new__(cls, fields: Iterable[Any], span: graph.Span | None = None) -> Any:
        """Make a tuple."""
        return graph.Tuple(tuple(map(as_expr, fields)), span)


class TupleGetItem(metaclass=_Made):
    """A field of a tuple."""

    nodes = (graph.TupleGetItem,)

    def __new__(cls, tuple_value: Any, index: int, span: graph.Span | None = None) -> Any:
        """Take a field out of a tuple."""
        return graph.TupleGetItem(as_expr(tuple_value), index, span)


class Let(metaclass=_Made):
    """A value with a name."""

    nodes = (graph.Let,)

    def __new__(cls, variable: graph.Var, value: Any, body: Any) -> Any:
        """Name a value in a body."""
        return graph.Let(variable, as_expr(value), as_expr(body))


class If(metaclass=_Made):
    """One of two expressions."""

    nodes = (graph.If,)

    def __new__(cls, cond: Any, true_branch: Any, false_branch: Any) -> Any:
        """Choose by a condition."""
        return graph.If(as_expr(cond), as_expr(true_branch), as_expr(false_branch))


class Function(metaclass=_Made):
    """A function."""

    nodes = (graph.Function,)

    def __new__(
        cls, params: Iterable[graph.Var], body: Any, ret_type: graph.Type | None = None,
        type_params: Sequence[object] | None = None, attrs: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """Make a function.

        Parameters
        ----------
        params : sequence of Var
            Its parameters.
        body : Expr
            Its result.
        ret_type : Type, optional
            Type of the result; None: inference finds it.
        type_params : sequence, optional
            Not part of dlcompiler: functions have no type parameters.
        attrs : mapping, optional
            Notes of passes.
        """
        if type_params:
            raise GraphError(
                "relay.Function", "type parameters are not part of dlcompiler", got=type_params
            )
        return graph.Function(tuple(params), as_expr(body), ret_type, dict(attrs or {}))


class GlobalVar(metaclass=_Made):
    """A function of a module, by its name."""

    nodes = (graph.GlobalVar,)

    def __new__(cls, name_hint: str) -> Any:
        """Name a function of a module."""
        return graph.GlobalVar(name_hint)


class Op(metaclass=_Made):
    """An operator, for ``isinstance``; `get` finds one."""

    nodes = (GraphOp,)

    def __new__(cls) -> Any:
        """Refuse: `get` finds an operator."""
        raise GraphError("tvm.ir.Op", "is not made itself", hint='tvm.ir.Op.get("nn.conv2d")')

    @staticmethod
    def get(op_name: str) -> GraphOp:
        """Return an operator of the table.

        Raises
        ------
        GraphError
            If there is none.
        """
        return operator_node(find(op_name).name)


def var(
    name_hint: str, type_annotation: Any = None, shape: Any = None,
    dtype: str = "float32", span: graph.Span | None = None,
) -> graph.Var:  # fmt: skip
    """Make a variable.

    Parameters
    ----------
    name_hint : str
        Its name.
    type_annotation : Type, optional
        Its type; in its place, `shape` and `dtype`. A shape is accepted here, too.
    shape : sequence, optional
        Extents, or `relay.Any()`.
    dtype : str
        Its dtype.
    span : Span, optional
        Where it comes from.
    """
    if type_annotation is not None and shape is not None:
        raise GraphError(f"relay.var {name_hint}", "both a type and a shape are given")
    if isinstance(type_annotation, list | tuple):  # classic code writes relay.var("x", (1, 64))
        type_annotation, shape = None, type_annotation
    if type_annotation is not None:
        return graph.Var(name_hint, type_annotation, span)
    kind = None if shape is None else tensor_type(shape, dtype)
    return graph.Var(name_hint, kind, span)


def const(value: Any, dtype: str | None = None) -> graph.Constant:
    """Make a constant: floats of Python are float32, its ints int32, arrays keep their dtype.

    Parameters
    ----------
    value : number, array or list
        The elements.
    dtype : str, optional
        Another dtype.
    """
    if isinstance(value, NDArray):
        value = value.data
    return graph.constant(value, None if dtype is None else dtypes.as_dtype(dtype))


def tensor_type(shape: Any, dtype: str = "float32") -> graph.TensorType:
    """Return the type of tensors of a shape; one number is a shape of one dimension."""
    extents = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    return graph.TensorType(extents, dtypes.as_dtype(dtype))


def scalar_type(dtype: str) -> graph.TensorType:
    """Return the type of a scalar."""
    return tensor_type((), dtype)


class TensorType(metaclass=_Made):
    """The type of a tensor."""

    nodes = (graph.TensorType,)

    def __new__(cls, shape: Any, dtype: str = "float32") -> Any:
        """Return the type of tensors of a shape."""
        return tensor_type(shape, dtype)


class TupleType(metaclass=_Made):
    """The type of a tuple."""

    nodes = (graph.TupleType,)

    def __new__(cls, fields: Iterable[graph.Type]) -> Any:
        """Return the type of a tuple."""
        return graph.TupleType(tuple(fields))


class FuncType(metaclass=_Made):
    """The type of a function."""

    nodes = (graph.FuncType,)

    def __new__(
        cls, arg_types: Iterable[graph.Type], ret_type: graph.Type, type_params: object = None,
        type_constraints: object = None,
    ) -> Any:  # fmt: skip
        """Return the type of a function; type parameters and constraints are ignored if empty."""
        if type_params or type_constraints:
            raise GraphError("relay.FuncType", "type parameters are not part of dlcompiler")
        return graph.FuncType(tuple(arg_types), ret_type)


def any_extent() -> object:
    """Return the extent that only a run decides: ``relay.Any()``."""
    return graph.ANY
