"""What the threads of one block touch, phase by phase: the interpreter run on one block, watched.

A *launch* is a loop nest of a program that holds loops of threads, a *phase* what its threads do
between two barriers. Of the launch that is recorded, one block runs; nests before it run as they
are, since it may read what they wrote, and nests behind it do not run. The inputs are zeros: what
is touched does not depend on them, unless the program indexes or decides by data.
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
"""Of a recorded run: some two seconds."""
MAX_ELEMENTS = 1 << 22
"""Of all parameters: the interpreter remembers who touched each."""

Thread: TypeAlias = tuple[int, int, int]
"""``(threadIdx.x, threadIdx.y, threadIdx.z)``; virtual threads are the thread that runs them."""


@dataclass(frozen=True)
class Touch:
    """How the threads reach a buffer in a phase."""

    buffer: Buffer
    is_write: bool
    by_thread: Mapping[Thread, Sequence[int]]
    """Offsets of elements, in the order of the thread's accesses: one for each of its steps. Of a
    private buffer, the copies of a thread's virtual threads follow each other."""


@dataclass(frozen=True)
class Phase:
    """What the threads of a block do between two barriers."""

    touches: tuple[Touch, ...]
    """In the order in which each buffer is first reached."""
    start: int | None
    """Which barrier of the program begins it; None: the block does."""
    loops: tuple[tuple[str, int], ...]
    """The loops around that barrier that are not of threads, and where they are."""


@dataclass(frozen=True)
class BlockRecording:
    """What the threads of one block touch."""

    threads: tuple[int, int, int]
    """Of the block, along x, y and z."""
    vthreads: int
    """Virtual threads that each of them runs."""
    blocks: Mapping[str, int]
    """Iterations of each axis of blocks."""
    block: Mapping[str, int]
    """Which block it is."""
    phases: tuple[Phase, ...]
    private: frozenset[Buffer]
    """Buffers that each thread, or each warp, has for itself."""
    barriers: int
    """Barriers that the block comes to."""


def launches(func: PrimFunc) -> list[For]:
    """Return the outermost loops of a program that hold threads of blocks, in its order."""
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
    """Run one block of a launch, and record what its threads touch.

    Parameters
    ----------
    func
        The program as scheduled: ``lower(s, args, simple_mode=True)``.
    launch
        One of `launches`; by default, the last.
    block
        Which block: ``{"blockIdx.x": 1}``; 0 along axes that are not named.

    Returns
    -------
    BlockRecording

    Raises
    ------
    CallError
        If no loop is bound to threads, sizes are known only at a call, there is no such block, or
        the run would be too long.
    ProgramError
        If the program does what none may, such as a race between threads.
    """
    where = f"record a block of {func.name}"
    known = launches(func)
    if not known:
        raise CallError(
            where, "none of its loops is bound to the threads of a block",
            hint='s[C].bind(loop, te.thread_axis("threadIdx.x"))',
        )  # fmt: skip
    if func.variables or not all(buffer.is_static for buffer in func.buffers):
        raise CallError(
            where, "its sizes are known only at a call",
            hint="build the expression on numbers to see its threads",
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
        raise CallError(where, "the loop is no launch of this program", got=chosen.var.name,
                        expected=", ".join(loop.var.name for loop in known))  # fmt: skip
    if any(isinstance(node, ExternCall) for node in walk(one)):
        raise CallError(where, "it calls code from outside, whose accesses are not seen")
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
    """Return the iterations of each axis of blocks of a launch."""
    return {tag: n for tag, n in _extents(launch).items() if tag.startswith("blockIdx")}


def _extents(launch: For) -> dict[str, int]:
    """Return the iterations of each thread axis that has a loop."""
    found: dict[str, int] = {}
    for node in walk(launch):
        if isinstance(node, For) and is_thread(node.kind):
            found[node.kind] = max(found.get(node.kind, 1), _count(node))
    return found


def _count(loop: For) -> int:
    return int(loop.extent.value) if isinstance(loop.extent, Const) else 1


def _virtual_threads(stmt: Stmt) -> int:
    """Return how many virtual threads a thread runs: those of loops in loops multiply."""
    parts = (_virtual_threads(child) for child in children(stmt) if isinstance(child, Stmt))
    inside = max(parts, default=1)
    is_virtual = isinstance(stmt, For) and stmt.kind == "vthread"
    return _count(stmt) * inside if is_virtual else inside  # type: ignore[arg-type]


def _one_block(launch: For, at: Mapping[str, int]) -> Stmt:
    def fix(node: object) -> object:
        if not isinstance(node, For) or node.kind not in at:
            return node
        if at[node.kind] >= _count(node):  # a nest beside one that has more blocks
            return Seq(())
        return substitute(node.body, {node.var: index_const(at[node.kind])})

    return rewrite(launch, fix)  # type: ignore[arg-type]


def _up_to(stmt: Stmt, launch: For, one: Stmt) -> Stmt | None:
    """Return a statement with one block in place of the launch, and nothing behind it.

    None if the launch is not in it.
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
    """The phase that runs."""

    start: int | None = None
    loops: tuple[tuple[str, int], ...] = ()
    touches: dict[tuple[Buffer, bool], dict[Thread, list[int]]] = field(default_factory=dict)

    def in_order(self) -> tuple[Touch, ...]:
        """Return what was touched, in the order in which each was first reached."""
        return tuple(Touch(buffer, is_write, by) for (buffer, is_write), by in self.touches.items())


class _Watch:
    """Sorts the accesses of a launch by phase, buffer and thread."""

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
        """Note an access of a thread of the launch."""
        if task is not self._task:
            self._task, (self._thread, self._virtual) = task, self._thread_of(task)
        if self._thread is None:
            return
        if self._virtual and buffer in self._private:
            offsets = [at + self._virtual * span(buffer) for at in offsets]
        threads = self._phases[-1].touches.setdefault((buffer, is_write), {})
        threads.setdefault(self._thread, []).extend(offsets)

    def synchronise(self, site: Site | None) -> None:
        """Begin a phase behind a barrier of the launch, or where its threads start again."""
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
        """Return the phases; nothing behind the end of the last thread is one."""
        last = self._phases[-1]
        kept = self._phases if last.touches or len(self._phases) == 1 else self._phases[:-1]
        return tuple(Phase(each.in_order(), each.start, each.loops) for each in kept)

    def _thread_of(self, task: Task) -> tuple[Thread | None, int]:
        """Return the thread of the launch that a task is part of, and which virtual one it is."""
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
