"""The loops over tiles of a product's result."""

from __future__ import annotations

from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config
from dlcompiler.te import Tensor

HINT = "loop_partition_hint"
"""Pragma of loops whose last iterations get code of their own."""


def schedule_result(s: Schedule, C: Tensor, cfg: Config, lanes: int) -> tuple[Any, Any, Any]:
    """Split C into tiles; return the panel loop, the block loop and the innermost tile loop.

    Without blocks, A is packed for each panel.
    """
    *stack, i, j = s[C].op.axis
    tiles_i, rows = s[C].split(i, cfg["tile_m"])
    tiles_j, columns = s[C].split(j, cfg["tile_n"])
    panels, tiles_j = split_panels(s, C, tiles_j, cfg["panel"])
    vectors, vector = s[C].split(columns, lanes)
    blocks = panels
    inside = [tiles_i, tiles_j]
    if cfg["block"]:
        blocks, tiles_i = s[C].split(tiles_i, cfg["block"])
        inside = [blocks, tiles_j, tiles_i]
    s[C].reorder(*stack, panels, *inside, rows, vectors, vector)
    s[C].unroll(rows)
    s[C].unroll(vectors)
    s[C].vectorize(vector)
    if stack:
        fused = s[C].fuse(*stack, panels)
        blocks = fused if blocks is panels else blocks
        panels = fused
    match cfg["parallel"]:
        case "panels":
            s[C].parallel(panels)
        case "blocks":
            s[C].parallel(blocks)
    return panels, blocks, inside[-1]


def split_panels(s: Schedule, stage: Tensor, axis: Axis, factor: int) -> tuple[Axis, Axis]:
    """Split an axis by a factor; a factor of 0 makes one piece."""
    return s[stage].split(axis, factor) if factor else s[stage].split(axis, nparts=1)
