"""Recording of the memory accesses of one thread block, phase by phase, by the interpreter.

A *launch* is a loop nest that contains loops of threads. A *phase* is the part of a block's run
between two barriers. Only one block of the recorded launch runs. Nests before it run completely,
since it may read their results; nests after it do not run. The inputs are zeros: the accesses do
not depend on them, unless the program uses data in indices or conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from dlcompiler.errors import CallError
from dlcompiler.ir import (
    Allocate,
    Buffer,
    Const,
    ExternCall,
    For,
    PrimFunc,
    Seq,
    Stmt,
    Var,
    index_const,
    is_in_block,
    is_thread,
    rewrite,
    substitute,
    walk,
)
from dlcompiler.ir.numeric import storage
from dlcompiler.ir.rewrite import children
from dlcompiler.simulate.interpreter import interpret
from dlcompiler.simulate.memory import Site, Task, span
from dlcompiler.simulate.steps import count_steps

MAX_STEPS = 500_000
"""Most steps of a recorded run, about two seconds; [1]."""
MAX_ELEMENTS = 1 << 22
"""Most elements of all parameters: the shadow memory has an entry for each; [1]."""

Thread: TypeAlias = tuple[int, int, int]
"""``(threadIdx.x, threadIdx.y, threadIdx.z)``; a virtual thread counts as the thread that
runs it."""


@dataclass(frozen=True)
class Touch:
    """The reads, or the writes, of one buffer in a phase."""

    buffer: Buffer
    is_write: bool
    by_thread: Mapping[Thread, Sequence[int]]
    """Offsets of elements, in the order of the thread's accesses. Each virtual thread has its own
    copy of a private buffer; the offsets treat the copies as one array, one after the other."""


@dataclass(frozen=True)
class Phase:
    """The accesses of a block's threads between two barriers."""

    touches: tuple[Touch, ...]
    """One for each buffer and direction, in the order of first access."""
    start: int | None
    """Number of the program's barrier at which it starts; None at the start of the block."""
    loops: tuple[tuple[str, int], ...]
    """Names and values of the serial loops around that barrier."""


@dataclass(frozen=True)
class BlockRecording:
    """The accesses of the threads of one block."""

    threads: tuple[int, int, int]
    """Threads of the block along x, y and z."""
    vthreads: int
    """Virtual threads that each thread runs; [1]."""
    blocks: Mapping[str, int]
    """Number of blocks along each axis of the launch."""
    block: Mapping[str, int]
    """Position of the block along each axis."""
    phases: tuple[Phase, ...]
    private: frozenset[Buffer]
    """Buffers of which each thread, or each warp, has its own copy."""
    barriers: int
    """Number of barriers that the block executes; [1]."""


def launches(func: PrimFunc) -> list[For]:
    """Return the outermost loops of a program that contain loops of threads, in order."""
    return list(_launches(func.body))


def _launches(stmt: Stmt) -> Iterator[For]:
    if isinstance(stmt, For) and any(_is_thread_loop(node) for node in walk(stmt)):
        yield stmt
    elif not isinstance(stmt, For):
        for child in children(stmt):
            if isinstance(child, Stmt):
                yield from _launches(child)


def _is_thread_loop(node: object) -> bool:
    return isinstance(node, For) and is_in_block(node.kind)


