"""Pending obligations: what later steps must fulfil before a state can be lowered."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dlcompiler.ir import SHARED, SHARED_SCOPES, WARP, Axis, Extent, is_in_block, is_thread
from dlcompiler.schedule.inference.bounds import infer_bounds, is_same, largest_extents
from dlcompiler.schedule.inference.inlining import consumers
from dlcompiler.schedule.inference.placement import placed, standing_for
from dlcompiler.schedule.inference.recurrences import is_fixed
from dlcompiler.schedule.inference.scan_blocks import blocks_of, updates_of
from dlcompiler.schedule.inference.thread_loops import (
    has_only_virtual_threads,
    has_own_launches,
    threads_around,
    threads_of_block,
    uses_threads,
)
from dlcompiler.schedule.state import AttachedAt, StageState, State, is_scan

ObligationKind: TypeAlias = Literal["place", "reader", "loop", "thread", "settled"]


@dataclass(frozen=True, slots=True)
class Obligation:
    """A condition that a step depends on and that does not hold yet.

    `kind` is *place* (the axis it attached to is gone), *reader* (a reader is still outside that
    loop), *loop* (there is no loop around it yet), *thread* (the threads that would run it are not
    there yet) or *settled* (lowering fulfils it).
    """

    stage: str
    kind: ObligationKind
    text: str
    step: str
    hint: str = ""

    @property
    def is_settled(self) -> bool:
        """Tell whether lowering fulfils the obligation without another step."""
        return self.kind == "settled"

    def __str__(self) -> str:
        return self.text


def obligations(state: State) -> tuple[Obligation, ...]:
    """Return all pending obligations of a state, including those that lowering fulfils.

    Parameters
    ----------
    state : State
        The state of a schedule: ``s.state``.
    """
    cached = state.cache.get("obligations")
    if cached is None:
        cached = tuple(_all_obligations(state))
        state.cache["obligations"] = cached
    result: tuple[Obligation, ...] = cached
    return result


def open_obligations(state: State) -> tuple[Obligation, ...]:
    """Return the obligations that later steps must fulfil before lowering.

    Parameters
    ----------
    state : State
        The state of a schedule: ``s.state``.
    """
    return tuple(item for item in obligations(state) if not item.is_settled)


def has_bounds(state: State) -> bool:
    """Tell whether bounds are defined: every attachment has a loop, and no reader is outside it.

    Parameters
    ----------
    state : State
        The state of a schedule: ``s.state``.
    """
    return not any(item.kind in ("place", "reader") for item in obligations_without_bounds(state))


def extents_of(state: State, stage: StageState) -> Mapping[Axis, Extent]:
    """Return the extents of a stage's axes; if bounds are undefined, for its whole tensor."""
    if not has_bounds(state):
        return largest_extents(stage)
    return infer_bounds(state).stages[stage.name].extents


def _all_obligations(state: State) -> Iterator[Obligation]:
    yield from obligations_without_bounds(state)
    final = placed(state)
    if has_bounds(state) and uses_threads(final):
        yield from _count_obligations(final)


def obligations_without_bounds(state: State) -> tuple[Obligation, ...]:
    """Return the obligations that are known without bounds, which most steps ask for only."""
    cached = state.cache.get("obligations without bounds")
    if cached is None:
        cached = tuple(_obligations_of_stages(state, placed(state)))
        state.cache["obligations without bounds"] = cached
    result: tuple[Obligation, ...] = cached
    return result


def _joins_threads(state: State, stage: StageState) -> bool:
    """Tell whether a loop of a stage uses a thread axis of a loop around the stage."""
    if not isinstance(stage.attachment, AttachedAt) or not stage.kinds:
        return False
    around = threads_around(state, stage)
    return any(stage.kind(leaf) in around for leaf in stage.leaves)


