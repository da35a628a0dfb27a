"""Printer of one statement of notation."""

from __future__ import annotations

import ast
import keyword
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

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
    Extent,
    IfThenElse,
    Logical,
    Not,
    Reduce,
    Reducer,
    Select,
    TensorLoad,
    Var,
    as_expr,
    structural_equal,
    substitute,
    tree_size,
)
from dlcompiler.ir.operations import BINARY, COMPARISONS, PRECEDENCE
from dlcompiler.ir.printer import format_number, is_all_ones, is_negation
from dlcompiler.te.broadcast import same_extent
from dlcompiler.te.notation.extents import difference
from dlcompiler.te.notation.reductions import REDUCTIONS
from dlcompiler.te.notation.scan import FUNCTIONS, NUMBERS, read_statement
from dlcompiler.te.notation.source import Source
from dlcompiler.te.notation.statement import Words
from dlcompiler.te.symbols import symbols_of
from dlcompiler.te.tensor import ComputeOp, ScanOp, Tensor, post_order

MAX_NODES = 5_000
_CHOICE = 0  # precedence of "a if c else b", the lowest
_RESERVED = {*FUNCTIONS, *NUMBERS, *REDUCTIONS, *dtypes.SCALARS, *keyword.kwlist, "te"}
_OF_OPERATION = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}
Domain: TypeAlias = tuple[int, Extent]
"""The first value of an axis, and the number of its values."""


@dataclass(frozen=True)
class Names:
    """The names of tensors, symbols and reducers in a text."""

    tensors: dict[Tensor, str]
    symbols: dict[Var, str]
    reducers: dict[Reducer, str]

    @property
    def used(self) -> set[str]:
        """All names."""
        return {*self.tensors.values(), *self.symbols.values(), *self.reducers.values()}

    @property
    def words(self) -> Words:
        """The names that a reader must know in advance: symbols and reducers."""
        return Words(frozenset(self.symbols.values()), frozenset(self.reducers.values()))

    def extent(self, extent: Extent) -> int | str:
        """Return an extent as a number or a formula."""
        if isinstance(extent, int):
            return extent
        return str(substitute(extent, {x: Var(name) for x, name in self.symbols.items()}))


def names_of(outputs: Iterable[Tensor]) -> Names:
    """Choose names that are valid in notation and unique, for all that outputs depend on."""
    outputs = tuple(outputs)
    used: set[str] = set()
    ops = post_order(outputs)
    made = [tensor for op in ops for tensor in op.outputs]
    made += [state for op in ops if isinstance(op, ScanOp) for state in op.states]
    tensors = {tensor: _unique(tensor.name, used) for tensor in made}
    symbols = {symbol: _unique(symbol.name, used) for symbol in symbols_of(outputs)}
    own = [op.body for op in ops if isinstance(op, ComputeOp)]
    reducers = {
        body.reducer: _unique(body.reducer.name, used)
        for body in own
        if isinstance(body, Reduce) and _word(body) is None
    }
    return Names(tensors, symbols, reducers)


def _unique(name: str, used: set[str], unfit: Iterable[str] = ()) -> str:
    """Return a name that is valid in notation and not used yet, and add it to `used`."""
    plain = unicodedata.normalize("NFKC", re.sub(r"\W", "_", name))
    plain = plain if plain.isidentifier() else f"_{plain}"
    plain = f"{plain}_" if plain in _RESERVED else plain
    unfit = set(unfit)
    result, n = plain, 1
    while result in used or result in unfit:
        result, n = f"{plain}_{n}", n + 1
    used.add(result)
    return result


def _word(body: Reduce) -> str | None:
    """Return the notation's word for a reduction; None for a user's own reducer."""
    if body.reducer.op is not None:
        return _OF_OPERATION.get(body.reducer.op)
    name = body.reducer.name
    if name not in ("argmax", "argmin") or len(body.axes) != 1 or len(body.values) != 2:
        return None
    if body.condition is not None or body.init or dtypes.is_bool(body.values[1].dtype):
        return None
    (axis,) = body.axes
    same = REDUCTIONS[name](body.values[1], axis=axis)[0]
    return name if structural_equal(same, body) and same.axes[0] is axis else None


