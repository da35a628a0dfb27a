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
tiles are in an order in which what is larger, images or weights, is loaded again less often.
"""

from __future__ import annotations

import itertools
import math
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
INTRINSIC = f"vta_gemm_1x{BLOCK}x{BLOCK}"


def divisors(extent: int) -> tuple[int, ...]:
    """Return all divisors of an extent, in ascending order."""
    return tuple(n for n in range(1, extent + 1) if extent % n == 0)


def space(workload: Workload, target: Target) -> Space:
    """Return the knobs.

    ``filters``, ``rows`` and ``columns`` of a tile of the result, and how many ``channels`` are
    loaded at a time, in blocks; what ``threads`` divide; what has ``double`` buffers; and whether
    the loop over filters is outside those over rows and columns (``weights_first``).
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
    ]

    def fits(values: Mapping[str, Any]) -> bool:
        tile = _Tile.of(values)
        return tile.has_work_for_threads(e) and all(
            need <= have
            for need, have in zip(tile.needs(e, tail_of(workload)), _depths(target), strict=True)
        )

    return Space(workload, knobs, [Filter("tiles fit into the memories", fits)])


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
        sums += sums * tail.residual + self.filters * tail.bias
        return images, weights, sums * (1 if self.threads == "none" else 2)


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
    rows, columns = e.out
    many = e.filters // tile.filters, -(-rows // tile.rows), -(-columns // tile.columns)
    tiles = e.images * math.prod(many)
    steps = tiles * (e.depth // tile.channels)
    images, weights, _ = tile.loads(e)
    images *= steps * BLOCK / bus * (0.5 if tile.threads == "filters" else 1)
    weights *= steps * BLOCK * BLOCK / bus * (0.5 if tile.threads == "rows" else 1)
    loads = images + weights + _START * steps * (1 + tile.channels)
    results = tiles * tile.filters * tile.rows * tile.columns
    operations = 1 + sum((tail.bias, bool(tail.shift), tail.residual, True, True))
    products = results * (e.depth * e.kernel[0] * e.kernel[1] + operations) + _START * steps
    stores = results * (_STORE + _STORE_ROW / tile.columns)
    ends = 2 * loads / steps + 2 * stores / tiles  # nothing overlaps the first and the last
    overlapping = max(loads, products) + ends
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
    at = _tiled(s, result, cfg)
    for tensor in (*chain, sums, *loaded):
        s[tensor].compute_at(s[result], at)
    n, o, y, x, r, j = s[sums].op.axis
    c, p, q, i = s[sums].op.reduce_axis
    outer, inner = s[sums].split(c, cfg["channels"])
    s[sums].reorder(outer, n, o, y, inner, p, q, x, r, j, i)
    for tensor, choices in ((image, ("images", "both")), (weight, ("both",))):
        s[tensor].compute_at(s[sums], outer)
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


def _tiled(s: Schedule, result: Tensor, cfg: Config) -> Any:
    """Divide the result into tiles, and return the loop inside which a tile is computed."""
    stage = s[result]
    n, o, y, x, r, j = stage.op.axis
    o_outer, o_inner = stage.split(o, cfg["filters"])
    y_outer, y_inner = stage.split(y, cfg["rows"])
    x_outer, x_inner = stage.split(x, cfg["columns"])
    outer = [o_outer, y_outer, x_outer] if cfg["weights_first"] else [y_outer, x_outer, o_outer]
    if cfg["threads"] != "none":
        divided = o_outer if cfg["threads"] == "filters" else y_outer
        many, thread = stage.split(divided, 2)
        outer[outer.index(divided)] = many
        outer.append(thread)
        stage.reorder(n, *outer, o_inner, y_inner, x_inner, r, j)
        stage.bind(thread, te.thread_axis("cthread"))
        return thread
    stage.reorder(n, *outer, o_inner, y_inner, x_inner, r, j)
    return outer[-1]


SCHEDULE = DeviceSchedule(space, default_config, apply)