def _count_obligations(state: State) -> Iterator[Obligation]:
    """Yield the loops whose number of iterations does not fit the threads that run them."""
    joining = [stage for stage in state.stages if _joins_threads(state, stage)]
    bounds = infer_bounds(state).stages if joining else {}
    for stage in joining:
        own = bounds[stage.name]
        around = threads_around(state, stage)
        for leaf in own.joined:
            host, loop = around[stage.kind(leaf)]
            wanted, there = own.extents[leaf], bounds[host.name].extents[loop]
            is_less = isinstance(wanted, int) and isinstance(there, int) and wanted < there
            are_threads = is_in_block(stage.kind(leaf))  # some of them may have nothing to do
            if (is_less and are_threads) or is_same(wanted, there):
                continue
            yield Obligation(
                stage.name,
                "thread",
                f"{stage.label(leaf)} has {wanted} iterations, and {stage.kind(leaf)} {there} "
                f"{'threads' if are_threads else 'blocks'}, those of {host.label(loop)}",
                "",
                f"split {stage.label(leaf)} {'by' if are_threads else 'in'} {there} "
                f"{'' if are_threads else 'parts '}before it is bound",
            )


def _obligations_of_stages(state: State, final: State) -> Iterator[Obligation]:
    on_threads = uses_threads(final)
    for stage, at_last in zip(state.stages, final.stages, strict=True):
        if isinstance(stage.attachment, AttachedAt):
            yield from _attachment_obligations(state, stage, stage.attachment)
            if at_last is not stage:
                yield _settled(state, stage, stage.attachment, at_last)
        if on_threads or at_last.scope in SHARED_SCOPES:
            yield from _thread_obligations(final, at_last)
        if isinstance(at_last.attachment, AttachedAt):
            yield from _reader_obligations(final, at_last, at_last.attachment)
        else:
            yield from _loop_obligations(stage)


def _loop_obligations(stage: StageState) -> Iterator[Obligation]:
    """Yield the obligations of a stage that needs a loop around it but has none."""
    for what, step in (
        ("double-buffered", stage.double_buffered_by),
        ("a rolling buffer", stage.rolled_by),
    ):
        if step:
            yield Obligation(
                stage.name,
                "loop",
                f"{stage.name} is {what}, but computed outside any loop (requested by: {step})",
                step,
                f"compute it inside a loop: s[{stage.name}].compute_at(…)",
            )


def _thread_obligations(state: State, stage: StageState) -> Iterator[Obligation]:
    """Yield the thread loops that a stage in shared or warp memory still needs."""
    if is_scan(stage):
        yield from _block_obligations(state, stage)
    around = threads_around(state, stage)
    needed = {SHARED: "block", WARP: "warp"}.get(stage.scope)
    if needed and not (around if needed == "block" else "threadIdx.x" in around):
        yield Obligation(
            stage.name,
            "thread",
            f"{stage.name} is in {stage.scope} memory, and computed outside any {needed}",
            "",
            f"compute it inside loops that are bound to threads: s[{stage.name}].compute_at(…)",
        )
    at = stage.attachment
    if not isinstance(at, AttachedAt) or has_own_launches(state, stage):
        return
    if has_only_virtual_threads(state):
        return
    if is_scan(state.stage(at.stage)) and not around:
        return
    is_in_threads = threads_of_block(state, stage)
    for leaf in stage.leaves:
        tag = stage.kind(leaf)
        if around and not is_in_threads and is_in_block(tag):
            continue  # the threads of the block run this stage's loops, and then those beside it
        if is_in_threads and stage.scope == SHARED and tag == "threadIdx.x":
            continue  # a warp: its first thread runs what is around, and all its threads this loop
        if is_thread(tag) and tag not in around:
            yield Obligation(
                stage.name,
                "thread",
                f"{stage.label(leaf)} is bound to {tag}, and no loop around {stage.name} is",
                "",
                f"bind a loop of the stage that {stage.name} is computed in to {tag}",
            )


