"""Schedule sliding windows over images in NHWC or NCHWc, in vectors of channels.

Depthwise convolution and pooling have the same three stages: the padded image, ``….padded``; the
result of each window before the epilogue, ``….sums``; and the result. In these layouts the padding
is not stored: windows inside the image are computed without conditions, those at the edges in
separate loops. `dlcompiler.ops.sliding` is for NCHW.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.ops.conv2d.layouts import Layout
from dlcompiler.ops.conv2d.shapes import Window
from dlcompiler.ops.helpers import tensor
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.ops.sliding import Sliding
from dlcompiler.ops.stages import stages_by_role, unroll
from dlcompiler.ops.widening import converted
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Filter, Knob, Space, Workload, parallel_knob, split_knob
from dlcompiler.target import Target
from dlcompiler.te import Tensor

_VECTORS = (1, 2, 4, 8)
_COLUMNS = (1, 2, 3, 4, 6, 8)
_MOST_COPIES = 160
"""Steps of a window that are unrolled."""
_ENOUGH_SUMS = 4
"""Sums side by side that hide the latency of one."""


def resized(extents: Sequence[Any], layout: Layout, height: int, width: int) -> tuple[Any, ...]:
    """Return the shape of images in a layout, with another height and width.

    Examples
    --------
    >>> resized((1, 2, 9, 9, 8), Layout("NCHW8c"), 4, 5)
    (1, 2, 4, 5, 8)
    """
    first = 1 if layout.name == "NHWC" else 2
    return (*extents[:first], height, width, *extents[first + 2 :])


def framed_beside(
    data: Tensor, layout: Layout, rows: Window, columns: Window, value: Any, name: str
) -> Tensor:
    """Define the padded images, in the dtype of `value`, no larger than the windows read."""

    def element(*i: Any) -> Any:
        n, c, y, x = layout.element(*i)
        row, column = y - rows.before, x - columns.before
        is_inside = te.all(row >= 0, row < rows.size, column >= 0, column < columns.size)
        read = converted(data[layout.place(n, c, row, column)], value.dtype)
        return te.if_then_else(is_inside, read, value)

    height, width = max(rows.span, rows.reach), max(columns.span, columns.reach)
    return tensor(resized(data.shape, layout, height, width), element, name)


def channels_space(workload: Workload, of: Sliding, target: Target) -> Space:
    """Return the configs of `schedule_channels`.

    ==================  ========================================================================
    ``vectors``         vectors of channels that stay in registers over a window
    ``columns``         places side by side whose sums are in registers together
    ``unroll_columns``  write out the columns of the window
    ``unroll_rows``     its rows as well
    ``parallel``        run rows of the result on several cores
    ==================  ========================================================================
    """
    side, lanes = _side(workload, of), target.lanes(of.dtype)
    knobs = [
        Knob("vectors", tuple(v for v in _VECTORS if v == 1 or v * lanes < 2 * side)),
        split_knob("columns", of.columns.out, _COLUMNS),
        Knob("unroll_columns", (False, True)),
        Knob("unroll_rows", (False, True)),
        parallel_knob(target.cores),
    ]
    filters = (
        Filter("at most 16 accumulators", lambda v: v["vectors"] * v["columns"] <= 16),
        Filter(
            "rows are written out after columns, and in few copies",
            lambda v: (
                not v["unroll_rows"]
                or (v["unroll_columns"] and v["vectors"] * v["columns"] * of.taps <= _MOST_COPIES)
            ),
        ),
    )
    return Space(workload, knobs, filters)


def _side(workload: Workload, of: Sliding) -> int:
    """Return how many channels are contiguous in memory."""
    return Layout(workload["layout"]).channels or of.channels


def channels_config(
    workload: Workload, of: Sliding, target: Target, *, has_weights: bool = False
) -> Config:
    """Return the config with enough sums to hide the latency of an addition.

    Parameters
    ----------
    workload, of, target
        As of `channels_space`.
    has_weights : bool
        Whether the elements of a window are multiplied by weights: neighbouring windows then share
        them, and a vector of channels that is cut short costs more than one of a maximum.
    """
    places = of.images * of.channels * of.rows.out * of.columns.out
    choices = channels_space(workload, of, target)
    vectors, columns = (
        max(count for knob in choices.knobs if knob.name == name
            for count in knob.values if count <= _ENOUGH_SUMS)
        for name in ("vectors", "columns")
    )  # fmt: skip
    return choices.config(
        vectors=1 if has_weights else vectors,
        columns=columns if has_weights else 1,
        unroll_columns=has_weights,
        unroll_rows=False,
        parallel=is_worth_sharing(places * of.taps / target.lanes(of.dtype), target),
    )


def schedule_channels(s: Schedule, result: Tensor, cfg: Config, target: Target) -> None:
    """Schedule windows over images with channels side by side on a CPU.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of the result.
    result : Tensor
        Reads ``….sums``, which reads ``….padded``.
    cfg : Config
        A config of `channels_space`.
    target : Target
        A CPU.
    """
    stages = stages_by_role(s)
    sums, padded = stages["sums"], stages["padded"]
    lanes = target.lanes(sums.dtype)
    *outer, y, x, c = result.op.axis
    channels, c = s[result].split(c, cfg["vectors"] * lanes)
    vector, lane = s[result].split(c, lanes)
    x, column = s[result].split(x, cfg["columns"])
    s[result].reorder(*outer, y, x, channels, column, vector, lane)
    s[result].vectorize(lane)
    s[result].pragma(y, "loop_partition_hint")
    s[result].pragma(x, "loop_partition_hint")
    tile = s.cache_write(sums, "local")
    s[sums].compute_inline()
    s[padded].compute_inline()
    s[tile].compute_at(s[result], channels)
    p, q = tile.op.reduce_axis
    own = list(tile.op.axis)
    vectors, own_lane = s[tile].split(own[-1], lanes)
    *others, own_column = own[:-1]
    s[tile].reorder(*others, p, q, own_column, vectors, own_lane)
    s[tile].vectorize(own_lane)
    if cfg["parallel"]:
        s[result].parallel(y)
    copies = [own_column, vectors]
    copies += [q] if cfg["unroll_columns"] else []
    copies += [p] if cfg["unroll_rows"] else []
    unroll(s, [(result, column), (result, vector), *((tile, axis) for axis in copies)])
