"""Schedule sliding windows over images in NCHW, in vectors along the width.

Depthwise convolution and pooling have the same three stages: the padded image, ``….padded``; the
result of each window before the epilogue, ``….sums``; and the result. The first two are defined
larger than needed, so that all tiles have full size: only the stores of the result are guarded, and
all loads read whole vectors without conditions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.ops.conv2d.shapes import Window
from dlcompiler.ops.helpers import tensor
from dlcompiler.ops.separable import schedule_down
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.ops.stages import Loop, stages_by_role, unroll
from dlcompiler.ops.widening import converted
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Filter, Knob, Space, Workload, parallel_knob, split_knob
from dlcompiler.target import Target
from dlcompiler.te import Tensor

_TILE_ROWS = (1, 2, 3, 4, 5, 6, 7, 8)
_TILE_VECTORS = (1, 2, 4)
_CHANNELS = (1, 2, 4, 8, 16)
_FEWEST_LANES = 4
_TALLEST_STRIP = 8
"""Rows of tiles in the tallest strip that is not the whole image."""
EXTRA_ROWS = max(_TILE_ROWS) - 1
"""What the last tile may reach beyond the result."""
_MOST_LANES = 16
EXTRA_COLUMNS = _MOST_LANES * max(_TILE_VECTORS) - 1
"""What the last tile may reach beyond the result."""
_MOST_COPIES = 160
"""Steps of a reduction that are unrolled; beyond them the rows of the kernel are a loop."""
_MOST_COPIED_VECTORS = 16
"""Vectors of a padded row that are copied without a loop."""
_LOAD_CYCLES = 0.5
"""Time for each element of the images, which are copied first or come from memory [cycle]; on an
Emerald Rapids it is 0.3 to 1.6."""
_STRIP_BYTES = 4096
"""Most memory for the copied rows, if one tile needs no more [byte].

On an Emerald Rapids, copies of 8 KB take 5 to 15 % longer, and those of 16 KB 15 to 40 %, with
vectors of 512 and of 256 bits."""
_PIECES = 4
"""Fewest blocks of channels for each core: one may take longer than another."""
_MOST_STRIDED_ROWS = 7
"""Rows of the tallest tile whose sums stay in registers if strided elements are shuffled."""


@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows over the rows of images."""

    images: int
    """Number of images."""
    channels: int
    """Number of channels of the result."""
    rows: Window
    """The window along the height."""
    columns: Window
    """The window along the width."""
    dtype: str
    """Dtype of the sums."""
    in_passes: bool = False
    """Whether columns are reduced first, in a stage ``….down``: see `dlcompiler.ops.separable`."""

    @property
    def taps(self) -> int:
        """Elements of a window."""
        return self.rows.kernel * self.columns.kernel

    @property
    def last(self) -> Sliding:
        """The windows of ``….sums``: those of the last pass are one row tall."""
        rows = Window(size=self.rows.out, kernel=1)
        return replace(self, rows=rows, in_passes=False) if self.in_passes else self


def framed(data: Tensor, rows: Window, columns: Window, value: Any, name: str) -> Tensor:
    """Define the padded images, in the dtype of `value`, large enough for the widest tile."""

    def element(n: Any, c: Any, y: Any, x: Any) -> Any:
        row, column = y - rows.before, x - columns.before
        is_inside = te.all(row >= 0, row < data.shape[2], column >= 0, column < data.shape[3])
        return te.if_then_else(is_inside, converted(data[n, c, row, column], value.dtype), value)

    height = reach(rows, rows.out + EXTRA_ROWS)
    width = reach(columns, columns.out + EXTRA_COLUMNS) + EXTRA_COLUMNS
    return tensor((*data.shape[:2], height, width), element, name)


def reach(window: Window, places: int) -> int:
    """Return the extent that `places` neighbouring windows read."""
    return (max(places, 1) - 1) * window.stride + window.reach


# -- the choices --------------------------------------------------------------------------------


