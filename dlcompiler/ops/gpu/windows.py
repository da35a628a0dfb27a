"""Schedule windows that slide over images on a GPU: depthwise convolution and pooling.

A thread computes a small tile of the result: some rows and columns, and where channels are
neighbours in memory a vector of them. It keeps the sums of the tile, and the part of the image that
their windows read, in registers; neighbouring threads share what they read in the first level
cache. Threads are numbered through all tiles of all images, so that small images fill blocks, too.

*Before*, then *after*, of windows of 3 × 3 with tiles of 4 × 1::

    for c in range(32):                 for block in blockIdx.x(…):
        for y in range(112):                for thread in threadIdx.x(128):
            for x in range(112):                image[0:6, 0:3] = …      zero outside
                for p in range(3):              for p, q in the window:  unrolled
                    for q in range(3):              for row in range(4):
                        sums[c, y, x] += …              sums[row] += image[row + p, q]*weight[…]
                result[c, y, x] = …             result[…] = …            epilogue
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.ir import Axis, Expr, TensorLoad, Var, free_vars, walk
from dlcompiler.ops import depthwise, pool2d
from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.conv2d.layouts import Layout
from dlcompiler.ops.gpu.anchors import (
    computed,
    host_of,
    is_at_own_place,
    needed,
    reads,
    reductions_of,
)
from dlcompiler.ops.gpu.injective import schedule_rest
from dlcompiler.ops.gpu.threads import Chip, bind, fused, unroll_in_registers
from dlcompiler.ops.sliding import Sliding, reach
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Filter, Knob, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, PlaceholderOp, Tensor

_THREADS = (32, 64, 128, 256, 512)
_ROWS = (1, 2, 3, 4, 6, 8)
_COLUMNS = (1, 2, 4, 8)
_MOST_SUMS = 32
"""Sums that a thread keeps [1]."""
_MOST_WINDOW = 96
"""Elements of the image that a thread keeps [1]."""
_MOST_COPIES = 1024
"""Products of a thread that are written out [1]."""


@dataclass(frozen=True)
class Windows:
    """The stages of an operator on windows."""

    host: Tensor
    """The result."""
    sums: Tensor
    image: Tensor
    """What windows read, with its padding."""
    spatial: tuple[int, int]
    """The dimensions of the result along which windows slide."""

    @property
    def has_lanes(self) -> bool:
        """Tell whether channels are neighbours in memory."""
        return self.spatial[1] != len(self.host.shape) - 1


def windows_of(s: Schedule, outs: Sequence[Tensor]) -> Windows:
    """Find the stages of an operator on windows in a fresh schedule of a fused group."""
    sums = reductions_of(s)[-1]

    def is_host(tensor: Tensor) -> bool:
        own = [axis.var for axis in tensor.op.axis]
        loads = [load for load in reads(tensor, ()) if load.tensor is sums]
        return bool(loads) and all(is_at_own_place(load, own) for load in loads)

    assert isinstance(sums.op, ComputeOp)
    image, spatial = _image(sums.op)
    host = host_of(s, outs, is_host)
    return Windows(host, sums, image, spatial)


def _image(op: ComputeOp) -> tuple[Tensor, tuple[int, int]]:
    """Return what windows read, and the dimensions of the result along which they slide."""
    places = {axis.var: n for n, axis in enumerate(op.axis)}
    taps = {axis.var for axis in op.reduce_axis}
    for load in (node for node in walk(op.bodies[0]) if isinstance(node, TensorLoad)):
        found = [_sliding(index, places, taps) for index in load.indices]
        both = [n for n in found if n is not None]
        if len(both) == 2:
            assert isinstance(load.tensor, Tensor)
            return load.tensor, (both[0], both[1])
    raise AssertionError(op.name)  # the operators' definitions have one


def _sliding(index: Expr, places: Mapping[Var, int], taps: set[Var]) -> int | None:
    """Return the dimension of the result that an index goes along, if a window's does, too."""
    used = free_vars(index)
    own = [places[var] for var in used if var in places]
    return own[0] if len(own) == 1 and used & taps else None


# -- the choices --------------------------------------------------------------------------------


def window_schedule(windows: Callable[[Workload], Sliding]) -> DeviceSchedule:
    """Make the GPU schedule of an operator on windows, whose workload has a ``layout``.

    Parameters
    ----------
    windows : callable
        Returns the windows of a workload.
    """

    def space(workload: Workload, target: Target) -> Space:
        """Return the configs of `schedule`.

        ==============  ========================================================================
        ``threads``     of a block
        ``rows``        of the tile of a thread
        ``columns``     of it
        ``vector``      neighbouring channels of it, where channels are neighbours
        ``window``      keep the part of the image in registers, which is loaded once
        ==============  ========================================================================
        """
        return _space(workload, windows(workload), Chip.of(target))

    def default_config(workload: Workload, target: Target) -> Config:
        """Return the config with tiles of four rows, or fewer if these are too few tiles."""
        return _default(workload, windows(workload), Chip.of(target))

    return DeviceSchedule(space, default_config, schedule)


def _side(workload: Workload, of: Sliding) -> int:
    """Return how many channels are neighbours in memory: 1, where columns are."""
    layout = Layout(workload["layout"])
    return layout.channels or (max(of.channels, 1) if layout.name == "NHWC" else 1)


