"""Inputs whose values decide what a program accesses: arrays that a trace reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import CallError
from dlcompiler.ir import (
    Buffer,
    Expr,
    For,
    If,
    IfThenElse,
    Let,
    Load,
    Logical,
    PrimFunc,
    Store,
    Var,
    binary,
    index_const,
    rewrite,
    walk,
)
from dlcompiler.ir.numeric import storage
from dlcompiler.ir.rewrite import Node
from dlcompiler.ir.stmt import compact_strides


@dataclass(frozen=True, eq=False)
class Inputs:
    """Arrays for parameters of a program, each as a buffer of one dimension."""

    arrays: Mapping[Buffer, npt.NDArray[np.generic]] = field(default_factory=dict)
    """By the parameter."""
    flat: Mapping[Buffer, Buffer] = field(default_factory=dict)
    """Parameter -> the buffer of one dimension that the trace reads."""
    known: frozenset[Buffer] = frozenset()
    """The inputs of the program, given or not."""

    def read(self, expr: Expr) -> Expr:
        """Return an expression in which parameters are read from the flat buffers.

        An index that is outside is read as the nearest one inside: the trace must not crash.
        """

        def rule(node: Node) -> Node:
            if not (isinstance(node, Load) and node.buffer in self.flat):
                return node
            place: Expr = index_const(0)
            shape = node.buffer.static_shape
            strides = compact_strides(shape)
            for index, extent, stride in zip(node.indices, shape, strides, strict=True):
                inside = binary("max", binary("min", index, extent - 1), 0)
                place = binary("add", place, binary("mul", inside, stride))
            return Load(self.flat[node.buffer], (place,))

        return rewrite(expr, rule)


NONE = Inputs()
"""No array is given."""


def deciding_inputs(func: PrimFunc) -> tuple[Buffer, ...]:
    """Return the inputs on which indices and conditions of a program depend, in their order.

    Parameters that the program writes are left out: their values are not known before it runs.
    """
    bound = {node.var: node.value for node in walk(func.body) if isinstance(node, Let)}
    found: set[Buffer] = set()
    for node in walk(func.body):
        found |= {load.buffer for expr in _deciding(node) for load in _loads(expr, bound)}
    written = {node.buffer for node in walk(func.body) if isinstance(node, Store)}
    return tuple(each for each in func.buffers if each in found and each not in written)


def _deciding(node: Node) -> Sequence[Expr]:
    """Return the expressions of a node that decide what is accessed."""
    match node:
        case Load(_, indices) | Store(_, indices):
            return indices
        case If(condition) | IfThenElse(condition):
            return (condition,)
        case Logical(_, a):
            return (a,)
        case For(_, extent):
            return (extent,)
    return ()


def _loads(expr: Expr, bound: Mapping[Var, Expr]) -> list[Load]:
    found, todo, seen = list[Load](), [expr], set[Var]()
    while todo:
        for node in walk(todo.pop()):
            if isinstance(node, Load):
                found.append(node)
            elif isinstance(node, Var) and node in bound and node not in seen:
                seen.add(node)
                todo.append(bound[node])
    return found


def inputs_of(func: PrimFunc, given: Mapping[str, object]) -> Inputs:
    """Return the given arrays for a trace, by the names of the parameters.

    Raises
    ------
    CallError
        If a name is that of no input, or an array has another shape or dtype.
    """
    where = f"simulate the caches of {func.name}"
    outputs = set(func.outputs)
    known = {buffer.name: buffer for buffer in func.buffers if buffer not in outputs}
    arrays = {}
    for name, value in given.items():
        if name not in known:
            raise CallError(
                where, "there is no such input", got=repr(name), expected=", ".join(known) or None
            )
        buffer, array = known[name], np.asarray(value)
        wanted = storage(buffer.dtype)
        if array.shape != buffer.static_shape or array.dtype != wanted:
            raise CallError(
                where, f"the array for {name} does not fit",
                got=f"{array.dtype}{list(array.shape)}",
                expected=f"{wanted}{list(buffer.static_shape)}",
            )  # fmt: skip
        arrays[buffer] = np.ascontiguousarray(array)
    flat = {each: Buffer(each.name, (array.size,), each.dtype) for each, array in arrays.items()}
    return Inputs(arrays, flat, frozenset(known.values()))
