"""Windows that slide over images whose channels lie side by side, in vectors of channels.

Depthwise convolution and pooling have the same three stages: the image in its frame, ``….padded``;
what each window gives, ``….sums``; and the result. In the layouts NHWC and NCHWc the frame is not
stored: windows that lie in the image are computed without conditions, those at the edges apart.
`dlcompiler.ops.sliding` is for NCHW.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.ops.conv2d.layouts import Layout
from dlcompiler.ops.conv2d.shapes import Window
from dlcompiler.ops.defining import tensor
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.ops.sliding import Sliding
from dlcompiler.ops.widening import converted
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Knob, Space, Workload, parallel_knob
from dlcompiler.target import Target
from dlcompiler.te import Tensor

_VECTORS = (1, 2, 4, 8)
_ENOUGH_VECTORS = 4
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
    """Define images in a frame of a value and of its dtype, no larger than they are read."""

    def element(*i: Any) -> Any:
        n, c, y, x = layout.element(*i)
        row, column = y - rows.before, x - columns.before
        is_inside = te.all(row >= 0, row < rows.size, column >= 0, column < columns.size)
        read = converted(data[layout.place(n, c, row, column)], value.dtype)
        return te.if_then_else(is_inside, read, value)

    height, width = max(rows.span, rows.reach), max(columns.span, columns.reach)
    return tensor(resized(data.shape, layout, height, width), element, name)


def channels_space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule_channels`.

    ============  ==============================================================================
    ``vectors``   of channels, in registers over a window
    ``parallel``  run rows of the result on several cores
    ============  ==============================================================================
    """
    knobs = [
        Knob("vectors", _VECTORS),
        parallel_knob(target.cores),
    ]
    return Space(workload, knobs)


def channels_config(workload: Workload, of: Sliding, target: Target) -> Config:
    """Return the config that a simple model prefers."""
    places = of.images * of.channels * of.rows.out * of.columns.out
    is_parallel = is_worth_sharing(places * of.taps / target.lanes(of.dtype), target)
    return channels_space(workload, target).config(vectors=_ENOUGH_VECTORS, parallel=is_parallel)


def schedule_channels(s: Schedule, result: Tensor, cfg: Config, target: Target) -> None:
    """Schedule windows over images with channels side by side on a CPU.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of the result.
    result : Tensor
        Reads ``….sums``, which reads ``….padded``.
    cfg : Config
        Of `channels_space`.
    target : Target
        A CPU.
    """
    stages = {stage.name.rpartition(".")[2]: stage.tensor for stage in s.stages}
    sums, padded = stages["sums"], stages["padded"]
    lanes = target.lanes(sums.dtype)
    *outer, y, x, c = result.op.axis
    channels, c = s[result].split(c, cfg["vectors"] * lanes)
    vector, lane = s[result].split(c, lanes)
    s[result].reorder(*outer, y, x, channels, vector, lane)
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
    s[tile].reorder(*own[:-1], p, q, vectors, own_lane)
    s[tile].vectorize(own_lane)
    if cfg["parallel"]:
        s[result].parallel(y)
    for of, axis in ((result, vector), (tile, vectors)):
        s[of].unroll(axis)
