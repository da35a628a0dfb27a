"""Notation written: any tensor expression as lines of text that `te.notation` reads back."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from dlcompiler import dtypes
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import (
    Axis,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Logical,
    Not,
    Reduce,
    Select,
    TensorLoad,
    Var,
    as_expr,
    structural_equal,
    tree_size,
)
from dlcompiler.ir.printer import (
    COMPARISON,
    INFIX,
    PRECEDENCE,
    format_number,
    is_all_ones,
    is_negation,
)
from dlcompiler.te.notation_scan import FUNCTIONS, NUMBERS, REDUCTIONS, read_statement
from dlcompiler.te.notation_source import Source
from dlcompiler.te.tensor import ComputeOp, PlaceholderOp, Tensor, post_order

MAX_NODES = 5_000
_CHOICE = 0  # the precedence of "a if c else b"
_RESERVED = {*FUNCTIONS, *NUMBERS, *REDUCTIONS, *dtypes.SCALARS, *keyword.kwlist, "te"}


def notation_text(*outputs: Tensor) -> str:
    """Write the expression of tensors: one line for each computed tensor, producers first.

    Names that the notation cannot have (``A.local``) are changed, and made unique.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> k = te.reduce_axis((0, 8), name="k")
    >>> S = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="S")
    >>> M = te.compute((4, 8), lambda i, j: A[i, j] / S[i] - 1, name="M")
    >>> print(te.notation_text(M))
    S[i] += A[i, k]
    M[i, j] = A[i, j] / S[i] - 1.0
    """
    names = _tensor_names(outputs)
    return "\n".join(_Line(op, names).text() for op in _computed(outputs))


def signature_text(*outputs: Tensor) -> str:
    """Write the shape and dtype of every tensor that outputs depend on, one in each line.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> print(te.signature_text(te.compute((8, 4), lambda i, j: A[j, i], name="T")))
    A: float32[4, 8]
    T: float32[8, 4]
    """
    return "\n".join(
        f"{name}: {tensor.dtype}[{', '.join(map(str, tensor.shape))}]"
        for tensor, name in _tensor_names(outputs).items()
    )


def notation_arguments(tensor: Tensor) -> dict[str, Any]:
    """Return what `te.notation` must be told beside the line of `tensor` to read it back.

    Returns
    -------
    dict of str to tuple
        ``(shape, dtype)`` of each tensor read, ``(first, end)`` of each axis that the line does
        not tell; numbers and texts only. Pass a `Tensor` in place of the former to build on it.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((9,), name="A")
    >>> k = te.reduce_axis((2, 5), name="k")
    >>> S = te.compute((), lambda: te.sum(A[k], axis=k), name="S")
    >>> te.notation_arguments(S)
    {'A': ((9,), 'float32'), 'k': (2, 5)}
    """
    op = tensor.op
    if not isinstance(op, ComputeOp):
        return {}
    names = _tensor_names([tensor])
    line = _Line(op, names)
    arguments: dict[str, Any] = {names[read]: (read.shape, read.dtype) for read in op.input_tensors}
    return {**arguments, **line.untold_axes(line.text())}


def notation_python(*outputs: Tensor) -> str:
    """Write Python code that declares the inputs of tensors and defines them by notation.

    Examples
    --------
    >>> from dlcompiler import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> print(te.notation_python(te.compute((3,), lambda i: A[i, 2], name="T")))
    A = te.placeholder((4, 8), "float32", name="A")
    T = te.notation("T[i] = A[i, 2]", A=A, i=(0, 3))
    """
    names = _tensor_names(outputs)
    lines = []
    for tensor, name in names.items():
        if isinstance(tensor.op, PlaceholderOp):
            lines.append(
                f'{name} = te.placeholder({tensor.shape}, "{tensor.dtype}", name="{tensor.name}")'
            )
            continue
        line = _Line(tensor.op, names)
        text = line.text()
        arguments = [f'"{text}"']
        arguments += [f"{names[read]}={names[read]}" for read in tensor.op.input_tensors]
        arguments += [f"{axis}={domain}" for axis, domain in line.untold_axes(text).items()]
        lines.append(f"{name} = te.notation({', '.join(arguments)})")
    return "\n".join(lines)


# -- names ----------------------------------------------------------------------------------------


def _computed(outputs: Iterable[Tensor]) -> list[ComputeOp]:
    return [op for op in post_order(outputs) if isinstance(op, ComputeOp)]


def _tensor_names(outputs: Iterable[Tensor]) -> dict[Tensor, str]:
    used: set[str] = set()
    return {op.output(0): _unique(op.name, used) for op in post_order(outputs)}


def _unique(name: str, used: set[str]) -> str:
    """Return a name that can stand in notation and is not used yet, and mark it used."""
    plain = unicodedata.normalize("NFKC", re.sub(r"\W", "_", name))
    plain = plain if plain.isidentifier() else f"_{plain}"
    plain = f"{plain}_" if plain in _RESERVED else plain
    result, n = plain, 1
    while result in used:
        result, n = f"{plain}_{n}", n + 1
    used.add(result)
    return result


# -- lines ----------------------------------------------------------------------------------------


class _Line:
    """The line of one computed tensor."""

    def __init__(self, op: ComputeOp, tensors: Mapping[Tensor, str]) -> None:
        self.op = op
        self.tensors = tensors
        used = set(tensors.values())
        self.axes = {axis: _unique(axis.name, used) for axis in (*op.axis, *op.reduce_axis)}
        self.of_var: dict[Var, Axis] = {axis.var: axis for axis in self.axes}

    def text(self) -> str:
        body, name = self.op.body, self.tensors[self.op.output(0)]
        if tree_size(body) > MAX_NODES:
            raise ExpressionError(
                f"write {self.op.name} as notation", "the expression is too large",
                expected=f"at most {MAX_NODES} nodes",
                hint="split it into several te.compute",
            )  # fmt: skip
        target = f"{name}[{', '.join(self.axes[axis] for axis in self.op.axis) or '()'}]"
        if not isinstance(body, Reduce):
            return f"{target} = {self.value(body)}"
        if len(body.values) > 1 or body.condition is not None or body.init:
            raise ExpressionError(
                f"write {self.op.name} as notation", "this kind of reduction has no notation yet"
            )
        value = self.value(body.value)
        added = f"{target} += {value}"
        names = [self.axes[axis] for axis in body.axes]
        if body.reducer.name == "sum" and self.reads_back(added, names):
            return added
        axes = names[0] if len(names) == 1 else f"({', '.join(names)})"
        return f"{target} = {body.reducer.name}({value}, axis={axes})"

    def reads_back(self, text: str, names: list[str]) -> bool:
        """Tell whether ``+=`` would reduce over just these axes, in this order."""
        data = {self.axes[axis] for axis in self.op.axis}
        found = [name for name in self.names_in(text) if name not in data]
        return found == names

    def names_in(self, text: str) -> list[str]:
        value = text.split("=", 1)[1]
        words = re.findall(r"\b[^\W\d]\w*", value)
        known = set(self.axes.values())
        return list(dict.fromkeys(word for word in words if word in known))

    def untold_axes(self, text: str) -> dict[str, tuple[int, int]]:
        """Return the domains of the axes that reading `text` would not find out."""
        statement = read_statement(Source(text))
        shapes = {name: tensor.shape for tensor, name in self.tensors.items()}
        untold = {}
        for axis, name in self.axes.items():
            uses = statement.direct.get(name, [])
            certain = [use for use in uses if not use.is_guarded] or uses
            extents = {shapes[use.tensor][use.dimension] for use in certain}
            if axis.start or extents != {axis.extent}:
                untold[name] = (axis.start, axis.start + axis.static_extent)
        return untold

    # -- expressions ------------------------------------------------------------------------------

    def value(self, expr: Expr, like: str | None = None) -> str:
        """Return an expression; a number in it is read back beside an operand of dtype `like`."""
        return self.one(expr, like)[0]

    def wrap(self, expr: Expr, level: int, like: str | None = None) -> str:
        text, own = self.one(expr, like)
        return f"({text})" if own < level else text

    def one(self, expr: Expr, like: str | None) -> tuple[str, int]:  # noqa: C901 - case per node
        """Return the text of an expression, and the precedence of its outermost operation."""
        match expr:
            case Const():
                return self.literal(expr, like)
            case Var():
                return self.variable(expr)
            case Binary("add", Var() as var, Const(start, "index")) if self.starts_at(var, start):
                return self.axes[self.of_var[var]], PRECEDENCE["atom"]
            case Binary("sub", Const(zero, dtype), b) if is_negation(zero, dtype):
                return f"-{self.operand(b, PRECEDENCE['unary'])}", PRECEDENCE["unary"]
            case Binary("bitxor", a, Const(ones, dtype)) if is_all_ones(ones, dtype):
                return f"~{self.operand(a, PRECEDENCE['unary'])}", PRECEDENCE["unary"]
            case Binary(op, a, b) if op in INFIX:
                level = PRECEDENCE[op]
                joint = "*" if op == "mul" else f" {INFIX[op]} "
                first, second = self.pair(a, b, level, level + 1)
                return f"{first}{joint}{second}", level
            case Binary(op, a, b):
                name = {"min": "minimum", "max": "maximum"}.get(op, op)
                return self.function(name, *self.pair(a, b))
            case Compare(op, a, b):
                level = PRECEDENCE["compare"]
                first, second = self.pair(a, b, level + 1, level + 1)
                return f"{first} {COMPARISON[op]} {second}", level
            case Logical(op, a, b):
                level = PRECEDENCE[op]
                return f"{self.wrap(a, level)} {op} {self.wrap(b, level + 1)}", level
            case Not(value):
                return f"not {self.wrap(value, PRECEDENCE['not'])}", PRECEDENCE["not"]
            case Cast(value, dtype):
                return self.function(dtype, self.operand(value))
            case Select(condition, a, b):
                return self.function("select", self.value(condition), *self.pair(a, b))
            case IfThenElse(condition, a, b):
                first, second = self.pair(a, b, _CHOICE + 1, _CHOICE + 1)
                return f"{first} if {self.wrap(condition, 1)} else {second}", _CHOICE
            case Call(name, (a, b)) if name != "ldexp":
                return self.function(name, *self.pair(a, b))
            case Call(name, args):
                return self.function(name, *(self.value(arg) for arg in args))
            case TensorLoad(tensor, indices):
                assert isinstance(tensor, Tensor)
                text = ", ".join(self.index(index) for index in indices) or "()"
                return f"{self.tensors[tensor]}[{text}]", PRECEDENCE["atom"]
        raise ExpressionError(
            f"write {self.op.name} as notation", f"{type(expr).__name__} has no notation"
        )

    def function(self, name: str, *args: str) -> tuple[str, int]:
        return f"{name}({', '.join(args)})", PRECEDENCE["atom"]

    def pair(self, a: Expr, b: Expr, left: int = _CHOICE, right: int = _CHOICE) -> tuple[str, str]:
        """Return two operands of one dtype; at most one is a bare number, which adapts."""
        if isinstance(a, Const) and isinstance(b, Const):
            return self.operand(a, left), self.wrap(b, right, like=a.dtype)
        return self.wrap(a, left, like=b.dtype), self.wrap(b, right, like=a.dtype)

    def operand(self, expr: Expr, level: int = _CHOICE) -> str:
        """Return an operand that stands alone: a number with its dtype."""
        if isinstance(expr, Const) and expr.dtype != "bool":
            return f"{expr.dtype}({format_number(expr.value)})"
        return self.wrap(expr, level)

    def literal(self, expr: Const, like: str | None) -> tuple[str, int]:
        text = format_number(expr.value)
        try:
            is_read_back = structural_equal(as_expr(expr.value, like), expr)
        except ExpressionError:
            is_read_back = False
        if expr.dtype != "bool" and not is_read_back:
            return self.function(expr.dtype, text)
        return text, PRECEDENCE["unary" if text.startswith("-") else "atom"]

    def index(self, expr: Expr) -> str:
        """Return an index; integers read from tensors become indices by themselves."""
        match expr:
            case Cast(value, "index") if dtypes.is_int(value.dtype):
                return self.operand(value)
        return self.value(expr, like="index")

    def variable(self, var: Var) -> tuple[str, int]:
        axis = self.of_var[var]
        name = self.axes[axis]
        if not axis.start:
            return name, PRECEDENCE["atom"]
        return f"{name} - {axis.start}", PRECEDENCE["sub"]  # counted from 0, as nothing writes it

    def starts_at(self, var: Var, value: object) -> bool:
        axis = self.of_var.get(var)
        return axis is not None and axis.start != 0 and axis.start == value
