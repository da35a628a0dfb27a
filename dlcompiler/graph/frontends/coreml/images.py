"""Convolutions, pools and resizes of images (n, channels, …), for operations and for layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dlcompiler.graph.frontends.coreml.node import CoremlOrigin
from dlcompiler.graph.frontends.slices import cut
from dlcompiler.graph.frontends.windows import LAYOUTS, same_pads, spatial_rank
from dlcompiler.graph.ir import Expr

ALIGNED = "align_corners_or_centers"
"""Corners lie on corners as by ``align_corners``, but a single element lies in the middle."""
_KERNELS = {1: "W", 2: "HW", 3: "DHW"}


def positive(
    node: CoremlOrigin, numbers: Sequence[int], count: int, what: str
) -> tuple[int, ...]:  # fmt: skip
    """Return one positive number for each spatial dimension."""
    if len(numbers) != count or min(numbers, default=1) < 1:
        node.fail(f"its {what} are no {count} positive numbers", got=repr(numbers)[:100])
    return tuple(numbers)


@dataclass(frozen=True)
class Windows:
    """The kernel size, strides, dilation and padding of a convolution or a pool."""

    kernel: Sequence[int]
    strides: Sequence[int]
    dilation: Sequence[int]
    rule: str
    """``valid``, ``same``, ``same_lower`` or ``custom``."""
    borders: Sequence[int] = ()
    """By the rule ``custom``: for each dimension, elements before and behind."""
    groups: int = 1


def pads(node: CoremlOrigin, sizes: Sequence[int], windows: Windows) -> tuple[int, ...]:
    """Return what is added before all spatial dimensions, then behind all."""
    borders = windows.borders
    match windows.rule:
        case "valid":
            return (0,) * 2 * len(sizes)
        case "same" | "same_lower":
            small, large = same_pads(sizes, windows.kernel, windows.strides, windows.dilation)
            return (*small, *large) if windows.rule == "same" else (*large, *small)
        case "custom":
            if len(borders) != 2 * len(sizes) or min(borders, default=0) < 0:
                node.fail("its padding is not two numbers for each dimension",
                          got=repr(borders)[:100])  # fmt: skip
            return (*borders[::2], *borders[1::2])
    node.fail("no such rule of padding", got=repr(windows.rule)[:100])


def convolution(node: CoremlOrigin, x: Expr, weight: Expr, windows: Windows) -> Expr:
    """Return a convolution; weights are (output, input channels, …)."""
    rank = spatial_rank(node, x)
    return node.call(
        f"nn.conv{rank}d", x, weight, strides=windows.strides, dilation=windows.dilation,
        padding=pads(node, node.shape(x)[2:], windows), groups=windows.groups,
        data_layout=LAYOUTS[rank], kernel_layout=f"OI{_KERNELS[rank]}",
    )  # fmt: skip


def transposed_convolution(
    node: CoremlOrigin, x: Expr, weight: Expr, windows: Windows, wanted: Sequence[int] | None
) -> Expr:
    """Return a transposed convolution; weights are (input, output channels, …).

    `wanted` are the spatial extents of the result, where the file has them.
    """
    rank, sizes = spatial_rank(node, x), node.shape(x)[2:]
    steps = list(zip(sizes, windows.kernel, windows.strides, windows.dilation, strict=True))
    full = [(n - 1) * s + (k - 1) * d + 1 for n, k, s, d in steps]
    if windows.rule in ("same", "same_lower"):
        wanted = wanted or [n * s for n, _, s, _ in steps]
        odd = int(windows.rule == "same_lower")
        before = tuple((max(f - w, 0) + odd) // 2 for f, w in zip(full, wanted, strict=True))
        after: tuple[int, ...] = ()
    else:
        both = pads(node, sizes, windows)
        before, after = both[:rank], both[rank:]
    if wanted is not None:
        after = tuple(f - w - b for f, w, b in zip(full, wanted, before, strict=True))
    if any(-a >= max(s, d) for a, (_, _, s, d) in zip(after, steps, strict=True)):
        node.fail("its result cannot have such extents", got=repr(wanted))
    return node.call(
        f"nn.conv{rank}d_transpose", x, weight, strides=windows.strides,
        dilation=windows.dilation, groups=windows.groups,
        padding=(*before, *(max(n, 0) for n in after)),
        output_padding=tuple(max(-n, 0) for n in after), data_layout=LAYOUTS[rank],
        kernel_layout=f"IO{_KERNELS[rank]}",
    )  # fmt: skip


def joined(node: CoremlOrigin, x: Expr, kept: int) -> Expr:
    """Return a tensor whose dimensions before the last `kept` are one."""
    shape = node.shape(x)
    if len(shape) < kept:
        node.fail("it takes more dimensions", got=str(node.type(x)), expected=f"{kept} or more")
    split = len(shape) - kept
    return node.reshape(x, (math.prod(shape[:split]), *shape[split:]))


def resized(node: CoremlOrigin, x: Expr, size: Sequence[int], method: str, mode: str) -> Expr:
    """Return images, whose last two dimensions are spatial, in another size."""
    if mode == ALIGNED:
        if 1 in size:
            small = [1 if n == 1 else own for n, own in zip(size, node.shape(x)[-2:], strict=True)]
            x = resized(node, x, small, method, "half_pixel")
        mode = "align_corners"
    shape = node.shape(x)
    flat = node.reshape(joined(node, x, 2), (1, -1, *shape[-2:]) if 0 not in shape else shape)
    attrs = {"rounding_method": "floor"} if method == "nearest_neighbor" else {}
    made = node.call("image.resize2d", flat, size=tuple(size), layout="NCHW", method=method,
                     coordinate_transformation_mode=mode, **attrs)  # fmt: skip
    return node.reshape(made, (*shape[:-2], *size))


def scaled_size(node: CoremlOrigin, x: Expr, scales: Sequence[float]) -> tuple[int, ...]:
    """Return the extents of the last two dimensions, times their scales."""
    found = [n * s for n, s in zip(node.shape(x)[-2:], scales, strict=True)]
    if len(found) != 2 or not all(1 <= n < 1 << 31 for n in found):
        node.fail("its scales are no positive numbers", got=repr(scales)[:100])
    return tuple(math.floor(n) for n in found)


def cropped(node: CoremlOrigin, x: Expr, edges: Sequence[int]) -> Expr:
    """Return images without their edges: of the height before and behind, then of the width."""
    shape = node.shape(x)
    ends = [*zip(edges[::2], edges[1::2], shape[-2:], strict=False)]
    if len(edges) != 4 or any(min(a, b) < 0 or a + b > n for a, b, n in ends):
        node.fail("its edges do not fit the images", got=f"{list(edges)} of {shape}"[:200])
    whole = [slice(None)] * (len(shape) - 2)
    return cut(node, x, [*whole, *(slice(a, n - b) for a, b, n in ends)])
