"""The CPU schedule of products by dot products: sums of vectors along k, whose lanes are added up.

A tile has a vector of sums for each element of C. Its lanes are added up by halves, for all
elements at once: 16 vectors of 16 lanes become 8 vectors, each with 8 sums of two elements, then 4,
2 and 1. This takes 15 additions of vectors in place of 240 of numbers.
"""

from __future__ import annotations

from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.ops.gemm.definition import Stages
from dlcompiler.ops.gemm.result_loops import HINT, split_panels
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config
from dlcompiler.te import Tensor


def schedule_dots(s: Schedule, C: Tensor, stages: Stages, cfg: Config, lanes: int) -> None:
    """Multiply vectors along k, and add up the lanes of a tile's sums at the end.

    Nothing needs to be copied where A and the transposed B are stored by rows. A, of which there
    is less, is copied once.
    """
    left, right, sums = stages.left, stages.right, stages.sums
    is_empty = 0 in (*left.shape, *right.shape)
    if not cfg["pack_a"] or is_empty:
        s[left].compute_inline()
    right_axes = _rows_of(s, stages) if cfg["pack"] and not is_empty else ()
    *stack, i, j = s[C].op.axis
    tiles_i, rows = s[C].split(i, cfg["tile_m"])
    panels, tiles_j = split_panels(s, C, j, cfg["panel"] * cfg["tile_n"])
    tiles_j, columns = s[C].split(tiles_j, cfg["tile_n"])
    # The tiles of the matrix with fewer rows come again and again: they are nearest.
    is_inside = cfg["parallel"] != "blocks" and C.static_shape[-2] <= C.static_shape[-1]
    outside, inside = (tiles_j, tiles_i) if is_inside else (tiles_i, tiles_j)
    s[C].reorder(*stack, panels, outside, inside, rows, columns)
    s[C].unroll(rows)
    s[C].vectorize(columns)
    outermost = s[C].fuse(*stack, panels) if stack else panels
    match cfg["parallel"]:
        case "panels":
            s[C].parallel(outermost)
        case "blocks":
            s[C].parallel(tiles_i)

    steps, lane = s[sums].split(s[sums].op.reduce_axis[0], lanes)
    products = s.rfactor(sums, lane, factor_axis=-1)
    folded = _fold(s, sums, lanes)
    for stage in (sums, *reversed(folded), products):
        s[stage].set_scope("local")
        s[stage].compute_at(s[C], inside)
    for stage, each in zip((*folded, sums), _widths(lanes), strict=True):
        _vectorize(s, stage, cfg["tile_m"] * cfg["tile_n"] * each, lanes)
    *_, i, j, lane = s[products].op.axis
    (steps,) = s[products].op.reduce_axis
    steps, step = s[products].split(steps, cfg["unroll_k"])
    s[products].reorder(steps, step, i, j, lane)
    s[products].pragma(steps, HINT, 1)
    s[products].vectorize(lane)
    if right_axes:
        s[right].compute_at(s[C], outermost)
        s[right].vectorize(right_axes[-1])
    else:
        s[right].compute_inline()
    for axis in (step, i, j):
        s[products].unroll(axis)


def _widths(lanes: int) -> list[int]:
    """Return the sums of an element that are left by each step: half as many, down to one."""
    return [1 << n for n in reversed(range(lanes.bit_length() - 1))] or [1]


def _fold(s: Schedule, sums: Tensor, lanes: int) -> list[Tensor]:
    """Add up the lanes of sums by halves; return the stages before the last one."""
    folded = []
    for width in _widths(lanes)[:-1]:
        (lane,) = s[sums].op.reduce_axis
        _, kept = s[sums].split(lane, width)
        folded.append(s.rfactor(sums, kept, factor_axis=-1))
    return folded


def _vectorize(s: Schedule, stage: Tensor, elements: Any, lanes: int) -> None:
    """Compute the elements of a tile in whole vectors, and write out the loops."""
    (halves,) = s[stage].op.reduce_axis
    inside = s[stage].fuse(*s[stage].op.axis)
    vectors, vector = s[stage].split(inside, lanes if elements >= lanes else elements)
    s[stage].reorder(vectors, halves, vector)
    s[stage].unroll(vectors)
    s[stage].unroll(halves)
    s[stage].vectorize(vector)


def _rows_of(s: Schedule, stages: Stages) -> tuple[Axis, ...]:
    """Store B transposed; return its last two axes: column and k."""
    right = stages.right
    if stages.is_right_swapped:
        return tuple(right.op.axis[-2:])
    if len(right.shape) == 3:
        return s[right].transform_layout(lambda b, k, j: [b, j, k])[-2:]
    return s[right].transform_layout(lambda k, j: [j, k])[-2:]
