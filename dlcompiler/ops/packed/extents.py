"""The extents of operators on blocks: each is a convolution of images of blocks."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

from dlcompiler import te
from dlcompiler.ops.packed.blocks import Blocks, blocks_of
from dlcompiler.space import Workload

CONV2D = "conv2d_packed"
DEPTHWISE = "depthwise_conv2d_packed"
TRANSPOSE = "conv2d_transpose_packed"
DENSE = "dense_packed"
BATCH_MATMUL = "batch_matmul_packed"
AVG_POOL = "avg_pool2d_packed"
MAX_POOL = "max_pool2d_packed"


@dataclass(frozen=True, slots=True)
class Extents:
    """The extents of a convolution; images and channels are in blocks."""

    blocks: Blocks
    images: int
    """Blocks of images; [1]."""
    channels: int
    """Blocks of input channels; [1]."""
    filters: int
    """Blocks of output channels; [1]."""
    height: int
    width: int
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    padding: tuple[int, int] = (0, 0)
    groups: int = 1
    """Groups of channels, each with filters of its own; [1]."""
    up: int = 0
    """Of a transposed convolution: the distance of neighbouring inputs in the result; 0: it is
    none; [1]."""
    extra: tuple[int, int] = (0, 0)
    """Of a transposed convolution: rows and columns that are added to the result."""
    scale: int = 0
    """Of a sum of windows: the factor of each element. 0: the weights are an input."""

    @property
    def depth(self) -> int:
        """Blocks of input channels that a block of filters reads; [1]."""
        return _depth(self)

    def spread(self, count: int) -> int:
        """Return how far apart the first channels of a tile of filters are, in blocks."""
        return _spread(self, count)

    def start(self, place: Any) -> Any:
        """Return the first block of input channels that a block of filters reads.

        Parameters
        ----------
        place : int or expression
            Number of the block of filters.
        """
        first = _first(self, place)
        most = self.channels - self.depth
        if self.groups == 1 or _first(self, self.filters - 1) <= most:
            return first
        return min(first, most) if isinstance(place, int) else te.minimum(first, most)

    @property
    def group_inputs(self) -> int:
        """Input channels of a group; [1]."""
        return self.channels * self.blocks.inputs // self.groups

    @property
    def taps(self) -> tuple[int, int]:
        """Rows and columns of the kernel that one element of the result reads."""
        step = max(self.up, 1)
        return -(-self.kernel[0] // step), -(-self.kernel[1] // step)

    @property
    def out(self) -> tuple[int, int]:
        """Height and width of the result."""
        rows, columns = (self._out(dim) for dim in (0, 1))
        return rows, columns

    def _out(self, dim: int) -> int:
        size, kernel, pad = (self.height, self.width)[dim], self.kernel[dim], self.padding[dim]
        if self.up:
            return (size - 1) * self.up - 2 * pad + kernel + self.extra[dim]
        return (size + 2 * pad - kernel) // self.stride + 1

    @property
    def frame(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Rows of zeros above and below the images, and columns to the left and right."""
        if not self.up:
            (above, left) = self.padding
            return (above, above), (left, left)
        rows, columns = (self._frame(dim) for dim in (0, 1))
        return rows, columns

    def _frame(self, dim: int) -> tuple[int, int]:
        size, pad = (self.height, self.width)[dim], self.padding[dim]
        last = (self.out[dim] - 1 + pad) // self.up
        return max(self.taps[dim] - 1 - pad // self.up, 0), max(last - size + 1, 0)

    def reach(self, dim: int, count: int, taps: int | None = None) -> int:
        """Return how many rows (`dim` 0) or columns of images a number of those of results read.

        Parameters
        ----------
        dim, count : int
            Which, and how many of the result; [1].
        taps : int, optional
            How many rows or columns of the kernel they multiply; all of `taps` by default.
        """
        taps = taps or self.taps[dim]
        if not self.up:
            return (count - 1) * self.stride + taps
        return (count - 1 + self.padding[dim] % self.up) // self.up + taps

    @property
    def weights(self) -> tuple[int, int]:
        """Rows and columns of blocks of weights: the kernel, with zeros to whole steps of `up`."""
        step = max(self.up, 1)
        return self.taps[0] * step, self.taps[1] * step

    @property
    def updates(self) -> int:
        """Products of blocks; [1]."""
        return self.images * self.depth * self.filters * math.prod((*self.out, *self.taps))


def _first(e: Extents, place: Any) -> Any:
    """Return the block of channels in which the first group of a block of filters begins."""
    filters = e.filters * e.blocks.outputs // e.groups
    return place * e.blocks.outputs // filters * e.group_inputs // e.blocks.inputs


@functools.cache
def _depth(e: Extents) -> int:
    """Return the largest number of blocks of input channels that a block of filters reads."""
    filters = e.filters * e.blocks.outputs // e.groups

    def last(place: int) -> int:
        group = ((place + 1) * e.blocks.outputs - 1) // filters
        return ((group + 1) * e.group_inputs - 1) // e.blocks.inputs

    firsts: list[int] = [_first(e, place) for place in range(e.filters)]
    return max(last(place) - first + 1 for place, first in enumerate(firsts))


@functools.cache
def _spread(e: Extents, count: int) -> int:
    if e.groups == 1:
        return 0
    starts = range(0, e.filters, count)
    firsts: list[int] = [e.start(place) for place in range(e.filters)]
    return max(firsts[min(n + count, e.filters) - 1] - firsts[n] for n in starts)


def extents_of(workload: Workload) -> Extents:
    """Return the extents of a workload of any operator on blocks."""
    w, b = workload, blocks_of(workload)
    if w.op == DENSE:
        return Extents(b, 1, w["k"] // b.inputs, w["n"] // b.outputs, 1, w["m"] // b.batch)
    if w.op == BATCH_MATMUL:
        channels, filters = (w["batch"] * n for n in (w["k"] // b.inputs, w["n"] // b.outputs))
        return Extents(b, 1, channels, filters, 1, w["m"] // b.batch, groups=w["batch"])
    kernel, padding = (w["kernel_h"], w["kernel_w"]), (w["pad_h"], w["pad_w"])
    channels = w["c"] // b.inputs
    image = Extents(b, w["n"] // b.batch, channels, channels, w["h"], w["w"], kernel)
    image = replace(image, padding=padding)
    if w.op == TRANSPOSE:
        extra = w["extra_h"], w["extra_w"]
        return replace(image, filters=w["o"] // b.outputs, up=w["stride"], extra=extra)
    image = replace(image, stride=w["stride"])
    if w.op in (MAX_POOL, AVG_POOL):
        return replace(image, groups=w["c"], scale=w["scale"] if w.op == AVG_POOL else 1)
    filters = w["c"] * w["multiplier"] if w.op == DEPTHWISE else w["o"]
    groups = w["c"] if w.op == DEPTHWISE else w["groups"]
    return replace(image, filters=filters // b.outputs, groups=groups)
