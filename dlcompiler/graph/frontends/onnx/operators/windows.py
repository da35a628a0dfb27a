"""What convolutions and poolings share: windows of images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.windows import same_pads
from dlcompiler.graph.ir import Expr
from dlcompiler.graph.operators.base import Array

MOST_PLACES = 1 << 24
"""Most places in images that are listed for a node; [1]."""


def kernel_of(node: Node, weight: Expr) -> tuple[int, ...]:
    """Return the sizes of the windows of a weight, which an attribute may repeat."""
    found = node.shape(weight)[2:]
    repeated = tuple(node.attr("kernel_shape") or found)
    if repeated != found:
        node.fail("kernel_shape is not what the weights have", got=repr(repeated),
                  expected=repr(found))  # fmt: skip
    return found


def pads_of(
    node: Node, sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int],
    dilation: Sequence[int],
) -> tuple[int, ...]:  # fmt: skip
    """Return the elements before and after the images, as an attribute or a rule gives them."""
    rank = len(kernel)
    rule = str(node.attr("auto_pad", "NOTSET"))
    if rule in ("NOTSET", "VALID", ""):
        pads = node.attr("pads") if rule != "VALID" else None
        found = tuple(pads) if pads else (0,) * (2 * rank)
        if len(found) != 2 * rank:
            node.fail("it has another number of pads than twice the dimensions", got=repr(found))
        return found
    if rule not in ("SAME_UPPER", "SAME_LOWER"):
        node.fail("no such rule of padding", got=repr(rule))
    small, large = same_pads(sizes, kernel, strides, dilation)
    return (*large, *small) if rule == "SAME_LOWER" else (*small, *large)


def listed(node: Node, name: str, rank: int) -> tuple[int, ...]:
    """Return an attribute with a number for each spatial dimension; by default ones."""
    found = tuple(node.attr(name) or (1,) * rank)
    if len(found) != rank or any(n < 1 for n in found):
        node.fail(f"{name} does not fit the images", got=repr(found))
    return found


def joined(places: Array, more: Array, count: int) -> Array:
    """Return places in an array from those in all its dimensions but the last, and in that.

    Both have a row for each place in a window, and -1 for what is outside.
    """
    outer, inner = places[:, None, :, None], more[None, :, None, :]
    both = np.where((outer < 0) | (inner < 0), -1, outer * count + inner)
    return both.reshape(len(places) * len(more), -1)
