"""Schedule attention on a CPU: a block of queries at a time, with its scores in the caches.

*Before*, then *after*, in tiles::

    products[b, h, i, j] = …            for b.h in parallel(heads):
    largest[b, h, i] = …                    keys = transposed, in panels of columns
    powers[b, h, i, j] = …                  for block in range(…):
    total[b, h, i] = …                          queries = … * scale
    sums[b, h, i, v] = …                        products = …         tiles of registers
    out[b, h, i, v] = …                         largest, powers, total = …
                                                for tile in range(…):
                                                    sums = …         a tile of registers
                                                    out = sums * inverse

The scores of a block of queries are stored for all keys; those of the whole are never stored. Rows
and columns are padded to whole tiles, so that no tile has a condition. Few queries are multiplied
by keys as they lie in memory: transposing the keys would take longer than the products.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.ir import Axis
from dlcompiler.ops.attention import Attention, score, sees, shared_heads
from dlcompiler.ops.attention_workload import NAME, described, operands
from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.helpers import along, over, tensor
from dlcompiler.ops.lanes import reduce_in_lanes, widest_power
from dlcompiler.ops.sharing import is_worth_sharing, product_cycles
from dlcompiler.ops.stages import Loop, stages_by_role, unroll
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Filter, Knob, Space, Workload, parallel_knob
from dlcompiler.target import Target
from dlcompiler.te import Tensor

_FEW = 8
"""Most queries that are multiplied by keys without transposing them."""
_MOST_ROWS = 12
"""Most rows of a tile of registers."""
_COLUMNS = 32
"""Keys are padded to a multiple of it."""
_KEYS_AT_ONCE = 4
"""Keys that few queries are multiplied by together."""
_SQUARE = 8
"""Columns that are transposed together in registers."""
_BLOCKS = (1, 2, 4, 8, 16, 32)
_CYCLES_OF_A_POWER = 2
"""Time of a power and what belongs to it on one core [cycle]."""


def tile_rows(rows: int) -> int:
    """Return the height of tiles that rows are padded to: with few rows of padding, and not low.

    Examples
    --------
    >>> tile_rows(128), tile_rows(197), tile_rows(14), tile_rows(3)
    (8, 11, 7, 3)
    """
    if rows <= _MOST_ROWS:
        return max(rows, 1)
    return min(range(6, _MOST_ROWS + 1), key=lambda n: (-(-rows // n) * n, -n))


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return the parameters of `attention_operator.define`, through the stages of the schedule."""
    query, key, value, *masks = given = operands(workload)
    return (*given, attention_in_tiles(query, key, value, *masks, of=described(workload)))


