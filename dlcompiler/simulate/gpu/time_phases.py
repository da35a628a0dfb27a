"""Cut the program of a thread at its barriers, and read what each phase loads and waits for.

Between two barriers the warps of a block run at their own pace; at a barrier they wait for the
slowest. So each phase has its own time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dlcompiler import dtypes
from dlcompiler.ir import (
    Allocate,
    Barrier,
    Buffer,
    Expr,
    For,
    If,
    IntrinsicCall,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    ThreadTag,
    Var,
    extent_expr,
    walk,
    walk_statements,
)
from dlcompiler.ir.expr import lanes_of
from dlcompiler.simulate.gpu.forms import Form, constant_form
from dlcompiler.simulate.gpu.program import OneThread
from dlcompiler.simulate.gpu.reading import Reader, Scope
from dlcompiler.simulate.gpu.time_footprints import touched
from dlcompiler.simulate.gpu.unrolling import is_left, is_unrolled


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """The statements of a thread between two barriers, with the loops around them."""

    axes: Mapping[ThreadTag, Var]
    extents: Mapping[str, Expr]
    shared: tuple[Buffer, ...]
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop around an access."""

    var: Var
    """The variable that stands for it in forms."""
    extent: int
    """Its iterations; [1]."""
    is_unrolled: bool
    """Whether the compiler puts copies of its body in its place."""
    is_rolled: bool
    """Whether the schedule asks the compiler to leave it as it is."""
    is_outside: bool
    """Whether barriers are inside: its iterations are phases of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """What one access of a phase touches."""

    buffer: Buffer
    is_write: bool
    space: str
    """``"global"``, ``"shared"`` or ``"local"``."""
    address: Form
    """Distance from the begin of the array; [byte]."""
    bytes: int
    """Bytes that a thread accesses in one execution; [byte]."""
    lanes: int
    """Elements that it accesses in one execution; [1]."""
    loops: tuple[Loop, ...]
    """The loops around it, outermost first."""
    is_update: bool
    """Whether it stores what it has computed from the element that it replaces: a sum."""

    @property
    def around(self) -> tuple[Loop, ...]:
        """The loops around the copies, outermost first."""
        return self.loops[: len(self.loops) - len(self.copies)]

    @property
    def copies(self) -> tuple[Loop, ...]:
        """The innermost loops whose bodies are copied: among them a load is done only once."""
        found = itertools.takewhile(lambda loop: loop.is_unrolled, reversed(self.loops))
        return tuple(found)

    @property
    def executions(self) -> int:
        """How often a thread executes it; [1]."""
        return math.prod(loop.extent for loop in self.loops)


@dataclass(slots=True)
class Read:
    """What a phase touches, and the variables of its forms."""

    reaches: list[Reach] = field(default_factory=list)
    threads: dict[Var, int] = field(default_factory=dict)
    """The variables of the threads of a block, with their extents, x first."""
    blocks: dict[Var, int] = field(default_factory=dict)
    """The variables of the blocks, with their extents, x first."""
    removed_branches: int = 0
    """Branches of a thread that unrolling removes; [1]."""
    guarded: set[Buffer] = field(default_factory=set)
    """Arrays of the thread of which elements are stored elsewhere under a condition."""
    _touched: dict[tuple[object, ...], float] = field(default_factory=dict)

    @property
    def buffers(self) -> set[Buffer]:
        """The arrays that are accessed."""
        return {reach.buffer for reach in self.reaches}

    def touched(self, reach: Reach, extents: Mapping[Var, int]) -> float:
        """Return how many sectors an access touches: see `time_footprints.touched`.

        Several bounds of a time ask for the same: it is computed once.
        """
        key = reach, frozenset(extents.items())
        if key not in self._touched:
            self._touched[key] = touched(reach.address, extents, reach.bytes)
        return self._touched[key]


def phases_of(thread: OneThread) -> list[Phase]:
    """Return the phases of a thread, in the order of the program.

    A loop with barriers inside stands around each of its phases; what follows the last barrier of
    an iteration, and what precedes the first one of the next, are one phase.
    """
    return [
        Phase(thread.axes, thread.extents, thread.shared, part)
        for part in _parts(thread.body)
        if part is not None
    ]


def _parts(stmt: Stmt) -> list[Stmt | None]:
    """Return a statement cut at its barriers; None for a part without statements."""
    if not any(isinstance(node, Barrier) for node in walk_statements(stmt)):
        return [stmt]
    match stmt:
        case Barrier():
            return [None, None]
        case Seq(statements):
            parts: list[Stmt | None] = [None]
            for each in statements:
                first, *rest = _parts(each)
                parts[-1] = _joined(parts[-1], first)
                parts += rest
            return parts
        case For(body=body):
            first, *rest = _parts(body)
            *middle, last = rest
            around = [_joined(last, first), *middle]
            return [None, *(part and _Outside.around(stmt, part) for part in around), None]
        case If(condition, then, None):
            return [part and If(condition, part) for part in _parts(then)]
        case Let() | Allocate():
            return [part and replace(stmt, body=part) for part in _parts(stmt.body)]
    return [stmt]


class _Outside:
    """Marks loops that have barriers inside."""

    NOTE = ("barriers inside", 1)

    @staticmethod
    def around(loop: For, body: Stmt) -> For:
        """Return a loop with another body, marked."""
        return replace(loop, body=body, annotations=(*loop.annotations, _Outside.NOTE))


def _joined(a: Stmt | None, b: Stmt | None) -> Stmt | None:
    if a is None or b is None:
        return a or b
    return Seq((a, b))


def read_phase(phase: Phase, numbers: Mapping[Var, int], loops: Sequence[For] = ()) -> Read:
    """Return what a phase touches.

    Parameters
    ----------
    phase
        The statements.
    numbers
        Values of symbols.
    loops
        Loops of the host around the launch, outermost first.
    """
    walk_ = _Walk(phase, Reader({}))
    scope: Scope = {var: constant_form(value) for var, value in numbers.items()}
    for loop in loops:
        scope = {**scope, loop.var: walk_.reader.variable(loop.var.name, 1)[1]}
    for tag in sorted(phase.axes):
        _, high = walk_.reader.interval(walk_.reader.form(phase.extents[tag], scope))
        size = int(high) if math.isfinite(high) else 1
        var, form = walk_.reader.variable(phase.axes[tag].name, size)
        of = walk_.read.blocks if tag.startswith("blockIdx") else walk_.read.threads
        of[var], scope = size, {**scope, phase.axes[tag]: form}
    walk_.statement(phase.body, (), scope)
    return walk_.read


class _Walk:
    def __init__(self, phase: Phase, reader: Reader) -> None:
        self.reader = reader
        self.shared = set(phase.shared)
        self.own: set[Buffer] = set()
        self.read = Read()
        self.is_guarded = False

    def statement(  # noqa: C901 - by node
        self, stmt: Stmt, loops: tuple[Loop, ...], scope: Scope
    ) -> None:
        """Add what a statement touches."""
        match stmt:
            case Seq(statements):
                for each in statements:
                    self.statement(each, loops, scope)
            case For():
                self._loop(stmt, loops, scope)
            case If(condition, then, otherwise):
                self._loads(condition, loops, scope)
                around, self.is_guarded = self.is_guarded, True
                self.statement(then, loops, scope)
                if otherwise is not None:
                    self.statement(otherwise, loops, scope)
                self.is_guarded = around
            case Allocate(buffer, body):
                self.own.add(buffer)
                self.statement(body, loops, scope)
            case Let(var, value, body):
                self._loads(value, loops, scope)
                if not dtypes.is_float(var.dtype) and dtypes.lanes(var.dtype) == 1:
                    scope = {**scope, var: self.reader.form(value, scope)}
                self.statement(body, loops, scope)
            case IntrinsicCall(body=body):
                self.statement(body, loops, scope)
            case Store(buffer=buffer, value=value, indices=indices):
                elements = {load.buffer for load in self._loads(value, loops, scope)}
                if buffer not in self.own and (self.is_guarded or stmt.predicate is not None):
                    self.read.guarded |= elements & self.own
                self._access(buffer, indices, loops, scope, is_write=True,
                             is_update=buffer in elements)  # fmt: skip

    def _loop(self, loop: For, loops: tuple[Loop, ...], scope: Scope) -> None:
        low, high = self.reader.interval(self.reader.form(loop.extent, scope))
        extent = max(int(high), 0) if math.isfinite(high) else 1
        var, form = self.reader.variable(loop.var.name, extent)
        is_outside = _Outside.NOTE in loop.annotations
        is_rolled = is_left(loop, loops[-1].is_rolled if loops else False)
        may_unroll = not (is_outside or is_rolled)
        is_copied = may_unroll and is_unrolled(loop, is_constant=low == high)
        inside = (*loops, Loop(var, extent, is_copied, is_rolled, is_outside))
        if is_copied and loop.kind != "unrolled":
            self.read.removed_branches += math.prod(each.extent for each in inside)
        self.statement(loop.body, inside, {**scope, loop.var: form})

    def _loads(self, value: Expr, loops: tuple[Loop, ...], scope: Scope) -> list[Load]:
        found = [node for node in walk(value) if isinstance(node, Load)]
        for load in found:
            self._access(load.buffer, load.indices, loops, scope, is_write=False)
        return found

    def _access(
        self, buffer: Buffer, indices: Sequence[Expr], loops: tuple[Loop, ...], scope: Scope, *,
        is_write: bool, is_update: bool = False,
    ) -> None:  # fmt: skip
        lanes = lanes_of(tuple(indices))
        size = dtypes.bytes_of(buffer.dtype)
        total = constant_form(0)
        for index, stride in zip(indices, buffer.strides, strict=True):
            form = self.reader.form_at(index, 0, scope, {})
            step = stride if isinstance(stride, int) else None
            if step is None:
                other = self.reader.form(extent_expr(stride), scope)
                total = total.plus(self.reader.product(form, other))
            else:
                total = total.plus(form, step)
        space = "shared" if buffer in self.shared else "local" if buffer in self.own else "global"
        self.read.reaches.append(
            Reach(buffer, is_write, space, total.times(size), size * lanes, lanes, loops, is_update)
        )