def _block_obligations(state: State, scan: StageState) -> Iterator[Obligation]:
    """Yield updates of a scan that no loop divides among the blocks of the launch."""
    for block, update in itertools.product(blocks_of(scan), updates_of(state, scan)):
        tag = scan.kind(block)
        if block.extent != 1 and tag not in update.kinds.values():
            yield Obligation(
                update.name,
                "thread",
                f"each block of {scan.label(block)} would compute all of {update.name}",
                "",
                f"bind a loop of {update.name} to {tag}",
            )


def _attachment_obligations(
    state: State, stage: StageState, at: AttachedAt
) -> Iterator[Obligation]:
    parent = state.stage(at.stage)
    if parent.is_inlined or standing_for(parent, at.axis) is not None:
        return
    yield Obligation(
        stage.name,
        "place",
        f"{stage.name} is attached at {_where(parent, at.axis)}, which is no longer a loop "
        f"(attached by: {at.step})",
        at.step,
        f"attach it again: s[{stage.name}].compute_at(s[{parent.name}], …), or compute_root()",
    )


def _settled(state: State, stage: StageState, at: AttachedAt, last: StageState) -> Obligation:
    parent = state.stage(at.stage)
    is_loop = parent.has_leaf(at.axis)
    why = "a vectorized loop or inside one" if is_loop else "no longer a loop"
    place = "in a loop nest of its own"
    if isinstance(last.attachment, AttachedAt):
        place = f"at {_where(state.stage(last.attachment.stage), last.attachment.axis)}"
    return Obligation(
        stage.name,
        "settled",
        f"{stage.name} is attached at {_where(parent, at.axis)}, which is {why}: it will be "
        f"computed {place} (attached by: {at.step})",
        at.step,
    )


def _reader_obligations(state: State, stage: StageState, at: AttachedAt) -> Iterator[Obligation]:
    parent = state.stage(at.stage)
    if parent.is_inlined or not parent.has_leaf(at.axis):
        return
    where = _where(parent, at.axis)
    for reader in consumers(state, stage):
        if is_inside(state, reader, parent, at.axis) or not may_move_inside(state, reader, parent):
            continue
        yield Obligation(
            stage.name,
            "reader",
            f"{stage.name} is computed at {where}, and its reader {reader.name} is not there yet "
            f"(attached by: {at.step})",
            at.step,
            f"attach {reader.name} inside {where}, or {stage.name} further out",
        )


def _where(stage: StageState, axis: Axis) -> str:
    return f"{stage.name}.{stage.paths.get(axis, axis.name)}"


def may_move_inside(state: State, reader: StageState, host: StageState) -> bool:
    """Tell whether a stage could still be attached inside the loops of another."""
    is_whole = reader.is_output or reader.is_extern or is_fixed(state, reader)
    return not is_whole and leads_to(state, reader, host)


def leads_to(state: State, stage: StageState, host: StageState) -> bool:
    """Tell whether `host` reads `stage`, directly or through other stages."""
    reached = set(stage.tensors)
    for other in state.stages[state.stages.index(stage) + 1 :]:  # producers come first
        if reached.intersection(other.op.input_tensors):
            if other is host:
                return True
            reached.update(other.tensors)
    return False


def stages_inside(state: State, stage: StageState) -> Iterator[StageState]:
    """Yield a stage, and those that are computed inside its loops."""
    yield stage
    for other in state.stages:
        if isinstance(other.attachment, AttachedAt) and other.attachment.stage == stage.name:
            yield from stages_inside(state, other)


def is_inside(state: State, stage: StageState, parent: StageState, axis: Axis) -> bool:
    """Tell whether all of `stage` runs inside the loop `axis` of `parent`."""
    while stage is not parent:
        if not isinstance(stage.attachment, AttachedAt):
            return False
        at = stage.attachment
        stage = state.stage(at.stage)
        if stage is parent:
            return stage.has_leaf(at.axis) and stage.position(at.axis) >= stage.position(axis)
    return True
