"""Formulas of symbols, as data: the extents of a shape as functions of the symbols.

A formula is a number, the name of a symbol, or ``(operation, a, b)``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dlcompiler.errors import InternalError

Formula: TypeAlias = int | str | tuple[Any, ...] | list[Any]
Value: TypeAlias = Callable[[Mapping[str, Any]], Any]

OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": lambda a, b: a // b if b else 0,
    "floormod": lambda a, b: a % b if b else 0,
    "truncdiv": lambda a, b: (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) if b else 0,
    "truncmod": lambda a, b: a - b * OPERATIONS["truncdiv"](a, b) if b else 0,
    "min": min,
    "max": max,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}
SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "floormod": "%", "lt": "<", "le": "<=",
    "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "and", "or": "or",
}  # fmt: skip


def compiled(formula: Formula) -> Value:
    """Return a function that computes a formula from the symbols' values by name."""
    if isinstance(formula, int):
        number = formula
        return lambda values: number
    if isinstance(formula, str):
        name = formula
        return lambda values: values[name]
    op, a, b = formula
    if op not in OPERATIONS:
        raise InternalError("formula of symbols", "no such operation", got=repr(op))
    function, left, right = OPERATIONS[op], compiled(a), compiled(b)
    return lambda values: function(left(values), right(values))


def text(formula: Formula) -> str:
    """Return a formula as people write it.

    >>> text(("floordiv", ("add", "n", 3), 4))
    '(n + 3) // 4'
    """
    if isinstance(formula, int | str):
        return str(formula)
    op, a, b = formula
    left, right = (text(x) if isinstance(x, int | str) else f"({text(x)})" for x in (a, b))
    if op not in SYMBOLS:
        return f"{op}({text(a)}, {text(b)})"
    return f"{left} {SYMBOLS[op]} {right}"
