"""Legality of threads: misplaced loops, and memory that the threads cannot share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dlcompiler.ir import WARP, Axis, free_vars, is_in_block, is_thread
from dlcompiler.schedule.inference.bounds import infer_bounds
from dlcompiler.schedule.inference.recurrences import hosts, is_update
from dlcompiler.schedule.inference.scan_blocks import block_problems
from dlcompiler.schedule.inference.thread_loops import (
    has_only_virtual_threads,
    has_own_launches,
    is_launched,
    is_shared,
    loops_around,
    nest_order,
    reduced_by_threads,
    scope_of,
    threads_around,
    threads_of_block,
    uses_threads,
)
from dlcompiler.schedule.legality.obligations import has_bounds
from dlcompiler.schedule.state import AttachedAt, StageState, State, is_scan
from dlcompiler.schedule.verdict import Illegal


def thread_problems(state: State, before: State | None = None) -> Iterator[Illegal]:
    """Yield the reasons why threads of a device cannot run a stage.

    Parameters
    ----------
    state
        A placed state.
    before
        A valid state, if the state comes from one: what is the same in both is not checked again.
    """
    if not uses_threads(state):
        return
    if has_bounds(state):
        yield from block_problems(state)
    for stage in state.stages:
        if before is None or not _is_as_before(state, stage, before):
            yield from _stage_problems(state, stage)


def _is_as_before(state: State, stage: StageState, before: State) -> bool:
    """Tell whether all that `_stage_problems` reads is the same in another state.

    It reads the stage and those around it; of a shared reduction, and of recurrences, more.
    """
    if not uses_threads(before) or reduced_by_threads(stage) or hosts(state):
        return False
    if has_only_virtual_threads(state) is not has_only_virtual_threads(before):
        return False
    while before.has_stage(stage.name) and before.stage(stage.name) is stage:
        if not isinstance(stage.attachment, AttachedAt):
            return True
        stage = state.stage(stage.attachment.stage)
    return False


def _stage_problems(state: State, stage: StageState) -> Iterator[Illegal]:
    bound = [leaf for leaf in stage.leaves if is_thread(stage.kind(leaf))]
    kinds = set(stage.kinds.values())
    if "parallel" in kinds:
        yield from _parallel_problems(state, stage)
    if isinstance(stage.attachment, AttachedAt) and not has_only_virtual_threads(state):
        yield from _cooperation_problems(state, stage, stage.attachment, bound)
    if reduced_by_threads(stage):
        yield from _reduction_problems(state, stage)
    yield from _block_problems(state, stage)
    for leaf in bound if kinds & {"parallel", "vectorized"} else ():
        place = stage.position(leaf)
        for number, outer in enumerate(stage.leaves):
            kind = stage.kind(outer)
            if kind == "parallel" or (kind == "vectorized" and number < place):
                yield Illegal(
                    "structural",
                    f"threads of a device cannot run inside a {kind} loop",
                    got=f"{stage.label(leaf)} and {stage.label(outer)}, {kind}",
                    hint="bind the outer loop to blockIdx.x",
                    conflicts=(stage.key(leaf), stage.key(outer)),
                )


def _parallel_problems(state: State, stage: StageState) -> Iterator[Illegal]:
    """Yield the parallel loops of a stage that threads of a device compute."""
    leaf = next(leaf for leaf in stage.leaves if stage.kind(leaf) == "parallel")
    for host, thread in threads_around(state, stage).values():
        yield Illegal(
            "structural",
            "a thread of a device cannot run a parallel loop",
            got=f"{stage.label(leaf)} inside {host.label(thread)}, {host.kind(thread)}",
            hint=f"bind {stage.label(leaf)} to threadIdx.x, or leave it serial",
            conflicts=(stage.key(leaf), host.key(thread)),
        )


def _block_problems(state: State, stage: StageState) -> Iterator[Illegal]:
    """Yield the thread loops outside the block loops, if the threads must share a stage."""
    own = [(stage, leaf) for leaf in stage.leaves] if reduced_by_threads(stage) else []
    if not own and not is_shared(state, stage):
        return
    threads: list[tuple[StageState, Axis]] = []
    for host, leaf in (*loops_around(state, stage), *own):
        kind = host.kind(leaf)
        if is_in_block(kind):
            threads.append((host, leaf))
        elif is_thread(kind) and threads:
            outer, thread = threads[0]
            yield Illegal(
                "structural",
                f"the threads of {outer.label(thread)} would be outside the blocks of "
                f"{host.label(leaf)}",
                because=f"the threads of a block share {stage.name}",
                hint=f"reorder {host.label(leaf)} to the outside",
                conflicts=(outer.key(thread), host.key(leaf), stage.name),
            )
            return


def _cooperation_problems(
    state: State, stage: StageState, at: AttachedAt, bound: Sequence[Axis]
) -> Iterator[Illegal]:
    """Yield the attached stages that threads must compute together but cannot."""
    host = state.stage(at.stage)
    if not host.has_leaf(at.axis):
        return
    yield from _part_problems(stage, host, at.axis)
    if has_own_launches(state, stage):
        return
    inside = host.leaves[host.position(at.axis) + 1 :]
    is_between = not is_shared(state, stage) or threads_of_block(state, stage)
    threads = [leaf for leaf in inside if is_thread(host.kind(leaf))]
    # Virtual threads are one thread, which computes once what all of them read.
    is_alone = not is_shared(state, stage) and not bound
    if not is_alone or any(host.kind(leaf) != "vthread" for leaf in threads):
        for leaf in threads:
            if is_between or not is_in_block(host.kind(leaf)):
                yield _outside_threads(stage, host, leaf)
    if is_scan(host) and not is_launched(host):
        return  # between the steps of a scan, the threads synchronise
    if is_update(state, stage):
        return  # each thread computes rows of its own, or elements of one
    yield from _sharing_problems(state, stage, bound)


def _outside_threads(stage: StageState, host: StageState, leaf: Axis) -> Illegal:
    return Illegal(
        "limit",
        f"{stage.name} would be computed outside the threads of {host.label(leaf)}",
        because="the threads of a block start together, and compute together what they share",
        hint=f"attach {stage.name} inside all thread loops of {host.name}",
        conflicts=(host.key(leaf), stage.name),
    )


def _sharing_problems(state: State, stage: StageState, bound: Sequence[Axis]) -> Iterator[Illegal]:
    """Yield the loops of an attached stage whose threads cannot share its memory."""
    for leaf in bound:
        if not is_in_block(stage.kind(leaf)):
            yield Illegal(
                "semantic",
                f"the blocks of {stage.label(leaf)} would compute {stage.name} together",
                because=f"{stage.name} is computed in each block, in memory of its own",
                hint="bind the loop to an axis of the threads of a block",
                conflicts=(stage.key(leaf), stage.name),
            )
    if scope_of(state, stage) == WARP:
        yield from _warp_problems(state, stage, bound)
    around = threads_around(state, stage)
    for leaf in bound if not is_shared(state, stage) else ():
        if leaf.kind == "reduce" and stage.kind(leaf) in around:
            continue  # each of the threads gets the result
        yield Illegal(
            "semantic",
            f"the threads of {stage.label(leaf)} would compute {stage.name} together",
            because=f"{stage.name} is in local memory: each thread has its own",
            hint=f'compute it in shared memory: s[{stage.name}].set_scope("shared")',
            conflicts=(stage.key(leaf), stage.name),
        )


def _warp_problems(state: State, stage: StageState, bound: Sequence[Axis]) -> Iterator[Illegal]:
    """Yield stages in warp memory that threads of several warps would share."""
    others = [(stage, leaf) for leaf in bound if stage.kind(leaf) != "threadIdx.x"]
    tags = [(host, leaf) for host, leaf in loops_around(state, stage) if is_thread(host.kind(leaf))]
    at = next((n for n, (host, leaf) in enumerate(tags) if host.kind(leaf) == "threadIdx.x"), 0)
    for host, leaf in (*others, *tags[at + 1 :]):
        yield Illegal(
            "structural",
            f"the threads of {host.label(leaf)} do not share the memory of a warp",
            got=f"{host.label(leaf)}, {host.kind(leaf)}, for {stage.name} in warp memory",
            because="it is shared along threadIdx.x, the axis whose threads are neighbours",
            hint='bind to threadIdx.x, as the innermost loop of threads, or use "shared"',
            conflicts=(host.key(leaf), stage.name),
        )


def _reduction_problems(state: State, stage: StageState) -> Iterator[Illegal]:
    """Yield the reasons why threads cannot share a reduction: see `lowering.cross_thread`."""
    shared = reduced_by_threads(stage)
    yield from _order_problems(stage, shared)
    yield from _other_thread_problems(state, stage, shared)
    if has_bounds(state):
        yield from _count_problems(state, stage)
        yield from _element_problems(state, stage)


def _order_problems(stage: StageState, shared: Sequence[Axis]) -> Iterator[Illegal]:
    """Yield data loops inside a reduction that threads share."""
    first = next(n for n, leaf in enumerate(stage.leaves) if leaf.kind == "reduce")
    for leaf in stage.leaves[first:]:
        if leaf.kind == "data":
            yield Illegal(
                "structural",
                f"the threads of {stage.label(shared[0])} reduce one element at a time",
                got=f"{stage.label(leaf)}, a data loop, inside {stage.label(stage.leaves[first])}",
                hint=f"reorder the data loops of {stage.name} to the outside",
                conflicts=(stage.key(leaf), stage.key(shared[0])),
            )


def _other_thread_problems(
    state: State, stage: StageState, shared: Sequence[Axis]
) -> Iterator[Illegal]:
    """Yield thread loops that are illegal on or around a reduction that threads share."""
    around = threads_around(state, stage)
    is_private = scope_of(state, stage) == "local"
    for leaf in shared:
        if stage.kind(leaf) not in around:
            continue
        host, other = around[stage.kind(leaf)]
        if is_private and stage.storing:
            yield Illegal(
                "semantic",
                f"other threads would read what they have not stored of {stage.name}",
                because=f"{stage.name} is in local memory: each thread stores the result for "
                "itself",
                hint="undo set_store_predicate",
                conflicts=(stage.key(leaf), stage.body_key),
            )
        elif not is_private:
            yield Illegal(
                "structural",
                f"the threads of {host.label(other)} already run other work",
                got=f"{stage.label(leaf)} bound to {stage.kind(leaf)}, inside {host.label(other)}",
                hint=f"compute {stage.name} outside {host.label(other)}, or bind to another axis",
                conflicts=(stage.key(leaf), host.key(other)),
            )
    for host, leaf in (*((stage, leaf) for leaf in stage.leaves), *around.values()):
        if host.kind(leaf) == "vthread":
            yield Illegal(
                "limit",
                "virtual threads cannot share a reduction",
                got=f"{host.label(leaf)}, vthread, around {stage.label(shared[0])}",
                hint="leave the loop serial, or bind it to another axis of the block",
                conflicts=(host.key(leaf), stage.key(shared[0])),
            )


def _count_problems(state: State, stage: StageState) -> Iterator[Illegal]:
    """Yield shared reductions with an unknown number of threads, or without the storing thread."""
    bounds = infer_bounds(state).stages
    own = [(stage, leaf) for leaf in stage.leaves]
    for host, leaf in (*threads_around(state, stage).values(), *own):
        extent = bounds[host.name].extents[leaf]
        if is_in_block(host.kind(leaf)) and (not isinstance(extent, int) or extent == 0):
            yield Illegal(
                "limit",
                "threads share a reduction only where their number is known, and not 0",
                got=f"{host.label(leaf)}, {host.kind(leaf)}, with {extent} threads",
                hint="split the loop by a number, and bind the inner one",
                conflicts=(host.key(leaf),),
            )
    for leaf in reduced_by_threads(stage):
        count, storing = bounds[stage.name].extents[leaf], stage.storing.get(stage.kind(leaf), 0)
        if isinstance(count, int) and 0 < count <= storing:
            yield Illegal(
                "semantic",
                f"{stage.name} would not be stored: there is no such thread",
                got=f"{stage.kind(leaf)} == {storing}, of {count}",
                hint=f"undo set_store_predicate, or bind {storing + 1} iterations or more",
                conflicts=(stage.key(leaf), stage.body_key),
            )


def _element_problems(state: State, stage: StageState) -> Iterator[Illegal]:
    """Yield reductions of which each thread of a loop around would want another element."""
    bounds, around = infer_bounds(state).stages, threads_around(state, stage)
    used = {var for span in bounds[stage.name].region for var in free_vars(span.first.to_expr())}
    for leaf in reduced_by_threads(stage):
        host, loop = around.get(stage.kind(leaf), (stage, leaf))
        if host is not stage and bounds[host.name].loop_vars[loop] in used:
            yield Illegal(
                "semantic",
                f"the threads of {host.label(loop)} would reduce different elements of "
                f"{stage.name}",
                got=f"{stage.label(leaf)}, bound to {stage.kind(leaf)}, too",
                because="threads that share a reduction reduce one element together",
                hint=f"compute {stage.name} outside {host.label(loop)}, or bind to another axis",
                conflicts=(stage.key(leaf), host.key(loop)),
            )


def _part_problems(stage: StageState, host: StageState, axis: Axis) -> Iterator[Illegal]:
    """Yield a stage attached at a loop that lowering moves because of a shared reduction."""
    order = nest_order(host)
    place = next(n for n, leaf in enumerate(order) if leaf is axis)
    if set(order[: place + 1]) != set(host.leaves[: host.position(axis) + 1]):
        label = host.label(reduced_by_threads(host)[0])
        yield Illegal(
            "structural",
            f"the threads of {label} stand outside the other loops of the reduction",
            got=f"{stage.name} attached at {host.label(axis)}",
            hint=f"reorder to {', '.join(host.paths[leaf] for leaf in order)} first",
            conflicts=(host.key(axis), stage.name),
        )