def attention_in_tiles(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *, of: Attention
) -> Tensor:
    """Define what `attention.attention` defines, with rows and columns that are whole tiles."""
    *lead, rows, depth = query.static_shape
    length, width = value.static_shape[-2:]
    dtype, own = query.dtype, shared_heads(query, key)
    zero, lowest = te.const(0, dtype), te.const(-math.inf, dtype)
    scale = te.const(of.scale, dtype)
    is_few = rows <= _FEW
    whole = rows if is_few else -(-rows // tile_rows(rows)) * tile_rows(rows)
    padded = length if is_few else -(-length // _COLUMNS) * _COLUMNS

    def scaled(*i: Any) -> Any:
        return _inside(i[-2], rows, query, (*i[:-2], _limit(i[-2], rows), i[-1])) * scale

    queries = tensor((*lead, whole, depth), scaled, "attention.queries")
    keys = key
    if not is_few:
        shape = (*key.static_shape[:-2], padded, depth)
        keys = tensor(shape, lambda *i: _inside(i[-2], length, key, i), "attention.keys")
    e = over(depth, "e")
    products = tensor(
        (*lead, whole, padded),
        lambda *i: te.sum(queries[(*i[:-1], e)] * keys[(*own(i[:-2]), i[-1], e)], axis=e),
        "attention.products",
    )
    plain = Attention(1.0, of.is_causal)
    is_seen = sees(mask, of)

    def scored(*i: Any) -> Any:
        at = (*i[:-2], _limit(i[-2], rows), i[-1])
        found, condition = score(products[i], mask, at, plain), is_seen(at)
        return found if condition is None else te.select(condition, found, lowest)

    scores = tensor((*lead, whole, length), scored, "attention.scores")
    last = len(scores.shape) - 1
    largest = along(scores, last, te.max, "attention.largest")

    def power(*i: Any) -> Any:
        base = te.select(largest[i[:-1]] == lowest, zero, largest[i[:-1]])
        return te.exp(te.minimum(scores[i] - base, zero))

    powers = tensor(scores.shape, power, "attention.powers")
    total = along(powers, last, te.sum, "attention.total")

    def inverse(*i: Any) -> Any:
        one = te.const(1, dtype)
        return one / te.select(total[i] == zero, one, total[i])

    inverses = tensor(total.shape, inverse, "attention.inverse")
    k = over(length, "k")
    sums = tensor(
        (*lead, whole, width),
        lambda *i: te.sum(powers[(*i[:-1], k)] * value[(*own(i[:-2]), k, i[-1])], axis=k),
        "attention.sums",
    )
    shape = (*lead, rows, width)
    return tensor(shape, lambda *i: sums[i] * inverses[i[:-1]], "attention", "attention")


def _inside(index: Any, extent: int, read: Tensor, i: Sequence[Any]) -> Any:
    """Return an element, or 0 in the padding."""
    return te.if_then_else(index < extent, read[tuple(i)], te.const(0, read.dtype))


def _limit(index: Any, extent: int) -> Any:
    return te.minimum(index, max(extent - 1, 0))


# -- the choices --------------------------------------------------------------------------------


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of `schedule`.

    ==============  ============================================================================
    ``block``       tiles of queries below each other, whose scores are in the caches together
    ``tile_n``      vectors of keys in a tile of scores
    ``tile_v``      vectors of the result in a tile
    ``unroll_k``    steps of a sum in one iteration of its loop
    ``parallel``    run heads on several cores
    ==============  ============================================================================
    """
    p: Mapping[str, Any] = workload.as_dict()
    lanes = target.lanes(p["dtype"])
    tiles = -(-p["rows"] // tile_rows(p["rows"]))
    columns = max(_COLUMNS // lanes, 1)
    vectors = max(-(-p["width"] // lanes), 1)
    is_few = p["rows"] <= _FEW
    knobs = [
        Knob("block", tuple(n for n in _BLOCKS if n < 2 * max(tiles, 1))),
        Knob("tile_n", (1,) if is_few else tuple(n for n in (1, 2, 4) if n <= columns)),
        Knob("tile_v", tuple(n for n in (1, 2, 4, 8) if n < 2 * vectors)),
        Knob("unroll_k", (1, 2, 4)),
        parallel_knob(target.cores),
    ]
    rows = tile_rows(p["rows"])
    fits = Filter(
        "the sums of a tile are in registers",
        lambda v: all(_fits(rows, n, target) for n in (v["tile_n"], v["tile_v"])),
    )
    return Space(workload, knobs, [fits])


def _fits(rows: int, vectors: int, target: Target) -> bool:
    """Tell whether the sums of a tile take at most three quarters of the registers."""
    return vectors == 1 or 4 * rows * vectors <= 3 * target.vector_registers


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with the widest tiles, and blocks whose scores take half of a core's L2."""
    p: Mapping[str, Any] = workload.as_dict()
    choices = space(workload, target)
    values = {knob.name: knob.values for knob in choices.knobs}
    rows = tile_rows(p["rows"])
    most = {
        name: max(n for n in values[name] if _fits(rows, n, target))
        for name in ("tile_n", "tile_v")
    }
    size = 2 * rows * max(p["length"], 1) * dtypes.bytes_of(p["dtype"])
    room = target.cache_bytes(1) // 2
    block = max((n for n in values["block"] if n * size <= room), default=1)
    heads = p["batch"] * p["heads"]
    flops = 2 * heads * p["rows"] * p["length"] * (p["depth"] + p["width"])
    cycles = product_cycles(flops, p["dtype"], target)
    is_parallel = heads >= target.cores and is_worth_sharing(cycles, target)
    return choices.config(**most, block=block, unroll_k=1, parallel=is_parallel)


# -- the schedule -------------------------------------------------------------------------------


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule attention on a CPU; see the module."""
    (out,) = outs
    stages = stages_by_role(s, NAME)
    lanes, depth = target.lanes(out.dtype), stages["queries"].static_shape[-1]
    rows = tile_rows(out.static_shape[-2])
    s[stages["scores"]].compute_inline()
    *stack, i, _ = out.op.axis
    head = s[out].fuse(*stack)
    loops, block, tile = _schedule_result(s, out, head, i, rows, cfg, lanes)
    if cfg["parallel"]:
        s[out].parallel(head)
    for name in ("queries", "products", "powers"):
        s[stages[name]].compute_at(s[out], block)
    if "keys" in stages:
        loops += _schedule_keys(s, stages["keys"], cfg["tile_n"] * lanes, lanes)
        s[stages["keys"]].compute_at(s[out], head)
        loops += _schedule_products(s, stages["products"], rows, cfg, lanes)
    else:
        loops += _schedule_dots(s, stages["products"], depth, lanes)
    extent = stages["powers"].static_shape[-1]
    for name in ("largest", "total"):
        parts = reduce_in_lanes(s, stages[name], widest_power(extent, lanes * 4))
        for part in (stages[name], *parts):
            s[part].compute_at(s[out], block)
    s[stages["inverse"]].compute_at(s[out], block)
    for name in ("queries", "powers"):
        stage, extent = s[stages[name]], stages[name].static_shape[-1]
        _, vector = stage.split(stage.op.axis[-1], widest_power(extent, lanes * 4))
        stage.vectorize(vector)
    sums = stages["sums"]
    s[sums].set_scope("local")
    s[sums].compute_at(s[out], tile)
    unroll(s, [*loops, *_schedule_tile(s, sums, cfg["unroll_k"], lanes)])


def _schedule_result(
    s: Schedule, out: Tensor, head: Axis, i: Axis, rows: int, cfg: Config, lanes: int
) -> tuple[list[Loop], Axis, Axis]:
    """Split the result; return loops to unroll, and the loops over blocks and tiles."""
    blocks, row = s[out].split(i, cfg["block"] * rows)
    tiles, row = s[out].split(row, rows)
    columns, column = s[out].split(out.op.axis[-1], cfg["tile_v"] * lanes)
    vectors, vector = s[out].split(column, lanes)
    s[out].reorder(head, blocks, columns, tiles, row, vectors, vector)
    s[out].vectorize(vector)
    return [(out, row), (out, vectors)], blocks, tiles


def _schedule_keys(s: Schedule, keys: Tensor, columns: int, lanes: int) -> list[Loop]:
    """Store the keys of a head transposed, in panels of columns; return loops to unroll."""
    stage = s[keys]
    axes = stage.transform_layout(lambda *i: [*i[:-2], i[-2] // columns, i[-1], i[-2] % columns])
    panel, e, column = axes[-3:]
    vectors, vector = stage.split(column, lanes)
    steps, step = stage.split(e, _SQUARE)
    stage.reorder(panel, steps, vectors, step, vector)
    stage.vectorize(vector)
    return [(keys, step), (keys, vectors)]


def _schedule_products(
    s: Schedule, products: Tensor, rows: int, cfg: Config, lanes: int
) -> list[Loop]:
    """Compute products in tiles of registers, panel by panel; return loops to unroll."""
    sums = s.cache_write(products, "local")
    stage = s[products]
    i, j = stage.op.axis[-2:]
    tiles, row = stage.split(i, rows)
    panels, column = stage.split(j, cfg["tile_n"] * lanes)
    vectors, vector = stage.split(column, lanes)
    stage.reorder(panels, tiles, row, vectors, vector)
    stage.vectorize(vector)
    s[sums].compute_at(stage, tiles)
    own = _schedule_tile(s, sums, cfg["unroll_k"], lanes)
    return [(products, row), (products, vectors), *own]


def _schedule_tile(s: Schedule, sums: Tensor, steps: int, lanes: int) -> list[Loop]:
    """Order the loops of sums in registers; return those to unroll."""
    i, j = s[sums].op.axis[-2:]
    (k,) = s[sums].op.reduce_axis
    vectors, vector = s[sums].split(j, lanes)
    k, step = s[sums].split(k, steps)
    s[sums].reorder(k, step, i, vectors, vector)
    s[sums].vectorize(vector)
    return [(sums, step), (sums, i), (sums, vectors)]


def _schedule_dots(s: Schedule, products: Tensor, depth: int, lanes: int) -> list[Loop]:
    """Multiply vectors along the depth, and add up their lanes at the end of each product."""
    stage = s[products]
    result = s.cache_write(products, "local")
    i, j = stage.op.axis[-2:]
    groups, column = stage.split(j, _KEYS_AT_ONCE)
    stage.reorder(groups, i, column)
    (e,) = s[result].op.reduce_axis
    _, lane = s[result].split(e, widest_power(depth, lanes))
    parts = s.rfactor(result, lane, factor_axis=-1)
    for each in (result, parts):
        s[each].set_scope("local")
        s[each].compute_at(stage, groups)
    *_, i2, j2, lane = s[parts].op.axis
    (steps,) = s[parts].op.reduce_axis
    s[parts].reorder(steps, i2, j2, lane)
    s[parts].vectorize(lane)
    both = [(parts, i2), (parts, j2), (products, i), (products, column)]
    return [*both, *((result, axis) for axis in s[result].op.axis[-2:]),
            *((result, axis) for axis in s[result].op.reduce_axis)]  # fmt: skip


TILES = DeviceSchedule(space, default_config, schedule, define=define)
