"""Turn the threads of a block into loops of a CPU, which end at each barrier.

*Before*, what each of 16 threads does::

    allocate x: float32[1] in local
    x[0] = A[i]
    S[i] = x[0]
    barrier
    B[i] = S[15 - i] + x[0]

*After*, all threads run to the barrier, then all from there. Each has its own ``x``::

    allocate x: float32[16, 1]
    for i in range(16):
        x[i, 0] = A[i]
        S[i] = x[i, 0]
    for i in range(16):
        B[i] = S[15 - i] + x[i, 0]

A loop around a barrier runs around the loops of threads. Intrinsics are the loops of their
declarations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dlcompiler.errors import InternalError
from dlcompiler.ir import (
    Allocate,
    Barrier,
    Buffer,
    Expr,
    For,
    If,
    Let,
    Load,
    Prefetch,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    Var,
    free_vars,
    rewrite,
    seq,
    substitute,
    walk,
)
from dlcompiler.ir.program import Launch, Program
from dlcompiler.passes.lower_intrinsics import declared_loops
from dlcompiler.passes.merge_thread_loops import ThreadProgram, has_barrier, merge_thread_loops


def as_cpu_function(program: Program) -> PrimFunc:
    """Return a function for a CPU that computes what a program for a GPU computes.

    Parameters
    ----------
    program
        Kernels and launches without virtual threads.

    Raises
    ------
    TargetError
        The threads of a kernel cannot be merged: see `merge_thread_loops`.
    """
    body = _host(program.launches, 0)
    for buffer in reversed(program.temporaries):
        body = Allocate(buffer, body)
    return replace(program.func, body=body, axes={})


def _host(launches: Sequence[Launch], depth: int) -> Stmt:
    """Return neighbouring launches, inside `depth` loops of the host."""
    done: list[Stmt] = []
    place = 0
    while place < len(launches):
        loops = launches[place].loops
        if len(loops) == depth:
            done.append(cut_at_barriers(merge_thread_loops(launches[place])))
            place += 1
            continue
        loop, end = loops[depth], place
        while end < len(launches) and launches[end].loops[depth : depth + 1] == (loop,):
            end += 1
        done.append(replace(loop, body=_host(launches[place:end], depth + 1)))
        place = end
    return seq(done)


def cut_at_barriers(thread: ThreadProgram) -> Stmt:
    """Return the loops of a CPU that do what all threads of a launch do.

    Parameters
    ----------
    thread
        What one thread does.
    """
    threads = [(tag, var) for tag, var in thread.axes.items() if tag.startswith("threadIdx")]
    cutting = _Cutting([(var, thread.extents[tag]) for tag, var in threads])
    body = cutting.phases(declared_loops(thread.body))
    for buffer in reversed(thread.shared):
        body = Allocate(buffer, body)
    for tag, var in reversed(list(thread.axes.items())):
        if tag.startswith("blockIdx"):
            body = For(var, thread.extents[tag], "serial", body)
    return body


class _Cutting:
    """Cuts the statements of one thread.

    Parameters
    ----------
    threads
        The variable and the extent of each thread axis, outermost first.
    """

    def __init__(self, threads: Sequence[tuple[Var, Expr]]) -> None:
        self.threads = threads

    def all_threads(self, stmt: Stmt) -> Stmt:
        """Return a statement for each thread in turn."""
        for var, extent in reversed(self.threads):
            own = Var(var.name)  # each loop has its own variable
            stmt = For(own, extent, "serial", substitute(stmt, {var: own}))
        return stmt

    def phases(self, stmt: Stmt) -> Stmt:
        """Return a statement of one thread as loops over all, cut at its barriers."""
        if not has_barrier(stmt):
            return self.all_threads(stmt)
        match stmt:
            case Barrier():
                return seq(())
            case Seq(items):
                return self._sequence(items)
            case For():
                return replace(stmt, body=self.phases(stmt.body))
            case If(condition, then, otherwise) if self._is_uniform(condition):
                rest = None if otherwise is None else self.phases(otherwise)
                return If(condition, self.phases(then), rest)
            case Allocate(buffer, body):
                many = self._for_each_thread(buffer)
                return Allocate(many, self.phases(self._moved(body, buffer, many)))
            case Let(var, value, body) if not any(isinstance(n, Load) for n in walk(value)):
                return self.phases(substitute(body, {var: value}))
            case Let(var, value, body):
                cell = self._for_each_thread(Buffer(var.name, (), var.dtype))
                index = tuple(axis for axis, _ in self.threads)
                body = substitute(body, {var: Load(cell, index)})
                store = self.all_threads(Store(cell, index, value))
                return Allocate(cell, seq((store, self.phases(body))))
        raise InternalError("cut at barriers", f"a barrier inside {type(stmt).__name__}")

    def _is_uniform(self, value: Expr) -> bool:
        """Tell whether a value is the same for all threads of a block."""
        reads = any(isinstance(node, Load) for node in walk(value))
        return not reads and free_vars(value).isdisjoint(axis for axis, _ in self.threads)

    def _sequence(self, items: Sequence[Stmt]) -> Stmt:
        done: list[Stmt] = []
        phase: list[Stmt] = []
        for item in items:
            if not has_barrier(item):
                phase.append(item)
                continue
            if phase:
                done.append(self.all_threads(seq(phase)))
                phase = []
            done.append(self.phases(item))
        if phase:
            done.append(self.all_threads(seq(phase)))
        return seq(done)

    def _for_each_thread(self, buffer: Buffer) -> Buffer:
        """Return a buffer with a copy for each thread."""
        counts = [extent for _, extent in self.threads]
        shape = (*counts, *buffer.shape)
        separators = tuple(place + len(counts) for place in buffer.separators)
        return replace(buffer, shape=shape, strides=(), separators=separators)

    def _moved(self, body: Stmt, buffer: Buffer, many: Buffer) -> Stmt:
        """Return a body that uses the copy of each thread."""
        index = tuple(axis for axis, _ in self.threads)

        def rule(node: object) -> object:
            if isinstance(node, Load | Store | Prefetch) and node.buffer is buffer:
                return replace(node, buffer=many, indices=(*index, *node.indices))
            return node

        return rewrite(body, rule)  # type: ignore[arg-type]
