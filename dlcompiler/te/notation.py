"""Notation: a tensor expression read from one line of text, and never evaluated as Python."""

from __future__ import annotations

import ast
import math
import numbers
import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Axis, Expr, Extent, Not, const, logical
from dlcompiler.ir import cast as convert
from dlcompiler.ir import compare as compare_exprs
from dlcompiler.ir.expr import LogicalOp, condition
from dlcompiler.te import arithmetic, language, reductions
from dlcompiler.te.definition import checked_extent, checked_shape, define_tensors
from dlcompiler.te.notation_printer import (
    notation_arguments,
    notation_python,
    notation_text,
    signature_text,
)
from dlcompiler.te.notation_scan import (
    COMPARISONS,
    FUNCTIONS,
    MAX_INTEGER,
    NUMBERS,
    OPERATORS,
    Statement,
    Use,
    read_statement,
)
from dlcompiler.te.notation_source import WHERE, Source
from dlcompiler.te.tensor import Tensor

__all__ = ["notation", "notation_arguments", "notation_python", "notation_text", "signature_text"]

Domain: TypeAlias = tuple[int, int]
Number: TypeAlias = int | float

_FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "pow": operator.pow,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
}
MAX_SHIFT = 64


def notation(text: str, /, **declarations: Any) -> Tensor:
    """Define a tensor by one statement, written as on paper.

    Parameters
    ----------
    text : str
        ``C[i, j] = …`` for each element, ``C[i, j] += …`` to add up over the axes that are not on
        the left, or ``C[i] = max(…, axis=k)``, and so with ``min`` and ``sum``.
    **declarations
        By name: for a tensor that is read, ``(shape, dtype)``, a shape (of float32) or a `Tensor`;
        for an axis, its extent or ``(first, end)``; for the result, ``(shape, dtype)``. Extents of
        axes that index a tensor directly need not be given.

    Returns
    -------
    Tensor

    Raises
    ------
    ExpressionError
        With the text and a caret under the place, for anything that is not notation.

    Notes
    -----
    Understood are ``+ - * / // % ** & | ^ ~ << >>``, comparisons (chains too), ``and``, ``or``,
    ``not``, ``a if c else b``, numbers, ``inf``, ``nan``, ``True``, ``False``, the functions of the
    language by their names, ``max(a, b)`` and ``min(a, b)`` of two values, and dtypes as
    conversions: ``float32(x)``; with a number, ``int8(3)`` is a literal of that dtype. Numbers
    adapt to the other operand as in Python code.

    Examples
    --------
    >>> from dlcompiler import te
    >>> C = te.notation("C[i, j] += A[i, k] * B[k, j]", A=(4, 8), B=((8, 2), "float32"))
    >>> C
    Tensor(C: float32[4, 2])
    >>> te.notation_text(C)
    'C[i, j] += A[i, k]*B[k, j]'
    >>> R = te.notation("R[i] = max(C[i, j], 0) if i < 3 else 0.0", C=C, j=1)
    Traceback (most recent call last):
    dlcompiler.errors.ExpressionError: te.notation: the axis j is not on the left
      hint      add up over it with '+=', or reduce: max(…, axis=j)
                if j is a tensor, index it: j[…]
      excerpt   R[i] = max(C[i, j], 0) if i < 3 else 0.0
                                ^
    """
    source = Source(text)
    try:
        return _read(source, declarations)
    except RecursionError:
        raise source.too_deep() from None


def _read(source: Source, declarations: Mapping[str, Any]) -> Tensor:
    statement = read_statement(source)
    _check_names(statement, declarations)
    tensors = {name: _tensor(statement, name, declarations) for name in statement.tensors}
    output = _output(statement, declarations)
    domains = _domains(statement, tensors, output and output[0], declarations)
    return _define(statement, tensors, domains, output and output[1])


# -- declarations ---------------------------------------------------------------------------------


def _check_names(statement: Statement, declarations: Mapping[str, Any]) -> None:
    axes = {node.id for node in statement.left} | {*statement.right, *statement.reduced}
    known = axes | set(statement.tensors) | {statement.target.id}
    for name in declarations:
        if name not in known:
            raise ExpressionError(
                WHERE, f"{name} is declared, but does not occur", expected=", ".join(sorted(known)),
                excerpt=statement.source.excerpt(None),
            )  # fmt: skip


