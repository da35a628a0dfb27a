"""The CPU schedule of bit-serial products: counts of a tile in registers, outputs in the lanes.

*After*, for two data bits, one weight bit, and 8 lanes of words::

    planes = …                                  bits of the data, packed
    for rows, blocks:
        for tile in …:
            for word in …:
                for x, p, q, vector in unrolled(…):
                    counts[x, p, q, v : +8] += popcount(planes[…] & weight[…, v : +8])
            sums[x, v : +8] = (counts[x, 0, 0, …] << 0) + (counts[x, 1, 0, …] << 1)
        result = sums                           in NCHW transposed in registers

Shifts are outside the loop over words, which takes an ``and``, a ``popcount`` and an addition for a
vector of words and a pair of planes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.bitserial.encoding import RESULT, Encoding
from dlcompiler.ops.conv2d.shapes import shape_of
from dlcompiler.ops.conv2d.tiles import pieces, shares_evenly
from dlcompiler.ops.lanes import widest_power
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.ops.stages import Loop, stages_by_role, unroll
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Filter, Knob, Space, Workload, parallel_knob
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, Tensor

_TILES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 14)
_VECTORS = (1, 2, 4)
_MOST_COUNTS = 32
"""Most vectors of counts in a tile: more would be spilled, and take long to compile."""
_FREE = 4
"""Registers for words and for bits of a product."""
_STEP, _LOAD, _LOOP = 1.5, 0.5, 1.0
"""Time for a vector of counts, to load a vector or an element, and of an iteration [cycle]."""


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ==============  ============================================================================
    ``tile_x``      rows of a matrix, or neighbouring pixels, in a tile of registers
    ``tile_n``      its outputs: 1, 2 or 4 vectors of words
    ``order``       outermost loop: ``rows`` of the result, or ``blocks`` of outputs
    ``parallel``    run the outermost loop on several cores
    ==============  ============================================================================
    """
    encoding, (_, along, _) = Encoding.of(workload), _extents(workload)
    lanes = _lanes(encoding, target)
    widths = tuple(lanes * v for v in _VECTORS if lanes * v <= encoding.block)
    pairs = encoding.data_bits * encoding.weight_bits
    most = max(_MOST_COUNTS, pairs)  # the smallest tile is always allowed
    knobs = [
        Knob("tile_x", tuple(t for t in _TILES if t <= max(along, 1))),
        Knob("tile_n", widths),
        Knob("order", ("rows", "blocks"), is_by_cores=True),
        parallel_knob(target.cores),
    ]
    return Space(workload, knobs, [
        Filter(f"at most {most} vectors of counts",
               lambda v: v["tile_x"] * (v["tile_n"] // lanes) * pairs <= most),
    ])  # fmt: skip


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config whose tile needs the fewest cycles, and fits the registers."""
    encoding, (rows, along, steps) = Encoding.of(workload), _extents(workload)
    choices, lanes = space(workload, target), _lanes(encoding, target)
    values: dict[str, tuple[Any, ...]] = {knob.name: knob.values for knob in choices.knobs}
    data, weight = encoding.data_bits, encoding.weight_bits

    def cycles(x: int, vectors: int) -> float:
        counts = x * vectors * data * weight
        return _STEP * counts + _LOAD * (x * data + vectors * weight) + _LOOP

    def cost(tile: tuple[int, int]) -> float:
        vectors = tile[1] // lanes
        whole = sum(count * cycles(x, vectors) for x, count in pieces(max(along, 1), tile[0]))
        return whole * encoding.block / tile[1]

    def fits(tile: tuple[int, int]) -> bool:
        vectors = tile[1] // lanes
        counts = tile[0] * vectors * data * weight
        return counts + vectors * weight + _FREE <= target.vector_registers

    tiles = [(x, n) for x in values["tile_x"] for n in values["tile_n"]]
    fitting = [tile for tile in tiles if fits(tile)] or [(1, lanes)]
    tile_x, tile_n = min(fitting, key=cost)
    blocks = -(-_outputs(workload) // encoding.block)
    per_block = rows * steps * cost((tile_x, tile_n)) / lanes
    is_parallel = is_worth_sharing(per_block * blocks, target)
    outer = rows if rows > 1 else -(-along // tile_x)
    by_rows = shares_evenly(outer, target.cores) if is_parallel else rows > 1
    order = "rows" if by_rows else "blocks"
    return choices.config(tile_x=tile_x, tile_n=tile_n, order=order, parallel=is_parallel)


def _lanes(encoding: Encoding, target: Target) -> int:
    return min(target.lanes(encoding.word), encoding.block)


def _outputs(workload: Workload) -> int:
    return int(workload["n" if workload.op == "bitserial_dense" else "o"])


def _extents(workload: Workload) -> tuple[int, int, int]:
    """Return rows of pixels, pixels of a row, and words of a sum; a matrix is one row."""
    words = Encoding.of(workload).words
    if workload.op == "bitserial_dense":
        return 1, int(workload["m"]), words(int(workload["k"]))
    shape = shape_of(workload)
    taps = shape.rows.kernel * shape.columns.kernel
    return shape.n * shape.rows.out, shape.columns.out, words(shape.c) * taps


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a bit-serial product on a CPU: counts of a tile in registers, outputs in the lanes.

    The bits of the data are packed first: by a comparison for each word where numbers lie side by
    side, else in vectors of pixels.
    """
    (result,) = outs
    assert isinstance(result.op, ComputeOp)
    name, _, layout = result.op.tag.partition(":")
    stages = stages_by_role(s, name)
    sums, counts = stages["sums"], stages["counts"]
    block = sums.static_shape[-1]
    loops, place = _schedule_result(s, result, layout, block, cfg, target)
    s[sums].compute_at(s[result], place)
    loops += _schedule_sums(s, sums, counts, cfg, target)
    loops += _schedule_planes(s, stages, layout, cfg, target)
    for role in ("filled", "image", "pixels", "totals"):
        if role in stages:
            _schedule_copy(s, stages[role], cfg, target)
    unroll(s, loops)


def _schedule_result(
    s: Schedule, result: Tensor, layout: str, block: int, cfg: Config, target: Target
) -> tuple[list[Loop], Axis]:
    """Split the result into blocks; return loops to unroll, and where its sums are computed."""
    stage, lanes = s[result], min(target.lanes(RESULT), block)
    lead, x, o = _axes(result, layout)
    blocks, channel = stage.split(o, block)
    loops: list[Loop] = []
    outer = list(lead)
    if layout == "NCHW":  # whole rows: squares of elements are transposed in registers
        columns, lane = stage.split(x, lanes)
        vectors, vector = stage.split(channel, lanes)
        inside = [vectors, columns, vector, lane]
        loops = [(result, vector)]
    else:
        tiles, row = stage.split(x, cfg["tile_x"])
        vectors, lane = stage.split(channel, lanes)
        outer, inside = [*lead, tiles], [row, vectors, lane]
    stage.vectorize(lane)
    by_rows = cfg["order"] == "rows"
    around = [*outer, blocks] if by_rows else [blocks, *outer]
    stage.reorder(*around, *inside)
    place = around[-1]
    if cfg["parallel"]:
        together = lead if by_rows and lead else around[:1]
        shared = stage.fuse(*together) if len(together) > 1 else together[0]
        stage.parallel(shared)
        place = shared if place in together else place
    return loops, place


def _axes(result: Tensor, layout: str) -> tuple[list[Axis], Axis, Axis]:
    """Return the outer axes of a result, that of neighbouring rows or pixels, and of outputs."""
    axes = list(result.op.axis)
    if layout == "NCHW":
        n, o, y, x = axes
        return [n, y], x, o
    *lead, x, o = axes
    return lead, x, o


def _schedule_sums(
    s: Schedule, sums: Tensor, counts: Tensor, cfg: Config, target: Target
) -> list[Loop]:
    """Compute sums tile by tile; return loops to unroll."""
    lanes = min(target.lanes(counts.dtype), counts.static_shape[-1])
    stage = s[sums]
    *_, x, v = sums.op.axis
    tiles, row = stage.split(x, cfg["tile_x"])
    parts, column = stage.split(v, cfg["tile_n"])
    vectors, vector = stage.split(column, lanes)
    stage.reorder(tiles, parts, row, vectors, vector)
    stage.vectorize(vector)
    s[counts].set_scope("local")
    s[counts].compute_at(stage, parts)
    *_, x, p, q, v = counts.op.axis
    own, lane = s[counts].split(v, lanes)
    s[counts].reorder(*counts.op.reduce_axis, x, p, q, own, lane)
    s[counts].vectorize(lane)
    return [(sums, row), (sums, vectors), *((counts, axis) for axis in (x, p, q, own))]


def _schedule_planes(
    s: Schedule, stages: dict[str, Tensor], layout: str, cfg: Config, target: Target
) -> list[Loop]:
    """Pack bits: by an instruction where numbers lie side by side, else a row in vectors."""
    planes = stages["planes"]
    stage = s[planes]
    (t,) = planes.op.reduce_axis
    if layout == "MN":
        i, word, plane = planes.op.axis
        outer = [i, word]
    elif layout == "NHWC":
        n, y, word, plane, x = planes.op.axis
        outer = [n, y, x, word]
    else:
        return _schedule_row_planes(s, planes, stages["bytes"], cfg, target)
    stage.reorder(*outer, plane, t)
    if "bits" in target.emits and 0 not in planes.shape:
        stage.tensorize(plane, f"bits_u{t.extent}_{plane.extent}x{t.extent}")
    _share(s, planes, outer, cfg)
    return []


def _schedule_row_planes(
    s: Schedule, planes: Tensor, packed: Tensor, cfg: Config, target: Target
) -> list[Loop]:
    """Pack the bits of channels that lie apart: eight channels to bytes, then bytes to words."""
    loops: list[Loop] = []
    for tensor in (planes, packed):
        stage = s[tensor]
        local = s.cache_write(tensor, "local")
        *outer, plane, x = tensor.op.axis
        lanes = widest_power(tensor.static_shape[-1], target.lanes(tensor.dtype))
        vectors, vector = stage.split(x, lanes)
        stage.reorder(*outer, vectors, plane, vector)
        stage.vectorize(vector)
        s[local].compute_at(stage, vectors)
        *_, own, lane = local.op.axis
        s[local].reorder(*local.op.reduce_axis, own, lane)
        s[local].vectorize(lane)
        _share(s, tensor, outer, cfg)
        loops += [(tensor, plane), (local, own), (local, *local.op.reduce_axis)]
    return loops


def _share(s: Schedule, tensor: Tensor, outer: Sequence[Axis], cfg: Config) -> None:
    if cfg["parallel"]:
        s[tensor].parallel(s[tensor].fuse(*outer[:2]))


def _schedule_copy(s: Schedule, tensor: Tensor, cfg: Config, target: Target) -> None:
    """Compute a stage in vectors along its last dimension."""
    stage = s[tensor]
    assert isinstance(tensor.op, ComputeOp)
    *outer, last = tensor.op.axis
    width = widest_power(tensor.static_shape[-1], target.lanes(tensor.dtype))
    vectors, vector = stage.split(last, width)
    stage.reorder(*outer, vectors, *tensor.op.reduce_axis, vector)
    stage.vectorize(vector)
    if cfg["parallel"] and outer:
        stage.parallel(stage.fuse(*outer) if len(outer) > 1 else outer[0])


CPU = DeviceSchedule(space, default_config, schedule)
