"""Schedule sums of products of blocks on an accelerator with a matrix unit.

*Before*, then *after*, with tiles of ``filters`` blocks of outputs, ``rows`` and ``columns``::

    padded[…] = …                       for tiles of the result:   two at a time, as virtual threads
    sums[…] += padded[…] * weight[…]        sums = 0
    result[…] = clip(sums >> 8)             for tiles of channels:
                                                load padded, load weight
                                                sums += padded * weight     GEMM
                                            sums = clip(sums >> 8)          ALU
                                            store result

Two virtual threads share the memories: one computes while the other loads. The loops around the
tiles are in an order in which what is larger, images or weights, is loaded again less often. With
``kept``, it is loaded once for all tiles of the loops inside. If all channels are loaded at a time,
two buffers alternate from tile to tile, else from one part of the channels to the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from dlcompiler import te
from dlcompiler.errors import TargetError
from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.packed.conv2d import BLOCK, PADDED, Extents, extents_of
from dlcompiler.ops.packed.tail import Tail, tail_of
from dlcompiler.schedule import Schedule
from dlcompiler.space import Config, Filter, Knob, Space, Workload
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, Tensor

THREADS = ("none", "filters", "rows")
"""What two virtual threads divide: nothing, blocks of filters, or rows."""
DOUBLE = ("nothing", "images", "both")
"""What has two buffers, of which one is loaded while the other is used."""
_START, _STORE, _STORE_ROW = 24, 3, 4
"""Cycles that an instruction takes before it is at work, and that the store of an element and of a
row take: those of VTA's RTL of 2021 [clock]."""
_MOST_STEPS, _LEAST_PRODUCTS = 1024, 64
"""Steps for each image that a config may always have, and the fewest products of blocks in each if
it has more: with fewer, instructions take longer to begin than to compute, and there are too many
to simulate; [1]."""
_SMOOTH = 4
"""Exponent of a smooth maximum: what overlaps takes longer than the longer part alone, the more so
the closer both are; [1]."""
INTRINSIC = f"vta_gemm_1x{BLOCK}x{BLOCK}"


def divisors(extent: int) -> tuple[int, ...]:
    """Return all divisors of an extent, in ascending order."""
    return tuple(n for n in range(1, extent + 1) if extent % n == 0)