def record_block(
    func: PrimFunc, launch: For | None = None, block: Mapping[str, int] | None = None
) -> BlockRecording:
    """Run one block of a launch, and record the accesses of its threads.

    Parameters
    ----------
    func
        The program as scheduled: ``lower(s, args, simple_mode=True)``.
    launch
        One of `launches`; by default, the last.
    block
        Position of the block: ``{"blockIdx.x": 1}``; 0 along axes that are not given.

    Returns
    -------
    BlockRecording

    Raises
    ------
    CallError
        If no loop is bound to threads, sizes are symbolic, there is no such block, or the run would
        be too long.
    ProgramError
        If the interpreter finds a mistake, such as a race between threads.
    """
    where = f"record a block of {func.name}"
    known = launches(func)
    if not known:
        stage = next((buffer.name for buffer in func.outputs), "C")
        raise CallError(
            where, "none of its loops is bound to the threads of a block",
            hint=f's[{stage}].bind(loop, te.thread_axis("threadIdx.x"))',
        )  # fmt: skip
    if func.variables or not all(buffer.is_static for buffer in func.buffers):
        raise CallError(
            where, "its sizes are symbolic",
            hint="define the expression with numbers as extents, to see its threads",
        )  # fmt: skip
    chosen = known[-1] if launch is None else launch
    extents, blocks = _extents(chosen), blocks_of(chosen)
    at = {**dict.fromkeys(blocks, 0), **(block or {})}
    for tag, index in at.items():
        if not 0 <= index < blocks.get(tag, 0):
            expected = ", ".join(f"{name} < {count}" for name, count in blocks.items())
            raise CallError(where, "there is no such block", got=f"{tag}={index}",
                            expected=expected or "no index: the launch is one block")  # fmt: skip
    one = _one_block(chosen, at)
    body = _up_to(func.body, chosen, one)
    if body is None:
        raise CallError(where, "the loop is not a launch of this program", got=chosen.var.name,
                        expected=", ".join(loop.var.name for loop in known))  # fmt: skip
    if any(isinstance(node, ExternCall) for node in walk(one)):
        raise CallError(where, "it calls code from outside, whose accesses cannot be recorded")
    cut = replace(func, body=body)
    _check_size(cut, where)
    private = _private(one)
    watched = _Watch(one, private)
    arrays = [np.zeros(buffer.static_shape, storage(buffer.dtype)) for buffer in func.buffers]
    interpret(cut, arrays, observer=watched)
    x, y, z = (extents.get(f"threadIdx.{axis}", 1) for axis in "xyz")
    return BlockRecording(
        (x, y, z), _virtual_threads(one), blocks, at, watched.finish(), private,
        watched.barriers,
    )  # fmt: skip


def _check_size(func: PrimFunc, where: str) -> None:
    steps = count_steps(func)
    if steps > MAX_STEPS:
        raise CallError(
            where, "one block takes too many steps to be recorded",
            got=f"{steps:,}", expected=f"at most {MAX_STEPS:,}",
            hint="replay the steps on a smaller shape: s.trace.replay(…)",
        )  # fmt: skip
    elements = sum(int(np.prod(buffer.static_shape)) for buffer in func.buffers)
    if elements > MAX_ELEMENTS:
        raise CallError(
            where, "its arrays are too large to be recorded",
            got=f"{elements:,} elements", expected=f"at most {MAX_ELEMENTS:,}",
            hint="replay the steps on a smaller shape: s.trace.replay(…)",
        )  # fmt: skip


def blocks_of(launch: For) -> dict[str, int]:
    """Return the extent of each block axis (``blockIdx.x`` …) of a launch."""
    return {tag: n for tag, n in _extents(launch).items() if tag.startswith("blockIdx")}


def _extents(launch: For) -> dict[str, int]:
    """Return the extent of each thread axis to which a loop is bound."""
    found: dict[str, int] = {}
    for node in walk(launch):
        if isinstance(node, For) and is_thread(node.kind):
            found[node.kind] = max(found.get(node.kind, 1), _count(node))
    return found


def _count(loop: For) -> int:
    return int(loop.extent.value) if isinstance(loop.extent, Const) else 1


def _virtual_threads(stmt: Stmt) -> int:
    """Return the number of virtual threads that a thread runs; nested loops multiply."""
    parts = (_virtual_threads(child) for child in children(stmt) if isinstance(child, Stmt))
    inside = max(parts, default=1)
    is_virtual = isinstance(stmt, For) and stmt.kind == "vthread"
    return _count(stmt) * inside if is_virtual else inside  # type: ignore[arg-type]


def _one_block(launch: For, at: Mapping[str, int]) -> Stmt:
    def fix(node: object) -> object:
        if not isinstance(node, For) or node.kind not in at:
            return node
        if at[node.kind] >= _count(node):  # a nest with fewer blocks than another of the launch
            return Seq(())
        return substitute(node.body, {node.var: index_const(at[node.kind])})

    return rewrite(launch, fix)  # type: ignore[arg-type]


