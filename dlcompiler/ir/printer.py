"""Print the loop IR as text that reads like Python and is the same in every process.

The line of a statement in this text identifies it in the debug information of machine code, in
views and in golden tests.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlcompiler import dtypes
from dlcompiler.ir.expr import (
    Axis,
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    IfThenElse,
    Load,
    Logical,
    Not,
    Ramp,
    Reduce,
    Select,
    TensorLoad,
    Var,
)
from dlcompiler.ir.intrinsic import IntrinsicCall
from dlcompiler.ir.operations import BINARY, COMPARISONS, PRECEDENCE
from dlcompiler.ir.rewrite import tree_size
from dlcompiler.ir.stmt import (
    Allocate,
    Assert,
    Barrier,
    Buffer,
    ExternCall,
    For,
    If,
    Let,
    Prefetch,
    Region,
    Seq,
    Stmt,
    Store,
    compact_strides,
)

if TYPE_CHECKING:
    from dlcompiler.ir.func import PrimFunc


@dataclass(frozen=True)
class Printed:
    """A printed function: its text, and the line (from 1) of each statement by ``id``."""

    text: str
    line_of: dict[int, int]
    statement_at: dict[int, Stmt]


MOST_NODES = 20_000


def format_expr(expr: Expr) -> str:
    """Return `expr` as text; if the text is too long, return only its number of nodes.

    Shared nodes are printed at each use, so that a small graph may have a very long text.
    """
    if (size := tree_size(expr)) > MOST_NODES:
        return f"<{type(expr).__name__} of {size if size < 10**9 else 'over 10**9'} nodes>"
    return _text(expr)


def _text(expr: Expr) -> str:
    return _expr(expr)[0]


def format_number(value: bool | int | float) -> str:
    """Return a literal as text; infinities and NaN by name."""
    if isinstance(value, float):
        if value != value:
            return "nan"
        if value in (float("inf"), float("-inf")):
            return "inf" if value > 0 else "-inf"
        return repr(value)
    return str(value)


def is_negation(value: bool | int | float, dtype: str) -> bool:
    """Tell whether ``value - x`` equals ``-x``: if it is 0, or -0.0 for floats."""
    return value == 0 and (not dtypes.is_float(dtype) or math.copysign(1, value) < 0)


def is_all_ones(value: bool | int | float, dtype: str) -> bool:
    """Tell whether all bits of this integer literal are set: ``x ^ value`` is ``~x``."""
    ones = dtypes.max_value(dtype) if dtypes.is_unsigned(dtype) else -1
    return dtypes.is_int(dtype) and value == ones


def _wrap(expr: Expr, level: int) -> str:
    text, own = _expr(expr)
    return f"({text})" if own < level else text


def _expr(expr: Expr) -> tuple[str, int]:  # noqa: C901 - one case per node
    """Return the text of `expr` and the precedence of its outermost operation."""
    match expr:
        case Const(value, _):
            text = format_number(value)
            return text, PRECEDENCE["unary" if text.startswith("-") else "atom"]
        case Var(name, _):
            return name, PRECEDENCE["atom"]
        case Binary("sub", Const(value, dtype), b) if is_negation(value, dtype):
            return f"-{_wrap(b, PRECEDENCE['unary'])}", PRECEDENCE["unary"]
        case Binary("bitxor", a, Const(value, dtype)) if is_all_ones(value, dtype):
            return f"~{_wrap(a, PRECEDENCE['unary'])}", PRECEDENCE["unary"]
        case Binary(op, a, b) if BINARY[op].symbol:
            level = PRECEDENCE[op]
            return f"{_wrap(a, level)}{BINARY[op].joint}{_wrap(b, level + 1)}", level
        case Binary(op, a, b):
            return f"{op}({_text(a)}, {_text(b)})", PRECEDENCE["atom"]
        case Compare(op, a, b):
            level = PRECEDENCE["compare"]
            return f"{_wrap(a, level + 1)}{COMPARISONS[op].joint}{_wrap(b, level + 1)}", level
        case Logical(op, a, b):
            level = PRECEDENCE[op]
            return f"{_wrap(a, level)} {op} {_wrap(b, level + 1)}", level
        case Not(value):
            return f"not {_wrap(value, PRECEDENCE['not'])}", PRECEDENCE["not"]
        case Cast(value, dtype):
            return f"{dtype}({_text(value)})", PRECEDENCE["atom"]
        case Select(condition, a, b):
            return f"select({_list(condition, a, b)})", PRECEDENCE["atom"]
        case IfThenElse(condition, a, b):
            return f"if_then_else({_list(condition, a, b)})", PRECEDENCE["atom"]
        case Call(name, args, _):
            return f"{name}({_list(*args)})", PRECEDENCE["atom"]
        case Load(buffer, indices, None):
            return f"{buffer.name}[{_list(*indices)}]", PRECEDENCE["atom"]
        case Load(buffer, indices, predicate) if predicate is not None:
            text = f"{buffer.name}[{_list(*indices)}] where {_wrap(predicate, 1)}"
            return f"({text})", PRECEDENCE["atom"]
        case TensorLoad(tensor, indices):
            return f"{tensor.name}[{_list(*indices)}]", PRECEDENCE["atom"]
        case Ramp(base, stride, lanes):
            step = _text(stride)
            suffix = "" if step == "1" else f":{step}"
            return f"{_text(base)} : +{lanes}{suffix}", 0
        case Broadcast(value, lanes):
            return f"broadcast({_text(value)}, {lanes})", PRECEDENCE["atom"]
        case Region():
            return _region(expr), PRECEDENCE["atom"]
        case Reduce():
            return _reduce(expr), PRECEDENCE["atom"]
        case _:
            raise AssertionError(f"unknown expression {type(expr)}")


def _region(expr: Region) -> str:
    """Return a region followed by its access mode: ``A[i, 0 : +4] (r)``."""
    return f"{_box(expr)} ({expr.mode})" if expr.mode else _box(expr)


def _box(expr: Region) -> str:
    """Return a region without its access mode: ``A[i, 0 : +4]``."""
    parts = (
        text if size == "1" else f"{text} : +{size}"
        for text, size in zip(map(_text, expr.indices), map(_text, expr.extents), strict=True)
    )
    return f"{expr.buffer.name}[{', '.join(parts) or '()'}]"


def _reduce(expr: Reduce) -> str:
    value = _text(expr.value) if len(expr.values) == 1 else f"({_list(*expr.values)})"
    parts = [value, f"axis=[{', '.join(axis.name for axis in expr.axes)}]"]
    if expr.condition is not None:
        parts.append(f"where={_text(expr.condition)}")
    if expr.init:
        parts.append(f"init={_list(*expr.init)}")
    which = "" if len(expr.values) == 1 else f"[{expr.index}]"
    return f"{expr.reducer.name}({', '.join(parts)}){which}"


def _list(*exprs: Expr) -> str:
    return ", ".join(_text(expr) for expr in exprs) or "()"


def format_buffer(buffer: Buffer) -> str:
    """Return a buffer's declaration, such as ``A: float32[16, 4] in local``.

    Strides are shown where they are padded, dimensions of the memory as ``[2, 8 | 4]``.
    """
    ends = itertools.pairwise((0, *buffer.separators, len(buffer.shape)))
    parts = (", ".join(str(extent) for extent in buffer.shape[a:b]) for a, b in ends)
    shape = " | ".join(parts)
    scope = "" if buffer.scope == "global" else f" in {buffer.scope}"
    steps = ", ".join(str(stride) for stride in buffer.strides)
    compact = ", ".join(str(stride) for stride in compact_strides(buffer.shape))
    strides = "" if steps == compact else f", strides ({steps})"
    return f"{buffer.name}: {buffer.dtype}[{shape}]{scope}{strides}"


def format_axis(axis: Axis) -> str:
    """Return an axis as ``k(512)``, with a mark when it is a reduction."""
    return f"{axis.name}({axis.extent}{', reduce' if axis.kind == 'reduce' else ''})"


def format_store(store: Store) -> str:
    """Return an assignment; an update of the element itself prints as ``+=`` or ``max=``."""
    target = f"{store.buffer.name}[{_list(*store.indices)}]"
    mask = "" if store.predicate is None else f" where {format_expr(store.predicate)}"
    match store.value:
        case Binary("add" | "mul" | "min" | "max" as op, Load(buffer, indices), value) if (
            buffer is store.buffer
            and len(indices) == len(store.indices)
            and _list(*indices) == _list(*store.indices)
        ):
            symbol = {"add": "+", "mul": "*"}.get(op, op)
            return f"{target} {symbol}= {format_expr(value)}{mask}"
    return f"{target} = {format_expr(store.value)}{mask}"


def format_extern_call(call: ExternCall) -> str:
    """Return a call as ``call numpy_matmul(A[0 : +4, 0 : +4] (r), …)``."""
    word = "call" if call.convention == "packed" else "call C"
    return f"{word} {call.name}({', '.join(map(_text, call.args))})"


def format_intrinsic(call: IntrinsicCall) -> str:
    """Return the call of an intrinsic as an assignment; an update prints as ``+=``.

    An operand whose dimensions are in another order than those of its buffer is a transpose.
    """
    write, *reads = (
        _box(region) + ("" if list(dims) == sorted(dims) else f".transpose{dims}")
        for region, dims in call.operands
    )
    suffix = ".reset" if call.mode == "reset" else ""
    symbol = "+=" if call.mode == "update" else "="
    return f"{write} {symbol} {call.intrinsic.name}{suffix}({', '.join(reads)})"


def format_loop(loop: For) -> str:
    """Return the head of a loop, followed by its pragmas."""
    extent = format_expr(loop.extent)
    domain = f"range({extent})" if loop.kind == "serial" else f"{loop.kind}({extent})"
    pragmas = "".join(f"  # {name} = {value}" for name, value in loop.annotations)
    return f"for {loop.var.name} in {domain}:{pragmas}"


def print_func(func: PrimFunc) -> Printed:
    """Print `func`.

    Returns
    -------
    Printed
        The text, with the line number of every statement.
    """
    params = ", ".join(
        f"{p.name}: {p.dtype}" if isinstance(p, Var) else format_buffer(p) for p in func.params
    )
    lines = [f"def {func.name}({params}):"]
    line_of: dict[int, int] = {}
    statement_at: dict[int, Stmt] = {}

    def emit(depth: int, text: str, statement: Stmt | None = None) -> None:
        lines.append("    " * depth + text)
        if statement is not None:
            line_of[id(statement)] = len(lines)
            statement_at[len(lines)] = statement

    _print_stmt(func.body, 1, emit)
    return Printed("\n".join(lines) + "\n", line_of, statement_at)


def _print_stmt(  # noqa: C901 - one case per node
    stmt: Stmt, depth: int, emit: Callable[[int, str, Stmt | None], None]
) -> None:
    match stmt:
        case For():
            emit(depth, format_loop(stmt), stmt)
            _print_stmt(stmt.body, depth + 1, emit)
        case Store():
            emit(depth, format_store(stmt), stmt)
        case If(condition, then, otherwise):
            emit(depth, f"if {format_expr(condition)}:", stmt)
            _print_stmt(then, depth + 1, emit)
            if otherwise is not None:
                emit(depth, "else:", None)
                _print_stmt(otherwise, depth + 1, emit)
        case Seq(statements):
            if not statements:
                emit(depth, "pass", stmt)
            for statement in statements:
                _print_stmt(statement, depth, emit)
        case Allocate(buffer, body, _, double, window):
            notes = "" if double is None else f", twice per {double.name}"
            if window is not None:
                notes += f", rolling by {list(window.steps)} per {window.var.name}"
            emit(depth, f"allocate {format_buffer(buffer)}{notes}", stmt)
            _print_stmt(body, depth, emit)
        case Let(var, value, body):
            emit(depth, f"{var.name} = {format_expr(value)}", stmt)
            _print_stmt(body, depth, emit)
        case Prefetch(buffer, indices):
            emit(depth, f"prefetch {buffer.name}[{_list(*indices)}]", stmt)
        case Barrier():
            emit(depth, "barrier", stmt)
        case ExternCall():
            emit(depth, format_extern_call(stmt), stmt)
        case IntrinsicCall():
            emit(depth, format_intrinsic(stmt), stmt)
        case Assert(condition):
            emit(depth, f"assert {format_expr(condition)}, {stmt.text!r}", stmt)
        case _:
            emit(depth, f"<{type(stmt).__name__}>", stmt)  # the verifier refuses it