def space(workload: Workload, target: Target) -> Space:
    """Return the knobs.

    ``filters``, ``rows`` and ``columns`` of a tile of the result, and how many ``channels`` are
    loaded at a time, in blocks; what ``threads`` divide; what has ``double`` buffers; whether the
    loop over filters is outside those over rows and columns (``weights_first``); and whether
    weights, or images, are ``kept`` in the loops over the other's tiles.
    """
    e = extents_of(workload)
    rows, columns = e.out
    knobs = [
        Knob("filters", divisors(e.filters), kind="split"),
        Knob("rows", _tiles(rows), kind="split"),
        Knob("columns", _tiles(columns), kind="split"),
        Knob("channels", divisors(e.depth), kind="split"),
        Knob("threads", THREADS),
        Knob("double", DOUBLE),
        Knob("weights_first", (False, True)),
        Knob("kept", (False, True)),
    ]

    def fits(values: Mapping[str, Any]) -> bool:
        tile = _Tile.of(values)
        pairs = zip(tile.needs(e, tail_of(workload)), _depths(target), strict=True)
        has_place = all(need <= have for need, have in pairs)
        return has_place and tile.has_work_for_threads(e) and tile.can_keep(e)

    most = max(_MOST_STEPS * e.images, e.updates // _LEAST_PRODUCTS)

    def is_short(values: Mapping[str, Any]) -> bool:
        return _Tile.of(values).counts(e)[2] <= most

    filters = [
        Filter("tiles fit into the memories", fits),
        Filter(f"at most {most} steps", is_short),
    ]
    return Space(workload, knobs, filters)


def _tiles(extent: int) -> tuple[int, ...]:
    """Return sizes of tiles: divisors, and halves of the extent rounded up."""
    halves = itertools.takewhile(lambda n: n > 1, (-(-extent // 2**n) for n in range(8)))
    return tuple(sorted({*divisors(extent), *halves}))


def _depths(target: Target) -> tuple[int, int, int]:
    """Return the elements of the memories of images, weights and sums.

    Raises
    ------
    TargetError
        The accelerator is no VTA with blocks of 16 by 16.
    """
    accelerator = target.accelerator
    known = {memory.name: memory for memory in accelerator.memories} if accelerator else {}
    shapes = {"inp": (1, BLOCK), "wgt": (BLOCK, BLOCK), "acc": (1, BLOCK)}
    for name, shape in shapes.items():
        if name not in known or known[name].shape != shape:
            raise TargetError(
                f"schedule blocks for {target.name}", f"it has no memory {name} of such blocks",
                got=", ".join(f"{m.name} {m.dtype}{list(m.shape)}" for m in known.values()),
                expected=f"{name} with elements {list(shape)}",
            )  # fmt: skip
    return known["inp"].depth, known["wgt"].depth, known["acc"].depth


@dataclass(frozen=True, slots=True)
class _Tile:
    """A tile of the result, and the channels that are loaded for it at a time."""

    filters: int
    rows: int
    columns: int
    channels: int
    threads: str
    double: str
    weights_first: bool
    kept: bool
    """Whether weights (with `weights_first`) or images are loaded once for the tiles of the loops
    inside theirs, with all channels."""

    @staticmethod
    def of(values: Mapping[str, Any] | Config) -> _Tile:
        return _Tile(*(values[each.name] for each in fields(_Tile)))

    def has_work_for_threads(self, e: Extents) -> bool:
        """Tell whether there are two tiles for two virtual threads, without a rest."""
        if self.threads == "filters":
            return e.filters // self.filters % 2 == 0
        if self.threads == "rows":
            return e.out[0] % (2 * self.rows) == 0
        return True

    def can_keep(self, e: Extents) -> bool:
        """Tell whether all channels are loaded at a time, if something is kept."""
        is_whole = self.channels == e.depth and (self.weights_first or e.groups == 1)
        return is_whole or not self.kept

    def counts(self, e: Extents) -> tuple[float, float, int, int]:
        """Return how often images and weights are loaded, the steps, and the tiles."""
        rows, columns = e.out
        of_filters = e.filters // self.filters
        of_images = e.images * -(-rows // self.rows) * -(-columns // self.columns)
        tiles = of_filters * of_images
        steps = tiles * (e.depth // self.channels)
        images = steps * (0.5 if self.threads == "filters" else 1)
        weights = steps * (0.5 if self.threads == "rows" else 1)
        if self.kept and self.weights_first:
            weights = of_filters * e.images
        elif self.kept:
            images = of_images
        return images, weights, steps, tiles

    def first(self, images: float, weights: float) -> float:
        """Return the cycles of what is loaded before anything is computed, given those of a step.

        Both threads load before the first computes. What is kept is loaded ahead of the other.
        """
        images *= 2 if self.threads == "rows" else 1
        weights *= 2 if self.threads == "filters" else 1
        if self.kept and self.weights_first:
            return images + weights * (2 if self.double == "both" else 1)
        return images * (2 if self.kept and self.double != "nothing" else 1) + weights

    def loads(self, e: Extents) -> tuple[float, float, int]:
        """Return the elements of images and weights of a step, and the elements of sums."""
        height = (self.rows - 1) * e.stride + e.kernel[0]
        width = (self.columns - 1) * e.stride + e.kernel[1]
        taps = e.kernel[0] * e.kernel[1]
        groups = max(self.filters * e.groups // e.filters, 1)
        images = self.channels * groups * height * width
        weights = self.filters * self.channels * taps
        return images, weights, self.filters * self.rows * self.columns

    def needs(self, e: Extents, tail: Tail) -> tuple[float, float, int]:
        """Return the elements that it takes of the memories of images, weights and sums."""
        images, weights, sums = self.loads(e)
        images *= (2 if self.threads == "rows" else 1) * (1 if self.double == "nothing" else 2)
        weights *= (2 if self.threads == "filters" else 1) * (2 if self.double == "both" else 1)
        sums += sums * tail.residual
        sums *= 1 if self.threads == "none" else 2
        return images, weights, sums + e.filters * tail.bias


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with the fewest cycles, counted by a formula."""
    found = space(workload, target)
    e = extents_of(workload)
    tail, bus = tail_of(workload), target.accelerator.port.bytes_per_cycle
    best = min(found.allowed(), key=lambda n: _cycles(found.at(n), e, tail, bus))
    return found.at(best)


def _cycles(values: Mapping[str, Any] | Config, e: Extents, tail: Tail, bus: int) -> float:
    """Return about how many cycles a config takes.

    With two buffers for all that is loaded, loads and products overlap. With two virtual threads,
    the loads of what they share do not overlap, and stores do. An instruction takes some cycles
    before it is at work.
    """
    tile = _Tile.of(values)
    image_loads, weight_loads, steps, tiles = tile.counts(e)
    images, weights, sums = tile.loads(e)
    first = tile.first(images * BLOCK / bus, weights * BLOCK * BLOCK / bus) + 2 * _START
    images = image_loads * (images * BLOCK / bus + _START * tile.channels)
    weights = weight_loads * (weights * BLOCK * BLOCK / bus + _START)
    loads, results = images + weights, tiles * sums
    operations = 1 + sum((tail.bias, bool(tail.shift), tail.residual, True, True))
    products = results * (e.depth * e.kernel[0] * e.kernel[1] + operations) + _START * steps
    stores = results * (_STORE + _STORE_ROW / tile.columns)
    ends = first + stores / tiles  # nothing overlaps the first and the last
    overlapping: float = (loads**_SMOOTH + products**_SMOOTH) ** (1 / _SMOOTH) + ends
    if tile.threads == "none":
        return (overlapping if tile.double == "both" else loads + products) + stores
    shared = images if tile.threads == "filters" else weights
    return max(overlapping + (0 if tile.double == "both" else shared), stores)


def apply(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Compute tiles of the result: load blocks, GEMM instructions, then those of the tail.

    Two virtual threads (``threads``) share the engines; with ``double``, loads have two buffers.
    """
    scope = target.accelerator.scope_of
    result = outs[0]
    chain, sums = _chain(result)
    image, weight = _operands(sums)
    for stage in (*chain, sums):
        s[stage].set_scope(scope("acc"))
    loaded = _loaded(s, chain, sums, scope("acc"))
    if image.op.name == PADDED:
        s[image].set_scope(scope("inp"))
    else:
        image = s.cache_read(image, scope("inp"), [sums])
    weight = s.cache_read(weight, scope("wgt"), [sums])
    tile, loops = _tiled(s, result, cfg)
    # Biases are loaded once, all of them: the engine that computes waits for them.
    of_tile = [tensor for tensor in loaded if len(tensor.shape) == len(result.shape)]
    for tensor in (*chain, sums, *of_tile):
        s[tensor].compute_at(s[result], tile)
    n, o, y, x, r, j = s[sums].op.axis
    c, p, q, i = s[sums].op.reduce_axis
    outer, inner = s[sums].split(c, cfg["channels"])
    s[sums].reorder(outer, n, o, y, inner, p, q, x, r, j, i)
    kept = (weight if cfg["weights_first"] else image) if cfg["kept"] else None
    for tensor, choices in ((image, ("images", "both")), (weight, ("both",))):
        if cfg["channels"] < c.dom.extent:
            s[tensor].compute_at(s[sums], outer)
        else:  # a loop of several iterations, so that they alternate between two buffers
            around = loops[: 1 if kept is weight else 2] if tensor is kept else loops
            s[tensor].compute_at(s[result], _last_repeated(around))
        if cfg["double"] in choices:
            s[tensor].double_buffer()
    s[sums].tensorize(r, te.tensor_intrin(INTRINSIC))


def _chain(result: Tensor) -> tuple[list[Tensor], Tensor]:
    """Return the stages between the sums and the result, and the sums."""
    chain: list[Tensor] = []
    tensor = result
    while True:
        assert isinstance(tensor.op, ComputeOp)
        tensor = tensor.op.input_tensors[0]
        assert isinstance(tensor.op, ComputeOp)
        if tensor.op.reduce_axis:
            return chain, tensor
        chain.append(tensor)


def _operands(sums: Tensor) -> tuple[Tensor, Tensor]:
    assert isinstance(sums.op, ComputeOp)
    image, weight = sums.op.input_tensors
    return image, weight


def _loaded(s: Schedule, chain: Sequence[Tensor], sums: Tensor, scope: str) -> list[Tensor]:
    """Return copies in a memory of the tensors that the tail reads besides the sums."""
    own = {*chain, sums}
    return [
        s.cache_read(tensor, scope, [stage])
        for stage in chain
        for tensor in stage.op.input_tensors
        if tensor not in own
    ]


def _tiled(s: Schedule, result: Tensor, cfg: Config) -> tuple[Any, list[tuple[Any, int]]]:
    """Divide the result into tiles.

    Returns
    -------
    tile, loops
        The loop inside which a tile is computed; the serial loops over tiles, with their extents.
    """
    stage, loops = s[result], []
    n, o, y, x, r, j = stage.op.axis
    _, filters, rows, columns, *_ = result.static_shape
    inside = []
    for axis, extent, name in ((o, filters, "filters"), (y, rows, "rows"), (x, columns, "columns")):
        outer, inner = stage.split(axis, cfg[name])
        inside.append(inner)
        loops.append((outer, -(-extent // cfg[name])))
    threads = []
    if cfg["threads"] != "none":
        place = 0 if cfg["threads"] == "filters" else 1
        many, thread = stage.split(loops[place][0], 2)
        loops[place] = many, loops[place][1] // 2
        threads.append(thread)
    if not cfg["weights_first"]:
        loops = [*loops[1:], loops[0]]
    stage.reorder(n, *(loop for loop, _ in loops), *threads, *inside, r, j)
    for thread in threads:
        stage.bind(thread, te.thread_axis("cthread"))
    return (*(loop for loop, _ in loops), *threads)[-1], loops


def _last_repeated(loops: Sequence[tuple[Any, int]]) -> Any:
    """Return the innermost of some loops that runs several times; without one, the outermost."""
    return next((loop for loop, extent in reversed(loops) if extent > 1), loops[0][0])


SCHEDULE = DeviceSchedule(space, default_config, apply)
