"""Reader of one statement of notation: checks its syntax tree, and finds its tensors and axes.

Only the nodes of Python's syntax tree that are listed here are accepted, so the builder handles
only known nodes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from dlcompiler import dtypes
from dlcompiler.ir.functions import FUNCTIONS as SIGNATURES
from dlcompiler.te import arithmetic, math
from dlcompiler.te.notation.reductions import REDUCTIONS, read_reduction
from dlcompiler.te.notation.source import Source
from dlcompiler.te.notation.statement import Statement, Use, Words, elements_of

MAX_INTEGER = 2**64

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "floormod",
    ast.Pow: "pow",
    ast.BitAnd: "bitand",
    ast.BitOr: "bitor",
    ast.BitXor: "bitxor",
    ast.LShift: "shl",
    ast.RShift: "shr",
}
INDEX_OPERATORS: dict[type[ast.operator], str] = {
    kind: OPERATORS[kind] for kind in (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
}
"""Operators that are allowed in formulas of indices and extents."""
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
NUMBERS = {"inf": float("inf"), "nan": float("nan")}

Function: TypeAlias = Callable[..., Any]
# Name -> (function, number of arguments); `max` and `min` of two values choose, as in the loop IR.
FUNCTIONS: dict[str, tuple[Function, int | None]] = {
    **{
        name: (getattr(math, name), signature.arity)
        for name, signature in SIGNATURES.items()
        if hasattr(math, name)
    },
    "abs": (arithmetic.abs, 1),
    "all": (arithmetic.all, None),
    "any": (arithmetic.any, None),
    "ceildiv": (arithmetic.ceildiv, 2),
    "div": (arithmetic.div, 2),
    "floordiv": (arithmetic.floordiv, 2),
    "floormod": (arithmetic.floormod, 2),
    "if_then_else": (arithmetic.if_then_else, 3),
    "likely": (arithmetic.likely, 1),
    "assume_bounds": (arithmetic.assume_bounds, 1),
    "max": (arithmetic.maximum, 2),
    "maximum": (arithmetic.maximum, 2),
    "min": (arithmetic.minimum, 2),
    "minimum": (arithmetic.minimum, 2),
    "nearbyint": (math.nearbyint, 1),
    "pow": (arithmetic.power, 2),
    "power": (arithmetic.power, 2),
    "select": (arithmetic.select, 3),
    "truncdiv": (arithmetic.truncdiv, 2),
    "truncmod": (arithmetic.truncmod, 2),
}

_WORDS: dict[type[ast.AST], str] = {
    ast.Attribute: "an attribute",
    ast.Await: "await",
    ast.Constant: "this constant",
    ast.Dict: "a dict",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.JoinedStr: "a string",
    ast.Lambda: "a lambda",
    ast.List: "a list",
    ast.ListComp: "a comprehension",
    ast.NamedExpr: "an assignment inside an expression",
    ast.Set: "a set",
    ast.SetComp: "a comprehension",
    ast.Slice: "a slice",
    ast.Starred: "a starred argument",
    ast.Tuple: "a tuple",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
}


def read_statement(source: Source, node: ast.stmt, words: Words) -> Statement:
    """Split a statement into its parts; refuse everything that is not notation."""
    match node:
        case ast.Assign(targets=[target], value=value):
            targets, left = _targets(source, target)
            statement = Statement(source, words, node, targets, left, [value])
            read_reduction(statement)
        case ast.AugAssign(target=target, op=ast.Add(), value=value):
            targets, left = _targets(source, target)
            statement = Statement(source, words, node, targets, left, [value], reducer="sum")
        case ast.AugAssign():
            source.fail(
                node, "only '=' and '+=' are understood",
                hint="write C[i] = max(A[i, k], axis=k) for a maximum",
            )  # fmt: skip
        case other:
            source.fail(other, "not an assignment", expected="C[i, j] = … or C[i, j] += …")
    _Scanner(statement).scan()
    _check_symbols(statement)
    _check_axes(statement)
    return statement


def _targets(source: Source, target: ast.expr) -> tuple[list[ast.Name], list[ast.Name]]:
    """Return the tensors on the left side and their axes, which must be the same for all."""
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    pairs = [_target(source, item) for item in targets]
    if not pairs:
        source.fail(target, "the left side is not an element", expected="C[i, j]")
    name, axes = pairs[0]
    for other, others in pairs[1:]:
        if [axis.id for axis in others] != [axis.id for axis in axes]:
            source.fail(
                other, f"{other.id} has other axes than {name.id}",
                expected="the same axes for all tensors of one statement: P[i], V[i] = …",
            )  # fmt: skip
    names = [other for other, _ in pairs]
    for n, item in enumerate(names):
        if item.id in {before.id for before in names[:n]}:
            source.fail(item, f"{item.id} stands twice on the left")
    return names, axes


def _target(source: Source, target: ast.expr) -> tuple[ast.Name, list[ast.Name]]:
    match target:
        case ast.Subscript(value=ast.Name() as name, slice=indices):
            axes = elements_of(indices)
        case _:
            source.fail(
                target, "the left side is not an element",
                expected="C[i, j], or C[()] for a tensor without dimensions",
            )  # fmt: skip
    seen: set[str] = set()
    for axis in axes:
        if not isinstance(axis, ast.Name) or axis.id in NUMBERS or axis.id == name.id:
            source.fail(axis, "an index on the left must be the name of an axis")
        if axis.id in seen:
            source.fail(axis, f"the axis {axis.id} stands twice on the left")
        seen.add(axis.id)
    return name, cast("list[ast.Name]", axes)


def _check_symbols(statement: Statement) -> None:
    """Refuse symbols that are used as axes or tensors."""
    reduced = statement.explicit or []
    for node in (*statement.targets, *statement.left, *reduced):
        if node.id in statement.words.symbols:
            statement.source.fail(
                node, f"{node.id} is a number given to the program", expected="another name"
            )
    for name, subscripts in statement.tensors.items():
        if name in statement.words.symbols:
            statement.source.fail(subscripts[0], f"{name} is a number, not a tensor")


def _check_axes(statement: Statement) -> None:
    """Refuse axes on the right that are neither on the left nor reduced over."""
    source, reduced = statement.source, statement.reduced
    for name, subscripts in statement.tensors.items():
        if name in statement.names:
            source.fail(
                subscripts[0], f"{name} is defined by this statement, and cannot be read in it"
            )
        if node := {**statement.right, **reduced}.get(name):
            source.fail(node, f"{name} is a tensor", hint=f"index it: {name}[…]")
    known = statement.axes | (set(reduced) if statement.reducer else set())
    for name, node in statement.right.items():
        if name not in known:
            source.fail(
                node, f"the axis {name} is not on the left",
                hint=f"add up over it with '+=', or reduce: max(…, axis={name});\n"
                f"if {name} is a tensor, index it: {name}[…]",
            )  # fmt: skip
    for start in statement.init:
        for part in ast.walk(start):
            if isinstance(part, ast.Name) and part.id in reduced:
                source.fail(part, f"the start value of a reduction cannot depend on {part.id}")
    if statement.reducer and not reduced:
        source.fail(
            statement.node, "'+=' adds up over axes that are not on the left, but there are none",
            hint="write '='",
        )  # fmt: skip


class _Scanner:
    """Visitor of the right side: records tensors and axes, and refuses unknown nodes."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self.source = statement.source

    def scan(self) -> None:
        names: dict[str, ast.Name] = {}
        statement = self.statement
        statement.right = names
        for value in statement.values:
            self.visit(value, is_guarded=statement.where is not None)
        if statement.where is not None:
            self.visit(statement.where, is_guarded=False)
        self.visit_all(statement.init, is_guarded=False)
        ordered = sorted(names.items(), key=lambda item: (item[1].lineno, item[1].col_offset))
        self.statement.right = dict(ordered)

    def visit(self, node: ast.expr, is_guarded: bool) -> None:  # noqa: C901 - one case per node
        match node:
            case ast.Constant(value=value):
                self.constant(node, value)
            case ast.Name(id=name):
                if self.is_axis(name):
                    self.statement.right.setdefault(name, node)
            case ast.UnaryOp(operand=operand):
                self.visit(operand, is_guarded)
            case ast.BinOp(left=left, op=op, right=right):
                if type(op) not in OPERATORS:
                    self.source.fail(
                        node,
                        "not an operator of the notation",
                        expected="+ - * / // % ** & | ^ << >>",
                    )
                self.visit_all([left, right], is_guarded)
            case ast.Compare(left=left, ops=ops, comparators=others):
                if any(type(op) not in COMPARISONS for op in ops):
                    self.source.fail(node, "not a comparison of the notation")
                self.visit_all([left, *others], is_guarded)
            case ast.BoolOp(values=[first, *others]):
                self.visit(first, is_guarded)
                self.visit_all(others, is_guarded=True)
            case ast.IfExp(test=test, body=body, orelse=otherwise):
                self.visit(test, is_guarded)
                self.visit_all([body, otherwise], is_guarded=True)
            case ast.Call(func=ast.Name() as function):
                self.call(node, function, is_guarded)
            case ast.Subscript(value=ast.Name(id=name), slice=indices):
                self.element(node, name, elements_of(indices), is_guarded)
            case ast.Call(func=inner) | ast.Subscript(value=inner):
                self.visit(inner, is_guarded)
                self.source.fail(node, "only a name can be called or indexed")
            case _:
                what = _WORDS.get(type(node), type(node).__name__)
                self.source.fail(node, f"{what} is not part of the notation")

    def is_axis(self, name: str) -> bool:
        return name not in NUMBERS and name not in self.statement.words.symbols

    def visit_all(self, nodes: list[ast.expr], is_guarded: bool) -> None:
        for node in nodes:
            self.visit(node, is_guarded)

    def constant(self, node: ast.Constant, value: object) -> None:
        if isinstance(value, str | bytes):
            self.source.fail(node, "a string is not part of the notation")
        if not isinstance(value, bool | int | float):
            self.source.fail(node, f"{value!r} is not a number")
        if isinstance(value, float) and value == NUMBERS["inf"]:
            self.source.fail(node, "the number is too large", hint="write inf for infinity")
        if value >= MAX_INTEGER and isinstance(value, int):
            self.source.fail(node, "the number does not fit 64 bits")

    def call(self, node: ast.Call, function: ast.Name, is_guarded: bool) -> None:
        name = function.id
        if name in REDUCTIONS and not (
            name in FUNCTIONS and len(node.args) == 2 and not node.keywords
        ):
            what = f"{name} of anything but two values" if name in FUNCTIONS else f"the {name}"
            self.source.fail(
                node, f"{what} stands inside another expression",
                hint="reduce in a statement of its own, and use its elements",
            )  # fmt: skip
        if node.keywords:
            self.source.fail(node.keywords[0], f"{name} takes no named argument here")
        if name not in FUNCTIONS and name not in dtypes.SCALARS:
            others = [word for word in REDUCTIONS if word not in FUNCTIONS]
            self.source.fail(
                node, f"unknown function {name!r}",
                expected=", ".join([*sorted(FUNCTIONS), *others, "or a dtype"]),
            )  # fmt: skip
        count = FUNCTIONS[name][1] if name in FUNCTIONS else 1
        if count is not None and len(node.args) != count:
            plural = "" if count == 1 else "s"
            self.source.fail(node, f"{name} takes {count} argument{plural}", got=len(node.args))
        guards = name in ("if_then_else", "all", "any")
        for n, argument in enumerate(node.args):
            self.visit(argument, is_guarded or (guards and n > 0))

    def element(
        self, node: ast.Subscript, name: str, indices: list[ast.expr], is_guarded: bool
    ) -> None:
        self.statement.tensors.setdefault(name, []).append(node)
        for dimension, index in enumerate(indices):
            if isinstance(index, ast.Name) and self.is_axis(index.id):
                use = Use(name, dimension, index, is_guarded)
                self.statement.direct.setdefault(index.id, []).append(use)
            self.visit(index, is_guarded)
