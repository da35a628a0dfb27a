"""The default configs of products on GPUs: those that `dlcompiler.ops.gpu.model` prefers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ops.gpu.model import LANES, Machine, Work, copied, registers_of
from dlcompiler.ops.gpu.space import (
    Shape,
    Values,
    block_of,
    columns_of,
    rows_of,
    shared_bytes,
    space_of,
    tile_of,
)
from dlcompiler.ops.gpu.tensor_cores import step_of
from dlcompiler.space import Config, Space, Workload
from dlcompiler.target import Target

_KEPT = 256
_USUAL_THREADS = 256
_AS_GOOD = 1.05
"""Configs whose times differ by less count as equal [1]."""
_ADDING_THREADS = 128
_VECTOR_PASSES = {16: 2, 8: 1}
"""Bytes of a vector -> passes of a load from shared memory by a warp, in pairs of threads."""
_ENOUGH_BLOCKS = 4
"""Blocks for each multiprocessor that a reduction is split for, at most [1]."""
_FEWEST_STEPS = 4
"""Steps of a block below which the reduction is not split further [1]."""

_UNITS = {"int32": "integer"}
"""Dtype of the sums -> the rate of their multiply-adds, where it is not that of the dtype."""


def default_of(workload: Workload, shape: Shape, target: Target) -> Config:
    """Return the config of a product that the model of the GPU prefers.

    Of few shapes of blocks, threads and steps, all that the rules of the space allow are compared.
    """
    return space_of(workload, shape, target).config(**chosen(shape, target))


@lru_cache(_KEPT)
def chosen(shape: Shape, target: Target) -> Mapping[str, Any]:
    """Return the values of the knobs of the default config."""
    return _best(shape, target)[0]


def seconds_of(shape: Shape, target: Target) -> float:
    """Return about how long the default config takes [s]."""
    return _best(shape, target)[1]


@lru_cache(_KEPT)
def _best(shape: Shape, target: Target) -> tuple[Mapping[str, Any], float]:
    choices = space_of(Workload.of("product"), shape, target)
    candidates, work = _CANDIDATES[shape.form(target)], _WORK[shape.form(target)]
    machine = Machine(target)
    found = [
        (_seconds(shape, values, work(shape, values), machine), values)
        for values in candidates(shape, choices, machine.processors)
        if all(rule.allows(values) for rule in choices.filters)
    ]
    least = min((time for time, _ in found), default=math.inf)
    if math.isinf(least):
        first = choices.at(next(choices.allowed()))
        return dict(first.values), math.inf
    good = [values for time, values in found if time <= _AS_GOOD * least]
    values = max(good, key=lambda v: _preference(shape, v, machine))
    return {**values, **_order(shape, values, machine)}, least


def _preference(shape: Shape, v: Values, machine: Machine) -> tuple[int, float]:
    """Return what decides between configs that the model counts as equal; the greatest is best.

    Two blocks at once hide the barriers of each other, which the model does not know. A block
    should then use each element that it loads as often as possible, since the model knows no
    caches; without tiles it should have some warps.
    """
    if v["form"] == "threads":
        return 1, min(v["lanes_k"] * v["groups"], _USUAL_THREADS)
    rows, columns = tile_of(v) if v["form"] == "warps" else block_of(v)
    return min(machine.resident(_WORK[v["form"]](shape, v)), 2), rows * columns / (rows + columns)


def _values(choices: Space, wanted: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the combinations of some values of knobs; others have their first value."""
    lists = {
        knob.name: [v for v in wanted.get(knob.name, knob.values[:1]) if v in knob.values]
        or list(knob.values[:1])
        for knob in choices.knobs
    }
    names = list(lists)

    def below(depth: int) -> Iterator[dict[str, Any]]:
        if depth == len(names):
            yield {}
            return
        for value in lists[names[depth]]:
            for rest in below(depth + 1):
                yield {names[depth]: value, **rest}

    yield from below(0)