def sliding_space(workload: Workload, of: Sliding, target: Target) -> Space:
    """Return the configs of `schedule_sliding`.

    ================  ==========================================================================
    ``rows``          of the register tile
    ``vectors``       side by side in a row of it
    ``lanes``         of a vector of sums: all that there are, or half of them
    ``strip``         rows of tiles for which the padded image is copied at a time
    ``channels``      of which strips are copied one after the other
    ``unroll_rows``   write out the rows of the window as well as its columns
    ``columns_first`` then go through it by columns, which read the same rows of the image
    ``copy_lanes``    of a vector of what is copied
    ``unroll_copy``   copy a row without a loop
    ``down_rows``     that the first of two passes computes together
    ``parallel``      run images and channels on several cores
    ================  ==========================================================================
    """
    lanes = lanes_of(of.columns.out, of.dtype, target)
    tallest = 1 << (max(of.rows.out, 1) - 1).bit_length()
    blocks = [c for c in _CHANNELS if max(of.channels, 1) % c == 0]
    knobs = [
        split_knob("rows", of.rows.out, _TILE_ROWS),
        Knob("vectors", _TILE_VECTORS),
        Knob("lanes", _halves(lanes)),
        Knob("strip", tuple(1 << n for n in range(tallest.bit_length()))),
        Knob("channels", tuple(blocks)),
        Knob("unroll_rows", (False, True)),
        Knob("columns_first", (False, True)),
        Knob("copy_lanes", _halves(lanes)),
        Knob("unroll_copy", (False, True)),
        *([split_knob("down_rows", of.rows.out, _TILE_ROWS)] if of.in_passes else []),
        parallel_knob(target.cores),
    ]
    return Space(workload, knobs, _filters(of.last))


