"""The tiles of the direct convolution on a GPU: what there is to choose, and the default.

=============  ==================================================================================
``threads``    of a block: along channels, height and width
``tile``       of a thread: channels, rows, neighbouring columns, pieces of such columns
``depth``      input channels that are copied to shared memory at once; 0: none are
``parts``      of the input channels, which different blocks add up
``buffers``    2: the next input channels are copied while some are multiplied
=============  ==================================================================================
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ops.conv2d.layouts import Layout
from dlcompiler.ops.conv2d.shapes import Shape, shape_of
from dlcompiler.ops.gpu.model import LANES, Machine, Work, registers_of
from dlcompiler.ops.gpu.threads import Chip
from dlcompiler.ops.sliding import reach
from dlcompiler.space import Config, Filter, Knob, Space, Workload
from dlcompiler.space.knob import divisors
from dlcompiler.target import Target
from dlcompiler.target.gpus import ASYNC_COPIES

_LANES = (1, 2, 4, 8, 16)
_DOWN, _ACROSS = (1, 2, 4, 7, 8, 14, 16), (1, 2, 4, 7, 8, 14, 16, 28, 32)
_CHANNELS = (4, 8, 16)
_MOST_SUMS = 64
"""Sums of a thread [1]."""
_MOST_COPIES = 2048
"""Products that a thread adds without a loop [1]."""
_LEAST_THREADS, _MOST_THREADS = 32, 512
_PARTS = (1, 2, 4, 8, 16, 32)
_LEAST_CHANNELS = 4
"""Input channels of a part [1]."""
_MOST_WAVES = 16
"""Blocks for each multiprocessor, if several add up parts of the same sums [1]."""
_USUAL, _DEPTHS = (64, 128, 256), (4, 8, 16)
"""Threads of a block, and input channels in shared memory, that the default is chosen from [1]."""
_ADDING = 1000
"""What the kernel that adds the sums of parts takes besides the accesses [clock]."""


@dataclass(frozen=True, slots=True)
class Tile:
    """The tile of a block: threads, and what each computes."""

    lanes: int
    """Threads along the channels [1]."""
    channels: int
    """Channels of a thread, neighbours [1]."""
    down: int
    """Threads along the height [1]."""
    across: int
    """Threads along the width [1]."""
    rows: int
    """Rows of a thread [1]."""
    columns: int
    """Neighbouring columns of a thread [1]."""
    pieces: int
    """Groups of such columns of a thread, a block of threads apart [1]."""
    depth: int
    """Input channels in shared memory at once; 0: operands are read where they are [1]."""
    parts: int
    """Parts of the input channels that different blocks add up [1]."""
    buffers: int
    """2: the next input channels are copied while some are multiplied [1]."""

    @property
    def threads(self) -> int:
        """Threads of a block [1]."""
        return self.lanes * self.down * self.across

    @property
    def pixels(self) -> int:
        """Pixels of a thread [1]."""
        return self.rows * self.columns * self.pieces

    @property
    def wide(self) -> int:
        """Columns of a block [1]."""
        return self.across * self.columns * self.pieces

    def values(self) -> dict[str, Any]:
        """Return the values of a config: the inverse of `tile_of`."""
        return {
            "threads": (self.lanes, self.down, self.across),
            "tile": (self.channels, self.rows, self.columns, self.pieces),
            "depth": self.depth, "parts": self.parts, "buffers": self.buffers,
        }  # fmt: skip

    def count(self, shape: Shape) -> int:
        """Return the number of tiles, without parts [1]."""
        places = -(-shape.rows.out // (self.down * self.rows)) * -(-shape.columns.out // self.wide)
        channels = -(-_per_group(shape) // (self.lanes * self.channels))
        return shape.n * shape.groups * channels * places

    def image(self, shape: Shape) -> int:
        """Return the elements of the image that a block needs of one channel [1]."""
        return reach(shape.rows, self.down * self.rows) * reach(shape.columns, self.wide)

    def shared_bytes(self, shape: Shape) -> int:
        """Return the shared memory of a block [byte]."""
        elements = self.image(shape) + _taps(shape) * self.lanes * self.channels
        return self.depth * elements * dtypes.bytes_of(shape.sums_dtype) * self.buffers

    def products(self, shape: Shape) -> int:
        """Return the products that all threads compute, with those that are not needed [1]."""
        return self.count(shape) * self.threads * self.channels * self.pixels * shape.terms

    def is_useful(self, shape: Shape) -> bool:
        """Tell whether a tile is less than twice as large as the result along each dimension."""
        channels, tall = self.lanes * self.channels, self.down * self.rows
        return (
            (self.lanes == 1 or channels < 2 * _per_group(shape))
            and (self.down == 1 or tall < 2 * shape.rows.out)
            and (self.across == 1 or self.wide < 2 * shape.columns.out)
            and self.depth * self.parts < 2 * max(shape.weight[1], 1)
        )


def tile_of(cfg: Any) -> Tile:
    """Return the tile of the values of a config."""
    (lanes, down, across), (channels, rows, columns, pieces) = cfg["threads"], cfg["tile"]
    return Tile(
        lanes, channels, down, across, rows, columns, pieces,
        cfg["depth"], cfg["parts"], cfg["buffers"],
    )  # fmt: skip


def _per_group(shape: Shape) -> int:
    """Return the output channels of a group [1]."""
    return max(shape.o // shape.groups, 1)


def _taps(shape: Shape) -> int:
    """Return the elements of a window [1]."""
    return shape.rows.kernel * shape.columns.kernel


# -- the space ----------------------------------------------------------------------------------


def space(workload: Workload, target: Target) -> Space:
    """Return the configs of the direct convolution: see this module."""
    shape, layout, chip = shape_of(workload), Layout(workload["layout"]), Chip.of(target)
    whole = _whole_channels(shape, layout)
    own = _own_channels(whole, layout)
    if not own or not _fits(shape, max(own[0], whole[0]), chip):
        alone = Tile(1, 1, 1, 1, 1, 1, 1, depth=0, parts=1, buffers=1).values()
        return Space(workload, [Knob(name, (value,)) for name, value in alone.items()])
    channels = max(shape.weight[1], 1)
    depths = divisors(channels, 32)
    depths = depths if depths[-1] > 1 or channels == 1 else (1, 2, 4, 8)
    parts = [n for n in _PARTS if n == 1 or n * _LEAST_CHANNELS <= channels]
    knobs = [
        Knob("threads", tuple(_threads(shape, own, whole, chip)), kind="split"),
        Knob("tile", tuple(_tiles(shape, own)), kind="split"),
        Knob("depth", depths, kind="split"),
        Knob("parts", tuple(parts)),
        Knob("buffers", (1, 2)),
    ]
    return Space(workload, knobs, [
        Filter(
            "a tile is less than twice as large as the result",
            lambda v: tile_of(v).is_useful(shape),
        ),
        Filter(
            "the channels of a block are those of whole blocks of the layout, and of one group",
            lambda v: v["threads"][0] * v["tile"][0] in whole,
        ),
        Filter(
            "a tile fits in shared memory",
            lambda v: tile_of(v).shared_bytes(shape) <= chip.shared_bytes,
        ),
    ])  # fmt: skip


def _whole_channels(shape: Shape, layout: Layout) -> list[int]:
    """Return the numbers of channels that a block may compute, ascending."""
    together = layout.channels or 1
    if shape.groups == 1:
        return list(range(together, 257, together))
    if _per_group(shape) % together:
        return []
    return [n for n in divisors(_per_group(shape), 256) if n % together == 0]


def _own_channels(whole: Sequence[int], layout: Layout) -> list[int]:
    """Return the numbers of neighbouring channels that a thread may compute, ascending."""
    if layout.channels:
        return [n for n in _CHANNELS if whole and layout.channels % n == 0]
    small = [n for n in whole if n <= _CHANNELS[-1]]
    return [n for n in _CHANNELS if n in whole] or small[-1:]


def _fits(shape: Shape, channels: int, chip: Chip) -> bool:
    """Tell whether the smallest tile fits in shared memory."""
    least = Tile(1, channels, 1, _LEAST_THREADS, 1, 1, 1, depth=1, parts=1, buffers=1)
    return least.shared_bytes(shape) <= chip.shared_bytes


def _threads(
    shape: Shape, channels: Sequence[int], whole: Collection[int], chip: Chip
) -> Iterator[tuple[int, int, int]]:
    """Yield the threads of a block: those of a warp or more, or the most that are useful."""
    found = [
        (lanes, down, across)
        for lanes, down, across in itertools.product(_LANES, _DOWN, _ACROSS)
        if lanes * down * across <= min(_MOST_THREADS, chip.most_threads)
        and any(
            lanes * own in whole and Tile(lanes, own, down, across, *[1] * 6).is_useful(shape)
            for own in channels
        )
    ]
    least = min(_LEAST_THREADS, max(math.prod(threads) for threads in found))
    yield from (threads for threads in found if math.prod(threads) >= least)


def _tiles(shape: Shape, channels: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the sizes that the tile of a thread may have.

    Each is a number of channels, of rows, of neighbouring columns, and of such groups of columns.
    """
    words = max(dtypes.bytes_of(shape.sums_dtype) // 4, 1)
    rows, columns = max(shape.rows.out, 1), max(shape.columns.out, 1)
    sides = ((1, 2, 4, 7), (1, 2), (1, 2, 4, 7))
    for own, down, across, pieces in itertools.product(channels, *sides):
        sums = own * down * across * pieces * words
        if down == across * pieces == 1 or (
            down <= rows
            and across * pieces <= columns
            and sums <= _MOST_SUMS
            and sums * shape.columns.kernel <= _MOST_COPIES
        ):
            yield own, down, across, pieces


# -- the default --------------------------------------------------------------------------------


def default_config(workload: Workload, target: Target) -> Config:
    """Return the config with the least time by `dlcompiler.ops.gpu.model`."""
    return space(workload, target).config(**_best(workload, target)[1])


def estimate(workload: Workload, target: Target) -> float:
    """Return about how long the default config takes [cycle]."""
    return _best(workload, target)[0] * Machine(target).rates["clock"]


@cache
def _best(workload: Workload, target: Target) -> tuple[float, Mapping[str, Any]]:
    """Return the time of the best config [s], and its values."""
    shape, choices, machine = shape_of(workload), space(workload, target), Machine(target)
    peak = machine.rates[_unit(shape)] * machine.rates["clock"] * machine.processors
    best: tuple[float, Mapping[str, Any]] = (math.inf, {})
    for products, tile in _candidates(shape, choices, target):
        if products / peak >= best[0]:
            break  # all others compute at least as many products
        if not all(rule.allows(tile.values()) for rule in choices.filters):
            continue
        best = min(best, (_seconds(tile, shape, machine), tile.values()), key=lambda each: each[0])
    return best if best[1] else (math.inf, choices.at(next(iter(choices.allowed()))).values)


def _candidates(shape: Shape, choices: Space, target: Target) -> list[tuple[int, Tile]]:
    """Return tiles that may be the best, and their products, ascending."""
    knobs = {knob.name: knob.values for knob in choices.knobs}
    buffers = 2 if ASYNC_COPIES in target.emits and 2 in knobs["buffers"] else 1
    found = []
    for threads, own in itertools.product(_few(knobs["threads"], _USUAL), knobs["tile"]):
        lanes, down, across = threads
        channels, rows, columns, pieces = own
        tile = Tile(lanes, channels, down, across, rows, columns, pieces, 1, 1, buffers)
        if not tile.is_useful(shape):
            continue
        products, count = tile.products(shape), tile.count(shape)
        for depth, parts in itertools.product(_few(knobs["depth"], _DEPTHS), knobs["parts"]):
            if parts == 1 or count * parts <= _MOST_WAVES * target.cores:
                found.append((products, replace(tile, depth=depth, parts=parts)))
    return sorted(found, key=lambda each: each[0])


def _few(values: Sequence[Any], usual: Sequence[int]) -> Sequence[Any]:
    """Return the values whose product is usual; all if there are none."""
    found = [n for n in values if (math.prod(n) if isinstance(n, tuple) else n) in usual]
    return found or values


def _unit(shape: Shape) -> str:
    """Return the name of the rate at which products are added."""
    return shape.sums_dtype if shape.sums_dtype in ("float32", "float64") else "integer"


def _seconds(tile: Tile, shape: Shape, machine: Machine) -> float:
    """Return about how long a config takes [s]."""
    taps, item = _taps(shape), dtypes.bytes_of(shape.sums_dtype)
    depth, sums, warps = max(tile.depth, 1), tile.channels * tile.pixels, tile.threads / LANES
    window = tile.rows * tile.pieces * reach(shape.columns, tile.columns)
    conflict = 1 if tile.columns * shape.columns.stride % 2 or tile.columns == 1 else 2
    loads = shape.rows.kernel * window * conflict + taps * tile.channels / 4
    image, filters = tile.image(shape), taps * tile.lanes * tile.channels
    copied = image / LANES + filters / (4 * LANES)
    seconds = machine.seconds(Work(
        blocks=tile.count(shape) * tile.parts,
        threads=tile.threads,
        steps=-(-max(shape.weight[1], 1) // (depth * tile.parts)),
        products=depth * taps * sums * tile.threads,
        unit=_unit(shape),
        instructions=depth * (taps * sums + loads / conflict + 12 * copied / warps),
        passes=depth * (loads * warps + copied),
        loads=depth * copied,
        bytes=depth * (image + filters) * item,
        stored=sums * tile.threads * item,
        least_bytes=item * (math.prod(shape.image) + math.prod(shape.weight)),
        registers=registers_of(sums, window + tile.channels, shape.sums_dtype),
        shared=tile.shared_bytes(shape),
        is_ahead=tile.buffers > 1,
    ))  # fmt: skip
    return seconds + (_adding(tile, shape, machine) if tile.parts > 1 else 0.0)


def _adding(tile: Tile, shape: Shape, machine: Machine) -> float:
    """Return about how long the kernel takes that adds the sums of parts [s]."""
    size = math.prod(shape.result) * dtypes.bytes_of(shape.sums_dtype)
    rates = machine.rates
    clocks = rates["launch"] + (tile.parts + 1) * size / rates["l2"] + _ADDING
    return clocks / rates["clock"]