class Line:
    """The statement that defines the tensors of one operation.

    Parameters
    ----------
    op
        The operation.
    names
        The names of all tensors, symbols and reducers of the text.
    domains
        The domains of the axis names in the text so far; those of this statement are added. An axis
        with another domain gets another name.
    """

    def __init__(self, op: ComputeOp, names: Names, domains: dict[str, Domain]) -> None:
        self.op = op
        self.names = names
        used = names.used
        self.axes: dict[Axis, str] = {}
        for axis in (*op.axis, *op.reduce_axis):
            others = [
                name
                for name, (start, extent) in domains.items()
                if start != axis.start or not same_extent(extent, axis.extent)
            ]
            name = self.axes[axis] = _unique(axis.name, used, others)
            domains[name] = axis.start, axis.extent
        self.of_var: dict[Var, Axis] = {axis.var: axis for axis in self.axes}

    def text(self) -> str:
        """Return the text of the statement."""
        bodies = self.op.bodies
        if sum(map(tree_size, bodies)) > MAX_NODES * len(bodies):
            raise ExpressionError(
                f"write {self.op.name} as notation", "the expression is too large",
                expected=f"at most {MAX_NODES} nodes",
                hint="split it into several te.compute",
            )  # fmt: skip
        indices = ", ".join(self.axes[axis] for axis in self.op.axis) or "()"
        targets = (f"{self.names.tensors[tensor]}[{indices}]" for tensor in self.op.outputs)
        target, body = ", ".join(targets), self.op.body
        if isinstance(body, Reduce):
            return self.reduction(target, body)
        return f"{target} = {', '.join(self.value(body) for body in bodies)}"

    def reduction(self, target: str, body: Reduce) -> str:
        """Return the statement of a reduction; a sum is written ``+=`` if that means the same."""
        word = _word(body)
        names = [self.axes[axis] for axis in body.axes]
        values = [self.value(value) for value in body.values]
        if word in ("argmax", "argmin"):
            values = values[1:]
        if word == "sum" and body.condition is None and not body.init:
            added = f"{target} += {values[0]}"
            if self.reads_back(added, names):
                return added
        parts = [_group(values), f"axis={_group(names)}"]
        if body.condition is not None:
            parts.append(f"where={self.value(body.condition)}")
        if body.init:
            pairs = zip(body.init, body.values, strict=True)
            parts.append(f"init={_group([self.value(x, like=y.dtype) for x, y in pairs])}")
        name = self.names.reducers[body.reducer] if word is None else word
        return f"{target} = {name}({', '.join(parts)})"

    def reads_back(self, text: str, names: list[str]) -> bool:
        """Tell whether ``+=`` is read back as a sum over exactly these axes, in this order."""
        data = {self.axes[axis] for axis in self.op.axis}
        found = [name for name in self.names_in(text) if name not in data]
        return found == names

    def names_in(self, text: str) -> list[str]:
        """Return the axes on the right side, in order of appearance."""
        value = text.split("=", 1)[1]
        words = re.findall(r"\b[^\W\d]\w*", value)
        known = set(self.axes.values())
        return list(dict.fromkeys(word for word in words if word in known))

    def axes_to_declare(self, text: str) -> dict[str, Domain]:
        """Return (first, end) of each axis whose domain cannot be inferred from `text`."""
        (node,) = ast.parse(text).body
        statement = read_statement(Source(text), node, self.names.words)
        shapes = {name: tensor.shape for tensor, name in self.names.tensors.items()}
        declared: dict[str, Domain] = {}
        for axis, name in self.axes.items():
            uses = statement.direct.get(name, [])
            certain = [use for use in uses if not use.is_guarded] or uses
            extents = [shapes[use.tensor][use.dimension] for use in certain]
            is_inferred = bool(extents) and all(same_extent(e, axis.extent) for e in extents)
            if axis.start or not is_inferred:
                declared[name] = (axis.start, difference(axis.extent, -axis.start))
        return declared

    # -- expressions ------------------------------------------------------------------------------

    def value(self, expr: Expr, like: str | None = None) -> str:
        """Return the text of an expression, for a place beside an operand of dtype `like`.

        The dtype of a bare number follows from the operand beside it.
        """
        return self.one(expr, like)[0]

    def wrap(self, expr: Expr, level: int, like: str | None = None) -> str:
        """Return the text of an expression, in parentheses if its precedence is below `level`."""
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
            case Binary(op, a, b) if BINARY[op].symbol:
                level = PRECEDENCE[op]
                first, second = self.pair(a, b, level, level + 1)
                return f"{first}{BINARY[op].joint}{second}", level
            case Binary(op, a, b):
                name = {"min": "minimum", "max": "maximum"}.get(op, op)
                return self.function(name, *self.pair(a, b))
            case Compare(op, a, b):
                level = PRECEDENCE["compare"]
                first, second = self.pair(a, b, level + 1, level + 1)
                return f"{first}{COMPARISONS[op].joint}{second}", level
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
                return f"{self.names.tensors[tensor]}[{text}]", PRECEDENCE["atom"]
        raise ExpressionError(
            f"write {self.op.name} as notation", f"{type(expr).__name__} has no notation"
        )

    def function(self, name: str, *args: str) -> tuple[str, int]:
        """Return the text of a call, and its precedence."""
        return f"{name}({', '.join(args)})", PRECEDENCE["atom"]

    def pair(self, a: Expr, b: Expr, left: int = _CHOICE, right: int = _CHOICE) -> tuple[str, str]:
        """Return the texts of two operands of one dtype; at most one is a bare number."""
        if isinstance(a, Const) and isinstance(b, Const):
            return self.operand(a, left), self.wrap(b, right, like=a.dtype)
        return self.wrap(a, left, like=b.dtype), self.wrap(b, right, like=a.dtype)

    def operand(self, expr: Expr, level: int = _CHOICE) -> str:
        """Return the text of a single operand; a number is written with its dtype."""
        if isinstance(expr, Const) and expr.dtype != "bool":
            return f"{expr.dtype}({format_number(expr.value)})"
        return self.wrap(expr, level)

    def literal(self, expr: Const, like: str | None) -> tuple[str, int]:
        """Return the text of a number, with its dtype if that does not follow from `like`."""
        text = format_number(expr.value)
        try:
            is_read_back = structural_equal(as_expr(expr.value, like), expr)
        except ExpressionError:
            is_read_back = False
        if expr.dtype != "bool" and not is_read_back:
            return self.function(expr.dtype, text)
        return text, PRECEDENCE["unary" if text.startswith("-") else "atom"]

    def index(self, expr: Expr) -> str:
        """Return the text of an index; the conversion of an integer to an index is left out."""
        match expr:
            case Cast(value, "index") if dtypes.is_int(value.dtype):
                return self.operand(value)
        return self.value(expr, like="index")

    def variable(self, var: Var) -> tuple[str, int]:
        """Return the name of a symbol or an axis."""
        if var.is_symbol:
            return self.names.symbols[var], PRECEDENCE["atom"]
        axis = self.of_var[var]
        name = self.axes[axis]
        if not axis.start:
            return name, PRECEDENCE["atom"]
        return f"{name} - {axis.start}", PRECEDENCE["sub"]  # counted from 0, as nothing writes it

    def starts_at(self, var: Var, value: object) -> bool:
        """Tell whether an axis begins at `value`."""
        axis = self.of_var.get(var)
        return axis is not None and axis.start != 0 and axis.start == value


def _group(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
