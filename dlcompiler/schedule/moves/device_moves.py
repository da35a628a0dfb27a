"""Memories, thread axes and limits of a target, for the moves on a schedule.

A schedule has no target. A step that a *limit* of one target refuses here may be legal for another
target, and `Schedule.attempt` allows it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dlcompiler import dtypes
from dlcompiler.ir import SHARED_SCOPES, THREADS, ThreadTag, is_thread
from dlcompiler.schedule.inference.bounds import infer_bounds
from dlcompiler.schedule.inference.thread_loops import threads_around
from dlcompiler.schedule.legality.obligations import has_bounds
from dlcompiler.schedule.moves.accelerator_moves import stage_scopes, verdict_of
from dlcompiler.schedule.primitives.base import SCOPES
from dlcompiler.schedule.primitives.env_threads import axes_of
from dlcompiler.schedule.state import StageState, State, Step
from dlcompiler.schedule.verdict import Illegal, Verdict
from dlcompiler.target import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlcompiler.schedule.schedule import Attempt


DRAM = "global"


def scopes_of(target: Target | None) -> tuple[str, ...]:
    """Return the memories to offer: those of the target, or of a CPU if there is none."""
    if target is None:
        return SCOPES
    if target.accelerator is not None:
        return (DRAM, *stage_scopes(target.accelerator))
    return tuple(scope.name for scope in target.scopes)


def threads_of(target: Target | None) -> tuple[ThreadTag, ...]:
    """Return the thread axes of the target; none without a target."""
    return tuple(tag for tag in THREADS if target is not None and tag in target.thread_axes)


def verdict_on(
    target: Target | None, attempt: Attempt, args: Mapping[str, Any], before: State
) -> Verdict:
    """Return the verdict on a step for a target, which may lack what the step needs.

    Parameters
    ----------
    target
        The target; without one, nothing is lacking.
    attempt
        The step, and the verdict without a target.
    args
        Its arguments.
    before
        The state that it begins at.
    """
    if target is None or attempt.state is None or attempt.step is None:
        return attempt.verdict
    found: Verdict | None = _limit(target, attempt.state, attempt.step, args)
    if found is None and target.accelerator is not None:
        found = verdict_of(target.accelerator, attempt, before)
    return attempt.verdict if found is None else found


def _limit(target: Target, state: State, step: Step, args: Mapping[str, Any]) -> Illegal | None:
    """Return the refusal of a step that needs what a target lacks; None otherwise."""
    limit = _no_such_memory(target, step.args.get("scope"))
    if step.primitive in ("bind", "env_threads"):
        tags = _tags_of(step.primitive, args)
        limits = (_no_such_threads(target, tag) for tag in tags)
        limit = next((limit for limit in limits if limit is not None), None)
        if limit is None:
            limits = (_too_many(target, state, step.stage, tag) for tag in tags)
            limit = next((limit for limit in limits if limit is not None), None)
    elif step.primitive == "parallel" and target.thread_axes:
        limit = Illegal(
            "limit",
            f"{target.name} has no parallel loops",
            because="it runs blocks and threads in parallel, not loops"
            if target.accelerator is None
            else "its engines run instructions in order",
            hint=f"bind the loop to {' or '.join(_names_of_threads(target))}",
        )
    elif step.primitive == "vectorize" and target.thread_axes:
        limit = _too_wide(target, state, state.stage(step.stage), args)
    return limit


def _names_of_threads(target: Target) -> tuple[str, ...]:
    """Return the thread axes to name in a hint: one of the blocks and one of their threads."""
    usual = ("blockIdx.x", "threadIdx.x")
    return tuple(tag for tag in usual if tag in target.thread_axes) or target.thread_axes


def _tags_of(primitive: str, args: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the thread axes that a step binds loops to."""
    if primitive == "bind":
        return (args["thread"],)
    return tuple(tag for tag, _ in axes_of(args["threads"]))


