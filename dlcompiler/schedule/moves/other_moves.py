"""Candidates for a suggestion: other primitives that reach the same aim."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dlcompiler.ir import Axis
from dlcompiler.schedule.inference.inlining import consumers
from dlcompiler.schedule.moves.candidates import (
    LANES,
    Call,
    Candidate,
    Refusal,
    source_by_primitive,
)
from dlcompiler.schedule.moves.other_arguments import other_arguments
from dlcompiler.schedule.moves.other_orders import unrolled_parts
from dlcompiler.schedule.moves.other_targets import attached
from dlcompiler.schedule.state import AtRoot, StageState

if TYPE_CHECKING:
    from dlcompiler.schedule.schedule import Attempt


def _of_tile(refused: Refusal) -> Iterator[Candidate]:
    """Yield a split of the first loop of the tile, then a split of the second."""
    args = refused.call.args
    for axis, wanted in ((args.get(name), args.get(f"{name}_factor")) for name in ("x", "y")):
        for number in refused.factors(axis, wanted)[:1]:
            yield refused.one("split", refused.call.stage, axis=axis, factor=number)


def _of_lanes(refused: Refusal) -> Iterator[Candidate]:
    """Yield `rfactor` of a part of a reduction loop, then unrolling of the loop or of a part."""
    axis = refused.axis
    if not isinstance(axis, Axis):
        return
    if axis.kind == "reduce":
        yield from _factored(refused, axis)
    if refused.stage.kind(axis) == "serial":
        yield refused.one("unroll", refused.call.stage, axis=axis)
    yield from unrolled_parts(refused)


def _factored(refused: Refusal, axis: Axis) -> Iterator[Candidate]:
    """Yield three steps: split the loop, `rfactor` one part, annotate the new data loop."""
    call = refused.call
    part = 0 if call.name == "parallel" else 1
    for number in refused.factors(axis, LANES)[:2]:
        yield Candidate(
            (
                Call("split", call.stage, {"axis": axis, "factor": number}),
                lambda split: Call("rfactor", call.stage, {"axis": split.result[part]}),
                lambda made: Call(
                    call.name, _stage_of(made).name, {"axis": _stage_of(made).op.axis[0]}
                ),
            )
        )


def _stage_of(made: Attempt) -> StageState:
    """Return the stage of the tensor that a step returned."""
    assert made.state is not None
    tensor = made.result[0] if isinstance(made.result, tuple) else made.result
    stage = made.state.find(tensor)
    assert stage is not None
    return stage


def _of_compute_at(refused: Refusal) -> Iterator[Candidate]:
    if not isinstance(refused.stage.attachment, AtRoot):
        yield refused.one("compute_root", refused.stage.name)


def _of_compute_inline(refused: Refusal) -> Iterator[Candidate]:
    """Yield `compute_at` at loops of the readers, innermost first; then inline its producers."""
    stage = refused.stage
    for host in consumers(refused.state, stage):
        for leaf in reversed(host.leaves):
            yield from attached(refused, host, leaf)
    for tensor in stage.op.input_tensors:
        producer = refused.state.producer_of(tensor)
        if not producer.is_placeholder and not producer.is_inlined:
            yield refused.one("compute_inline", producer.name)


def _of_storage(refused: Refusal) -> Iterator[Candidate]:
    """Yield the refused step on a copy of the stage, which has its own memory."""
    stage = refused.stage
    wanted = [refused.call]
    for candidate in other_arguments(refused):
        wanted.extend(call for call in candidate.calls if isinstance(call, Call))
    for before, call in itertools.product(_storage_first(refused), wanted):
        yield Candidate((before, lambda made, call=call: _in_copy(call, stage, made)))  # type: ignore[misc]


def _storage_first(refused: Refusal) -> Iterator[Call]:
    """Yield the step after which a stage, or its copy, has its own memory; none if not needed."""
    stage = refused.stage
    if stage.is_inlined:
        yield Call("compute_root", stage.name, {})
    elif stage.is_placeholder:
        readers = tuple(reader.name for reader in consumers(refused.state, stage))
        yield Call("cache_read", stage.name, {"scope": "local", "readers": readers})
    elif stage.is_output or refused.call.name == "transform_layout":
        yield Call("cache_write", stage.name, {"scope": "local"})


def _in_copy(call: Call, stage: StageState, made: Attempt) -> Call:
    """Return a call on a stage changed to a call on the copy that a step made of the stage."""
    if made.result is None:
        return call
    copy = _stage_of(made)
    axis = call.args.get("axis")
    moved = {"axis": _dimension_like(axis, stage, copy)} if isinstance(axis, Axis) else {}
    return Call(call.name, copy.name, {**call.args, **moved})


def _dimension_like(axis: Axis, stage: StageState, copy: StageState) -> Axis:
    """Return the dimension of a copy that corresponds to `axis`, or the last dimension.

    A cache has a dimension for each loop of its stage, named after it.
    """
    path = stage.paths.get(axis, axis.name)
    named = [own for own in copy.op.axis if copy.paths[own].removesuffix(".c") == path]
    return (*named, *copy.op.axis[-1:], axis)[0]


other_moves = source_by_primitive(
    {
        "tile": _of_tile,
        "vectorize": _of_lanes,
        "parallel": _of_lanes,
        "compute_at": _of_compute_at,
        "compute_inline": _of_compute_inline,
        "set_scope": _of_storage,
        "storage_align": _of_storage,
        "align_extent": _of_storage,
        "double_buffer": _of_storage,
        "rolling_buffer": _of_storage,
        "transform_layout": _of_storage,
    }
)
