"""The table of operations on two operands: one row for each `Binary` and each `Compare`.

The printer, the notation, the verifier, the constructors of nodes, the NumPy arithmetic and the C
generator read their columns here. What a language needs beyond a column is code of its generator.
The functions of a `Call` have a table of their own: `dlcompiler.ir.functions`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from dlcompiler import dtypes

BinaryOp: TypeAlias = Literal[
    "add", "sub", "mul", "div", "floordiv", "floormod", "truncdiv", "truncmod", "min", "max",
    "bitand", "bitor", "bitxor", "shl", "shr",
]  # fmt: skip
CompareOp: TypeAlias = Literal["eq", "ne", "lt", "le", "gt", "ge"]
LogicalOp: TypeAlias = Literal["and", "or"]

COMPARISON_LEVEL = 4
PRECEDENCE_OF_OTHERS = {"or": 1, "and": 2, "not": 3, "unary": 11, "atom": 13}
"""Levels of what is not in the table; a higher one binds more tightly, as in Python."""


@dataclass(frozen=True)
class Operation:
    """A row of the table: the properties of one operation."""

    numbers: Callable[[Any, Any], Any]
    """The result for two Python integers (except division by 0) or two NumPy numbers; also for
    arrays, except by ``min`` and ``max``."""
    arrays: Any
    """The same for arrays: an `np.ufunc`, except for ``truncdiv``, which NumPy does not have."""
    symbol: str = ""
    """The operator in Python and in printed IR, and in C where C has one of this meaning; empty for
    an operation that is written as a call: ``min(a, b)``."""
    precedence: int = PRECEDENCE_OF_OTHERS["atom"]
    """How tightly the printed operation binds."""
    domain: Literal["any", "number", "integer", "float"] = "number"
    """The dtypes of the operands; only "any" includes bool."""
    is_division: bool = False
    """Whether it is a division of integers, or its remainder: by 0 it gives 0."""
    is_reordered: bool = False
    """Whether grouping and order do not matter, with floats taken as real numbers."""

    def takes(self, dtype: str) -> bool:
        """Tell whether the operation is defined on two operands of `dtype`."""
        match self.domain:
            case "any":
                return True
            case "number":
                return not dtypes.is_bool(dtype)
            case "integer":
                return dtypes.is_int(dtype) or dtypes.is_index(dtype)
            case "float":
                return dtypes.is_float(dtype)

    @property
    def joint(self) -> str:
        """The symbol as printed: with spaces around it, except in products: ``i*32 + j``."""
        return self.symbol if self.symbol == "*" else f" {self.symbol} "


def _min(a: Any, b: Any) -> Any:
    return a if a < b or a != a else b  # a != a: NaN is the result


def _max(a: Any, b: Any) -> Any:
    return a if a > b or a != a else b


# Toward zero: one above the floor where the quotient is inexact and negative. The formulas are for
# Python's integers, NumPy's numbers and arrays: where NumPy divides by 0 it returns 0.
def _truncdiv(a: Any, b: Any) -> Any:
    return a // b + ((a % b != 0) & ((a < 0) != (b < 0)))


def _truncmod(a: Any, b: Any) -> Any:
    rest = a % b
    return rest - b * ((rest != 0) & ((a < 0) != (b < 0)))


BINARY: dict[BinaryOp, Operation] = {
    "add": Operation(operator.add, np.add, "+", 9, is_reordered=True),
    "sub": Operation(operator.sub, np.subtract, "-", 9),
    "mul": Operation(operator.mul, np.multiply, "*", 10, is_reordered=True),
    "div": Operation(operator.truediv, np.divide, "/", 10, "float"),
    "floordiv": Operation(
        operator.floordiv, np.floor_divide, "//", 10, "integer", is_division=True
    ),
    "floormod": Operation(operator.mod, np.remainder, "%", 10, "integer", is_division=True),
    "truncdiv": Operation(_truncdiv, _truncdiv, domain="integer", is_division=True),
    "truncmod": Operation(_truncmod, np.fmod, domain="integer", is_division=True),
    "min": Operation(_min, np.minimum, is_reordered=True),
    "max": Operation(_max, np.maximum, is_reordered=True),
    "bitand": Operation(operator.and_, np.bitwise_and, "&", 7, "integer", is_reordered=True),
    "bitor": Operation(operator.or_, np.bitwise_or, "|", 5, "integer", is_reordered=True),
    "bitxor": Operation(operator.xor, np.bitwise_xor, "^", 6, "integer", is_reordered=True),
    # NumPy's shifts by the width or more (or by less than 0) shift everything out, as ours.
    "shl": Operation(operator.lshift, np.left_shift, "<<", 8, "integer"),
    "shr": Operation(operator.rshift, np.right_shift, ">>", 8, "integer"),
}
COMPARISONS: dict[CompareOp, Operation] = {
    "eq": Operation(operator.eq, np.equal, "==", COMPARISON_LEVEL, "any"),
    "ne": Operation(operator.ne, np.not_equal, "!=", COMPARISON_LEVEL, "any"),
    "lt": Operation(operator.lt, np.less, "<", COMPARISON_LEVEL, "any"),
    "le": Operation(operator.le, np.less_equal, "<=", COMPARISON_LEVEL, "any"),
    "gt": Operation(operator.gt, np.greater, ">", COMPARISON_LEVEL, "any"),
    "ge": Operation(operator.ge, np.greater_equal, ">=", COMPARISON_LEVEL, "any"),
}
PRECEDENCE: dict[str, int] = {
    **PRECEDENCE_OF_OTHERS,
    "compare": COMPARISON_LEVEL,
    **{name: operation.precedence for name, operation in BINARY.items()},
}
"""Level of each operation and of the other forms that are printed."""
DIVISIONS = frozenset(name for name, operation in BINARY.items() if operation.is_division)
REORDERED = frozenset(name for name, operation in BINARY.items() if operation.is_reordered)
"""Operations of which neither grouping nor order matters: floats count as real numbers."""


def fold_index(op: BinaryOp, a: int, b: int) -> int:
    """Compute an index operation on two numbers; division by zero gives 0."""
    return 0 if b == 0 and op in DIVISIONS else BINARY[op].numbers(a, b)
