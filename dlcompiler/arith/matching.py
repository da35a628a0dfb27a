"""Match patterns: expressions whose variables stand for other expressions.

A pattern is written with the variables of `dlcompiler.arith.laws`. Its numbers are of the dtype
that the operands of the matched expression have.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from dlcompiler import dtypes
from dlcompiler.arith.laws import c, d
from dlcompiler.ir import (
    Binary,
    Broadcast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Logical,
    Not,
    Select,
    Var,
    structural_key,
)
from dlcompiler.ir.rewrite import Node, map_children

Head: TypeAlias = tuple[str, str]
Shape: TypeAlias = "tuple[Head | None, ...]"
LITERAL: Head = ("literal", "")

#: The ends of the dtype, and the number of which all bits are set.
LOWEST, HIGHEST, ALL_BITS = Var("LOWEST"), Var("HIGHEST"), Var("ALL_BITS")
LITERALS = frozenset((c, d))


def head_of(expr: Expr) -> Head:
    """Return the kind and operation of a node, which a pattern must share to match it."""
    match expr:
        case Binary(op, _, _) | Compare(op, _, _) | Logical(op, _, _):
            return type(expr).__name__, op
    return type(expr).__name__, ""


def operands(expr: Expr) -> tuple[Expr, ...]:
    """Return the operands of a node; none if patterns cannot match this kind of node."""
    match expr:
        case Binary(_, a, b) | Compare(_, a, b) | Logical(_, a, b):
            return a, b
        case Not(value):
            return (value,)
        case Select(condition, a, b) | IfThenElse(condition, a, b):
            return condition, a, b
    return ()


def shape_of(expr: Expr) -> Head:
    """Return the kind of an operand, by which most patterns are rejected quickly."""
    return head_of(expr) if literal(expr) is None else LITERAL


def pattern_shape(pattern: Expr) -> Head | None:
    """Return the kind of operand that a pattern matches; None if it matches any kind."""
    match pattern:
        case Const():
            return LITERAL
        case Var():
            return LITERAL if pattern in LITERALS or _is_special(pattern) else None
    return head_of(pattern)


def literal(expr: Expr) -> Const | None:
    """Return the value of a literal, or of a vector with the same literal in each lane."""
    match expr:
        case Const(_, dtype) if dtypes.lanes(dtype) == 1:
            return expr
        case Broadcast(Const() as value, _):
            return value
    return None


def match(pattern: Expr, expr: Expr, dtype: str, found: dict[Var, Expr]) -> bool:
    """Tell whether an expression with operands of `dtype` matches; bind the pattern's variables."""
    match pattern, expr:
        case Const(), _:
            return _is_number(pattern, expr)
        case Var(), _:
            return _bind(pattern, expr, dtype, found)
        case (
            (Binary(op, p, q), Binary(other, a, b))
            | (Compare(op, p, q), Compare(other, a, b))
            | (Logical(op, p, q), Logical(other, a, b))
        ):
            return op == other and match(p, a, dtype, found) and match(q, b, dtype, found)
        case Not(p), Not(a):
            return match(p, a, dtype, found)
        case (Select(r, p, q), Select(s, a, b)) | (IfThenElse(r, p, q), IfThenElse(s, a, b)):
            return (
                match(r, s, dtype, found)
                and match(p, a, dtype, found)
                and match(q, b, dtype, found)
            )
    return False


def _is_number(pattern: Const, expr: Expr) -> bool:
    number = literal(expr)
    if number is None or number.value != pattern.value:
        return False
    return math.copysign(1, number.value) == math.copysign(1, pattern.value)


def _bind(pattern: Var, expr: Expr, dtype: str, found: dict[Var, Expr]) -> bool:
    if _is_special(pattern):
        number = literal(expr)
        return number is not None and number.value == _special(pattern, dtype)
    if pattern in LITERALS and literal(expr) is None:
        return False
    known = found.setdefault(pattern, expr)
    return known is expr or is_same(known, expr)


def _is_special(pattern: Var) -> bool:
    return pattern is LOWEST or pattern is HIGHEST or pattern is ALL_BITS


def _special(pattern: Var, dtype: str) -> int | float:
    if pattern is LOWEST:
        return dtypes.min_value(dtype)
    if pattern is HIGHEST or dtypes.is_unsigned(dtype):
        return dtypes.max_value(dtype)
    return -1


def is_same(a: Expr, b: Expr) -> bool:
    """Tell whether two expressions have the same structure and the same variables."""
    if type(a) is not type(b) or a.dtype != b.dtype or isinstance(a, Var):
        return a is b
    return head_of(a) == head_of(b) and structural_key(a) == structural_key(b)


def build(pattern: Expr, found: dict[Var, Expr], dtype: str) -> Expr:
    """Return `pattern` with its variables replaced and its numbers converted to `dtype`."""

    def visit(child: Node) -> Node:
        assert isinstance(child, Expr)
        return build(child, found, dtype)

    match pattern:
        case Var():
            if _is_special(pattern):
                return _number(_special(pattern, dtype), dtype)
            return found[pattern]
        case Const(value, "bool"):
            return _number(value, dtypes.with_lanes("bool", dtypes.lanes(dtype)))
        case Const(value, _):
            return _number(value, dtype)
    return map_children(pattern, visit)


def _number(value: bool | int | float, dtype: str) -> Expr:
    number = Const(value, dtypes.element(dtype))
    lanes = dtypes.lanes(dtype)
    return Broadcast(number, lanes) if lanes > 1 else number
