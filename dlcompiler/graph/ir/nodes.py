"""Nodes of graph expressions, in the manner of Relay.

The whole grammar::

    Expr     = Var(name, type?)
             | Constant(value)                       a NumPy array, read-only
             | Call(op, args, attrs, name)           op: Op | GlobalVar | Expr of a function type
             | Tuple(fields) | TupleGetItem(value, index)
             | Let(var, value, body)                 var is bound in body
             | If(condition, then, otherwise)        condition: a scalar of dtype bool
             | Function(params, body, result?, attrs)
             | GlobalVar(name)                       a function of the module
             | Op(name)                              an operator of the table

Nodes are frozen and compared by identity. A node that several others use is computed once, where
the innermost scope that contains all its uses begins. Scopes are the bodies of functions and of
lets, and the branches of an `If`. Data flow may be of any length: all tools are loops over it.
Scopes may be nested `MAX_SCOPES` deep.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.errors import GraphError, shown_number
from dlcompiler.graph.ir.arrays import array_of
from dlcompiler.graph.ir.attributes import Attrs, frozen_attrs, no_attrs
from dlcompiler.graph.ir.types import TensorType, Type
from dlcompiler.registry import Registry

PRIMITIVE = "Primitive"
"""Attribute of a function that is one kernel, as in Relay."""
MAX_SCOPES = 100
"""Most scopes inside each other: functions, branches and lets as operands; [1]."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where a node comes from: a file, the name of a node in it, and a line from 1."""

    file: str = ""
    node: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.node} ({place})" if self.node and place else self.node or place


