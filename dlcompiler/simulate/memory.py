"""Memory of an interpreted program, and shadow memory: the last writer and reader of each element.

Races are found from the structure of the program, not from one interleaving. The iterations of
parallel and vectorized loops form a tree of *tasks*. Two tasks are concurrent if they are in
different iterations of the innermost loop run that contains both. The program runs serially, depth
first; then one writer and one reader for each element are enough to find a race if there is one.

**Source:** M. Feng and C. E. Leiserson, "Efficient detection of determinacy races in Cilk
programs", SPAA 1997, section 3 (there for fork and join; a parallel loop is both).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np

from dlcompiler.errors import ProgramError
from dlcompiler.ir import Assert, Buffer, ExternCall, For, If, Let, Stmt, Store, Var, is_in_block
from dlcompiler.ir.numeric import storage
from dlcompiler.ir.printer import format_expr, format_extern_call, format_loop, format_store

Thunk = Callable[[], Any]
Cell = list[Any]  # one element: the value of a variable


class LoopRun:
    """One run of a parallel or vectorized loop."""

    __slots__ = ("is_open", "loop", "parent")

    def __init__(self, loop: For, parent: Task) -> None:
        self.loop = loop
        self.parent = parent
        self.is_open = True


class Task:
    """One iteration of a loop run; with `run` None, the whole program."""

    __slots__ = ("is_open", "iteration", "run")

    def __init__(self, run: LoopRun | None = None, iteration: int = 0) -> None:
        self.run = run
        self.iteration = iteration
        self.is_open = True

    @property
    def is_in_block(self) -> bool:
        """Whether the task belongs to a thread of a block."""
        task = self
        while task.run is not None:
            if is_in_block(task.run.loop.kind):
                return True
            task = task.run.parent
        return False


class Observer(Protocol):
    """Receives the accesses and barriers of a program that is interpreted."""

    def access(self, buffer: Buffer, offsets: Sequence[int], task: Task, *, is_write: bool) -> None:
        """Handle an access by a task: one offset, or one for each active lane."""

    def synchronise(self, site: Site | None) -> None:
        """Handle a barrier that all threads of a block have reached, or their end (None)."""


class State:
    """The state of a running program, except its memory."""

    __slots__ = (
        "active", "iterations", "loads", "max_steps", "observer", "random", "stores", "task",
    )  # fmt: skip

    def __init__(
        self, max_steps: int, order: int | None = None, observer: Observer | None = None
    ) -> None:
        self.random = None if order is None else random.Random(order)
        self.max_steps = max_steps
        self.observer = observer
        self.iterations = 0
        self.loads = 0
        self.stores = 0
        self.task = Task()
        self.active: Any = None
        """Mask of the active lanes inside a vector choice; None if all are active."""

    def turns(self, count: int) -> Sequence[int]:
        """Return the iterations of a concurrent loop, in the order in which they will run."""
        if self.random is None:
            return range(count)
        return self.random.sample(range(count), count)

    @property
    def steps(self) -> int:
        """Number of loop iterations begun, plus number of elements stored."""
        return self.iterations + self.stores


@dataclass(frozen=True)
class Site:
    """The location of a statement, for error messages: its function and the loops around it."""

    function: str
    statement: Stmt
    loops: tuple[tuple[Var, Cell], ...]

    def fail(self, kind: str, problem: str, **parts: Any) -> NoReturn:
        """Raise a `ProgramError` of this kind at this location."""
        raise ProgramError(
            f"interpret {self.function}",
            problem,
            kind=kind,
            loops=tuple((var.name, cell[0]) for var, cell in self.loops),
            excerpt=_head(self.statement),
            **parts,
        )


def _head(statement: Stmt) -> str:
    match statement:
        case For():
            return format_loop(statement)
        case Store():
            return format_store(statement)
        case If(condition, _, _):
            return f"if {format_expr(condition)}:"
        case Let(var, value, _):
            return f"{var.name} = {format_expr(value)}"
        case ExternCall():
            return format_extern_call(statement)
        case Assert(condition, _):
            return f"assert {format_expr(condition)}"
    return type(statement).__name__


class Memory:
    """The elements of a buffer by offset, and for each its last writer and last reader."""

    __slots__ = ("buffer", "data", "is_shadowed", "readers", "writers")

    def __init__(self, buffer: Buffer, data: np.ndarray[Any, Any], *, is_shadowed: bool) -> None:
        self.buffer = buffer
        self.data = data
        self.is_shadowed = is_shadowed
        """False if the program never writes the buffer: then no access to it can be wrong."""
        self.writers: list[Task | None] = []
        self.readers: list[Task | None] = []
        self.forget()

    @staticmethod
    def allocate(buffer: Buffer) -> Memory:
        """Return memory whose elements are all unwritten."""
        return Memory(buffer, np.empty(span(buffer), storage(buffer.dtype)), is_shadowed=True)

    def forget(self) -> None:
        """Make every element unwritten."""
        if self.is_shadowed:
            self.writers[:] = self.readers[:] = [None] * len(self.data)

    def unwritten(self) -> int:
        """Return the number of unwritten elements."""
        return sum(writer is None for writer in self.writers)

    def first_unwritten(self) -> tuple[str, tuple[int, ...]]:
        """Return the buffer's name and the index of its first unwritten element."""
        left = self.writers.index(None)
        index = []
        for stride in self.buffer.static_strides:
            index.append(left // stride)
            left %= stride
        return self.buffer.name, tuple(index)


def span(buffer: Buffer) -> int:
    """Return the number of elements from a buffer's first to its last, including gaps."""
    if 0 in buffer.static_shape:
        return 0
    pairs = zip(buffer.static_shape, buffer.static_strides, strict=True)
    return 1 + sum((extent - 1) * stride for extent, stride in pairs)
