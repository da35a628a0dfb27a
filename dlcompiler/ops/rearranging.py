"""Define operators that move blocks of images, or change how a tensor is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.ops.helpers import INJECTIVE, tensor
from dlcompiler.ops.layouts import Layout, layout_of
from dlcompiler.ops.transforms import pad
from dlcompiler.te import Tensor


def layout_transform(data: Tensor, source: str, target: str) -> Tensor:
    """Define the same tensor in another layout, whose blocks divide the extents.

    Examples
    --------
    >>> layout_transform(te.placeholder((1, 32, 7, 7), name="x"), "NCHW", "NCHW16c")
    Tensor(T_layout_trans: float32[1, 2, 7, 7, 16])
    """
    old, new = layout_of(source), layout_of(target)
    shape = new.shape(old.extents(data.static_shape))
    return tensor(shape, lambda *i: data[old.place(new.element(i))], "T_layout_trans", INJECTIVE)


def depth_to_space(data: Tensor, block: int, layout: Layout, *, is_depth_first: bool) -> Tensor:
    """Define images whose channels are moved into blocks of pixels.

    Parameters
    ----------
    data : Tensor
        Images.
    block : int
        Height and width of a block.
    layout : Layout
        Layout of the images.
    is_depth_first : bool
        The place in the block is the outer part of the channel (DCR), not the inner one (CRD).
    """
    sizes = layout.extents(data.static_shape)
    channels = sizes["C"] // (block * block)
    grown = {**sizes, "C": channels, "H": sizes["H"] * block, "W": sizes["W"] * block}

    def element(*i: Any) -> Any:
        at = layout.element(i)
        inside = at["H"] % block * block + at["W"] % block
        channel = inside * channels + at["C"] if is_depth_first else at["C"] * block**2 + inside
        place = {**at, "C": channel, "H": at["H"] // block, "W": at["W"] // block}
        return data[layout.place(place)]

    return tensor(layout.shape(grown), element, "T_depth_to_space", INJECTIVE)


def space_to_depth(data: Tensor, block: int, layout: Layout) -> Tensor:
    """Define images whose blocks of pixels are moved into channels; the place is the outer part."""
    sizes = layout.extents(data.static_shape)
    shrunk = {**sizes, "C": sizes["C"] * block**2, "H": sizes["H"] // block,
              "W": sizes["W"] // block}  # fmt: skip

    def element(*i: Any) -> Any:
        at = layout.element(i)
        inside = at["C"] // sizes["C"]
        place = {**at, "C": at["C"] % sizes["C"], "H": at["H"] * block + inside // block,
                 "W": at["W"] * block + inside % block}  # fmt: skip
        return data[layout.place(place)]

    return tensor(layout.shape(shrunk), element, "T_space_to_depth", INJECTIVE)


def space_to_batch(
    data: Tensor, blocks: Sequence[int], width: Sequence[tuple[int, int]], value: float
) -> Tensor:
    """Define a tensor whose blocks are moved into the first dimension, after padding.

    Parameters
    ----------
    data : Tensor
        Of shape ``(n, spatial…, …)``.
    blocks : sequence of int
        Extents of a block in the spatial dimensions.
    width : sequence of pair
        Padding of the spatial dimensions.
    value : float
        What is padded with.
    """
    rest = data.ndim - 1 - len(blocks)
    before, after = ([0, *(pair[side] for pair in width), *[0] * rest] for side in (0, 1))
    framed = pad(data, before, after, te.const(value, "float64").astype(data.dtype))
    count = data.static_shape[0]
    sizes = framed.static_shape[1 : len(blocks) + 1]
    shape = [count, *(size // n for size, n in zip(sizes, blocks, strict=True)),
             *data.shape[len(blocks) + 1 :]]  # fmt: skip
    for n in blocks:
        shape[0] *= n

    def element(*i: Any) -> Any:
        inside = _split(i[0] // max(count, 1), blocks)
        places = [k * n + part for k, n, part in zip(i[1:], blocks, inside, strict=False)]
        return framed[(i[0] % max(count, 1), *places, *i[len(blocks) + 1 :])]

    return tensor(shape, element, "T_space_to_batch", INJECTIVE)


def batch_to_space(data: Tensor, blocks: Sequence[int], crops: Sequence[tuple[int, int]]) -> Tensor:
    """Define the inverse of `space_to_batch`; `crops` are cut off from the spatial dimensions."""
    count = data.static_shape[0]
    for n in blocks:
        count //= n
    sizes = data.static_shape[1 : len(blocks) + 1]
    shape = [count, *(size * n - first - last for size, n, (first, last) in zip(
        sizes, blocks, crops, strict=True)), *data.shape[len(blocks) + 1 :]]  # fmt: skip

    def element(*i: Any) -> Any:
        places = [k + first for k, (first, _) in zip(i[1:], crops, strict=False)]
        inside: Any = 0
        for place, n in zip(places, blocks, strict=True):
            inside = inside * n + place % n
        outer = [place // n for place, n in zip(places, blocks, strict=True)]
        return data[(inside * count + i[0], *outer, *i[len(blocks) + 1 :])]

    return tensor(shape, element, "T_batch_to_space", INJECTIVE)


def _split(flat: Any, extents: Sequence[int]) -> list[Any]:
    """Return the indices of an element from its position in row-major order."""
    found: list[Any] = []
    for extent in reversed(extents):
        found.insert(0, flat % extent)
        flat = flat // extent
    return found


def dilate(data: Tensor, strides: Sequence[int], value: float) -> Tensor:
    """Define a tensor with a number of equal elements between neighbours, less one than strides."""
    shape = [(extent - 1) * step + 1 if extent else 0 for extent, step in zip(
        data.static_shape, strides, strict=True)]  # fmt: skip

    def element(*i: Any) -> Any:
        hits = [te.floormod(k, step) == 0 for k, step in zip(i, strides, strict=True) if step > 1]
        read = data[tuple(te.floordiv(k, step) if step > 1 else k for k, step in zip(
            i, strides, strict=True))]  # fmt: skip
        other = te.const(value, "float64").astype(data.dtype)
        return te.if_then_else(te.all(*hits), read, other) if hits else read

    return tensor(shape, element, "T_dilate", INJECTIVE)


def sliding_window(
    data: Tensor, axis: int, window: Sequence[int], strides: Sequence[int]
) -> Tensor:
    """Define all windows over the dimensions from `axis` on, as new last dimensions."""
    sizes = data.static_shape[axis:]
    counts = [(size - n) // step + 1 for size, n, step in zip(sizes, window, strides, strict=True)]
    shape = (*data.shape[:axis], *counts, *window)

    def element(*i: Any) -> Any:
        places = [k * step + part for k, step, part in zip(
            i[axis:], strides, i[axis + len(window) :], strict=False)]  # fmt: skip
        return data[(*i[:axis], *places)]

    return tensor(shape, element, "T_sliding_window", INJECTIVE)
