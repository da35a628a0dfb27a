"""Comparison by value: two programs are equal when they differ only in node and variable identity."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, TypeAlias

from dlcompiler.ir.expr import Axis, Const, Expr, Reduce, TensorLoad, Var
from dlcompiler.ir.stmt import Buffer, Stmt

Key: TypeAlias = tuple[Any, ...]


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(kind) if f.name not in ("origin", "dtype"))


def structural_key(node: Expr | Stmt, *, rename: bool = False) -> Key:
    """Return a hashable value that is equal for structurally equal programs.

    Parameters
    ----------
    node
        An expression or a statement. Origins do not count.
    rename
        Number the variables, axes and buffers in order of appearance, so that their identity
        does not count; otherwise they are equal only to themselves.
    """
    numbers: dict[int, int] = {}
    memo: dict[int, Key] = {}
    kept: list[Any] = []

    def handle(value: Any) -> Key:
        identity = numbers.setdefault(id(value), len(numbers)) if rename else id(value)
        if isinstance(value, Buffer) and rename:
            return ("Buffer", identity, value.shape, value.dtype, value.scope, value.strides)
        return (type(value).__name__, identity)

    def key(value: Any) -> Any:
        match value:
            case Var() | Axis() | Buffer():
                return handle(value)
            case Const():
                return ("Const", type(value.value).__name__, repr(value.value), value.dtype)
            case tuple():
                return tuple(key(item) for item in value)
            case TensorLoad():
                return ("TensorLoad", id(value.tensor), key(value.indices))
            case Reduce():
                return ("Reduce", value.reducer.name, key(value.axes), key(value.value),
                        tuple(axis.extent for axis in value.axes), key(tuple(a.var for a in value.axes)))  # fmt: skip
            case Expr() | Stmt():
                if id(value) in memo:
                    return memo[id(value)]
                kept.append(value)
                fields = tuple(key(getattr(value, name)) for name in _field_names(type(value)))
                dtype = getattr(value, "dtype", None)
                memo[id(value)] = (type(value).__name__, dtype, *fields)
                return memo[id(value)]
        return value

    result: Key = key(node)
    return result


def structural_equal(a: Expr | Stmt, b: Expr | Stmt, *, rename: bool = True) -> bool:
    """Tell whether two programs are the same but for the identity of their variables."""
    return a is b or structural_key(a, rename=rename) == structural_key(b, rename=rename)

