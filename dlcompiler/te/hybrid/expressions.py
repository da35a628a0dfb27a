"""Expressions of hybrid script: known numbers are computed at once, the rest becomes loop IR.

Supported are:

Operators, comparisons, ``and``, ``or``, ``not``, ``a if c else b``, elements ``a[i, j]``,
``a.shape``, ``a.dtype``, ``len``, ``min``, ``max``, ``abs``, ``round``, ``ceil_div``, ``likely``,
``power``, dtypes as functions (``float32(x)``), and the functions of `dlcompiler.ir.functions`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from dlcompiler.ir import BufferView, Call, Expr, Not, as_expr, cast, logical
from dlcompiler.te import math
from dlcompiler.te.arithmetic import assume_bounds, ceildiv, if_then_else, maximum, minimum, power
from dlcompiler.te.hybrid.python import CASTS, FUNCTION_NAMES
from dlcompiler.te.hybrid.source import Source

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def is_known(value: object) -> bool:
    """Tell whether a value is a Python or NumPy number, so known before the program runs."""
    return isinstance(value, bool | int | float | np.generic)


@dataclass(frozen=True)
class Variable:
    """A variable that is assigned more than once: a buffer of one element."""

    view: BufferView


class Expressions:
    """Translator of the expressions of one script.

    Parameters
    ----------
    source
        The script.
    look_up
        Returns the value of a name: a number, an expression, a `Variable` or a `BufferView`.
    """

    def __init__(self, source: Source, look_up: Callable[[ast.Name], Any]) -> None:
        self.source = source
        self.look_up = look_up

    def value(self, node: ast.expr) -> Any:  # noqa: C901 - one case per node
        """Return the value of an expression: a number, loop IR, a tuple or a text."""
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return value
            case ast.Name():
                return self.look_up(node)
            case ast.BinOp(left, op, right) if type(op) in BINARY:
                return BINARY[type(op)](self.number(left), self.number(right))
            case ast.UnaryOp(ast.Not(), operand):
                return _negated(self.condition(operand))
            case ast.UnaryOp(op, operand) if type(op) in UNARY:
                return UNARY[type(op)](self.number(operand))
            case ast.Compare(left, ops, comparators) if all(type(op) in COMPARE for op in ops):
                return self._comparison(left, ops, comparators)
            case ast.BoolOp(op, values):
                parts = [self._truth(item) for item in values]
                return _joined("and" if isinstance(op, ast.And) else "or", parts)
            case ast.IfExp(test, body, orelse):
                condition = self.condition(test)
                if is_known(condition):
                    return self.number(body if condition else orelse)
                return if_then_else(condition, self.number(body), self.number(orelse))
            case ast.Subscript():
                return self._element(node)
            case ast.Attribute(value, "shape"):
                return self.array(value).shape
            case ast.Attribute(value, "dtype"):
                return self.array(value).dtype
            case ast.Tuple(elts) | ast.List(elts):
                return tuple(self.value(item) for item in elts)
            case ast.Call(ast.Name(name), args, []):
                return self.call(node, name, args)
        raise self.source.wrong(
            node, "this expression is not part of hybrid script", got=ast.unparse(node)
        )

    def number(self, node: ast.expr) -> Any:
        """Return a number, or an expression of the loop IR."""
        value = self.value(node)
        if is_known(value) or isinstance(value, Expr):
            return value
        if isinstance(value, Variable):
            return value.view[0]
        raise self.source.wrong(
            node, "not a number", got=ast.unparse(node), hint="index an array: a[i, j]"
        )

    def condition(self, node: ast.expr) -> Any:
        """Return a condition; a known number counts as true if it is not 0, as in Python."""
        value = self.number(node)
        if is_known(value):
            return bool(value)
        return value if value.dtype == "bool" else value != 0

    def _truth(self, node: ast.expr) -> Any:
        """Return an operand of ``and`` or ``or``, which must be a condition."""
        # With numbers, Python's `and` returns an operand, not a condition: refused, not imitated.
        value = self.number(node)
        if isinstance(value, bool) or (isinstance(value, Expr) and value.dtype == "bool"):
            return value
        raise self.source.wrong(
            node, "'and' and 'or' join conditions", got=ast.unparse(node), hint="compare: x != 0"
        )

    def _comparison(self, left: ast.expr, ops: list[ast.cmpop], right: list[ast.expr]) -> Any:
        values = [self.number(item) for item in (left, *right)]
        pairs = zip(ops, values[:-1], values[1:], strict=True)
        return _joined("and", [COMPARE[type(op)](a, b) for op, a, b in pairs])

    def array(self, node: ast.expr) -> BufferView:
        """Return the array of a name, or of an item of a tuple."""
        value = self.whole(node)
        if not isinstance(value, BufferView):
            raise self.source.wrong(node, "not an array", got=ast.unparse(node))
        return value

    def whole(self, node: ast.expr) -> Any:
        """Return the value of a name, or of a tuple's item such as ``arrays[2]``; None otherwise.

        An item is chosen while the script is parsed, so its number must be known.
        """
        if isinstance(node, ast.Name):
            return self.look_up(node)
        items = self.whole(node.value) if isinstance(node, ast.Subscript) else None
        if not (isinstance(items, tuple) and isinstance(node, ast.Subscript)):
            return None
        chosen = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for part in chosen:
            items = self._item(node, items, self.value(part))
        return items

    def _item(self, node: ast.expr, items: Any, number: Any) -> Any:
        if not isinstance(items, tuple):
            raise self.source.wrong(node, "not a tuple", got=ast.unparse(node))
        if not isinstance(number, int):
            raise self.source.wrong(
                node, "the number of a tuple's item must be known", got=ast.unparse(node),
                hint="loop over it with const_range: for k in const_range(len(arrays))",
            )  # fmt: skip
        if not -len(items) <= number < len(items):
            raise self.source.wrong(
                node, "no such item", got=number, expected=f"an int below {len(items)}"
            )
        return items[number]

    def place(self, node: ast.Subscript) -> tuple[BufferView, tuple[Any, ...]]:
        """Return the array of ``a[i, j]`` or ``a[i][j]``, and its indices."""
        indices: list[ast.expr] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Subscript) and self.whole(inner) is None:
            part = inner.slice
            indices[:0] = part.elts if isinstance(part, ast.Tuple) else [part]
            inner = inner.value
        view = self.array(inner)
        if len(indices) != len(view.shape):
            raise self.source.wrong(
                node, "wrong number of indices", got=f"{len(indices)}: {ast.unparse(node)}",
                expected=f"{len(view.shape)}, one for each dimension of {view.shape}",
            )  # fmt: skip
        return view, tuple(self.number(index) for index in indices)

    def _element(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Attribute):  # a.shape[0]
            extents, place = self.value(node.value), self.value(node.slice)
            if isinstance(extents, tuple) and isinstance(place, int):
                if not -len(extents) <= place < len(extents):
                    raise self.source.wrong(node, "no such dimension", got=ast.unparse(node))
                return extents[place]
        if (item := self.whole(node)) is not None:
            return item
        view, indices = self.place(node)
        return view[indices]

    def call(self, node: ast.Call, name: str, args: list[ast.expr]) -> Any:
        """Return the value of a function call."""
        if name == "len" and len(args) == 1:
            value = self.value(args[0])
            return len(value) if isinstance(value, tuple) else self.array(args[0]).shape[0]
        values = [self.number(arg) for arg in args]
        if name in CASTS and len(values) == 1:
            return cast(as_expr(values[0]), name)
        if name == "likely" and len(values) == 1:
            condition = self.condition(args[0])
            return condition if is_known(condition) else Call("likely", (condition,), "bool")
        if name in ("min", "max") and len(values) > 1:
            python, ours = (min, minimum) if name == "min" else (max, maximum)
            both = python if all(map(is_known, values)) else ours
            return reduce(both, values)
        function = _FUNCTIONS.get(name)
        if function is None:
            raise self.source.wrong(
                node, f"{name} is not a function of hybrid script", got=ast.unparse(node)
            )
        try:
            return function(*values)
        except TypeError as error:
            raise self.source.wrong(node, "wrong number of arguments", got=str(error)) from error


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{name: getattr(math, name) for name in FUNCTION_NAMES},
    "abs": lambda x: abs(x),
    "assume_bounds": lambda x: x if is_known(x) else assume_bounds(x),
    "ceil_div": lambda a, b: -(-a // b) if is_known(a) and is_known(b) else ceildiv(a, b),
    "power": power,
    "round": math.round,
}


def _negated(condition: Any) -> Any:
    return not condition if is_known(condition) else Not(condition)


def _joined(op: Any, parts: list[Any]) -> Any:
    """Join conditions by ``and`` or ``or``; those that are known are evaluated at once."""
    decides = op == "or"
    known = [bool(part) for part in parts if is_known(part)]
    if decides in known:
        return decides
    open_parts = [part for part in parts if not is_known(part)]
    return logical(op, *open_parts) if open_parts else not decides
