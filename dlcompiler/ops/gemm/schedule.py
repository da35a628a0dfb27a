"""The CPU schedule of products: by register tiles, by rows of B, or by dot products."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.ir import Axis
from dlcompiler.ops.gemm.definition import Stages, runs_along
from dlcompiler.ops.gemm.dots import schedule_dots
from dlcompiler.ops.gemm.fours import offsets_of, schedule_fours
from dlcompiler.ops.gemm.product import tile_lanes
from dlcompiler.ops.gemm.result_loops import HINT, schedule_result, split_panels
from dlcompiler.ops.prefetching import prefetch_weights
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config
from dlcompiler.target import Target
from dlcompiler.te import Tensor

_COPIED_ROWS = 8
"""Columns of a transposed B that are read together: a square of registers."""
_ITERATIONS_AHEAD = 16
"""Iterations between rows of a packed B that are read, and those that are prefetched; an iteration
of the default config reads two rows or four."""


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a product on a CPU.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of `outs`.
    outs : sequence of Tensor
        C.
    cfg : Config
        A config of `space`.
    target : Target
        A CPU.
    """
    (C,) = outs
    offsets = offsets_of(C)
    if offsets is None:
        schedule_stages(s, C, Stages.of(C), cfg, target)
    else:
        schedule_fours(s, C, offsets, cfg, target)


def schedule_stages(s: Schedule, C: Tensor, stages: Stages, cfg: Config, target: Target) -> None:
    """Schedule the stages between the operands of a product and C; see `schedule`."""
    lanes = target.lanes(stages.sums.dtype)
    match cfg["form"]:
        case "tiles":
            columns = _packed_columns(stages.right)
            _schedule_tiles(s, C, stages, cfg, tile_lanes(columns, lanes))
            if columns:
                _prefetch_packed(s, stages, target)
        case "rows":
            _schedule_rows(s, C, stages, cfg, lanes)
        case "dots":
            schedule_dots(s, C, stages, cfg, lanes)


def _packed_columns(right: Tensor) -> int:
    """Return the columns in a panel of a packed B; 0 if it is not packed.

    This is read from the tensor, not from a knob: a comparison with the value of a knob would give
    the space one more skeleton for each answer.
    """
    (given,) = right.op.input_tensors
    return given.static_shape[-1] if given.ndim > right.ndim else 0


def _prefetch_packed(s: Schedule, stages: Stages, target: Target) -> None:
    """Prefetch a packed B."""
    (given,) = stages.right.op.input_tensors
    stage = s[stages.sums]
    steps = next(axis for axis in stage.leaf_iter_vars if axis.kind == "reduce")
    prefetch_weights(stage, given, steps, target, _ITERATIONS_AHEAD)


# -- register tiles -------------------------------------------------------------------------------


def _schedule_tiles(s: Schedule, C: Tensor, stages: Stages, cfg: Config, lanes: int) -> None:
    """Keep the sums of a tile in registers over the whole reduction.

    The tile's rows and vectors are unrolled around a loop over k. B is read from packed panels,
    whose rows are contiguous, and A from packed blocks if the config says so.
    """
    left, right, sums = stages.left, stages.right, stages.sums
    rows, columns = cfg["tile_m"], cfg["tile_n"]
    along_k = right.op.axis[-1 if stages.is_right_swapped else -2]
    is_transposed = runs_along(right, along_k)
    is_empty = 0 in (*left.shape, *right.shape)
    right_axes = _panels_of(s, stages, columns) if cfg["pack"] and not is_empty else ()
    left_axes = _blocks_of(s, stages, rows) if cfg["pack_a"] and not is_empty else ()
    panels, blocks, innermost = schedule_result(s, C, cfg, lanes)

    s[sums].set_scope("local")
    s[sums].compute_at(s[C], innermost)
    _schedule_sums(s, sums, cfg, lanes)
    if right_axes:
        s[right].compute_at(s[C], panels)
        outermost = _schedule_right(s, right, right_axes, lanes, is_transposed)
        if cfg["parallel"] == "blocks":
            s[right].parallel(outermost)
    else:
        s[right].compute_inline()
    if left_axes:
        s[left].compute_at(s[C], blocks)
        _schedule_left(s, left, left_axes)
    else:
        s[left].compute_inline()
    # Unrolled last: the extent of this loop depends on the splits before.
    s[sums].unroll(s[sums].op.axis[-2])