def _no_such_threads(target: Target, tag: str) -> Illegal | None:
    if tag in target.thread_axes:
        return None
    known = ", ".join(target.thread_axes)
    return Illegal(
        "limit",
        f"{target.name} has no {tag}",
        because="it runs loops, not a grid of threads" if not known else None,
        hint=f"its thread axes: {known}" if known else "make the loop parallel instead",
    )


def _no_such_memory(target: Target, scope: object) -> Illegal | None:
    """Return the refusal of a memory scope that the target lacks; None if it has it.

    On a target without threads, shared and warp memory is ordinary memory, as `check_scopes` of
    `dlcompiler.analysis.device_limits` says.
    """
    if not isinstance(scope, str) or target.scope(scope) is not None:
        return None
    if not target.thread_axes and scope in SHARED_SCOPES:
        return None
    return Illegal(
        "limit",
        f"{target.name} has no memory {scope!r}",
        hint=f"its memory scopes: {', '.join(each.name for each in target.scopes)}",
    )


def _too_many(target: Target, state: State, name: str, thread: str) -> Illegal | None:
    """Return the refusal if a thread axis, or a block, has too many iterations; None otherwise."""
    counts = _launch(state, state.stage(name))
    most = target.limit(_LIMITS[thread])
    count = counts.get(thread, 1)
    if count > most:
        return Illegal(
            "limit",
            f"{target.name} has at most {most:,} iterations on {thread}",
            got=f"{count:,}",
            hint="split the loop, and bind both parts to axes of their own",
        )
    threads = math.prod(n for tag, n in counts.items() if tag.startswith("threadIdx"))
    most = target.limit("max_threads_per_block")
    if thread.startswith("threadIdx") and threads > most:
        parts = " × ".join(f"{n:,}" for tag, n in counts.items() if tag.startswith("threadIdx"))
        return Illegal(
            "limit",
            f"{target.name} has at most {most:,} threads in a block",
            got=f"{threads:,}: {parts}",
            hint="split the loop, and bind the inner part",
        )
    return None


def _too_wide(
    target: Target, state: State, stage: StageState, args: Mapping[str, Any]
) -> Illegal | None:
    """Return the refusal if a vectorized loop stores too many bytes at once; None otherwise."""
    if not has_bounds(state):
        return None
    extent = infer_bounds(state).stages[stage.name].extents[args["axis"]]
    element = max(dtypes.bytes_of(tensor.dtype) for tensor in stage.tensors)
    most = target.limit("max_vector_bytes")
    if not isinstance(extent, int) or extent * element <= most:
        return None
    return Illegal(
        "limit",
        f"{target.name} stores at most {most} bytes at once",
        got=f"{extent * element:,}: {extent:,} elements of {element} bytes",
        hint=f"split the loop by {most // element}, and vectorize the inner part",
    )


_LIMITS = {
    "vthread": "max_vthreads",
    **{f"blockIdx.{axis}": f"max_blocks_{axis}" for axis in "xyz"},
    **{f"threadIdx.{axis}": f"max_threads_{axis}" for axis in "xyz"},
}
"""Thread axis -> the limit of a target on its iterations."""


def _launch(state: State, stage: StageState) -> dict[str, int]:
    """Return the extent of each thread axis of a stage and around it, if it is a number.

    The extents of all loops of virtual threads are multiplied.
    """
    if not has_bounds(state):
        return {}
    bounds = infer_bounds(state).stages
    loops = [*threads_around(state, stage).values()]
    loops += [(stage, leaf) for leaf in stage.leaves if is_thread(stage.kind(leaf))]
    counts: dict[str, int] = {}
    for host, leaf in loops:
        extent = bounds[host.name].extents[leaf]
        if isinstance(extent, int):
            kind = host.kind(leaf)
            known = counts.get(kind, 1)
            counts[kind] = known * extent if kind == "vthread" else max(known, extent)
    return counts