def _halves(lanes: int) -> tuple[int, ...]:
    return (lanes // 2, lanes) if lanes > _FEWEST_LANES else (lanes,)


def _filters(of: Sliding) -> tuple[Filter, ...]:
    return (
        Filter(
            "a tile is not wider than twice the result",
            lambda v: v["vectors"] == 1 or v["vectors"] * v["lanes"] < 2 * of.columns.out,
        ),
        Filter("at most 16 accumulators", lambda v: v["rows"] * v["vectors"] <= 16),
        Filter(
            "a strip is not taller than twice the result",
            lambda v: v["strip"] == 1 or v["rows"] * v["strip"] < 2 * of.rows.out,
        ),
        Filter(
            "a window of several rows is written out in few copies",
            lambda v: (
                not v["unroll_rows"]
                or (of.rows.kernel > 1 and v["rows"] * v["vectors"] * of.taps <= 2 * _MOST_COPIES)
            ),
        ),
        Filter(
            "only a window that is written out has an order",
            lambda v: v["unroll_rows"] or not v["columns_first"],
        ),
        Filter(
            "a row is copied without a loop if it is short",
            lambda v: (
                not v["unroll_copy"]
                or of.columns.size // v["copy_lanes"] <= 2 * _MOST_COPIED_VECTORS
            ),
        ),
    )


def sliding_config(workload: Workload, of: Sliding, target: Target) -> Config:
    """Return the config that a simple model of the processor prefers.

    Notes
    -----
    A tile takes half a cycle for each multiply-add or for each load, whichever are more. A row of
    the image is loaded once for all rows of the result that read it. A strided load takes two
    loads and three shuffles, with registers for them. Of equally good tiles the smallest is taken.
    """
    choices = sliding_space(workload, of, target)
    values = {knob.name: knob.values for knob in choices.knobs}
    most = max(_TILE_ROWS) if of.columns.stride == 1 else _MOST_STRIDED_ROWS
    tile = of.last
    rows = min((r for r in values["rows"] if r <= most), key=lambda r: (_cycles(tile, r), r))
    lanes = lanes_of(of.columns.out, of.dtype, target)
    vectors = 1
    while (
        not _is_unrolled(tile, rows, vectors)
        and rows * vectors < 8
        and vectors < max(_TILE_VECTORS)
        and vectors * lanes < of.columns.out
    ):
        vectors *= 2
    pitch = reach(of.columns, of.columns.out) * dtypes.bytes_of(of.dtype)
    whole = pitch * reach(of.rows, of.rows.out)
    is_whole = whole <= _STRIP_BYTES
    covering = next(strip for strip in values["strip"] if strip * rows >= of.rows.out)
    strips = [
        strip
        for strip in values["strip"]
        if strip <= min(covering, _TALLEST_STRIP)
        and pitch * reach(of.rows, rows * strip) <= _STRIP_BYTES
    ]
    fewest = _PIECES * target.cores
    together = [
        count
        for count in values["channels"]
        if count * whole <= _STRIP_BYTES and of.images * of.channels >= fewest * count
    ]
    is_unrolled = tile.rows.kernel > 1 and _is_unrolled(tile, rows, vectors)
    taps = tile.taps + (of.rows.kernel if of.in_passes else 0)
    steps = of.images * of.channels * of.rows.out * of.columns.out * taps
    loads = of.images * of.channels * of.rows.size * of.columns.size
    down_rows = min(
        values.get("down_rows", (1,)), key=lambda r: (-(-of.rows.out // r) * (r + 1), r)
    )
    return choices.config(
        rows=rows,
        vectors=vectors,
        lanes=lanes,
        strip=covering if is_whole else max(strips, default=1),
        channels=max(together, default=1),
        unroll_rows=is_unrolled,
        columns_first=is_unrolled,
        copy_lanes=lanes,
        unroll_copy=of.columns.size // lanes <= _MOST_COPIED_VECTORS,
        **({"down_rows": down_rows} if of.in_passes else {}),
        parallel=of.images * of.channels >= target.cores
        and is_worth_sharing(max(steps / lanes, loads * _LOAD_CYCLES), target),
    )


def _cycles(of: Sliding, rows: int) -> float:
    """Return the time of a column of tiles that is one vector wide [cycle]."""
    tiles = -(-of.rows.out // rows)
    loads = reach(of.rows, rows) * of.columns.kernel
    products = rows * of.taps
    if not _is_unrolled(of, rows, 1):
        loads = products
    load_cycles = 0.5 if of.columns.stride == 1 else 2.0
    return tiles * (max(products / 2, loads * load_cycles) + rows + 4)


def _is_unrolled(of: Sliding, rows: int, vectors: int) -> bool:
    return rows * vectors * of.taps <= _MOST_COPIES


def lanes_of(width: int, dtype: str, target: Target) -> int:
    """Return the lanes of a vector: those of the target, or fewer for a narrow result."""
    return min(target.lanes(dtype), _MOST_LANES, 1 << (max(width, 1) - 1).bit_length())


# -- the schedule -------------------------------------------------------------------------------


def schedule_sliding(s: Schedule, result: Tensor, cfg: Config, target: Target) -> None:
    """Schedule windows over rows on a CPU.

    For each strip of rows, the padded image is copied; a tile of sums stays in registers.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of the result.
    result : Tensor
        Reads ``….sums``, which reads ``….padded``.
    cfg : Config
        A config of `sliding_space`.
    target : Target
        A CPU.
    """
    stages = stages_by_role(s)
    sums, padded = stages["sums"], stages["padded"]
    tile = s.cache_write(sums, "local")
    s[sums].compute_inline()

    strips, tiles, unrolled = _schedule_result(s, result, cfg)
    s[tile].compute_at(s[result], tiles)
    unrolled += _schedule_sums(s, tile, cfg)
    if "down" in stages:
        s[stages["down"]].compute_at(s[result], strips)
        schedule_down(s, stages["down"], cfg)
    s[padded].compute_at(s[result], strips)
    unrolled += _schedule_copy(s, padded, cfg)
    unroll(s, unrolled)


def _schedule_result(s: Schedule, result: Tensor, cfg: Config) -> tuple[Any, Any, list[Loop]]:
    """Split the result into tiles; return the loops over strips of rows and over tiles."""
    n, o, y, x = result.op.axis
    y, row = s[result].split(y, cfg["rows"])
    x, columns = s[result].split(x, cfg["vectors"] * cfg["lanes"])
    vector, lane = s[result].split(columns, cfg["lanes"])
    o, channel = s[result].split(o, cfg["channels"])
    blocks = s[result].fuse(n, o)
    strips, y = s[result].split(y, cfg["strip"])
    s[result].reorder(blocks, strips, channel, y, x, row, vector, lane)
    s[result].vectorize(lane)
    if cfg["parallel"]:
        s[result].parallel(blocks)
    return strips, x, [(result, row), (result, vector)]


def _schedule_sums(s: Schedule, tile: Tensor, cfg: Config) -> list[Loop]:
    """Order the loops of a tile: rows innermost, which read the same rows of the image."""
    _, _, y, x = tile.op.axis
    p, q = tile.op.reduce_axis
    s[tile].align_extent(x, cfg["lanes"])
    vector, lane = s[tile].split(x, cfg["lanes"])
    s[tile].reorder(*((q, p) if cfg["columns_first"] else (p, q)), y, vector, lane)
    s[tile].vectorize(lane)
    copies = (p, q, y, vector) if cfg["unroll_rows"] else (q, y, vector)
    return [(tile, axis) for axis in copies]


def _schedule_copy(s: Schedule, padded: Tensor, cfg: Config) -> list[Loop]:
    """Copy rows in vectors; edge rows get separate loops, and the last vector of a row a mask."""
    _, _, y, x = padded.op.axis
    s[padded].align_extent(x, cfg["copy_lanes"])
    vectors, lane = s[padded].split(x, cfg["copy_lanes"])
    s[padded].vectorize(lane)
    s[padded].pragma(y, "loop_partition_hint")
    if cfg["unroll_copy"]:
        return [(padded, vectors)]
    s[padded].pragma(vectors, "loop_partition_hint")
    return []