def _panels_of(s: Schedule, stages: Stages, columns: int) -> tuple[Axis, ...]:
    """Store B in panels of columns; return its last three axes: panel, k and column."""
    right = s[stages.right]
    match len(stages.right.shape), stages.is_right_swapped:
        case 3, False:
            axes = right.transform_layout(lambda b, k, j: [b, j // columns, k, j % columns])
        case 3, True:
            axes = right.transform_layout(lambda b, j, k: [b, j // columns, k, j % columns])
        case _, False:
            axes = right.transform_layout(lambda k, j: [j // columns, k, j % columns])
        case _:
            axes = right.transform_layout(lambda j, k: [j // columns, k, j % columns])
    return axes[-3:]


def _blocks_of(s: Schedule, stages: Stages, rows: int) -> tuple[Axis, ...]:
    """Store A in blocks of rows; return its last three axes: block, k and row."""
    left = s[stages.left]
    match len(stages.left.shape), stages.is_left_swapped:
        case 3, False:
            axes = left.transform_layout(lambda b, i, k: [b, i // rows, k, i % rows])
        case 3, True:
            axes = left.transform_layout(lambda b, k, i: [b, i // rows, k, i % rows])
        case _, False:
            axes = left.transform_layout(lambda i, k: [i // rows, k, i % rows])
        case _:
            axes = left.transform_layout(lambda k, i: [i // rows, k, i % rows])
    return axes[-3:]


def _schedule_sums(s: Schedule, sums: Tensor, cfg: Config, lanes: int) -> None:
    """Order the loops of the register tile: the reduction outside, rows and vectors inside."""
    *_, i, j = s[sums].op.axis
    (k,) = s[sums].op.reduce_axis
    vectors, vector = s[sums].split(j, lanes)
    steps, step = s[sums].split(k, cfg["unroll_k"])
    s[sums].reorder(steps, step, i, vectors, vector)
    s[sums].unroll(step)
    s[sums].unroll(vectors)
    s[sums].vectorize(vector)


def _schedule_right(
    s: Schedule, right: Tensor, axes: Sequence[Axis], lanes: int, is_transposed: bool
) -> Axis:
    """Copy B along its contiguous dimension; return the outermost loop."""
    panel, k, column = axes
    vectors, vector = s[right].split(column, lanes)
    s[right].pragma(panel, HINT, 1)
    if is_transposed:
        steps, step = s[right].split(k, _COPIED_ROWS)
        s[right].reorder(panel, steps, vectors, step, vector)
        s[right].unroll(step)
        outermost = panel
    else:
        s[right].reorder(k, panel, vectors, vector)
        outermost = k
    s[right].unroll(vectors)
    s[right].vectorize(vector)
    return outermost


def _schedule_left(s: Schedule, left: Tensor, axes: Sequence[Axis]) -> None:
    """Copy A along its contiguous dimension."""
    block, k, row = axes
    s[left].reorder(block, k, row)
    s[left].vectorize(row)


# -- rows of B ------------------------------------------------------------------------------------


def _schedule_rows(s: Schedule, C: Tensor, stages: Stages, cfg: Config, lanes: int) -> None:
    """Keep the sums of a few long rows in the nearest cache, and add a few rows of B at a time.

    B is read once and in order, which decides the time if C has few rows.
    """
    sums = stages.sums
    s[stages.left].compute_inline()
    s[stages.right].compute_inline()
    *stack, i, j = s[C].op.axis
    tiles_i, rows = s[C].split(i, cfg["tile_m"])
    panels, columns = split_panels(s, C, j, cfg["panel"] * cfg["tile_n"])
    vectors, vector = s[C].split(columns, lanes)
    s[C].reorder(*stack, panels, tiles_i, rows, vectors, vector)
    s[C].vectorize(vector)
    outermost = s[C].fuse(*stack, panels) if stack else panels
    if cfg["parallel"] == "panels":
        s[C].parallel(outermost)

    s[sums].compute_at(s[C], tiles_i)
    *_, i, j = s[sums].op.axis
    (k,) = s[sums].op.reduce_axis
    steps, step = s[sums].split(k, cfg["unroll_k"])
    tiles, columns = s[sums].split(j, cfg["tile_n"])
    vectors, vector = s[sums].split(columns, lanes)
    s[sums].reorder(steps, tiles, i, vectors, step, vector)
    s[sums].vectorize(vector)
    s[sums].unroll(step)
    s[sums].unroll(vectors)
    s[sums].unroll(i)
