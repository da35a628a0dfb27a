"""What an expression is at a point, in Python's integers: independent of the code under test."""

from __future__ import annotations

import operator
from collections.abc import Mapping

from dlcompiler import dtypes
from dlcompiler.ir import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Logical,
    Not,
    Select,
    Var,
)

COMPARISONS = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}


def value_of(expr: Expr, point: Mapping[Var, int]) -> int:
    """Return the value of an expression of indices, data integers and conditions at a point."""
    return _Evaluation(point).value(expr)


class _Evaluation:
    """Nodes that are shared are evaluated once."""

    def __init__(self, point: Mapping[Var, int]) -> None:
        self.point = point
        self.values: dict[int, int] = {}

    def value(self, expr: Expr) -> int:
        known = self.values.get(id(expr))
        if known is None:
            known = self.values[id(expr)] = self.compute(expr)
        return known

    def compute(self, expr: Expr) -> int:
        match expr:
            case Const(value, _):
                return value
            case Var():
                return self.point[expr]
            case Binary(op, a, b):
                whole = operate(op, self.value(a), self.value(b), expr.dtype)
                return wrap(whole, expr.dtype)
            case Compare(op, a, b):
                return COMPARISONS[op](self.value(a), self.value(b))
            case Logical("and", a, b):
                return bool(self.value(a) and self.value(b))
            case Logical("or", a, b):
                return bool(self.value(a) or self.value(b))
            case Not(value):
                return not self.value(value)
            case Select(condition, a, b) | IfThenElse(condition, a, b):
                return self.value(a if self.value(condition) else b)
            case Cast(value, dtype):
                return wrap(int(self.value(value)), dtype)
            case Call("likely", (value,)):
                return self.value(value)
        raise AssertionError(expr)


def operate(op: str, a: int, b: int, dtype: str) -> int:
    """Return an operation on two integers before it wraps."""
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "min":
            return b if b < a else a
        case "max":
            return b if b > a else a
        case "bitand":
            return a & b
        case "bitor":
            return a | b
        case "bitxor":
            return a ^ b
        case "shl":
            return a << b if 0 <= b < dtypes.bits(dtype) else 0
        case "shr":
            return a >> b if 0 <= b < dtypes.bits(dtype) else -(a < 0)
    if b == 0:
        return 0
    quotient, rest = divmod(a, b)
    if op.startswith("trunc") and rest and (a < 0) != (b < 0):
        quotient, rest = quotient + 1, rest - b
    return quotient if op.endswith("div") else rest


def wrap(value: int, dtype: str) -> int:
    """Return what is left of a value in a dtype; an index has room for all."""
    match dtypes.family(dtype):
        case "index":
            return value
        case "bool":
            return value != 0
        case "uint":
            return value % 2 ** dtypes.bits(dtype)
    half = 2 ** (dtypes.bits(dtype) - 1)
    return (value + half) % (2 * half) - half
