"""Schedule recurrent layers on a CPU: tiles of sums in registers, step after step.

*Before*, then *after*, of an LSTM::

    inputs[m, g, j] = …                 for block in parallel(…):
    for t in range(steps):                  for panel in range(…):
        sums[t, n, g, j] = …                    for tile in range(…):
        new[t, n, j] = …                            data_sums = …      a tile of registers
        step[t, n, j] = …                           inputs = data_sums + biases
                                        for t in range(steps):
                                            for panel in parallel(…):
                                                for tile in range(…):
                                                    sums = …           a tile of registers
                                                    new = …
                                                    step = …

A tile has some rows of the batch and all gates of a panel of the state. So the gates of an element
are in registers when its state is computed, and each vector of weights is used for all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dlcompiler import dtypes
from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.prefetching import prefetch_weights
from dlcompiler.ops.recurrent_tiles import define
from dlcompiler.ops.recurrent_workload import Layer
from dlcompiler.ops.sharing import is_worth_sharing, product_cycles
from dlcompiler.ops.stages import Loop, stages_by_role, unroll
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Knob, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, Tensor

_MOST_ROWS = 12
"""Most rows of a tile of registers."""
_BLOCKS = (0, 4, 8, 16, 32)
_UNROLLED = (1, 2, 4)
_READ_BYTES = 16
"""Bandwidth of one core for weights beyond its own caches [byte / cycle]."""
_SQUARE = 8
"""Terms of a weight that are transposed together in registers."""


def _most_rows(vectors: int, target: Target) -> int:
    """Return the most rows of a tile whose sums take at most three quarters of the registers."""
    return max(min(3 * target.vector_registers // (4 * vectors), _MOST_ROWS), 1)


def _most(layer: Layer, target: Target) -> int:
    """Return the most rows of a tile for a layer."""
    return _most_rows(layer.gates * -(-layer.panel // target.lanes(layer.dtype)), target)


def _rows(extent: int, most: int) -> int:
    """Return the rows of a tile: few tiles, whose rows are alike.

    Examples
    --------
    >>> [_rows(extent, 6) for extent in (1, 5, 7, 20, 700, 32)]
    [1, 5, 4, 5, 5, 6]
    """
    even = max(n for n in range(1, min(most, extent) + 1) if extent % n == 0)
    is_high = 4 * even >= 3 * min(most, extent)
    return even if is_high else -(-extent // -(-extent // most))


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ==============  ============================================================================
    ``tile_x``      rows of a tile of the products of the data
    ``tile_m``      rows of the batch in a tile of a step
    ``block``       tiles of the data's products below each other that one panel is used for;
                    0: all of them
    ``unroll_k``    terms of a sum in one iteration of its loop
    ``parallel``    what several cores share: ``""`` nothing, ``data`` the products of the data,
                    ``steps`` also the panels of each step
    ==============  ============================================================================
    """
    layer = Layer.of(workload)
    most = _most(layer, target)

    def rows(extent: int) -> tuple[int, ...]:
        usual = {n for n in (1, 2, 3, 4, 6, 8, 12) if n <= min(most, extent)}
        return tuple(sorted(usual | {_rows(extent, most)}))

    shared = ("", "data", "steps") if target.cores > 1 else ("",)
    knobs = [
        Knob("tile_x", rows(layer.steps * layer.batch)),
        Knob("tile_m", rows(layer.batch)),
        Knob("block", _BLOCKS),
        Knob("unroll_k", _UNROLLED),
        Knob("parallel", shared, is_by_cores=True),
    ]
    return Space(workload, knobs)


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with the highest tiles, and blocks of data that take half of L2."""
    layer = Layer.of(workload)
    most = _most(layer, target)
    tile = _rows(layer.steps * layer.batch, most)
    tile_bytes = tile * layer.inputs * dtypes.bytes_of(layer.dtype)
    room = target.cache_bytes(1) // 2 // tile_bytes
    tiles = -(-layer.steps * layer.batch // tile)
    block = max((n for n in _BLOCKS[1:] if n <= room), default=_BLOCKS[1])
    return space(workload, target).config(
        tile_x=tile, tile_m=_rows(layer.batch, most), block=0 if tiles <= room else block,
        unroll_k=1, parallel=_shared(layer, target),
    )  # fmt: skip


def _shared(layer: Layer, target: Target) -> str:
    gates = layer.gates * layer.hidden
    step = product_cycles(2.0 * layer.batch * gates * layer.hidden, layer.dtype, target)
    read = gates * layer.hidden * dtypes.bytes_of(layer.weight_dtype or layer.dtype) / _READ_BYTES
    if is_worth_sharing(max(step, read), target) and layer.panels >= target.cores:
        return "steps"
    flops = 2.0 * layer.steps * layer.batch * gates * layer.inputs
    return "data" if is_worth_sharing(product_cycles(flops, layer.dtype, target), target) else ""


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a recurrent layer on a CPU; see the module."""
    stages = stages_by_role(s, "recurrent")
    tile = _Tile.of(stages, target)
    lanes = tile.lanes
    s[stages["rows"]].compute_inline()
    loops = _schedule_inputs(s, stages, cfg, tile)
    if "reset" in stages:
        loops += _schedule_step(s, stages, "reset", "reset_sums", cfg, tile)
    loops += _schedule_step(s, stages, "step", "sums", cfg, tile)
    for role in ("data_sums", "reset_sums", "sums"):
        if role in stages:
            _prefetch_panels(s, stages[role], target)
    for role in ("panels_ih", "panels_hh"):
        if role in stages:
            loops += _schedule_panels(s, stages[role], lanes)
    padded = ("first_hidden", "first_cell", "padded_ih", "padded_hh")
    for each in (*(stages[role] for role in padded if role in stages), *outs):
        _, vector = s[each].split(s[each].op.axis[-1], lanes)
        s[each].vectorize(vector)
    unroll(s, loops)


