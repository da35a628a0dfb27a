"""Memories, thread axes and limits of a target, for the moves on a schedule.

A schedule has no target. A step that a *limit* of one target refuses here may be legal for another
target, and `Schedule.attempt` allows it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dlcompiler import dtypes
from dlcompiler.ir import THREADS, ThreadTag, is_thread
from dlcompiler.schedule.inference.bounds import infer_bounds
from dlcompiler.schedule.inference.thread_loops import threads_around
from dlcompiler.schedule.legality.obligations import has_bounds
from dlcompiler.schedule.primitives.base import SCOPES
from dlcompiler.schedule.primitives.env_threads import axes_of
from dlcompiler.schedule.state import StageState, State
from dlcompiler.schedule.verdict import Illegal, Verdict
from dlcompiler.target import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlcompiler.schedule.schedule import Attempt


def scopes_of(target: Target | None) -> tuple[str, ...]:
    """Return the memories to offer: those of the target, or of a CPU if there is none."""
    if target is None:
        return SCOPES
    return tuple(scope.name for scope in target.scopes)


def threads_of(target: Target | None) -> tuple[ThreadTag, ...]:
    """Return the thread axes of the target; none without a target."""
    return tuple(tag for tag in THREADS if target is not None and tag in target.thread_axes)


def verdict_on(target: Target | None, attempt: Attempt, args: Mapping[str, Any]) -> Verdict:
    """Return the verdict on a step for a target, whose limits may refuse it."""
    if target is None or not target.thread_axes or attempt.state is None or attempt.step is None:
        return attempt.verdict
    limit = None
    if attempt.step.primitive == "parallel":
        limit = Illegal(
            "limit",
            f"{target.name} has no parallel loops",
            because="it runs blocks and threads in parallel, not loops",
            hint="bind the loop to blockIdx.x or threadIdx.x",
        )
    elif attempt.step.primitive == "bind":
        limit = _too_many(target, attempt.state, attempt.step.stage, args["thread"])
    elif attempt.step.primitive == "env_threads":
        tags = (tag for tag, _ in axes_of(args["threads"]))
        limits = (_too_many(target, attempt.state, attempt.step.stage, tag) for tag in tags)
        limit = next((limit for limit in limits if limit is not None), None)
    elif attempt.step.primitive == "vectorize":
        limit = _too_wide(target, attempt.state, attempt.state.stage(attempt.step.stage), args)
    return attempt.verdict if limit is None else limit


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
