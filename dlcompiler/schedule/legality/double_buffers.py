"""Legality of double buffers: reasons why a stage cannot be computed one iteration ahead.

`passes.inject_double_buffer` computes the values for the next iteration of the loop that the stage
is attached at, while this iteration reads its own values. This is correct if

- the iterations run one after the other,
- what the stage reads is not computed by these iterations,
- when each thread has its own buffer, no stage computed inside it is shared by these threads.

A loop that runs once has no next iteration: the buffer stays single there.
"""

from __future__ import annotations

from collections.abc import Iterator

from dlcompiler.ir import SHARED_SCOPES, is_concurrent, is_in_block
from dlcompiler.schedule.inference.inlining import bodies, loads_of
from dlcompiler.schedule.inference.thread_loops import axis_of, scope_of, threads_around
from dlcompiler.schedule.legality.obligations import is_inside, stages_inside
from dlcompiler.schedule.state import AttachedAt, StageState, State
from dlcompiler.schedule.verdict import Illegal


def double_buffer_problems(state: State, stage: StageState) -> Iterator[Illegal]:
    """Yield why a stage cannot be computed for the next iteration of its loop.

    Parameters
    ----------
    state
        A state whose attachments are placed.
    stage
        A stage with a double buffer.
    """
    at = stage.attachment
    if not isinstance(at, AttachedAt) or not state.stage(at.stage).has_leaf(at.axis):
        return  # an obligation
    host = state.stage(at.stage)
    loop, kind = host.label(at.axis), host.kind(at.axis)
    if is_concurrent(kind):
        yield Illegal(
            "limit",
            f"{stage.name} cannot be computed ahead for the next iteration of {loop}",
            because=f"the iterations of {loop} ({kind}) run in any order, or at once",
            hint="attach it at a serial loop, or leave double_buffer out",
            conflicts=(host.key(at.axis), stage.name),
        )
    parts = list(stages_inside(state, stage))
    has_threads = any(is_in_block(axis_of(tag)) for tag in threads_around(state, stage))
    is_private = has_threads and scope_of(state, stage) not in SHARED_SCOPES
    for part in parts if is_private else ():
        if part is not stage and scope_of(state, part) in SHARED_SCOPES:
            yield Illegal(
                "limit",
                f"{stage.name} cannot be computed ahead for the next iteration of {loop}",
                because=f"threads around it share {part.name}, which is computed inside it",
                hint=f"attach {part.name} outside {loop}, or leave double_buffer out",
                conflicts=(host.key(at.axis), stage.name, part.name),
            )
    names = {part.name for part in parts}
    loads = [load for part in parts for load in loads_of(bodies(state).get(part.name, ()))]
    for tensor in dict.fromkeys(load.tensor for load in loads):
        source = state.producer_of(tensor)
        if source.name in names or not (source is host or is_inside(state, source, host, at.axis)):
            continue
        yield Illegal(
            "limit",
            f"{stage.name} cannot be computed ahead for the next iteration of {loop}",
            because=f"it reads {source.name}, which each iteration of {loop} computes for itself",
            hint=f"attach {source.name} outside {loop}, or inside the loops of {stage.name}",
            conflicts=(host.key(at.axis), stage.name, source.name),
        )