def _tensor(statement: Statement, name: str, declarations: Mapping[str, Any]) -> Tensor:
    source, subscripts = statement.source, statement.tensors[name]
    if name not in declarations:
        source.fail(
            subscripts[0], f"nothing is said of {name}",
            hint=f'declare it: te.notation(…, {name}=((…), "float32")), or a Tensor',
        )  # fmt: skip
    declared = declarations[name]
    with source.pointing_at(subscripts[0]):
        if isinstance(declared, Tensor):
            tensor = declared
        else:
            tensor = language.placeholder(*_shape_and_dtype(declared, name), name=name)
    for subscript in subscripts:
        indices = subscript.slice
        count = len(indices.elts) if isinstance(indices, ast.Tuple) else 1
        if count != tensor.ndim:
            source.fail(
                subscript, f"{name} has {tensor.ndim} dimensions", got=f"{count} indices",
                expected=f"one for each dimension of {tensor.shape}",
            )  # fmt: skip
    return tensor


def _shape_and_dtype(declared: Any, name: str) -> tuple[tuple[Extent, ...], str]:
    where = f"{WHERE}, {name}"
    match declared:
        case [shape, str() | np.dtype() | type() as dtype]:
            return checked_shape(_sequence(shape, where), where), dtypes.as_dtype(dtype)
    return checked_shape(_sequence(declared, where), where), "float32"


def _sequence(shape: Any, where: str) -> Any:
    if not isinstance(shape, tuple | list):
        raise ExpressionError(
            where, "not a shape", got=repr(shape), expected='(n, m) or ((n, m), "float32")'
        )
    return shape


def _output(
    statement: Statement, declarations: Mapping[str, Any]
) -> tuple[tuple[Extent, ...], str | None] | None:
    """Return the shape that the result is declared to have, and its dtype."""
    target = statement.target
    if target.id not in declarations:
        return None
    declared = declarations[target.id]
    with statement.source.pointing_at(target):
        shape, dtype = _shape_and_dtype(declared, target.id)
    if len(shape) != len(statement.left):
        statement.source.fail(
            target, f"{target.id} is declared with {len(shape)} dimensions", got=shape,
            expected=f"{len(statement.left)} extents",
        )  # fmt: skip
    has_dtype = len(declared) == 2 and isinstance(declared[1], str | np.dtype | type)
    return shape, dtype if has_dtype else None


# -- extents --------------------------------------------------------------------------------------


def _domains(
    statement: Statement,
    tensors: Mapping[str, Tensor],
    shape: tuple[Extent, ...] | None,
    declarations: Mapping[str, Any],
) -> dict[str, Domain]:
    """Return the first value and the end of each axis: as declared, else as it indexes."""
    domains: dict[str, Domain] = {}
    for n, node in enumerate(statement.left):
        declared = None if shape is None else (0, _number(shape[n], WHERE))
        domains[node.id] = _domain(statement, node, tensors, declarations, declared)
        if domains[node.id][0] != 0:
            statement.source.fail(
                node, f"the axis {node.id} is on the left, and must start at 0",
                got=domains[node.id],
            )  # fmt: skip
    for node in statement.reduced.values():
        domains[node.id] = _domain(statement, node, tensors, declarations, None)
    return domains


def _domain(
    statement: Statement,
    node: ast.Name,
    tensors: Mapping[str, Tensor],
    declarations: Mapping[str, Any],
    declared: Domain | None,
) -> Domain:
    source, name = statement.source, node.id
    if name in declarations:
        with source.pointing_at(node):
            given = _given_domain(declarations[name], name)
        if declared is not None and given != declared:
            source.fail(node, f"the axis {name} is declared twice", got=f"{given} and {declared}")
        declared = given
    uses = statement.direct.get(name, [])
    if declared is None:
        return 0, _inferred_extent(statement, node, uses, tensors)
    for use in uses:
        extent = tensors[use.tensor].shape[use.dimension]
        is_inside = declared[0] >= 0 and declared[1] <= extent
        if not (use.is_guarded or is_inside or declared[0] == declared[1]):
            source.fail(
                use.node, f"the axis {name} goes beyond {use.tensor}",
                got=f"{name} from {declared[0]} to {declared[1] - 1}",
                expected=f"within 0 to {extent - 1}, dimension {use.dimension} of {use.tensor}",
            )  # fmt: skip
    return declared


def _given_domain(declared: Any, name: str) -> Domain:
    where = f"{WHERE}, {name}"
    match declared:
        case tuple() | list() if len(declared) == 2:
            first, end = (_number(checked_extent(value, where), where) for value in declared)
        case numbers.Real():
            first, end = 0, _number(checked_extent(declared, where), where)
        case _:
            raise ExpressionError(
                where, "not the domain of an axis", got=repr(declared), expected="n or (first, end)"
            )
    if end < first:
        raise ExpressionError(where, "the domain is empty", got=repr(declared))
    return first, end


