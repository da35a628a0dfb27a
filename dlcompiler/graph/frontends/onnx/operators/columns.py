"""Columns of blocks, put back into images."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.onnx.operators.windows import MOST_PLACES, joined, listed
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import Expr


def _col2im(node: Node) -> Expr:
    """Add up blocks in an image: each pixel gathers the elements of the blocks that cover it."""
    x, image, block = node.input(0), node.integers(1, "the image"), node.integers(2, "the block")
    rank, size = len(image), math.prod(block)
    if node.rank(x) != 3 or len(block) != rank or min([*image, *block], default=0) < 1:
        node.fail("no blocks of an image", got=f"{node.type(x)}, image {image}, block {block}")
    strides, dilations = listed(node, "strides", rank), listed(node, "dilations", rank)
    pads = tuple(node.attr("pads") or (0,) * (2 * rank))
    if len(pads) != 2 * rank:
        node.fail("it has another number of pads than twice the dimensions", got=repr(pads))
    counts = [
        (image[n] + pads[n] + pads[rank + n] - dilations[n] * (block[n] - 1) - 1) // strides[n] + 1
        for n in range(rank)
    ]
    batch, rows, blocks = node.shape(x)
    if min(counts) < 1 or math.prod(counts) != blocks or rows % size:
        node.fail("the blocks do not fill the image", got=f"{node.type(x)}, {counts} blocks")
    if size * math.prod(image) > MOST_PLACES:
        node.fail("the image and its blocks are too large", got=f"image {image}, block {block}")
    found = np.zeros((1, 1), np.int64)
    for n in range(rank):
        at = np.arange(image[n]) + pads[n] - np.arange(block[n])[:, None] * dilations[n]
        which = np.where(at % strides[n] == 0, at // strides[n], -1)
        which = np.where((which >= 0) & (which < counts[n]), which, -1)
        found = joined(found, which, counts[n])
    offsets = np.arange(size)[:, None] * blocks
    places = np.where(found < 0, size * blocks, found + offsets)
    columns = node.reshape(x, (batch * (rows // size), size * blocks))
    padded = node.call("nn.pad", columns, pad_width=((0, 0), (0, 1)))
    gathered = node.call("take", padded, constant_of(places, "int64"), axis=1)
    return node.reshape(node.call("sum", gathered, axis=(1,)), (batch, rows // size, *image))


TABLE: dict[str, Callable[[Node], Any]] = {"Col2Im": _col2im}
"""The converters of this module."""
