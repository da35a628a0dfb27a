"""Compare programs by value: equal ones differ only in the identity of their nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, cast

from dlcompiler.ir.expr import Axis, Const, Expr, Reduce, Reducer, TensorLoad, Var
from dlcompiler.ir.intrinsic import Intrinsic, Routine
from dlcompiler.ir.rewrite import Node, map_children
from dlcompiler.ir.stmt import Assert, Buffer, Stmt

Key: TypeAlias = tuple[Any, ...]


def structural_key(node: Expr | Stmt, *, rename: bool = False) -> Key:
    """Return a hashable value that is equal for structurally equal programs.

    Parameters
    ----------
    node
        An expression or a statement. Origins do not count.
    rename
        Number the variables, axes and buffers in order of appearance, so that their identity
        does not count; otherwise they are equal only to themselves.

    Notes
    -----
    The key lists the different nodes, operands first and by number. Its length is the number of
    different nodes, and it does not depend on which nodes are shared.
    """
    table = _Table(rename)
    table.number(node)
    return tuple(table.rows)


def structural_equal(a: Expr | Stmt, b: Expr | Stmt, *, rename: bool = True) -> bool:
    """Tell whether two programs are equal up to the identity of their variables."""
    return a is b or structural_key(a, rename=rename) == structural_key(b, rename=rename)


def sharing() -> Callable[[Expr], Expr]:
    """Return a function that makes equal parts of expressions the same node.

    The expressions that it is applied to must stay alive as long as it is used.
    """
    table = _Table(rename=False)
    made: dict[int, Node] = {}

    def visit(node: Node) -> Node:
        number = table.number(node)
        if number not in made:
            made[number] = map_children(node, visit)
        return made[number]

    return cast(Callable[[Expr], Expr], visit)


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(kind) if f.name not in ("origin", "dtype"))


class _Table:
    """The table of nodes that makes up a structural key: equal nodes get the same number."""

    def __init__(self, rename: bool) -> None:
        self.rename = rename
        self.rows: dict[Key, int] = {}
        self.numbers: dict[int, int] = {}
        self.handles: dict[int, int] = {}

    def number(self, node: Expr | Stmt) -> int:
        known = self.numbers.get(id(node))
        if known is None:
            known = self.rows.setdefault(self.row(node), len(self.rows))
            self.numbers[id(node)] = known
        return known

    def row(self, node: Expr | Stmt) -> Key:
        match node:
            case Var(_, dtype, _):
                return ("Var", self.identity(node), dtype)
            case Const(value, dtype):  # 1 == 1.0 == True, but they are different literals
                return ("Const", type(value).__name__, repr(value), dtype)
            case Assert(condition, _, values) if values and self.rename:
                return ("Assert", self.number(condition), self.field(values))  # names are in it
            case TensorLoad(tensor, indices):
                return ("TensorLoad", id(tensor), self.field(indices))
            case Reduce(reducer, values, axes, condition, init, index):
                parts = (values, axes, condition, init, self.reducer(reducer))
                return ("Reduce", reducer.name, index, *map(self.field, parts))
        kind: type = type(node)
        fields = (self.field(getattr(node, name)) for name in _field_names(kind))
        return (kind.__name__, getattr(node, "dtype", None), *fields)

    def field(self, value: Any) -> Any:
        match value:
            case Expr() | Stmt():
                return self.number(value)
            case tuple():
                return tuple(self.field(item) for item in value)
            case Axis():
                extent = self.field(value.extent)
                return (self.identity(value), value.start, extent, self.number(value.var))
            case Buffer(_, shape, dtype, scope, strides, separators=separators):
                key = (self.identity(value), self.field(shape), dtype, scope, self.field(strides))
                return (*key, separators) if separators else key  # ids of older traces stay
            case Intrinsic(name, parts):
                return (name, *((mode, self.field(parts[mode])) for mode in sorted(parts)))
            case Routine(buffers, body):
                return (self.field(buffers), self.number(body))
        return value

    def reducer(self, reducer: Reducer) -> tuple[Expr, ...] | None:
        """Return a value that distinguishes reducers of the same name."""
        if reducer.op is not None:
            return None
        return (*reducer.lhs, *reducer.rhs, *reducer.results, *reducer.identities)

    def identity(self, handle: Var | Axis | Buffer) -> int:
        return self.handles.setdefault(id(handle), len(self.handles)) if self.rename else id(handle)