@dataclass(frozen=True, slots=True)
class _Tile:
    """The columns of a tile of sums."""

    panel: int
    """Elements of the state."""
    lanes: int
    is_low: bool
    """It has fewer rows than vectors: then the rows of a vector of weights come one after the
    other, so that registers hold one vector of weights, and an element of each row."""

    @staticmethod
    def of(stages: Mapping[str, Tensor], target: Target) -> _Tile:
        """Return the tile for the weights of a layer."""
        weight = next(t for t in stages["data_sums"].op.input_tensors if t.ndim == 4)
        _, _, gates, panel = weight.static_shape
        lanes = target.lanes(stages["data_sums"].dtype)
        vectors = gates * -(-panel // lanes)
        return _Tile(panel, lanes, _most_rows(vectors, target) < vectors)


def _schedule_inputs(
    s: Schedule, stages: Mapping[str, Tensor], cfg: Config, tile: _Tile
) -> list[Loop]:
    """Compute the products of the data block by block; return loops to unroll."""
    inputs = stages["inputs"]
    stage = s[inputs]
    m, gate, j = stage.op.axis
    panels, column = stage.split(j, tile.panel)
    vectors, vector = stage.split(column, tile.lanes)
    tiles, row = stage.split(m, cfg["tile_x"])
    order = [panels, tiles]
    if cfg["block"]:
        blocks, tiles = stage.split(tiles, cfg["block"])
        order = [blocks, panels, tiles]
    stage.reorder(*order, row, gate, vectors, vector)
    stage.vectorize(vector)
    if cfg["parallel"]:
        stage.parallel(order[0])
    loops = _schedule_sums(s, stages["data_sums"], cfg, tile, is_step=False)
    s[stages["data_sums"]].compute_at(stage, tiles)
    return [(inputs, gate), (inputs, vectors), *loops]


def _schedule_step(
    s: Schedule, stages: Mapping[str, Tensor], role: str, sums: str, cfg: Config, tile: _Tile
) -> list[Loop]:
    """Compute the states of a step panel by panel; return loops to unroll."""
    stage = s[stages[role]]
    _, n, j = stage.op.axis
    panels, column = stage.split(j, tile.panel)
    vectors, vector = stage.split(column, tile.lanes)
    tiles, row = stage.split(n, cfg["tile_m"])
    stage.reorder(panels, tiles, row, vectors, vector)
    stage.vectorize(vector)
    if cfg["parallel"] == "steps":
        stage.parallel(panels)
    loops = _schedule_sums(s, stages[sums], cfg, tile, is_step=True)
    s[stages[sums]].compute_at(stage, tiles)
    if role == "step" and "new" in stages:
        new = s[stages["new"]]
        _, own = new.split(new.op.axis[-1], tile.lanes)
        new.vectorize(own)
        new.set_scope("local")
        new.compute_at(stage, vectors)
    return [(stages[role], vectors), *loops]


def _schedule_sums(
    s: Schedule, sums: Tensor, cfg: Config, tile: _Tile, *, is_step: bool
) -> list[Loop]:
    """Order the loops of sums in registers; return those to unroll."""
    op = sums.op
    assert isinstance(op, ComputeOp)
    *rows, j = op.axis[is_step:]
    (k,) = op.reduce_axis
    vectors, vector = s[sums].split(j, tile.lanes)
    k, term = s[sums].split(k, cfg["unroll_k"])
    row, *gates = rows
    inside = (*gates, vectors, row) if tile.is_low else (row, *gates, vectors)
    s[sums].reorder(k, term, *inside, vector)
    s[sums].vectorize(vector)
    s[sums].set_scope("local")
    return [(sums, axis) for axis in (term, *inside)]


def _prefetch_panels(s: Schedule, sums: Tensor, target: Target) -> None:
    """Prefetch the packed weights that sums read."""
    weight = next(t for t in sums.op.input_tensors if t.ndim == 4)
    stage = s[sums]
    steps = next(axis for axis in stage.leaf_iter_vars if axis.kind == "reduce")
    prefetch_weights(stage, weight, steps, target)


def _schedule_panels(s: Schedule, panels: Tensor, lanes: int) -> list[Loop]:
    """Pack weights; return loops to unroll."""
    stage = s[panels]
    panel, k, gate, column = stage.op.axis
    vectors, vector = stage.split(column, lanes)
    terms, term = stage.split(k, _SQUARE)
    stage.reorder(panel, terms, gate, vectors, term, vector)
    stage.vectorize(vector)
    return [(panels, term)]


TILES = DeviceSchedule(space, default_config, schedule, define=define)
