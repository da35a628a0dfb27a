"""Compare expressions by value: equal ones differ only in the identity of their nodes.

Names of variables and of calls, spans, and which nodes are shared do not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from dlcompiler.graph.ir.attributes import AttrValue
from dlcompiler.graph.ir.nodes import (
    Call,
    Constant,
    Function,
    GlobalVar,
    If,
    Let,
    Node,
    Op,
    Tuple,
    TupleGetItem,
    Var,
    children,
)
from dlcompiler.graph.ir.traverse import post_order
from dlcompiler.graph.ir.types import Type

Key: TypeAlias = tuple[Any, ...]


def structural_key(node: Node) -> Key:
    """Return a hashable value that is equal for structurally equal expressions.

    Notes
    -----
    The key lists the different nodes, operands first and by number, so its length is the number of
    different nodes. Variables are numbered in order of appearance.
    """
    rows: dict[Key, int] = {}
    numbers: dict[int, int] = {}
    variables: dict[int, int] = {}
    for current in post_order(node):
        below = tuple(numbers[id(child)] for child in children(current))
        if isinstance(current, Var):
            number = variables.setdefault(id(current), len(variables))
            row: Key = ("Var", number, current.type)
        else:
            row = (type(current).__name__, *_data(current), below)
        numbers[id(current)] = rows.setdefault(row, len(rows))
    return (*rows, numbers[id(node)])


def structural_equal(a: Node, b: Node) -> bool:
    """Tell whether two expressions are equal up to the names of their variables and calls.

    Parameters
    ----------
    a, b : Expr
        The expressions.
    """
    return a is b or structural_key(a) == structural_key(b)


def structural_hash(node: Node) -> str:
    """Return a short text that is equal for equal expressions, and the same in every process.

    Parameters
    ----------
    node : Expr
        The expression.
    """
    return hashlib.sha256(repr(structural_key(node)).encode()).hexdigest()[:16]


def _data(node: Node) -> tuple[Any, ...]:
    """Return what a node holds besides its children."""
    match node:
        case Constant(value):
            return (str(value.dtype), value.shape, digest_of(node))
        case Op(name) | GlobalVar(name):
            return (name,)
        case Call(attrs=attrs):
            return attrs_key(attrs)
        case TupleGetItem(index=index):
            return (index,)
        case Function(params, _, result, attrs):
            return (len(params), _type_key(result), attrs_key(attrs))
        case Tuple() | Let() | If():
            return ()
    return ()


def _type_key(kind: Type | None) -> str:
    return repr(kind)


def digest_of(constant: Constant) -> str:
    """Return a digest of the bytes of a constant."""
    return hashlib.sha256(constant.value.reshape(-1).view(np.uint8).data).hexdigest()


def attrs_key(attrs: Mapping[str, AttrValue]) -> Key:
    """Return a hashable value for attributes in which 1, 1.0 and True differ."""
    return tuple((name, repr(value)) for name, value in sorted(attrs.items()))
