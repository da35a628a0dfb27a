"""Legality of tensorized stages, checked in every state: loops, annotations, attachments."""

from __future__ import annotations

from collections.abc import Iterator

from dlcompiler.ir import is_thread
from dlcompiler.schedule.legality.obligations import has_bounds
from dlcompiler.schedule.legality.tensorized import mismatch
from dlcompiler.schedule.state import AttachedAt, StageState, State, Tensorized
from dlcompiler.schedule.verdict import Illegal


def intrinsic_problems(state: State, stage: StageState, own: Tensorized) -> Iterator[Illegal]:
    """Yield the reasons why the intrinsic of a stage cannot replace its loops."""
    if stage.is_inlined or not stage.has_leaf(own.axis):
        yield Illegal(
            "structural",
            f"{own.intrin.name} would be lost: {stage.label(own.axis)} is no loop any more",
            got=f"tensorized by: {own.step}",
            hint="undo that step, and tensorize last",
            conflicts=(stage.key(own.axis),),
        )
        return
    found = [*_kind_problems(stage, own), *_attachment_problems(state, stage, own)]
    yield from found
    if not found and has_bounds(state) and (refused := mismatch(state, stage)) is not None:
        yield refused


def _kind_problems(stage: StageState, own: Tensorized) -> Iterator[Illegal]:
    """Yield the loops whose annotations a tensorized stage must not have."""
    for leaf in stage.leaves:
        kind, is_inside = stage.kind(leaf), stage.position(leaf) >= stage.position(own.axis)
        is_noted = kind != "serial" or leaf in stage.pragmas
        is_shared = leaf.kind == "reduce" and is_thread(kind)  # threads combine their parts
        if not (kind == "vectorized" or is_shared or (is_inside and is_noted)):
            continue
        note = kind if kind != "serial" else f"given the pragma {', '.join(stage.pragmas[leaf])}"
        place = "that is part of" if is_inside else "around"
        yield Illegal(
            "structural",
            f"a loop {place} {own.intrin.name} cannot be {note}",
            got=stage.label(leaf),
            because="its instructions are given, with vectors of their own",
            hint="leave the loops of an intrinsic serial; those around it may be parallel or "
            "unrolled",
            conflicts=(stage.key(own.axis), stage.key(leaf)),
        )


def _attachment_problems(state: State, stage: StageState, own: Tensorized) -> Iterator[Illegal]:
    """Yield the stages that would be computed inside the intrinsic."""
    inside = set(stage.leaves[stage.position(own.axis) :])
    for other in state.stages:
        at = other.attachment
        if isinstance(at, AttachedAt) and at.stage == stage.name and at.axis in inside:
            yield Illegal(
                "structural",
                f"{other.name} cannot be computed inside {own.intrin.name}",
                got=f"attached at {stage.label(at.axis)}",
                hint=f"attach {other.name} at a loop around {stage.label(own.axis)}",
                conflicts=(stage.key(own.axis), other.name),
            )
