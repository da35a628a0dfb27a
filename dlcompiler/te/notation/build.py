"""Builder of expressions from the syntax tree of a statement of notation."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dlcompiler.ir import Axis, Expr, Not, Var, const, logical
from dlcompiler.ir import cast as convert
from dlcompiler.ir import compare as compare_exprs
from dlcompiler.ir.expr import condition
from dlcompiler.ir.operations import BINARY, LogicalOp
from dlcompiler.te import arithmetic
from dlcompiler.te.notation.scan import COMPARISONS, FUNCTIONS, MAX_INTEGER, NUMBERS, OPERATORS
from dlcompiler.te.notation.source import WHERE, Source
from dlcompiler.te.tensor import Tensor

Number: TypeAlias = int | float

_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    **{name: operation.numbers for name, operation in BINARY.items()},
    "pow": operator.pow,
}
MAX_SHIFT = 64


class Builder:
    """Builder of the expressions on the right side of a statement, after `read_statement`."""

    def __init__(
        self,
        source: Source,
        tensors: Mapping[str, Tensor],
        variables: Mapping[str, Axis | Var],
    ) -> None:
        self.source = source
        self.tensors = tensors
        self.variables = variables

    def build(self, node: ast.expr) -> Any:
        """Return an expression, an axis, or a bare number, which has no dtype yet."""
        with self.source.pointing_at(node):
            return self.one(node)

    def one(self, node: ast.expr) -> Any:  # noqa: C901 - one case per node
        """Return the value of one node; errors do not have a place in the text yet."""
        match node:
            case ast.Constant(value=bool(value)):
                return const(value, "bool")
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return NUMBERS[name] if name in NUMBERS else self.variables[name]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Not(condition(self.build(operand), WHERE))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.build(operand)
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                value = self.build(operand)
                if isinstance(value, float):
                    self.source.fail(node, "'~' takes an integer or a condition")
                return ~value
            case ast.UnaryOp(operand=operand):
                return self.build(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(node, OPERATORS[type(op)], self.build(left), self.build(right))
            case ast.Compare():
                return self.comparison(node)
            case ast.BoolOp(op=op, values=values):
                joined: LogicalOp = "and" if isinstance(op, ast.And) else "or"
                return logical(joined, *map(self.build, values))
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                return arithmetic.if_then_else(*map(self.build, (test, body, otherwise)))
            case ast.Call(func=ast.Name(id=name), args=args):
                return self.call(name, [self.build(arg) for arg in args])
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=indices)):
                return self.tensors[name][tuple(map(self.build, indices))]
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                return self.tensors[name][self.build(index)]
        raise AssertionError(f"{type(node).__name__} passed the scanner")

    def binary(self, node: ast.BinOp, op: str, a: Any, b: Any) -> Any:
        """Build a binary operation; two bare numbers are computed at once."""
        if not (_is_bare(a) and _is_bare(b)):
            return _FOLD[op](a, b)
        if problem := _folding_problem(op, a, b):
            self.source.fail(node, problem)
        value = _FOLD[op](a, b)
        if isinstance(value, int) and abs(value) >= MAX_INTEGER:
            self.source.fail(node, "the number does not fit 64 bits")
        if not math.isfinite(value) and math.isfinite(a) and math.isfinite(b):
            self.source.fail(node, "the number is too large")
        return value

    def comparison(self, node: ast.Compare) -> Expr:
        """Build a comparison; ``a < b < c`` means ``a < b and b < c``."""
        values = [self.build(value) for value in (node.left, *node.comparators)]
        links = [
            compare_exprs(COMPARISONS[type(op)], a, b)  # type: ignore[arg-type]  # a str
            for op, a, b in zip(node.ops, values, values[1:], strict=False)
        ]
        return logical("and", *links)

    def call(self, name: str, args: list[Any]) -> Any:
        """Build a call of a function, a conversion, or a literal of a dtype."""
        if name in FUNCTIONS:
            return FUNCTIONS[name][0](*args)
        (value,) = args
        return const(value, name) if _is_bare(value) else convert(value, name)


def _folding_problem(op: str, a: Number, b: Number) -> str | None:
    """Return why an operation on two bare numbers has no result; None if it has one."""
    is_integral = isinstance(a, int) and isinstance(b, int)
    match op:
        case "div" | "floordiv" | "floormod" if b == 0:
            return "division by zero"
        case "bitand" | "bitor" | "bitxor" | "shl" | "shr" if not is_integral:
            return "bit operations take integers"
        case "shl" | "shr" if not 0 <= b <= MAX_SHIFT:
            return f"a shift by a number outside 0 to {MAX_SHIFT}"
        case "pow":
            return _power_problem(a, b, is_integral)
    return None


def _power_problem(a: Number, b: Number, is_integral: bool) -> str | None:
    if a == 0 and b < 0:
        return "division by zero"
    if a < 0 and not float(b).is_integer():
        return "the power is not a real number"
    if abs(a) > 1 and b * math.log2(abs(a)) > (64 if is_integral else 1023):
        return "the number is too large"
    return None


def _is_bare(value: Any) -> bool:
    return isinstance(value, int | float)