def _up_to(stmt: Stmt, launch: For, one: Stmt) -> Stmt | None:
    """Return the part of a statement that ends with the launch, with the launch replaced by `one`.

    `one` runs only one block. The result is None if the statement does not contain the launch.
    """
    if stmt is launch:
        return one
    if isinstance(stmt, Seq):
        for n, part in enumerate(stmt.statements):
            if (cut := _up_to(part, launch, one)) is not None:
                return Seq((*stmt.statements[:n], cut))
        return None
    if isinstance(stmt, For) or not hasattr(stmt, "body"):
        return None
    cut = _up_to(stmt.body, launch, one)
    return None if cut is None else replace(stmt, body=cut)  # type: ignore[type-var]


def _private(launch: Stmt) -> frozenset[Buffer]:
    inside = (loop for loop in walk(launch) if _is_thread_loop(loop))
    return frozenset(
        node.buffer for loop in inside for node in walk(loop) if isinstance(node, Allocate)
    )


@dataclass
class _Open:
    """The accesses recorded so far in the current phase."""

    start: int | None = None
    loops: tuple[tuple[str, int], ...] = ()
    touches: dict[tuple[Buffer, bool], dict[Thread, list[int]]] = field(default_factory=dict)

    def in_order(self) -> tuple[Touch, ...]:
        """Return the reads and the writes of each buffer, in the order of the first access."""
        return tuple(Touch(buffer, is_write, by) for (buffer, is_write), by in self.touches.items())


class _Watch:
    """Observer that sorts the accesses of a launch by phase, buffer and thread."""

    def __init__(self, launch: Stmt, private: frozenset[Buffer]) -> None:
        self.barriers = 0
        self._private = private
        self._loops = {id(node): node for node in walk(launch) if isinstance(node, For)}
        self._kinds: dict[Var, str] = {loop.var: loop.kind for loop in self._loops.values()}
        self._barriers: dict[int, int] = {}
        self._phases: list[_Open] = [_Open()]
        self._task: Task | None = None
        self._thread: Thread | None = None
        self._virtual = 0
        """Number of the virtual thread among those of its thread."""

    def access(self, buffer: Buffer, offsets: Sequence[int], task: Task, *, is_write: bool) -> None:
        """Record an access, if a thread of the launch makes it."""
        if task is not self._task:
            self._task, (self._thread, self._virtual) = task, self._thread_of(task)
        if self._thread is None:
            return
        if self._virtual and buffer in self._private:
            offsets = [at + self._virtual * span(buffer) for at in offsets]
        threads = self._phases[-1].touches.setdefault((buffer, is_write), {})
        threads.setdefault(self._thread, []).extend(offsets)

    def synchronise(self, site: Site | None) -> None:
        """Start a new phase at a barrier of the launch, or when its threads start again."""
        if site is None:
            if self._phases[-1].touches:
                self._phases.append(_Open())
            return
        around = [(var, cell[0]) for var, cell in site.loops if var in self._kinds]
        if not around:
            return
        self.barriers += 1
        number = self._barriers.setdefault(id(site), len(self._barriers))
        serial = [(var.name, at) for var, at in around if not is_thread(self._kinds[var])]
        self._phases.append(_Open(number, tuple(serial)))

    def finish(self) -> tuple[Phase, ...]:
        """Return the phases, without an empty one after the end of the threads."""
        last = self._phases[-1]
        kept = self._phases if last.touches or len(self._phases) == 1 else self._phases[:-1]
        return tuple(Phase(each.in_order(), each.start, each.loops) for each in kept)

    def _thread_of(self, task: Task) -> tuple[Thread | None, int]:
        """Return the thread and the virtual thread of a task; (None, 0) outside the launch."""
        at = dict.fromkeys(("threadIdx.x", "threadIdx.y", "threadIdx.z"), 0)
        virtual, factor, found = 0, 1, False
        while task.run is not None:
            loop = task.run.loop
            if id(loop) in self._loops and loop.kind == "vthread":
                virtual, found = virtual + factor * task.iteration, True
                factor *= int(getattr(loop.extent, "value", 1))
            elif id(loop) in self._loops and loop.kind in at:
                at[loop.kind], found = task.iteration, True
            task = task.run.parent
        x, y, z = at.values()
        return ((x, y, z), virtual) if found else (None, 0)
