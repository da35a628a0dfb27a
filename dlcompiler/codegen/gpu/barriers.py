"""Leave out the barriers of a kernel that the race analysis proves unnecessary.

`merge_thread_loops` separates statements and iterations by barriers as soon as they use the same
array. Two threads often use different elements of it, or the same thread uses the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dlcompiler.analysis import analyze_races
from dlcompiler.ir import Barrier, Seq, Stmt, seq, walk_statements
from dlcompiler.ir.program import Launch
from dlcompiler.ir.rewrite import map_children
from dlcompiler.passes.merge_thread_loops import ThreadProgram


def inserted(launch: Launch, thread: ThreadProgram) -> list[Barrier]:
    """Return the barriers in what a thread does that are not in the loops of the launch."""
    nest = launch.kernel.body if launch.nest is None else launch.nest
    given = {id(node) for node in walk_statements(nest) if isinstance(node, Barrier)}
    return [
        n for n in walk_statements(thread.body) if isinstance(n, Barrier) and id(n) not in given
    ]


def without_needless(
    launch: Launch, thread: ThreadProgram, barriers: Sequence[Barrier]
) -> ThreadProgram:
    """Leave out those of some barriers without which no two threads race.

    Parameters
    ----------
    launch
        The launch of the kernel.
    thread
        What one of its threads does.
    barriers
        The barriers that may be left out, by identity.
    """
    if not barriers:
        return thread
    without_all = _without(thread, barriers)
    if _is_safe(launch, without_all):
        return without_all
    for barrier in barriers:
        shorter = _without(thread, [barrier])
        if _is_safe(launch, shorter):
            thread = shorter
    return thread


def _without(thread: ThreadProgram, barriers: Sequence[Barrier]) -> ThreadProgram:
    """Return what a thread does without some barriers."""
    left_out = set(map(id, barriers))
    origins = dict(thread.origins)

    def changed(stmt: Stmt) -> Stmt:
        if id(stmt) in left_out:
            return seq(())
        if isinstance(stmt, Seq):
            made = seq(map(changed, stmt.statements))
        else:
            made = map_children(
                stmt, lambda part: changed(part) if isinstance(part, Stmt) else part
            )
        origins.setdefault(id(made), origins.get(id(stmt), stmt))
        return made

    return replace(thread, body=changed(thread.body), origins=origins)


def _is_safe(launch: Launch, thread: ThreadProgram) -> bool:
    """Tell whether the threads of a block are proved not to race."""
    report = analyze_races(replace(launch.kernel, body=thread.as_loops(), axes={}))
    return all(
        verdict.status == "safe"
        for verdict in report.verdicts
        if verdict.loop.kind.startswith("threadIdx")
    )
