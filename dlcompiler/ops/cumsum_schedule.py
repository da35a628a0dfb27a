"""Schedule running sums on a CPU: block after block, each in vectors.

`dlcompiler.ops.cumsum` defines the windows and the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from dlcompiler.ir import Axis
from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.cumsum import FEW, NAME, ROW, blocks, define_for_cpu, is_row
from dlcompiler.ops.lanes import reduce_in_lanes, widest_power
from dlcompiler.ops.rows import width_knob
from dlcompiler.ops.shapes import shape_of
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Knob, Space, Workload, parallel_knob
from dlcompiler.target import Target
from dlcompiler.te import ScanOp, Tensor

Stages: TypeAlias = "tuple[Sequence[Tensor], Sequence[Tensor]]"
"""The windows of the elements, and the sums of blocks."""
_CYCLES = 1.0
"""Time of an element on one core [cycle]."""


# -- the choices --------------------------------------------------------------------------------


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ==============  ============================================================================
    ``width``       neighbouring elements that are computed side by side
    ``strip``       such groups of columns whose blocks are in the nearest cache together
    ``parallel``    run rows, or columns, on several cores
    ==============  ============================================================================
    """
    shape, axis = shape_of(workload["shape"]), workload["axis"]
    lanes = target.lanes(workload["dtype"])
    are_rows = is_row(shape, axis)
    along = blocks(shape[axis], ROW)[1] if are_rows else shape[-1]
    widths = width_knob("width", along, lanes, (1, 2, 4) if are_rows else (1, 2, 4, 8))
    strip = Knob("strip", (1,) if are_rows else (1, 2, 4, 8, 16))
    return Space(workload, [widths, strip, parallel_knob(target.cores)])


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with one vector of a row, or four vectors of neighbouring columns."""
    shape, axis = shape_of(workload["shape"]), workload["axis"]
    choices = space(workload, target)
    widths = choices.knobs[0].values
    most = target.lanes(workload["dtype"]) * (1 if is_row(shape, axis) else 4)
    width = max((n for n in widths if n <= most), default=widths[0])
    rows = math.prod(shape) // max(shape[axis], 1)
    is_parallel = rows >= target.cores and is_worth_sharing(_CYCLES * math.prod(shape), target)
    strip = max(n for n in choices.knobs[1].values if n == 1 or n * width <= shape[-1])
    return choices.config(width=width, strip=min(strip, 4), parallel=is_parallel)


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule running sums on a CPU: block after block, each in vectors; see the module."""
    (out,) = outs
    if isinstance(out.op, ScanOp):
        _schedule_scan(s, out.op, cfg)
        return
    stages = {stage.name: stage.tensor for stage in s.stages if stage.name.startswith(f"{NAME}.")}
    windows = [t for name, t in stages.items() if name.startswith(f"{NAME}.windows")]
    sums = [t for name, t in stages.items() if t not in windows]
    axis, size = _cut_of(out, windows)
    if is_row(out.static_shape, axis):
        _schedule_rows(s, out, axis, size, (windows, sums), cfg, target.lanes(out.dtype))
    else:
        _schedule_columns(s, out, axis, size, (windows, sums), cfg)


def _schedule_rows(
    s: Schedule, out: Tensor, axis: int, size: int, stages: Stages, cfg: Config, lanes: int
) -> None:
    """Schedule sums of neighbours: a block is written out, so that all its conditions are known."""
    windows, sums = stages
    axes = list(out.op.axis)
    block, place = s[out].split(axes[axis], size)
    vectors, vector = s[out].split(place, cfg["width"])
    s[out].vectorize(vector)
    s[out].unroll(vectors)
    s[out].pragma(block, "loop_partition_hint")
    outer = _outer(s, out, axes[:axis], is_parallel=cfg["parallel"])
    for each in windows:
        s[each].compute_at(s[out], block)
        s[each].unroll(s[each].op.axis[axis + 1])
    for each in sums:
        if outer is not None:
            s[each].compute_at(s[out], outer)
        if ".windows" in each.name:
            s[each].unroll(s[each].op.axis[axis + 1])
        elif each.name.endswith(".before") and each.op.reduce_axis:
            _vectorized(s, each, axis, widest_power(each.static_shape[axis], lanes))
        elif each.name.endswith(".totals"):
            own = size if each.name == f"{NAME}.totals" else FEW  # of blocks, or blocks of blocks
            for part in reduce_in_lanes(s, each, widest_power(own, 2 * lanes)):
                s[part].compute_at(s[each], s[each].op.axis[axis])


def _schedule_columns(
    s: Schedule, out: Tensor, axis: int, size: int, stages: Stages, cfg: Config
) -> None:
    """Schedule sums of elements that are apart: vectors of neighbouring columns."""
    windows, sums = stages
    axes = list(out.op.axis)
    block, place = s[out].split(axes[axis], size)
    strips, columns = s[out].split(axes[-1], cfg["strip"] * cfg["width"])
    columns, vector = s[out].split(columns, cfg["width"])
    around = [*axes[:axis], *axes[axis + 1 : -1], strips]
    s[out].reorder(*around, block, place, columns, vector)
    s[out].vectorize(vector)
    outer = _outer(s, out, around, is_parallel=cfg["parallel"])
    for each in windows:
        s[each].compute_at(s[out], block)
        _vectorized(s, each, -1, cfg["width"])
    for each in sums:
        s[each].compute_at(s[out], outer)
        _vectorized(s, each, -1, cfg["width"])


def _outer(s: Schedule, out: Tensor, around: Sequence[Axis], *, is_parallel: bool) -> Any:
    """Return the loop around all blocks of some sums; None if there is no such loop."""
    if not around:
        return None
    outer = s[out].fuse(*around) if len(around) > 1 else around[0]
    if is_parallel:
        s[out].parallel(outer)
    return outer


def _schedule_scan(s: Schedule, op: ScanOp, cfg: Config) -> None:
    """Add whole rows: each is stored, and read as the sums before the next one."""
    for stage in (s[op.inits[0]], s[op.updates[0]]):
        _, vector = stage.split(stage.op.axis[-1], cfg["width"])
        stage.vectorize(vector)


def _vectorized(s: Schedule, each: Tensor, n: int, width: int) -> None:
    """Compute vectors of a stage along a dimension, inside all of its other loops."""
    stage, axes = s[each], list(each.op.axis)
    outer, vector = stage.split(axes.pop(n), width)
    stage.reorder(*axes, outer, *stage.op.reduce_axis, vector)
    stage.vectorize(vector)


def _cut_of(out: Tensor, windows: Sequence[Tensor]) -> tuple[int, int]:
    """Return the dimension of the sums and the size of a block, from the shape of a window."""
    if not windows:
        return next((n for n, extent in enumerate(out.static_shape) if extent < 2), 0), 1
    shape, whole = windows[0].static_shape, out.static_shape
    axis = next(
        n for n in range(len(whole))
        if shape[:n] == whole[:n] and shape[n + 2 :] == whole[n + 1 :]
        and shape[n] == -(-whole[n] // shape[n + 1]) and shape[n + 1] > 1
    )  # fmt: skip
    return axis, shape[axis + 1]


BLOCKS = DeviceSchedule(space, default_config, schedule, define=define_for_cpu)
