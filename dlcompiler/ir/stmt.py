"""Statements of the loop IR, buffers, and the origin that ties them to schedule steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dlcompiler.ir.expr import Expr, Var, node

LoopKind: TypeAlias = Literal["serial", "parallel", "vectorized", "unrolled"]


@dataclass(frozen=True, slots=True)
class StepRef:
    """Where a piece of the program comes from: the schedule state that made an axis of a stage.

    `axis` is the axis' path in its stage (``i.outer``), or '' for the stage itself.
    """

    state: str
    stage: str
    axis: str = ""

    def __str__(self) -> str:
        return f"{self.stage}.{self.axis}" if self.axis else self.stage


Origin: TypeAlias = tuple[StepRef, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """A block of memory with a shape.

    `strides` counts elements per step of each dimension. `scope` names the memory
    (``global``, ``local`` …); `alignment` is in bytes.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    scope: str = "global"
    strides: tuple[int, ...] = ()
    alignment: int = 64

    def __post_init__(self) -> None:
        if not self.strides:
            object.__setattr__(self, "strides", compact_strides(self.shape))

    @property
    def size(self) -> int:
        """Number of elements that the shape covers."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size


def compact_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the row-major strides of `shape`, in elements."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


class Stmt:
    """A statement node."""

    __slots__ = ()


@node
class For(Stmt):
    """A loop: `var` takes 0, 1, … `extent` - 1."""

    var: Var
    extent: Expr
    kind: LoopKind
    body: Stmt
    origin: Origin = ()


@node
class Store(Stmt):
    """An assignment to one element (or, with vector indices, several) of a buffer."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    origin: Origin = ()


@node
class If(Stmt):
    """A conditional statement."""

    condition: Expr
    then: Stmt
    otherwise: Stmt | None = None


@node
class Seq(Stmt):
    """Statements one after another."""

    statements: tuple[Stmt, ...]


@node
class Allocate(Stmt):
    """A buffer that lives while `body` runs; its contents start undefined."""

    buffer: Buffer
    body: Stmt
    origin: Origin = ()


def seq(statements: Iterable[Stmt]) -> Stmt:
    """Join statements, flattening nested sequences."""
    flat: list[Stmt] = []
    for statement in statements:
        flat.extend(statement.statements if isinstance(statement, Seq) else (statement,))
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))
