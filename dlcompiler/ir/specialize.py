"""Specialise a function with symbolic shapes to known sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from dlcompiler.errors import InternalError
from dlcompiler.ir.expr import Binary, Compare, Const, Expr, Extent, Load, Logical, Not, Var, const
from dlcompiler.ir.func import PrimFunc
from dlcompiler.ir.numeric import compare_function
from dlcompiler.ir.operations import fold_index
from dlcompiler.ir.rewrite import Node, rewrite
from dlcompiler.ir.stmt import Allocate, Buffer, Prefetch, Region, Store

Number: TypeAlias = bool | int | float


def specialize(func: PrimFunc, values: Mapping[Var, Number]) -> PrimFunc:
    """Replace the variables of a function by numbers.

    Parameters
    ----------
    func
        Any function.
    values
        A number for each variable in ``func.variables``.

    Returns
    -------
    PrimFunc
        A function of the arrays only, of known shapes; the same object if there are no variables.
    """
    if not func.variables:
        return func
    literals = {var: const(values[var], var.dtype) for var in func.variables}
    known: dict[Buffer, Buffer] = {}

    def buffer_of(buffer: Buffer) -> Buffer:
        if buffer not in known:
            shape = tuple(extent_value(extent, values) for extent in buffer.shape)
            strides = tuple(extent_value(stride, values) for stride in buffer.strides)
            known[buffer] = replace(buffer, shape=shape, strides=strides)
        return known[buffer]

    def rule(node: Node) -> Node:
        match node:
            case Var():
                return literals.get(node, node)
            case Load() | Store() | Prefetch() | Allocate() | Region():
                return replace(node, buffer=buffer_of(node.buffer))
        return node

    return PrimFunc(
        func.name,
        tuple(buffer_of(buffer) for buffer in func.buffers),
        tuple(buffer_of(buffer) for buffer in func.outputs),
        rewrite(func.body, rule),
        func.axes,
    )


def extent_value(extent: Extent, values: Mapping[Var, Number]) -> int:
    """Return the value of an extent for given values of its symbols."""
    return extent if isinstance(extent, int) else _value(extent, values)


def condition_value(condition: Expr, values: Mapping[Var, Number]) -> bool:
    """Tell whether a condition on symbols holds for given values of them."""
    match condition:
        case Const(value):
            return bool(value)
        case Compare(op, a, b):
            return bool(compare_function(op)(_value(a, values), _value(b, values)))
        case Logical(op, a, b):
            parts = (condition_value(a, values), condition_value(b, values))
            return all(parts) if op == "and" else any(parts)
        case Not(value):
            return not condition_value(value, values)
    raise InternalError("value of a condition", "not a formula of symbols", got=str(condition))


def _value(expr: Expr, values: Mapping[Var, Number]) -> int:
    match expr:
        case Const(value):
            return int(value)
        case Var():
            return int(values[expr])
        case Binary(op, a, b):
            return fold_index(op, _value(a, values), _value(b, values))
    raise InternalError("value of an extent", "not a formula of symbols", got=str(expr))