def _number(extent: Extent, where: str) -> int:
    if isinstance(extent, int):
        return extent
    raise ExpressionError(where, "the extent of an axis is not a number", got=str(extent))


def _inferred_extent(
    statement: Statement, node: ast.Name, uses: list[Use], tensors: Mapping[str, Tensor]
) -> int:
    certain = [use for use in uses if not use.is_guarded] or uses
    if not certain:
        statement.source.fail(
            node, f"the extent of the axis {node.id} is not known",
            hint=f"give it: te.notation(…, {node.id}=n)",
        )  # fmt: skip
    first, *others = certain
    extent = tensors[first.tensor].static_shape[first.dimension]
    for use in others:
        other = tensors[use.tensor].static_shape[use.dimension]
        if other != extent:
            statement.source.fail(
                use.node, f"the extents of the axis {node.id} disagree",
                got=f"{other} in dimension {use.dimension} of {use.tensor}",
                expected=f"{extent}, as in dimension {first.dimension} of {first.tensor}",
                hint=f"if a part is meant, give the extent: te.notation(…, {node.id}=n)",
            )  # fmt: skip
    return extent


# -- building -------------------------------------------------------------------------------------


def _define(
    statement: Statement,
    tensors: Mapping[str, Tensor],
    domains: Mapping[str, Domain],
    dtype: str | None,
) -> Tensor:
    source, name = statement.source, statement.target.id
    axes = {node.id: Axis(node.id, domains[node.id][1], "data") for node in statement.left}
    reduced = {
        axis: Axis(axis, end - first, "reduce", start=first)
        for axis, (first, end) in domains.items()
        if axis not in axes
    }
    value = _Builder(source, tensors, {**axes, **reduced}).build(statement.value)
    with source.pointing_at(None):
        if statement.reducer:
            reduce = {"sum": reductions.sum, "max": reductions.max, "min": reductions.min}
            value = reduce[statement.reducer](value, axis=list(reduced.values()))
        (tensor,) = define_tensors(name, tuple(axes.values()), (value,), WHERE)
    if dtype is not None and tensor.dtype != dtype:
        source.fail(
            statement.target, f"{name} is declared as another dtype than it has",
            got=tensor.dtype, expected=dtype, hint=f"convert the operands: {dtype}(…)",
        )  # fmt: skip
    return tensor


class _Builder:
    """Builds the expression of a scanned right side with the words of the language."""

    def __init__(
        self, source: Source, tensors: Mapping[str, Tensor], axes: Mapping[str, Axis]
    ) -> None:
        self.source = source
        self.tensors = tensors
        self.axes = axes

    def build(self, node: ast.expr) -> Any:
        """Return an expression, an axis, or a bare number, which adapts to what it meets."""
        with self.source.pointing_at(node):
            return self.one(node)

    def one(self, node: ast.expr) -> Any:  # noqa: C901 - one case per node
        match node:
            case ast.Constant(value=bool(value)):
                return const(value, "bool")
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return NUMBERS[name] if name in NUMBERS else self.axes[name]
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
        """Build a comparison; a chain is the conjunction of its links."""
        values = [self.build(value) for value in (node.left, *node.comparators)]
        links = [
            compare_exprs(COMPARISONS[type(op)], a, b)  # type: ignore[arg-type]  # a str
            for op, a, b in zip(node.ops, values, values[1:], strict=False)
        ]
        return logical("and", *links)

    def call(self, name: str, args: list[Any]) -> Any:
        if name in FUNCTIONS:
            return FUNCTIONS[name][0](*args)
        (value,) = args
        return const(value, name) if _is_bare(value) else convert(value, name)


def _folding_problem(op: str, a: Number, b: Number) -> str | None:
    """Say why an operation on two bare numbers has no number for a result; None if it has one."""
    is_integral = isinstance(a, int) and isinstance(b, int)
    match op:
        case "div" | "floordiv" | "floormod" if b == 0:
            return "division by zero"
        case "bitand" | "bitor" | "bitxor" | "shl" | "shr" if not is_integral:
            return "bit operations take integers"
        case "shl" | "shr" if not 0 <= b <= MAX_SHIFT:
            return f"a shift by a number that is not from 0 to {MAX_SHIFT}"
        case "pow":
            return _power_problem(a, b, is_integral)
    return None


def _power_problem(a: Number, b: Number, is_integral: bool) -> str | None:
    if a == 0 and b < 0:
        return "division by zero"
    if a < 0 and not float(b).is_integer():
        return "a power that is no real number"
    if abs(a) > 1 and b * math.log2(abs(a)) > (64 if is_integral else 1023):
        return "the number is too large"
    return None


def _is_bare(value: Any) -> bool:
    return isinstance(value, int | float)
