"""Extents and symbols in the declarations of notation: numbers, names and formulas of names."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Expr, Extent, Var, binary, extent_binary, index_const
from dlcompiler.te import arithmetic
from dlcompiler.te.definition import checked_extent
from dlcompiler.te.notation.scan import INDEX_OPERATORS
from dlcompiler.te.symbols import symbols_of, var
from dlcompiler.te.tensor import Tensor

MAX_FORMULA = 300
MAX_FORMULA_DEPTH = 40
_FUNCTIONS = {
    "min": arithmetic.minimum,
    "max": arithmetic.maximum,
    "truncdiv": arithmetic.truncdiv,
    "truncmod": arithmetic.truncmod,
}
_TAKEN = {*_FUNCTIONS, *dtypes.SCALARS}


class Symbols:
    """The symbols of a program of notation, by name.

    A symbol comes from text in a shape (``("n", 8)``), from a dtype (``a="float32"``), or from a
    `Var` or a `Tensor` in the declarations.
    """

    def __init__(self, declarations: Mapping[str, Any]) -> None:
        self.by_name: dict[str, Var] = {}
        for value in declarations.values():
            if isinstance(value, Tensor):
                for symbol in symbols_of([value]):
                    self.by_name.setdefault(symbol.name, symbol)
        for name, value in declarations.items():
            if isinstance(value, Var) and (value.dtype != "index" or value.name == name):
                self.by_name[name] = value  # another index is the extent of an axis: i=n
            elif isinstance(value, str) and value in dtypes.SCALARS:
                self.by_name[name] = var(name, value)
        self.declared = {name for name in declarations if name in self.by_name}
        for name, value in declarations.items():
            if name not in self.declared:
                self._name_all(value)

    def _name_all(self, value: Any) -> None:
        """Make a symbol for each name in the extents of a declaration."""
        match value:
            case [list() | tuple() as shape, str()]:
                self._name_all(shape)
            case list() | tuple():
                for extent in value:
                    self._name_all(extent)
            case str():
                for node in ast.walk(read_formula(value, "te.notation")):
                    if isinstance(node, ast.Name) and node.id not in _TAKEN:
                        self.by_name.setdefault(node.id, var(node.id))

    def extent(self, value: Any, where: str) -> Extent:
        """Return an extent given as a number, as an expression, or as text."""
        if not isinstance(value, str):
            return checked_extent(value, where)
        try:
            return checked_extent(self._value(read_formula(value, where), value, where), where)
        except RecursionError:
            raise _no_extent(value, where) from None

    def _value(self, node: ast.expr, text: str, where: str) -> Expr | int:
        match node:
            case ast.Constant(value=int(number)) if not isinstance(number, bool):
                return number
            case ast.Name(id=name) if name not in _TAKEN:
                return self.by_name[name]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return binary("sub", 0, self._value(operand, text, where))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in INDEX_OPERATORS:
                a, b = self._value(left, text, where), self._value(right, text, where)
                if isinstance(b, int) and b == 0 and isinstance(op, ast.FloorDiv | ast.Mod):
                    raise ExpressionError(where, "an extent divides by 0", got=repr(text))
                if isinstance(a, int) and isinstance(b, int):
                    a = index_const(a)
                return binary(INDEX_OPERATORS[type(op)], a, b)  # type: ignore[arg-type]  # a str
            case ast.Call(func=ast.Name(id=name), args=[a, b], keywords=[]) if name in _FUNCTIONS:
                result: Expr = _FUNCTIONS[name](
                    self._value(a, text, where), self._value(b, text, where)
                )
                return result
        raise _no_extent(text, where)


def difference(a: Extent, b: Extent) -> Extent:
    """Return ``a - b``, the number of values from `b` up to, but not including, `a`."""
    return checked_extent(extent_binary("sub", a, b), "te.notation")


def read_formula(text: str, where: str) -> ast.expr:
    """Parse the text of an extent, within limits of length and depth; it is never run."""
    if len(text) > MAX_FORMULA:
        raise _no_extent(f"{text[:40]}…", where)
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise _no_extent(text, where) from None
    level: list[ast.AST] = [node]
    for _ in range(MAX_FORMULA_DEPTH):
        level = [child for parent in level for child in ast.iter_child_nodes(parent)]
    if level:
        raise _no_extent(text, where)
    return node


def _no_extent(text: str, where: str) -> ExpressionError:
    return ExpressionError(
        where, "not an extent", got=repr(text),
        expected="a number, a name, or a formula of names: n, n + 1, n // 2",
    )  # fmt: skip
