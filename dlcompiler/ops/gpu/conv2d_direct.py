"""Schedule the direct convolution on a GPU: tiles of the image and of the filters in shared memory.

A block computes some channels of a rectangle of pixels. For a few input channels at a time, its
threads copy the part of the image that the rectangle's windows read, with zeros outside, and the
filters of these channels. Then each thread adds the products of its own tile, whose sums are in
registers: for each row of the window, it loads the filters of that row, and for each piece of its
tile the pixels that the window reads.

The columns of a thread are in pieces that are a whole block of threads apart: neighbouring threads
read neighbouring pixels, which are in different banks. Where there are too few tiles to occupy the
device, blocks add up parts of the input channels, and a second kernel adds these sums (`rfactor`).

**Source:** T. Chen and others, "TVM", OSDI 2018, section 4.2; the classic schedule is that of the
tutorial "How to optimize convolution on GPU".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.ops.base import DeviceSchedule
from dlcompiler.ops.conv2d.direct import packing
from dlcompiler.ops.gpu.anchors import (
    computed,
    host_of,
    is_at_own_place,
    needed,
    reads,
    reductions_of,
)
from dlcompiler.ops.gpu.direct_definition import define
from dlcompiler.ops.gpu.direct_tiles import Tile, default_config, estimate, space, tile_of
from dlcompiler.ops.gpu.injective import schedule_rest
from dlcompiler.ops.gpu.threads import (
    Chip,
    bind,
    copy_together,
    fused,
    share_elements,
    unroll_in_registers,
)
from dlcompiler.ops.stages import Loop
from dlcompiler.schedule import Schedule, Stage
from dlcompiler.space import Config
from dlcompiler.target import Target
from dlcompiler.te import Tensor

_MOST_WEIGHTS = 64
"""Filters of a row of the window that a thread keeps [1]."""
_ALONE, _ADDING = 32, 256
"""Threads of a block without tiles, and of one that adds the sums of parts [1]."""


def schedule(s: Schedule, outs: Sequence[Tensor], cfg: Config, target: Target) -> None:
    """Schedule a direct convolution on a GPU.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of `outs`.
    outs : sequence of Tensor
        The results of a fused group.
    cfg : Config
        A config of `space`.
    target : Target
        A GPU.
    """
    found = _Convolution.of(s, outs, tile_of(cfg), Chip.of(target))
    is_empty = any(extent == 0 for extent in (*found.host.static_shape, *found.image.static_shape))
    if is_empty or found.tile.depth == 0:
        found.schedule_alone()
    elif found.tile.parts > 1:
        found.schedule_parts()
    else:
        s[found.sums].set_scope("local")
        found.schedule_tiles(found.host, found.loops(), found.sums)
    schedule_rest(s, found.host, target)


def _is_on(tensor: Tensor, result: Tensor) -> bool:
    """Tell whether an element of a tensor needs the element of the result at its own place."""
    own = [axis.var for axis in tensor.op.axis]
    loads = [load for load in reads(tensor, {result}) if load.tensor is result]
    return bool(loads) and all(is_at_own_place(load, own) for load in loads)


@dataclass(frozen=True)
class _Loops:
    """The loops of a result, which are divided among blocks and threads."""

    blocks: list[Axis]
    """Loops over blocks."""
    lanes: list[Axis]
    """Loops over threads along the channels."""
    own: Axis
    """The loop over a thread's channels."""
    y: Axis
    x: Axis
    is_last: bool
    """Whether channels are neighbours in memory."""


