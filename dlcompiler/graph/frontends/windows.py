"""What the images of all frontends share: their layouts, and padding by the rule *same*."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.graph.frontends.origin import Origin
from dlcompiler.graph.ir import Expr

LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}
"""Number of spatial dimensions -> layout of the images."""


def spatial_rank(node: Origin, x: Expr) -> int:
    """Return the number of spatial dimensions of images."""
    rank = node.rank(x) - 2
    if rank not in LAYOUTS:
        node.fail("the images have another number of dimensions", got=str(node.type(x)),
                  expected="3 to 5 dimensions")  # fmt: skip
    return rank


def same_pads(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilation: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Return the padding for which results are as many as images have elements, over the stride.

    The first list has the smaller half for each dimension, the second the rest.

    Examples
    --------
    >>> same_pads([5, 6], [3, 2], [2, 1], [1, 1])
    ([1, 0], [1, 1])
    """
    small, large = [], []
    for size, k, step, d in zip(sizes, kernel, strides, dilation, strict=True):
        total = max((-(-size // step) - 1) * step + (k - 1) * d + 1 - size, 0)
        small.append(total // 2)
        large.append(total - total // 2)
    return small, large
