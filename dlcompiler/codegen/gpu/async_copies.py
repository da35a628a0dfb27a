"""Find copies from global to shared memory that may go on while the thread does other work.

A schedule asks for them by the pragma ``async_copy`` at a loop of the stage that copies. A copy is
asynchronous from where it begins to the next barrier, before which its thread waits for it. It is
proved that nothing reads or writes its element in between: in a model of the program, a second
thread makes the copies of each thread, and no two threads may race.

**Source:** PTX ISA 8.8, "cp.async": 4, 8 or 16 bytes that are aligned.
"""

from __future__ import annotations

from dataclasses import replace

from dlcompiler import dtypes
from dlcompiler.analysis import analyze_races
from dlcompiler.arith import Analyzer
from dlcompiler.codegen.c.statements import has_assertions
from dlcompiler.codegen.gpu.lanes import aligned_start
from dlcompiler.ir import (
    Allocate,
    Barrier,
    Buffer,
    Compare,
    For,
    If,
    IntrinsicCall,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
    index_const,
    seq,
    walk,
)
from dlcompiler.ir.expr import lanes_of
from dlcompiler.ir.program import Launch
from dlcompiler.passes.base import statements
from dlcompiler.passes.merge_thread_loops import ThreadProgram, has_barrier

PRAGMA = "async_copy"
BYTES = (4, 8, 16)
"""Sizes of a copy [byte]."""


def async_copies(launch: Launch, thread: ThreadProgram) -> frozenset[int]:
    """Return the stores, by ``id``, that may be written as asynchronous copies.

    Parameters
    ----------
    launch
        The launch of the kernel.
    thread
        What one of its threads does.
    """
    wanted = _wanted(launch) & set(thread.shared)
    if not wanted or not has_barrier(thread.body) or has_assertions(thread.body):
        return frozenset()
    constant = set(launch.kernel.buffers) - set(launch.kernel.outputs)
    copies = {
        id(stmt)
        for stmt in statements(thread.body)
        if isinstance(stmt, Store) and stmt.buffer in wanted and _is_copy(stmt, constant)
    }
    return frozenset(copies if copies and _is_safe(launch, thread, copies) else ())


def _wanted(launch: Launch) -> set[Buffer]:
    """Return the buffers that are filled inside loops with the pragma."""
    nest = launch.kernel.body if launch.nest is None else launch.nest
    return {
        node.buffer
        for loop in walk(nest)
        if isinstance(loop, For) and dict(loop.annotations).get(PRAGMA)
        for node in walk(loop)
        if isinstance(node, Store)
    }


def _is_copy(stmt: Store, constant: set[Buffer]) -> bool:
    load = stmt.value
    if not isinstance(load, Load) or load.buffer not in constant:
        return False
    lanes = lanes_of(stmt.indices)
    size = lanes * dtypes.bytes_of(stmt.buffer.dtype)
    if stmt.predicate is not None or load.predicate is not None or size not in BYTES:
        return False
    if lanes != lanes_of(load.indices):
        return False
    ends = ((stmt.buffer, stmt.indices), (load.buffer, load.indices))
    return all(aligned_start(*end, Analyzer({})) is not None for end in ends)


def _is_safe(launch: Launch, thread: ThreadProgram, copies: set[int]) -> bool:
    """Tell whether nothing touches an element between the start of its copy and the wait."""
    agent = Var("agent")
    body = For(agent, index_const(2), "vthread", _divided(thread.body, copies, agent))
    func = replace(launch.kernel, body=replace(thread, body=body).as_loops(), axes={})
    verdicts = [v for v in analyze_races(func).verdicts if v.loop.var is agent]
    return bool(verdicts) and all(verdict.status == "safe" for verdict in verdicts)


def _divided(stmt: Stmt, copies: set[int], agent: Var) -> Stmt:
    """Return the model: agent 1 makes the copies, agent 0 does all else."""
    match stmt:
        case Seq(items):
            return seq(_divided(item, copies, agent) for item in items)
        case For() | Allocate() | Let():
            return replace(stmt, body=_divided(stmt.body, copies, agent))
        case If(condition, then, otherwise):
            rest = None if otherwise is None else _divided(otherwise, copies, agent)
            return If(condition, _divided(then, copies, agent), rest)
        case Barrier():
            return stmt
    own = index_const(1 if id(stmt) in copies else 0)
    return If(Compare("eq", agent, own), stmt.body if isinstance(stmt, IntrinsicCall) else stmt)