@dataclass(frozen=True)
class _Convolution:
    """The stages of a convolution, and its tile."""

    s: Schedule
    host: Tensor
    sums: Tensor
    image: Tensor
    filters: Tensor
    tile: Tile
    chip: Chip

    @staticmethod
    def of(s: Schedule, outs: Sequence[Tensor], tile: Tile, chip: Chip) -> _Convolution:
        """Find the stages, and inline those between the sums and the host."""
        sums = reductions_of(s)[-1]
        image, filters = sums.op.input_tensors
        result = next(op.output(0) for op in computed(s) if sums in op.input_tensors)
        host = host_of(s, outs, lambda tensor: tensor is result or _is_on(tensor, result))
        for op in computed(s):
            own = op.output(0)
            if own in needed(host) and own not in (sums, image, filters):
                s[own].compute_inline()
        return _Convolution(s, host, sums, image, filters, tile, chip)

    def schedule_alone(self) -> None:
        """Let each thread compute one element, with operands read where they are."""
        _, thread = share_elements(self.s[self.host], self.host.op.axis, _ALONE)
        self.s[self.sums].compute_at(self.s[self.host], thread)
        for operand in (self.image, self.filters):
            self.s[operand].compute_inline()

    def schedule_parts(self) -> None:
        """Let different blocks compute the sums of some input channels, and add these."""
        s, tile, c = self.s, self.tile, self.sums.op.reduce_axis[0]
        channels = -(-c.extent // (tile.depth * tile.parts)) * tile.depth
        part, _ = s[self.sums].split(c, channels)
        parts = s.rfactor(self.sums, part)
        sums = s.cache_write(parts, "local")
        part, n, g, o, y, x = parts.op.axis
        o, lane, own = self._channels(s[parts], o)
        loops = _Loops([part, n, g, o], [lane], own, y, x, is_last=False)
        self.schedule_tiles(parts, loops, sums)
        _, thread = share_elements(s[self.host], self.host.op.axis, _ADDING)
        s[self.sums].set_scope("local")
        s[self.sums].compute_at(s[self.host], thread)

    # -- the loops of a result ------------------------------------------------------------------

    def loops(self) -> _Loops:
        """Divide the channels of the host, in any layout."""
        stage, axes, groups = self.s[self.host], list(self.host.op.axis), self.sums.static_shape[1]
        if len(axes) == 5:
            n, o, y, x, inner = axes
            lead, o = self._groups(stage, o, groups)
            o, lane = stage.split(o, self.tile.lanes * self.tile.channels // inner.extent)
            inner, own = stage.split(inner, self.tile.channels)
            return _Loops([n, *lead, o], [lane, inner], own, y, x, is_last=True)
        is_last = self._is_nhwc()
        n, y, x, o = axes if is_last else (axes[0], *axes[2:], axes[1])
        lead, o = self._groups(stage, o, groups)
        o, lane, own = self._channels(stage, o)
        return _Loops([n, *lead, o], [lane], own, y, x, is_last)

    def _groups(self, stage: Stage, o: Axis, groups: int) -> tuple[list[Axis], Axis]:
        """Divide the channels into groups; return the loop over groups, if there are several."""
        if groups == 1:
            return [], o
        group, o = stage.split(o, o.extent // groups)
        return [group], o

    def _channels(self, stage: Stage, o: Axis) -> tuple[Axis, Axis, Axis]:
        """Divide channels into blocks, threads and a thread's own."""
        o, lane = stage.split(o, self.tile.lanes * self.tile.channels)
        lane, own = stage.split(lane, self.tile.channels)
        return o, lane, own

    def _is_nhwc(self) -> bool:
        """Tell whether the last dimension of the host is that of the channels."""
        load = next(load for load in reads(self.host, ()) if load.tensor is self.sums)
        return load.indices[4] is not self.host.op.axis[3].var

    # -- tiles ----------------------------------------------------------------------------------

    def schedule_tiles(self, host: Tensor, loops: _Loops, sums: Tensor) -> None:
        """Bind the tiles of a result to blocks and threads, and compute their sums."""
        stage, tile = self.s[host], self.tile
        y, row = stage.split(loops.y, tile.down * tile.rows)
        down, row = stage.split(row, tile.rows)
        x, column = stage.split(loops.x, tile.wide)
        piece, column = stage.split(column, tile.across * tile.columns)
        across, column = stage.split(column, tile.columns)
        inner = [row, piece, column]
        inner = [*inner, loops.own] if loops.is_last else [loops.own, *inner]
        stage.reorder(*loops.blocks, y, x, *loops.lanes, down, across, *inner)
        block = fused(stage, [*loops.blocks, y, x])
        pixel, lane = stage.fuse(down, across), fused(stage, loops.lanes)
        bind(stage, {"blockIdx.x": block, "threadIdx.y": lane, "threadIdx.x": pixel})
        if loops.is_last:
            inner[-1:] = stage.split(inner[-1], self._lanes(host))
            stage.vectorize(inner.pop())
        copies = self._schedule_sums(sums)
        self.s[sums].compute_at(stage, pixel)
        unroll_in_registers(self.s, host, block, [*((host, axis) for axis in inner), *copies])

    def _lanes(self, tensor: Tensor) -> int:
        """Return how many channels a thread accesses at once [1]."""
        return math.gcd(self.chip.lanes(tensor.dtype), self.tile.channels)

    def _schedule_sums(self, sums: Tensor) -> list[Loop]:
        """Add the products of tiles of the operands; return what to unroll."""
        s, stage, tile = self.s, self.s[sums], self.tile
        pixels = s.cache_read(self.image, "local", [sums])
        weights = s.cache_read(self.filters, "local", [sums])
        wide = tile.across * tile.columns

        def in_pieces(*i: Any) -> list[Any]:
            x = i[-1]
            return [*i[:-1], x // wide, x // tile.columns % tile.across, x % tile.columns]

        *lead, o, y, piece, across, x = stage.transform_layout(in_pieces)
        c, p, q = (axis for axis in stage.leaf_iter_vars if axis.kind == "reduce")
        steps, c = stage.split(c, tile.depth)
        stage.reorder(*lead, across, steps, c, p, piece, q, y, x, o)
        self._copy_operands(stage, steps)
        s[pixels].compute_at(stage, piece)
        row = int(self.filters.static_shape[3]) * tile.channels
        s[weights].compute_at(stage, p if row <= _MOST_WEIGHTS else q)
        own, lane = s[weights].split(s[weights].op.axis[-1], self._lanes(weights))
        s[weights].vectorize(lane)
        return [
            *((sums, axis) for axis in (piece, q, y, x, o)),
            *((pixels, axis) for axis in s[pixels].op.axis[2:]),
            *((weights, axis) for axis in (s[weights].op.axis[3], own)),
        ]

    def _copy_operands(self, stage: Stage, steps: Axis) -> None:
        """Copy tiles of the operands to shared memory in each step over input channels."""
        s, tile, image = self.s, self.tile, self.s[self.image]
        threads = {"threadIdx.y": tile.lanes, "threadIdx.x": tile.down * tile.across}
        if tile.across in (4, 8, 16):
            # The rows that a warp reads begin in different banks.
            image.storage_align(self.image.op.axis[2], 2 * tile.across, tile.across)
        vector = math.gcd(self.chip.lanes(self.filters.dtype), tile.lanes * tile.channels)
        for operand, lanes in ((self.image, 1), (self.filters, vector)):
            s[operand].set_scope("shared")
            s[operand].compute_at(stage, steps)
            copy_together(s[operand], threads, vector=lanes)
            if tile.buffers > 1:
                s[operand].double_buffer()
        if tile.buffers > 1:
            stage.pragma(steps, "async_copy")


CONV2D_DIRECT = DeviceSchedule(space, default_config, schedule, packing, estimate, define)
