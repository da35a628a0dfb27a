"""Grid sampling that computes the places of a pixel once, for all channels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler import te
from dlcompiler.ir import Buffer, BufferView, Builder, Expr, Stmt
from dlcompiler.ops.nests.parts import parts_of
from dlcompiler.ops.sampling import Sampling, taps_of
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.ops.transforms import unravelled
from dlcompiler.target import Target
from dlcompiler.te import Tensor

TILE = 512
"""Pixels whose places are kept at once: they should fit the first cache; [1]."""
MOST_READS = 64
"""Elements of several channels that are read together with the same places in registers; [1]."""
MOST_CHANNELS = 8
"""Channels that are computed together; [1]."""
TAP_CYCLES = 2.0
"""Time to read an element at a place; [cycle]."""


def sample(data: Tensor, grid: Tensor, of: Sampling, target: Target) -> Tensor:
    """Define what `dlcompiler.ops.sampling.sample` defines, for a CPU."""
    count, channels, *sizes = data.static_shape
    out_shape = grid.static_shape[2:]
    taps = len(_NUMBERS[of.method]) ** len(sizes)
    most = min(max(MOST_READS // taps, 1), MOST_CHANNELS)
    block = max(n for n in range(1, most + 1) if channels % n == 0)

    def code(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = Builder()
        image, grids, out = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        for first, tiles, size in parts_of(math.prod(out_shape), TILE):
            cycles = TAP_CYCLES * count * channels * tiles * size * taps
            kind = "parallel" if is_worth_sharing(cycles, target) else "serial"
            with ib.for_range(0, count * tiles, "tile", kind=kind) as tile:
                n, part = unravelled(tile, (count, tiles))
                places = _Places.allocated(ib, of, sizes, size, data.dtype)

                def at(i: Expr, start: Expr = first + part * size) -> tuple[Any, ...]:
                    return unravelled(start + i, out_shape)

                with ib.for_range(0, size, "pixel", kind="vectorize") as i:
                    rank = len(sizes)
                    position = [
                        ib.let("position", grids[(n, rank - 1 - d, *at(i))]) for d in range(rank)
                    ]
                    places.store(i, position)
                with (
                    ib.for_range(0, channels // block, "channels") as c,
                    ib.for_range(0, size, "pixel") as i,
                ):
                    _pixel(ib, places, image, out, (n, c * block, block), i, at(i))
        return ib.get()

    shape = (count, channels, *out_shape)
    made: Tensor = te.extern(
        shape, [data, grid], code, name="T_grid_sample", dtype=data.dtype, is_complete=True
    )
    return made


_NUMBERS = {"nearest": range(1), "linear": range(2), "cubic": range(4)}
"""The elements along a dimension from which a pixel is computed."""


def _pixel(
    ib: Builder, places: _Places, image: BufferView, out: BufferView,
    which: tuple[Any, Any, int], i: Expr, at: tuple[Any, ...],
) -> None:  # fmt: skip
    """Emit a pixel of some channels; one with elements outside the image computes each apart."""
    n, first, count = which
    taps = list(places.taps(ib, i))
    if places.inside is None:
        for c in range(count):
            out[(n, first + c, *at)] = _sum(image, (n, first + c), taps, is_checked=False)
        return
    with ib.if_scope(places.inside[i] > 0):
        for c in range(count):
            out[(n, first + c, *at)] = _sum(image, (n, first + c), taps, is_checked=False)
    with ib.else_scope(), ib.for_range(0, count, "channel") as channel:
        c = first + channel
        out[(n, c, *at)] = _sum(image, (n, c), taps, is_checked=True)


def _sum(
    image: BufferView, lead: tuple[Any, ...], taps: Sequence[tuple[Sequence[Expr], Any]], *,
    is_checked: bool,
) -> Expr:  # fmt: skip
    total: Any = None
    for place, weight in taps:
        read: Expr = image[(*lead, *(te.assume_bounds(p.astype("index")) for p in place))]
        if is_checked:
            tests = [
                te.all(p >= te.const(0, "int32"), p < te.const(n, "int32"))
                for p, n in zip(place, image.shape[2:], strict=True)
            ]
            read = te.if_then_else(te.all(*tests), read, te.const(0, image.dtype))
        term = read if weight is None else read * weight
        total = term if total is None else total + term
    made: Expr = total
    return made


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the elements of each pixel of a tile are, along each dimension, and their weights."""

    of: Sampling
    sizes: Sequence[int]
    places: list[list[BufferView]]
    """Indices, for each dimension and each of its elements."""
    weights: list[list[BufferView]]
    """Weights; none for the nearest element."""
    inside: BufferView | None
    """1 where all elements are inside the image; None if they always are."""

    @staticmethod
    def allocated(
        ib: Builder, of: Sampling, sizes: Sequence[int], tile: int, dtype: str
    ) -> _Places:
        """Allocate memory for the pixels of a tile."""
        numbers, dimensions = _NUMBERS[of.method], range(len(sizes))
        places = [[ib.allocate("int32", (tile,), "place") for _ in numbers] for _ in dimensions]
        weights: list[list[BufferView]] = [[] for _ in dimensions]
        if of.method != "nearest":
            weights = [[ib.allocate(dtype, (tile,), "weight") for _ in numbers] for _ in dimensions]
        has_zeros = of.padding == "zeros"
        inside = ib.allocate("int32", (tile,), "inside") if has_zeros else None
        return _Places(of, sizes, places, weights, inside)

    def store(self, i: Expr, position: Sequence[Expr]) -> None:
        """Emit the computation of the places of a pixel from its position."""
        is_inside = []
        for d, size in enumerate(self.sizes):
            for number, (place, weight) in enumerate(taps_of(position[d], size, self.of)):
                if self.inside is None:
                    place = te.minimum(te.maximum(place, 0), size - 1)
                self.places[d][number][i] = place.astype("int32")
                kept = self.places[d][number][i]
                is_inside += [kept >= te.const(0, "int32"), kept < te.const(size, "int32")]
                if weight is not None:
                    self.weights[d][number][i] = weight
        if self.inside is not None:
            flags: Expr = te.const(1, "int32")
            for test in is_inside:
                flags = te.select(test, flags, te.const(0, "int32"))
            self.inside[i] = flags

    def taps(self, ib: Builder, i: Expr) -> Iterator[tuple[list[Expr], Any]]:
        """Yield the indices and the weight of each element of a pixel."""
        places = [[ib.let("place", view[i]) for view in own] for own in self.places]
        weights = [[ib.let("weight", view[i]) for view in own] for own in self.weights]
        for chosen in itertools.product(_NUMBERS[self.of.method], repeat=len(self.sizes)):
            weight: Any = None
            for d, number in enumerate(chosen):
                if weights[d]:
                    own = weights[d][number]
                    weight = own if weight is None else weight * own
            yield (
                [places[d][number] for d, number in enumerate(chosen)],
                None if weight is None else ib.let("weight", weight),
            )
