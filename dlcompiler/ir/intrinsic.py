"""Tensor intrinsics in the loop IR: a call of machine code that computes regions of buffers.

A call carries the declaration of its machine code as loops over the program's own buffers, which
access exactly the regions of the call. The interpreter, the analyses and the passes use these
loops; the code generator writes the machine code instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from dlcompiler.ir.expr import Const, Expr, Extent, Load, Var, binary, index_const, node
from dlcompiler.ir.rewrite import Node, rewrite
from dlcompiler.ir.stmt import Buffer, ExternCall, Origin, Region, Stmt, Store, extent_expr

IntrinsicMode: TypeAlias = Literal["body", "reset", "update"]
"""Part of a reduction that a call computes: all of it, the initialisation, or an update by some
points. A computation without a reduction has only ``body``."""


@dataclass(frozen=True, slots=True, eq=False)
class Routine:
    """Statements that implement an intrinsic; their buffers are placeholders for its regions.

    They may call other intrinsics. `buffers` begins with the buffer that is written, followed by
    those that are read. A stride that is a variable gets the stride of the region.
    """

    buffers: tuple[Buffer, ...]
    body: Stmt

    @property
    def variables(self) -> tuple[Var, ...]:
        """The variables that stand for strides of the call's regions."""
        strides = (stride for buffer in self.buffers for stride in buffer.strides)
        return tuple(dict.fromkeys(stride for stride in strides if isinstance(stride, Var)))


Part: TypeAlias = "str | Routine"
"""Implementation of a mode: the name of an emitter of the code generator, or statements."""


@dataclass(frozen=True, slots=True, eq=False)
class Intrinsic:
    """An intrinsic in the loop IR: its name and the implementation of each mode."""

    name: str
    parts: Mapping[IntrinsicMode, Part]
    threads: int = 1
    """Number of neighbouring threads along x that carry out a call together; [1]."""
    is_shipped: bool = False
    """Whether its declaration is one of this package, which the emitters are known to compute."""
    id: str = ""
    """The id of its declaration: two intrinsics of one id compute the same."""


@node
class IntrinsicCall(Stmt):
    """A call of an intrinsic, which writes the first of its `regions` and reads the others.

    In mode ``update`` it also reads the first region. Dimension n of operand k is dimension
    ``dims[k][n]`` of the buffer of ``regions[k]``. `body` is the declaration, as loops.
    """

    intrinsic: Intrinsic
    mode: IntrinsicMode
    regions: tuple[Region, ...]
    dims: tuple[tuple[int, ...], ...]
    body: Stmt
    origin: Origin = ()

    @property
    def part(self) -> Part:
        """The implementation for the mode of this call."""
        return self.intrinsic.parts[self.mode]

    @property
    def operands(self) -> tuple[tuple[Region, tuple[int, ...]], ...]:
        """Pairs of a region and its `dims`."""
        return tuple(zip(self.regions, self.dims, strict=True))


def along(values: Sequence[Extent], dims: Sequence[int]) -> tuple[Extent, ...]:
    """Return ``values[dim]`` for each dim in `dims`; literals become Python ints."""
    chosen = (values[dim] for dim in dims)
    return tuple(int(item.value) if isinstance(item, Const) else item for item in chosen)


def place_in(region: Region, dims: Sequence[int], place: Sequence[Expr]) -> tuple[Expr, ...]:
    """Convert indices of an operand to indices of the buffer that its region is part of."""
    at = {
        dim: step
        for dim, step in zip(dims, place, strict=True)
        if not (isinstance(step, Const) and step.value == 0)
    }
    return tuple(
        binary("add", first, at[dim]) if dim in at else first
        for dim, first in enumerate(region.indices)
    )


def _part_of(
    region: Region,
    dims: Sequence[int],
    indices: tuple[Expr, ...],
    part: Region,
    mode: IntrinsicMode,
) -> Region:
    """Return the region that an external call gets; in an update, it also reads its output."""
    lengths = dict(zip(dims, part.extents, strict=True))
    extents = (lengths.get(dim, index_const(1)) for dim in range(len(indices)))
    access = "rw" if mode == "update" and part.is_written else part.mode
    return Region(region.buffer, indices, tuple(extents), access)


def routine_statement(routine: Routine, call: IntrinsicCall) -> Stmt:
    """Return the statements of a routine over the regions of a call.

    Every assignment gets the origin of the call.
    """
    operands = dict(zip(routine.buffers, call.operands, strict=False))
    body = _with_dims_of(routine.body, operands)
    strides: dict[Expr, Expr] = {}
    for buffer, (region, dims) in operands.items():
        there = along(region.buffer.strides, dims)
        for stride, value in zip(buffer.strides, there, strict=True):
            if isinstance(stride, Var):
                strides[stride] = extent_expr(value)

    def rule(current: Node) -> Node:
        if isinstance(current, Var):
            return strides.get(current, current)
        if isinstance(current, Store | ExternCall | IntrinsicCall):
            current = replace(current, origin=call.origin)
        if not isinstance(current, Load | Store | Region) or current.buffer not in operands:
            return current
        region, dims = operands[current.buffer]
        indices = place_in(region, dims, current.indices)
        if isinstance(current, Region):
            return _part_of(region, dims, indices, current, call.mode)
        return replace(current, buffer=region.buffer, indices=indices)

    return rewrite(body, rule)


def _with_dims_of(body: Stmt, operands: Mapping[Buffer, tuple[Region, tuple[int, ...]]]) -> Stmt:
    """Return a routine whose calls of intrinsics have the dimensions of the operands' buffers."""

    def rule(current: Node) -> Node:
        if not isinstance(current, IntrinsicCall):
            return current
        pairs = ((operands[region.buffer][1], dims) for region, dims in current.operands)
        dims = tuple(tuple(there[dim] for dim in own) for there, own in pairs)
        return replace(current, dims=dims)

    return rewrite(body, rule)
