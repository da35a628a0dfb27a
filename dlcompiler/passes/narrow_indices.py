"""Compute vectors of indices in 32 bits where their values fit.

*Before*::

    def main(A: float32[64, 16], C: float32[64, 16]):
        for i in range(64):
            C[i, 0 : +16] = A[i, (i : +16) // broadcast(3, 16)]

*After*::

    def main(A: float32[64, 16], C: float32[64, 16]):
        for i in range(64):
            C[i, 0 : +16] = A[i, indexx16((int32(i) : +16) // broadcast(3, 16))]

A dtype ``index`` is 64 bits wide. Processors without 64-bit vector multiplication and conversion
take such vectors apart: measured on AVX2, gathers by ``j // 3`` or ``j*7 % 509`` take 1.5 to 2
times as long. Scalars cost nothing there, and stay. So do ramps that are indices: they say that
neighbours are read together, and so do the indices of a fused loop (`arith.joining`).

The narrow numbers are data, which wrap. The ranges of loops and constants prove that no result and
no intermediate value does. Where an extent is symbolic this is not known, and nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dlcompiler import dtypes
from dlcompiler.arith import Analyzer, Interval
from dlcompiler.arith.interval import EVERYTHING
from dlcompiler.arith.joining import joined
from dlcompiler.ir import (
    Allocate,
    Binary,
    Broadcast,
    Cast,
    Const,
    Expr,
    For,
    If,
    Let,
    Load,
    PrimFunc,
    Ramp,
    Seq,
    Stmt,
    Store,
    Var,
    cast,
    walk,
)
from dlcompiler.ir.operations import DIVISIONS
from dlcompiler.ir.rewrite import Node, map_children
from dlcompiler.passes.base import constant_extent

NARROW = "int32"
LOW, HIGH = dtypes.min_value(NARROW), dtypes.max_value(NARROW)


def narrow_indices(func: PrimFunc) -> PrimFunc:
    """Compute vectors of indices that are divided or used as values with 32 bits.

    Parameters
    ----------
    func
        Any function.
    """
    return func.with_body(_Narrower({}).stmt(func.body))


class _Narrower:
    def __init__(self, ranges: Mapping[Var, Interval]) -> None:
        self.ranges = ranges
        self.analyzer = Analyzer(ranges)
        self.memo: dict[int, tuple[Expr, Expr]] = {}

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Seq() | If() | Allocate() | Let():
                return map_children(stmt, self.below)
            case For():
                extent = constant_extent(stmt)
                known = EVERYTHING if extent is None else Interval(0, max(extent - 1, 0))
                body = _Narrower({**self.ranges, stmt.var: known}).stmt(stmt.body)
                return stmt if body is stmt.body else replace(stmt, body=body)
            case Store(buffer, indices, _, _, None) if joined(indices, buffer.strides) is not None:
                value = self.expr(stmt.value)
                return stmt if value is stmt.value else replace(stmt, value=value)
            case Store():
                return map_children(stmt, self.below)
        return stmt

    def below(self, node: Node) -> Node:
        return self.stmt(node) if isinstance(node, Stmt) else self.expr(node)

    def expr(self, expr: Expr) -> Expr:
        """Return an expression with vectors of indices narrowed to 32 bits, outermost first."""
        known = self.memo.get(id(expr))
        if known is None:
            known = self.memo[id(expr)] = (expr, self.changed(expr))
        return known[1]

    def changed(self, expr: Expr) -> Expr:
        match expr:
            case Load(buffer, indices, None) if joined(indices, buffer.strides) is not None:
                return expr
            case Cast(value, dtype) if _is_vector_index(value) and not dtypes.is_index(
                dtypes.element(dtype)
            ):
                if (narrow := self.narrow(value)) is not None:
                    return cast(narrow[0], dtype)
            case Binary() if _is_vector_index(expr) and _divides(expr):
                if (narrow := self.narrow(expr)) is not None:
                    return cast(narrow[0], "index")
        return map_children(expr, self.below)

    def narrow(self, expr: Expr) -> tuple[Expr, Interval] | None:
        """Return an index expression in 32 bits, and its range; None if that may not fit."""
        found = self.narrowed(expr)
        if found is None or not (found[1].low >= LOW and found[1].high <= HIGH):
            return None
        return found

    def narrowed(self, expr: Expr) -> tuple[Expr, Interval] | None:
        match expr:
            case Ramp(base, Const(step, _), lanes):
                bounds = self.analyzer.interval(base)
                reach = (lanes - 1) * int(step)
                ends = bounds.hull(Interval(bounds.low + reach, bounds.high + reach))
                if not (ends.low >= LOW and ends.high <= HIGH and LOW <= step <= HIGH):
                    return None
                return Ramp(cast(base, NARROW), Const(step, NARROW), lanes), ends
            case Broadcast(value, lanes):
                bounds = self.analyzer.interval(value)
                if not (bounds.low >= LOW and bounds.high <= HIGH):
                    return None
                return Broadcast(cast(value, NARROW), lanes), bounds
            case Binary(op, a, b):
                x, y = self.narrow(a), self.narrow(b)
                if x is None or y is None:
                    return None
                return Binary(op, x[0], y[0]), _combined(op, x[1], y[1])
        return None


def _is_vector_index(expr: Expr) -> bool:
    return dtypes.lanes(expr.dtype) > 1 and dtypes.element(expr.dtype) == "index"


def _divides(expr: Expr) -> bool:
    """Tell whether an expression contains a division of a vector whose lanes differ."""
    return any(
        isinstance(node, Binary) and node.op in DIVISIONS and _has_ramp(node) for node in walk(expr)
    )


def _has_ramp(expr: Expr) -> bool:
    return any(isinstance(node, Ramp) for node in walk(expr))


def _combined(op: str, x: Interval, y: Interval) -> Interval:
    """Return the range of ``x op y``; all integers if it is not known."""
    match op:
        case "add":
            return Interval(x.low + y.low, x.high + y.high)
        case "sub":
            return Interval(x.low - y.high, x.high - y.low)
        case "mul":
            return x.times(y)
        case "floordiv" if y.low == y.high and y.low > 0:
            return x.floordiv(int(y.low))
        case "floormod" if y.low > 0:
            return Interval(0, y.high - 1)
        case "min":
            return Interval(min(x.low, y.low), min(x.high, y.high))
        case "max":
            return Interval(max(x.low, y.low), max(x.high, y.high))
    return EVERYTHING
