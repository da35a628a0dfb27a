"""Strides and offsets of the buffers of a stage's tensors."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.arith import Affine
from dlcompiler.ir import Extent, extent_binary
from dlcompiler.ir.stmt import compact_strides
from dlcompiler.schedule.inference.bounds import infer_bounds
from dlcompiler.schedule.state import AttachedAt, StageState, State, is_scan
from dlcompiler.te import Tensor


def strides_of(state: State, tensor: Tensor) -> tuple[Extent, ...]:
    """Return the strides [elements] of a tensor's buffer, which the caller does not pass."""
    stage = state.producer_of(tensor)
    shape: Sequence[Extent] = tensor.shape
    if isinstance(stage.attachment, AttachedAt) and not is_scan(stage):
        shape = [span.extent for span in infer_bounds(state).stages[stage.name].region]
    return aligned_strides(stage, shape)


def begin_of(state: State, tensor: Tensor) -> tuple[Affine, ...]:
    """Return the indices of the first element that a tensor's buffer holds."""
    stage = state.producer_of(tensor)
    if not isinstance(stage.attachment, AttachedAt):
        return (Affine.of_constant(0),) * tensor.ndim
    return tuple(span.first for span in infer_bounds(state).stages[stage.name].region)


def aligned_strides(stage: StageState, shape: Sequence[Extent]) -> tuple[Extent, ...]:
    """Return the strides [elements] of a stage's buffer, with its padding (`storage_align`)."""
    if not stage.alignments:
        return compact_strides(tuple(shape))
    strides: list[Extent] = []
    step: Extent = 1
    for axis, extent in reversed(list(zip(stage.op.axis, shape, strict=True))):
        if axis in stage.alignments:
            factor, offset = stage.alignments[axis]
            missing = extent_binary("sub", offset, step)
            step = extent_binary("add", step, extent_binary("floormod", missing, factor))
        strides.append(step)
        step = extent_binary("mul", step, extent)
    return tuple(reversed(strides))