def _splits(
    shape: Shape, v: Values, tile: tuple[int, int], choices: Space, processors: int
) -> Iterator[int]:
    """Yield the parts of the reduction that give a GPU enough blocks, and not far too many."""
    (knob,) = (knob for knob in choices.knobs if knob.name == "split")
    blocks = -(-shape.m // tile[0]) * -(-shape.n // tile[1]) * shape.stack
    steps = shape.depth // v["depth"]
    for split in knob.values:
        is_whole = steps % split == 0 and steps // split >= _FEWEST_STEPS
        if split == 1 or (is_whole and blocks * split <= _ENOUGH_BLOCKS * processors):
            yield int(split)


# -- tiles --------------------------------------------------------------------------------------


def _tile_candidates(shape: Shape, choices: Space, processors: int) -> Iterator[dict[str, Any]]:
    wanted = {
        "warps": [(1, 1), (1, 2), (2, 1), (2, 2), (2, 4), (4, 2), (4, 4)],
        "lanes_m": [4, 8],
        "rows": [(1, 1), (1, 2), (1, 4), (2, 2), (2, 4), (4, 2)],
        "columns": [(1, 1), (1, 2), (1, 4), (2, 2), (2, 4), (4, 2), (4, 4)],
        "depth": [8, 16, 32],
        "buffers": [2],
    }
    for values in _values(choices, wanted):
        if not _is_even(values):
            continue
        tile = block_of(values)
        for split in _splits(shape, values, tile, choices, processors):
            made = {**values, "split": split, "raster": 1}
            made["loads"] = _loads(choices, made, tile)
            yield made


def _is_even(v: Values) -> bool:
    """Tell whether a tile is about as high as wide: then it loads least for its multiply-adds."""
    rows, columns = block_of(v)
    own = rows_of(v), columns_of(v)
    return max(rows, columns) <= 4 * min(rows, columns) and max(own) <= 4 * min(own)


def _loads(choices: Space, v: Values, block: tuple[int, int]) -> tuple[int, int]:
    """Return the longest loads with which all threads of a block copy something."""
    (knob,) = (knob for knob in choices.knobs if knob.name == "loads")
    warps_m, warps_n = v["warps"]
    threads = warps_m * warps_n * LANES
    for left, right in knob.values:
        if min(block[0] / left, block[1] / right) * v["depth"] >= threads:
            return left, right
    return tuple(knob.values[-1])


def _tile_work(shape: Shape, v: Values) -> Work:
    item, (bm, bn), depth = dtypes.bytes_of(shape.dtype), block_of(v), int(v["depth"])
    warps, rows, columns = v["warps"][0] * v["warps"][1], rows_of(v), columns_of(v)
    passes = sum(
        parts * _VECTOR_PASSES.get(size * item, 1) for parts, size in (v["rows"], v["columns"])
    )
    copies = [
        copied(extent, depth, item, lanes, is_scattered=along)
        for extent, lanes, along in zip((bm, bn), v["loads"], shape.along_k, strict=True)
    ]
    loaded = v["rows"][0] + v["columns"][0]
    converted = rows + columns if shape.dtype != shape.sums_dtype else 0
    return _work(
        shape, v, (bm, bn),
        unit=_UNITS.get(shape.sums_dtype, shape.sums_dtype),
        products=bm * bn * depth,
        instructions=depth * (rows * columns + loaded + converted) + 16,
        passes=warps * depth * passes + sum(stores for stores, _ in copies),
        loads=sum(loads for _, loads in copies),
        registers=registers_of(rows * columns, rows + columns, shape.sums_dtype),
    )  # fmt: skip


def _work(shape: Shape, v: Values, tile: tuple[int, int], **counts: Any) -> Work:
    """Return the work of the form of tiles or of warps."""
    item, wide = dtypes.bytes_of(shape.dtype), dtypes.bytes_of(shape.sums_dtype)
    (bm, bn), split, depth = tile, int(v["split"]), int(v["depth"])
    is_whole = split == 1 and shape.sums_dtype != "int32"
    return Work(
        blocks=-(-shape.m // bm) * -(-shape.n // bn) * shape.stack * split,
        threads=v["warps"][0] * v["warps"][1] * LANES,
        steps=shape.depth // (depth * split),
        bytes=(bm + bn) * depth * item,
        stored=bm * bn * (item if is_whole else wide),
        least_bytes=shape.stack * (shape.m + shape.n) * shape.depth * item,
        shared=shared_bytes(shape, v),
        is_ahead=v["buffers"] > 1,
        **counts,
    )


def _seconds(shape: Shape, v: Values, work: Work, machine: Machine) -> float:
    """Return the time of a product, with that of adding the parts of sums [s]."""
    if v["form"] == "threads":
        own = rows_of(v) * columns_of(v)
        together = own * (math.log2(v["lanes_k"]) + 1) * machine.rates["barrier"]
        return machine.seconds(work) + together / machine.rates["clock"]
    split = int(v.get("split", 1))
    found = machine.seconds(work)
    return found if split == 1 else found + _adding(shape, split, machine)


def _adding(shape: Shape, split: int, machine: Machine) -> float:
    """Return the time of the kernel that adds the parts of a reduction [s]."""
    elements, wide = shape.stack * shape.m * shape.n, dtypes.bytes_of(shape.sums_dtype)
    work = Work(
        blocks=-(-elements // _ADDING_THREADS), threads=_ADDING_THREADS, steps=1,
        products=split * _ADDING_THREADS, unit="float32", instructions=3 * split, passes=0,
        loads=split * _ADDING_THREADS / LANES, bytes=split * _ADDING_THREADS * wide,
        stored=_ADDING_THREADS * wide, least_bytes=0, registers=32, shared=0, is_ahead=False,
    )  # fmt: skip
    return machine.seconds(work)


# -- warps on tensor cores ----------------------------------------------------------------------


def _warp_candidates(shape: Shape, choices: Space, processors: int) -> Iterator[dict[str, Any]]:
    step = step_of(shape.dtype)
    wanted = {
        "warps": [(1, 1), (1, 2), (2, 1), (2, 2), (2, 4), (4, 2)],
        "fragments": [(1, 1), (1, 2), (1, 4), (2, 2), (2, 4), (2, 8), (4, 4), (4, 8)],
        "depth": [step, 2 * step, 4 * step],
        "buffers": [2],
    }
    for values in _values(choices, wanted):
        tile = tile_of(values)
        for split in _splits(shape, values, tile, choices, processors):
            made = {**values, "split": split, "raster": 1}
            made["loads"] = _loads(choices, made, tile)
            yield made


def _warp_work(shape: Shape, v: Values) -> Work:
    item, (bm, bn), depth = dtypes.bytes_of(shape.dtype), tile_of(v), int(v["depth"])
    warps, (rows, columns) = v["warps"][0] * v["warps"][1], v["fragments"]
    inner = depth // step_of(shape.dtype)
    left_along, right_along = shape.along_k
    scattered = not left_along, item == 1 and not right_along
    copies = [
        copied(extent, depth, item, lanes, is_scattered=each)
        for extent, lanes, each in zip((bm, bn), v["loads"], scattered, strict=True)
    ]
    is_narrow = item == 1
    return _work(
        shape, v, (bm, bn),
        unit="tensor cores, int8" if is_narrow else "tensor cores",
        products=bm * bn * depth / (2 if is_narrow else 1),
        instructions=inner * (rows * columns + rows + columns) + 16,
        passes=warps * inner * (4 * rows + 2 * columns) + sum(stores for stores, _ in copies),
        loads=sum(loads for _, loads in copies),
        registers=registers_of(4 * rows * columns, 4 * rows + 2 * columns, "float32"),
    )  # fmt: skip


# -- threads that compute sums together ---------------------------------------------------------


def _thread_candidates(shape: Shape, choices: Space, processors: int) -> Iterator[dict[str, Any]]:
    del processors
    is_wide = shape.n >= shape.m
    near = min(shape.m, shape.n)
    own = (1, 1 if near <= 1 else 2 if near <= 2 else 4)
    wanted: dict[str, Any] = {
        "rows": [own] if is_wide else [(1, 1), (1, 2), (1, 4)],
        "columns": [(1, 1), (1, 2), (1, 4)] if is_wide else [own],
        "depth": [4, 8, 16],
        "lanes_k": [4, 8, 16, 32, 64, 128],
        "groups": [1, 2, 4, 8, 16, 32, 64],
    }
    yield from _values(choices, wanted)


def _thread_work(shape: Shape, v: Values) -> Work:
    item, is_wide = dtypes.bytes_of(shape.dtype), shape.n >= shape.m
    along_k, row = shape.along_k[is_wide], shape.rows[is_wide]
    most = min(16 // item, 4)
    vector = math.gcd(row, most) if along_k else 1
    rows, columns = rows_of(v), columns_of(v)
    own = columns if is_wide else rows
    groups, lanes_k, unrolled = int(v["groups"]), int(v["lanes_k"]), max(int(v["depth"]) // 4, 1)
    far, near = (shape.n, shape.m) if is_wide else (shape.m, shape.n)
    near_own = rows if is_wide else columns
    threads = groups * lanes_k
    per_step = lanes_k * vector * unrolled
    elements = own * groups * per_step
    # Neighbouring threads have neighbouring elements, of which a sector holds some.
    neighbours = lanes_k * vector if along_k else groups * own
    wasted = max(32 / item / neighbours, 1.0)
    at_once = vector if along_k else math.gcd(own, most) if row % 4 == 0 else 1
    requests = elements / at_once / LANES + near_own * per_step * groups / LANES / vector
    return Work(
        blocks=-(-far // (own * groups)) * -(-near // near_own) * shape.stack,
        threads=threads,
        steps=-(-shape.depth // per_step),
        products=elements * near_own,
        unit=_UNITS.get(shape.sums_dtype, shape.sums_dtype),
        instructions=unrolled * vector * own * near_own + 4 * unrolled + 8,
        passes=0.0,
        loads=max(requests, elements * item * wasted / 128),
        bytes=elements * item * wasted,
        stored=groups * own * near_own * item,
        least_bytes=shape.stack * (shape.m + shape.n) * shape.depth * item,
        registers=registers_of(
            own * near_own, unrolled * vector * (own + near_own), shape.sums_dtype
        ),
        shared=threads * own * near_own * dtypes.bytes_of(shape.sums_dtype),
        is_ahead=False,
    )


# -- the order of blocks ------------------------------------------------------------------------


def _order(shape: Shape, v: Values, machine: Machine) -> dict[str, int]:
    """Return the blocks below each other with which those that run at once read least."""
    if "raster" not in v:
        return {}
    bm, bn = block_of(v) if v["form"] == "tiles" else tile_of(v)
    below = -(-shape.m // bm)
    ideal = math.sqrt(2 * machine.processors * bn / bm)
    fitting = [
        r for r in (1, 2, 4, 8) if below % r == 0 and r <= ideal and (r == 1 or r * 16 <= shape.m)
    ]
    return {"raster": max(fitting)}


_CANDIDATES: Mapping[str, Callable[[Shape, Space, int], Iterator[dict[str, Any]]]] = {
    "tiles": _tile_candidates, "warps": _warp_candidates, "threads": _thread_candidates,
}  # fmt: skip
_WORK: Mapping[str, Callable[[Shape, Values], Work]] = {
    "tiles": _tile_work, "warps": _warp_work, "threads": _thread_work,
}  # fmt: skip