def _space(workload: Workload, of: Sliding, chip: Chip) -> Space:
    side, lanes = _side(workload, of), chip.lanes(of.dtype)
    words = max(dtypes.bytes_of(of.dtype) // 4, 1)
    knobs = [
        Knob("threads", _THREADS),
        Knob("rows", tuple(n for n in _ROWS if n == 1 or n <= of.rows.out)),
        Knob("columns", tuple(n for n in _COLUMNS if n == 1 or n <= of.columns.out)),
        Knob("vector", tuple(n for n in (1, 2, 4) if n <= lanes and side % n == 0)),
        Knob("window", (False, True)),
    ]
    return Space(workload, knobs, [
        Filter(
            f"at most {_MOST_SUMS} registers for sums",
            lambda v: v["rows"] * v["columns"] * v["vector"] * words <= _MOST_SUMS,
        ),
        Filter(
            f"at most {_MOST_WINDOW} registers for the image, and {_MOST_COPIES} products",
            lambda v: not v["window"] or _fits(of, v["rows"], v["columns"], v["vector"] * words),
        ),
    ])  # fmt: skip


def _fits(of: Sliding, rows: int, columns: int, words: int) -> bool:
    """Tell whether a thread can keep the part of the image that its tile reads."""
    size = reach(of.rows, rows) * reach(of.columns, columns)
    copies = rows * columns * of.taps
    return size * words <= _MOST_WINDOW and copies * words <= _MOST_COPIES


def _default(workload: Workload, of: Sliding, chip: Chip) -> Config:
    choices = _space(workload, of, chip)
    values = {knob.name: knob.values for knob in choices.knobs}
    vector = max(values["vector"])
    words = vector * max(dtypes.bytes_of(of.dtype) // 4, 1)
    places = of.images * of.channels * of.rows.out * of.columns.out // vector
    enough = chip.processors * 512
    dense = of.rows.dilation == of.columns.dilation == 1
    rows = max(
        (n for n in values["rows"] if n == 1 or (
            n * enough <= places and n <= 4 and n * words <= _MOST_SUMS and _fits(of, n, 1, words)
        )),
    )  # fmt: skip
    window = dense and of.rows.stride <= of.rows.kernel and _fits(of, rows, 1, words)
    return choices.config(threads=128, rows=rows, columns=1, vector=vector, window=window)


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule an operator on windows on a GPU.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of `outs`.
    outs : sequence of Tensor
        The results of a fused group.
    cfg : Config
        A config of `window_schedule`.
    target : Target
        A GPU.
    """
    of = windows_of(s, outs)
    held = cfg["window"] and not isinstance(of.image.op, PlaceholderOp)
    for op in computed(s):
        tensor = op.output(0)
        is_kept = tensor in (of.host, of.sums) or (held and tensor is of.image)
        if tensor in needed(of.host) and not is_kept:
            s[tensor].compute_inline()
    block, thread, inner = _bind_result(s, of, cfg)
    loops = [(of.host, axis) for axis in inner[:2]]
    for tensor in (of.sums, *((of.image,) if held else ())):
        s[tensor].set_scope("local")
        s[tensor].compute_at(s[of.host], thread)
    loops += _order_sums(s, of, cfg, unrolled=held)
    if held:
        loops += [(of.image, axis) for axis in of.image.op.axis[:-1]]
        last = of.image.op.axis[-1]
        if of.has_lanes:
            s[of.image].vectorize(last)
        else:
            loops.append((of.image, last))
    unroll_in_registers(s, of.host, block, loops)
    schedule_rest(s, of.host, target)


def _bind_result(s: Schedule, of: Windows, cfg: Config) -> tuple[Axis, Axis, list[Axis]]:
    """Bind the tiles of the result to threads.

    Returns
    -------
    tuple
        The loops over blocks and threads, and the loops of a tile: rows, columns, lanes.
    """
    stage, (y, x) = s[of.host], of.spatial
    outer, inner = [], []
    for n, axis in enumerate(of.host.op.axis):
        factor = {y: cfg["rows"], x: cfg["columns"]}.get(n, 1)
        if of.has_lanes and n == len(of.host.shape) - 1:
            factor = cfg["vector"]
        if n in (y, x) or (of.has_lanes and n == len(of.host.shape) - 1):
            axis, own = stage.split(axis, factor)
            inner.append(own)
        outer.append(axis)
    stage.reorder(*outer, *inner)
    block, thread = stage.split(fused(stage, outer), cfg["threads"])
    bind(stage, {"blockIdx.x": block, "threadIdx.x": thread})
    if of.has_lanes:
        stage.vectorize(inner[-1])
    return block, thread, inner


def _order_sums(
    s: Schedule, of: Windows, cfg: Config, *, unrolled: bool
) -> list[tuple[Tensor, Axis]]:
    """Order the loops of the sums: the window outside the tile; return those to unroll."""
    stage, op = s[of.sums], of.sums.op
    assert isinstance(op, ComputeOp)
    p, q = op.reduce_axis
    axes = list(op.axis)
    tile = [axes[n] for n in of.spatial] + (axes[-1:] if of.has_lanes else [])
    others = [axis for axis in axes if axis not in tile]
    stage.reorder(*others, p, q, *tile)
    if of.has_lanes:
        stage.vectorize(tile.pop())
    return [(of.sums, axis) for axis in (*((p, q) if unrolled else (q,)), *tile)]


DEPTHWISE = window_schedule(depthwise.windows)
POOL2D = window_schedule(pool2d.windows)