class GraphOperators:
    """Python's operators on expressions; each makes a `Call` of an operator of the table."""

    __slots__ = ()

    def __add__(self, other: object) -> Call:
        return _binary("add", self, other)

    def __radd__(self, other: object) -> Call:
        return _binary("add", other, self)

    def __sub__(self, other: object) -> Call:
        return _binary("subtract", self, other)

    def __rsub__(self, other: object) -> Call:
        return _binary("subtract", other, self)

    def __mul__(self, other: object) -> Call:
        return _binary("multiply", self, other)

    def __rmul__(self, other: object) -> Call:
        return _binary("multiply", other, self)

    def __truediv__(self, other: object) -> Call:
        return _binary("divide", self, other)

    def __rtruediv__(self, other: object) -> Call:
        return _binary("divide", other, self)

    def __lt__(self, other: object) -> Call:
        return _binary("less", self, other)

    def __le__(self, other: object) -> Call:
        return _binary("less_equal", self, other)

    def __gt__(self, other: object) -> Call:
        return _binary("greater", self, other)

    def __ge__(self, other: object) -> Call:
        return _binary("greater_equal", self, other)

    def __neg__(self) -> Call:
        return Call(op("negative"), (as_expr(self),))

    def astext(self, show_meta_data: bool = True) -> str:
        """Return the expression as text.

        Parameters
        ----------
        show_meta_data : bool
            Without effect: constants other than numbers are only numbered.
        """
        del show_meta_data
        text: str = LATER["text"](self)
        return text

    @property
    def checked_type(self) -> Type:
        """The type that inference finds, from the types of the variables that it uses."""
        kind: Type = LATER["type"](self)
        return kind

    def __str__(self) -> str:
        return self.astext()

    if not TYPE_CHECKING:  # else every attribute would be one for the type checker

        def __getattr__(self, name: str) -> Any:
            if name in RELAY_NAMES and hasattr(type(self), RELAY_NAMES[name]):
                return getattr(self, RELAY_NAMES[name])
            raise AttributeError(f"a {type(self).__name__} has no attribute {name!r}")

    def __repr__(self) -> str:
        return brief(self)

    def __bool__(self) -> bool:
        raise GraphError(
            "graph expression", "has no truth value: its value is known only when it runs",
            hint="If(condition, then, otherwise) chooses when it runs",
        )  # fmt: skip

    def __iter__(self) -> Any:
        raise GraphError(
            "graph expression", "cannot be iterated over",
            hint="TupleGetItem(value, i), or value[i], is a field of a tuple",
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class Var(GraphOperators):
    """A variable: a parameter of a function, or the name of a let.

    Calling it makes a `Call`: its value is then a function.
    """

    name: str
    type: Type | None = None
    """None: inference finds it."""
    span: Span | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise GraphError("variable", "the name is no text", got=repr(self.name))

    def __call__(self, *args: object) -> Call:
        """Make a call of it; arguments may be numbers, arrays, or lists."""
        return Call(self, tuple(map(as_expr, args)))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class Constant(GraphOperators):
    """A tensor that is part of the graph."""

    value: npt.NDArray[Any]
    """Read-only."""
    name: str = ""
    span: Span | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _frozen(self.value))

    @property
    def type(self) -> TensorType:
        """The type of the array."""
        return TensorType(self.value.shape, dtypes.from_numpy(self.value.dtype))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class Op:
    """An operator of the table (`dlcompiler.graph.operators`); `op` makes one for each name."""

    name: str

    def __repr__(self) -> str:
        return brief(self)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class GlobalVar(GraphOperators):
    """A function of the module, by its name. Calling it makes a `Call`."""

    name: str
    span: Span | None = None

    def __call__(self, *args: object) -> Call:
        """Make a call of it; arguments may be numbers, arrays, or lists."""
        return Call(self, tuple(map(as_expr, args)))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class Call(GraphOperators):
    """A call of an operator, or of a function."""

    op: Op | Expr
    args: tuple[Expr, ...]
    attrs: Attrs = field(default_factory=no_attrs)
    """Attributes of an operator; those that are left out have their default. ``attrs.strides`` is
    the attribute also if it is left out, ``attrs["strides"]`` only if it is not."""
    name: str = ""
    """Identifies the call in decisions and views: ``conv2d_3``. Passes keep it."""
    span: Span | None = None

    def __post_init__(self) -> None:
        operator = self.op.name if isinstance(self.op, Op) else ""
        object.__setattr__(self, "attrs", frozen_attrs(self.attrs, operator))

    def __getitem__(self, index: int) -> TupleGetItem:
        return TupleGetItem(self, index)

    def astuple(self) -> Call:
        """Return itself: classic code calls it on results that are tuples."""
        return self


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class Tuple(GraphOperators):
    """Several values as one."""

    fields: tuple[Expr, ...]
    span: Span | None = None

    def __getitem__(self, index: int) -> Expr:
        return self.fields[index]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class TupleGetItem(GraphOperators):
    """A field of a tuple."""

    value: Expr
    index: int
    span: Span | None = None

    def __post_init__(self) -> None:
        given: object = self.index
        if not isinstance(given, int | np.integer) or isinstance(given, bool):
            raise GraphError("field of a tuple", "not an integer", got=repr(given))
        object.__setattr__(self, "index", int(given))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class Let(GraphOperators):
    """A value with a name: it is computed before the body."""

    var: Var
    value: Expr
    body: Expr
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class If(GraphOperators):
    """One of two expressions; only the chosen one is computed."""

    condition: Expr
    then: Expr
    otherwise: Expr
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True, repr=False)
class Function(GraphOperators):
    """A function; it may use variables of the scopes around it. Calling it makes a `Call`."""

    params: tuple[Var, ...]
    body: Expr
    result: Type | None = None
    """Type of the result; None: inference finds it."""
    attrs: Attrs = field(default_factory=no_attrs)
    """Notes of passes, such as ``Primitive`` of a fused group."""
    span: Span | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "attrs", frozen_attrs(self.attrs))

    @property
    def is_kernel(self) -> bool:
        """Tell whether it is one kernel, inside which passes change nothing: ``Primitive=1``."""
        return bool(self.attrs.get(PRIMITIVE))

    def __call__(self, *args: object) -> Call:
        """Make a call of it; arguments may be numbers, arrays, or lists."""
        return Call(self, tuple(map(as_expr, args)))


Expr: TypeAlias = Var | Constant | Call | Tuple | TupleGetItem | Let | If | Function | GlobalVar
Node: TypeAlias = Expr | Op
EXPRESSIONS = (Var, Constant, Call, Tuple, TupleGetItem, Let, If, Function, GlobalVar)

RELAY_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "name_hint": "name",
        "type_annotation": "type",
        "data": "value",
        "tuple_value": "value",
        "cond": "condition",
        "true_branch": "then",
        "false_branch": "otherwise",
        "ret_type": "result",
    }
)
"""Relay's name of an attribute -> its name here; both can be read."""

#: What expressions do by means of modules that import this one.
LATER: Registry[Callable[[Any], Any]] = Registry(
    "tool of expressions",
    {
        "text": "dlcompiler.graph.text.printer:expr_text",
        "type": "dlcompiler.graph.inference:type_of",
    },
)


@cache
def op(name: str) -> Op:
    """Return the operator of this name; the same object for each name."""
    return Op(name)


