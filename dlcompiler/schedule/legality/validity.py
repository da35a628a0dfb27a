"""Checks that every state must pass: attachments, sizes, threads, recurrences, buffers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from dlcompiler.ir import Axis, Reduce
from dlcompiler.ir.shapes import MAX_ELEMENTS
from dlcompiler.ir.stmt import extent_product
from dlcompiler.schedule.inference.bounds import infer_bounds, largest_extents
from dlcompiler.schedule.inference.inlining import bodies, consumers, loads_of
from dlcompiler.schedule.inference.placement import placed
from dlcompiler.schedule.inference.recurrences import early_reads, hosts, time_of
from dlcompiler.schedule.inference.rolling import moving_window
from dlcompiler.schedule.legality.double_buffers import double_buffer_problems
from dlcompiler.schedule.legality.intrinsic_problems import intrinsic_problems
from dlcompiler.schedule.legality.obligations import has_bounds, is_inside, may_move_inside
from dlcompiler.schedule.legality.thread_problems import thread_problems
from dlcompiler.schedule.state import AttachedAt, StageState, State, differs_in_notes_only
from dlcompiler.schedule.verdict import Illegal

MAX_LOOPS = 100
"""Passes recurse into loops, and Python stops them at about 1,000 frames."""
MAX_EXTENT = 2**48
"""Index arithmetic on 64 bits cannot overflow then."""
MAX_STAGES = 200
"""Passes recurse into the allocations."""
MAX_COPIES = 1024
"""Compile time grows faster than the copies: 1,024 vector statements take about a second."""


def problems(state: State, before: State | None = None) -> Iterator[Illegal]:
    """Yield the reasons why a state does not compute its expression or exceeds a limit.

    `before` is the valid state that the step started from: stages that are the same in both are not
    checked again.
    """
    known = set(before.stages) if before else set()
    changed = [stage for stage in state.stages if stage not in known]
    if before and all(_has_same_nest(stage, before) for stage in changed):
        return
    state = placed(state)
    for stage in changed:
        yield from _loop_problems(stage)
        yield from _extent_problems(stage)
    for stage in state.stages:
        yield from _depth_problems(state, stage)
        if isinstance(stage.attachment, AttachedAt):
            yield from _attachment_problems(state, stage, stage.attachment)
    yield from thread_problems(state, placed(before) if before else None)
    yield from _recurrence_problems(state)
    for stage in state.stages:
        if stage.tensorized is not None:
            yield from intrinsic_problems(state, stage, stage.tensorized)
    yield from _size_problems(state, changed)
    yield from _unrolling_problems(state)
    for stage in state.stages:
        if stage.double_buffered_by:
            yield from double_buffer_problems(state, stage)
    yield from _rolling_problems(state)


def _has_same_nest(stage: StageState, before: State) -> bool:
    """Tell whether a step changed a stage only in fields that no check reads (see `NOTES`)."""
    return before.has_stage(stage.name) and differs_in_notes_only(stage, before.stage(stage.name))


def _loop_problems(stage: StageState) -> Iterator[Illegal]:
    if "vectorized" not in stage.kinds.values():
        return
    vectorized = [leaf for leaf in stage.leaves if stage.kind(leaf) == "vectorized"]
    if len(vectorized) > 1:
        yield Illegal(
            "structural",
            "a loop nest can have one vectorized loop",
            got=f"{' and '.join(stage.label(leaf) for leaf in vectorized)} vectorized",
            conflicts=tuple(stage.key(leaf) for leaf in vectorized),
        )
    for leaf in vectorized[:1]:
        inside = stage.leaves[stage.position(leaf) + 1 :]
        for inner in inside:
            if stage.kind(inner) == "parallel":
                yield Illegal(
                    "structural",
                    "a parallel loop cannot stand inside a vectorized one",
                    got=f"{stage.label(inner)} inside {stage.label(leaf)}",
                    conflicts=(stage.key(leaf), stage.key(inner)),
                )


def _recurrence_problems(state: State) -> Iterator[Illegal]:
    """Yield the stages of recurrences that would read rows of later steps."""
    if not hosts(state) or not has_bounds(state):
        return
    bounds = infer_bounds(state).stages
    for stage in state.stages:
        scan = hosts(state).get(stage.name)
        if scan is not None and not stage.is_inlined:
            loads = loads_of(bodies(state)[stage.name])
            now = time_of(scan, bounds[scan.name].values)
            yield from early_reads(stage, loads, scan, bounds[stage.name].values, now)


def _extent_problems(stage: StageState) -> Iterator[Illegal]:
    """Yield the loops whose number of iterations exceeds `MAX_EXTENT`."""
    extents = largest_extents(stage)
    for leaf in stage.leaves:
        extent = extents[leaf]
        if isinstance(extent, int) and extent > MAX_EXTENT:
            yield Illegal(
                "limit",
                "the loop would be too long",
                got=f"{stage.label(leaf)}, extent {extent}",
                hint=f"split by factors that divide the extent; at most {MAX_EXTENT} iterations",
                conflicts=(stage.key(leaf),),
            )


def _size_problems(state: State, changed: Iterable[StageState]) -> Iterator[Illegal]:
    """Yield the limits that a state exceeds: the number of stages and the size of a tensor."""
    if len(state.stages) > MAX_STAGES:
        yield Illegal(
            "limit",
            "the schedule would have too many stages",
            got=f"{len(state.stages)}",
            hint=f"cache fewer tensors: at most {MAX_STAGES} stages",
        )
    for stage in changed:
        size = extent_product(stage.tensor.shape)
        if isinstance(size, int) and size > MAX_ELEMENTS:
            yield Illegal(
                "limit",
                f"{stage.name} would be too large",
                got=f"{size} elements",
                hint=f"split by factors that divide the extents; at most {MAX_ELEMENTS} elements",
                conflicts=(stage.name,),
            )


def _depth_problems(state: State, stage: StageState) -> Iterator[Illegal]:
    depth, host = len(stage.leaves), stage
    while isinstance(host.attachment, AttachedAt):
        at = host.attachment
        host = state.stage(at.stage)
        depth += host.position(at.axis) + 1 if host.has_leaf(at.axis) else 0
    if depth > MAX_LOOPS:
        yield Illegal(
            "limit",
            f"{stage.name} would be computed inside {depth} loops",
            hint=f"fuse loops or attach it further out; at most {MAX_LOOPS} loops",
            conflicts=(stage.name,),
        )


def _unrolling_problems(state: State) -> Iterator[Illegal]:
    """Yield the stages whose unrolled loops would repeat their body too often.

    An attached stage computes only a part. Its exact extents need bound inference, which costs
    more, so it runs only if the extents of the whole tensor exceed the limit.
    """
    for stage in state.stages:
        if "unrolled" not in stage.kinds.values():
            continue
        leaves = [leaf for leaf in stage.leaves if stage.kind(leaf) == "unrolled"]
        largest = largest_extents(stage)
        known = [n for leaf in leaves if isinstance(n := largest[leaf], int)]
        is_small = len(known) == len(leaves) and math.prod(known) <= MAX_COPIES
        if is_small or stage.is_inlined or not has_bounds(state):
            continue
        extents = infer_bounds(state).stages[stage.name].extents
        sizes = [extents[leaf] for leaf in leaves]
        if unknown := [size for size in sizes if not isinstance(size, int)]:
            yield Illegal(
                "limit",
                f"the body of {stage.name} would be repeated {unknown[0]} times, an unknown number",
                hint="split the loop by a number and unroll the inner one",
                conflicts=tuple(stage.key(leaf) for leaf in leaves),
            )
            continue
        copies = math.prod(size for size in sizes if isinstance(size, int))
        if copies > MAX_COPIES:
            loops = ", ".join(f"{stage.paths[leaf]} (extent {extents[leaf]})" for leaf in leaves)
            yield Illegal(
                "limit",
                f"the body of {stage.name} would be repeated {copies} times",
                got=f"unrolled loops: {loops}",
                hint=f"split the loop and unroll the inner one; at most {MAX_COPIES} copies",
                conflicts=tuple(stage.key(leaf) for leaf in leaves),
            )


def _rolling_problems(state: State) -> Iterator[Illegal]:
    """Yield the stages whose rolling buffer is illegal."""
    for stage in state.stages:
        if not (stage.rolled_by and isinstance(stage.attachment, AttachedAt)):
            continue
        if has_bounds(state) and isinstance(window := moving_window(state, stage), Illegal):
            yield window


def _attachment_problems(state: State, stage: StageState, at: AttachedAt) -> Iterator[Illegal]:
    parent = state.stage(at.stage)
    where = f"{parent.name}.{parent.paths.get(at.axis, at.axis.name)}"
    if parent.is_inlined:
        yield Illegal(
            "structural",
            f"{stage.name} is attached at {where}, and {parent.name} would have no loops",
            hint=f"move {stage.name} first: s[{stage.name}].compute_root()",
            conflicts=(stage.name, parent.name),
        )
        return
    if not parent.has_leaf(at.axis):
        return  # an obligation
    for consumer in consumers(state, stage):
        is_there = is_inside(state, consumer, parent, at.axis)
        if not is_there and not may_move_inside(state, consumer, parent):
            yield Illegal(
                "semantic",
                f"{consumer.name} reads {stage.name} outside the loop {where}, where "
                f"{stage.name} is computed",
                because=f"{stage.name} exists only during one iteration of {where}",
                hint=f"attach {stage.name} further out, or {consumer.name} inside {where}",
                conflicts=(parent.key(at.axis), consumer.body_key),
            )
        elif consumer is parent and _starts_outside(state, parent, at.axis, stage):
            yield Illegal(
                "semantic",
                f"{consumer.name} starts from {stage.name} outside the loop {where}, where "
                f"{stage.name} is computed",
                because="a reduction is initialised before its first reduction loop",
                hint=f"attach {stage.name} at a loop outside the reduction",
                conflicts=(parent.key(at.axis), f"{consumer.name}//init"),
            )


def _starts_outside(state: State, parent: StageState, axis: Axis, stage: StageState) -> bool:
    """Tell whether `stage` is read for the start value of `parent`, outside the loop `axis`."""
    inside = parent.leaves[: parent.position(axis) + 1]
    head = next(iter(bodies(state)[parent.name]), None)
    if not isinstance(head, Reduce) or all(leaf.kind == "data" for leaf in inside):
        return False
    return any(load.tensor in stage.tensors for load in loads_of(head.init))