def as_expr(value: object) -> Expr:
    """Return a value as an expression: numbers and arrays become constants.

    A Python bool is a constant of dtype bool, an int of int32, a float of float32.

    Parameters
    ----------
    value : Expr, number, array, list or tuple
        A list or a tuple becomes a tuple of expressions.

    Raises
    ------
    GraphError
        If there is no expression for the value.
    """
    if isinstance(value, EXPRESSIONS):
        return value
    if isinstance(value, bool):
        return Constant(np.asarray(value))
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise GraphError("constant", "beyond 64 bits", got=shown_number(value))
        return Constant(np.asarray(value, "int32" if -(2**31) <= value < 2**31 else "int64"))
    if isinstance(value, float):
        return Constant(array_of(value, "float32"))
    if isinstance(value, np.ndarray | np.generic):
        return Constant(np.asarray(value))
    if isinstance(value, list | tuple):
        return Tuple(tuple(as_expr(item) for item in value))
    raise GraphError(
        "graph expression", "not an expression", got=repr(value),
        expected="an expression, a number, an array, or a list of these",
    )  # fmt: skip


def _binary(name: str, a: object, b: object) -> Call:
    return Call(op(name), (_beside(a, b), _beside(b, a)))


def _beside(value: object, other: object) -> Expr:
    """Return an operand; a number gets the dtype of the other operand if that is known."""
    dtype = dtype_of_leaf(other) if isinstance(value, int | float) else None
    if dtype is None or isinstance(value, bool) or dtypes.is_bool(dtype):
        return as_expr(value)
    if isinstance(value, float) and not dtypes.is_float(dtype):
        return as_expr(value)
    return Constant(array_of(value, dtype))


def dtype_of_leaf(node: object) -> str | None:
    """Return the dtype of a variable or a constant if it is a tensor whose type is known."""
    kind = node.type if isinstance(node, Var | Constant) else None
    return kind.dtype if isinstance(kind, TensorType) else None


def _frozen(value: npt.ArrayLike) -> npt.NDArray[Any]:
    array = np.asarray(value)
    dtypes.from_numpy(array.dtype)  # refuses objects and texts
    if array.flags.writeable or not array.flags.c_contiguous:
        array = np.array(array, order="C")  # the caller may change its own
        array.flags.writeable = False
    return array


# By type, since every traversal asks for the children of every node; kinds of nodes have no
# subclasses.
_CHILDREN: dict[type[Node], Callable[[Any], tuple[Node, ...]]] = {
    Call: lambda node: (node.op, *node.args),
    Tuple: lambda node: node.fields,
    TupleGetItem: lambda node: (node.value,),
    Let: lambda node: (node.var, node.value, node.body),
    If: lambda node: (node.condition, node.then, node.otherwise),
    Function: lambda node: (*node.params, node.body),
}


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly below a node, binders included, in the order of evaluation."""
    below = _CHILDREN.get(type(node))
    return () if below is None else below(node)


def with_children(node: Node, below: Iterable[Node]) -> Node:
    """Return a node with other children; the same object if none is another."""
    new: tuple[Any, ...] = tuple(below)
    old = children(node)
    if len(new) == len(old) and all(map(operator.is_, new, old)):
        return node
    match node:
        case Call():
            return replace(node, op=new[0], args=new[1:])
        case Tuple():
            return replace(node, fields=new)
        case TupleGetItem():
            return replace(node, value=new[0])
        case Let():
            return replace(node, var=new[0], value=new[1], body=new[2])
        case If():
            return replace(node, condition=new[0], then=new[1], otherwise=new[2])
        case Function():
            return replace(node, params=new[:-1], body=new[-1])
    return node


def brief(node: object) -> str:
    """Return a node in a few words, without what is below it.

    >>> x = Var("x", TensorType((2, 3)))
    >>> x + 1.0, Constant(np.zeros((2, 3), "int8"))
    (add(2 arguments), Constant(Tensor[(2, 3), int8]))
    """
    match node:
        case Var(name, kind):
            return f"Var({name}: {kind})" if kind else f"Var({name})"
        case Constant():
            return f"Constant({node.type})"
        case Op(name):
            return f"Op({name})"
        case GlobalVar(name):
            return f"@{name}"
        case Call(callee, args, name=name):
            of = callee.name if isinstance(callee, Op | GlobalVar) else "call"
            count = f"{len(args)} argument{'' if len(args) == 1 else 's'}"
            return f"{name}: {of}({count})" if name else f"{of}({count})"
        case TupleGetItem(index=index):
            return f"TupleGetItem({index})"
        case Tuple(fields):
            return f"Tuple({len(fields)} fields)"
        case Function(params):
            return f"Function({', '.join(param.name for param in params)})"
    return type(node).__name__


def nbytes(kind: TensorType) -> int:
    """Return the size of a tensor of known shape; [byte]."""
    if not kind.is_static:
        raise GraphError("size of a tensor", "an extent is not known", got=repr(kind))
    return math.prod(e for e in kind.shape if isinstance(e, int)) * dtypes.bytes_of(kind.dtype)
