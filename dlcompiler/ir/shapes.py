"""Limits of the shapes of tensors and buffers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dlcompiler.errors import ExpressionError
from dlcompiler.ir.expr import Extent

MAX_ELEMENTS = 2**40
MAX_RANK = 64  # of NumPy's arrays: those of a kernel's arguments, and those of the oracle


def check_shape(extents: Sequence[Extent], where: str, what: str = "tensor") -> None:
    """Refuse too many dimensions or elements, and negative extents; `where` begins the error."""
    check_rank(len(extents), where)
    known = [extent for extent in extents if isinstance(extent, int)]
    if any(extent < 0 for extent in known):
        got = f"({', '.join(map(str, extents))})"
        raise ExpressionError(where, "an extent must not be negative", got=got)
    size = math.prod(known)
    if size > MAX_ELEMENTS:
        raise ExpressionError(
            where, f"the {what} is too large", got=f"{size} elements", expected=f"≤ {MAX_ELEMENTS}"
        )


def check_rank(rank: int, where: str) -> None:
    """Refuse more dimensions, or more axes in a loop nest, than a NumPy array can have."""
    if rank > MAX_RANK:
        raise ExpressionError(
            where, "too many dimensions", got=rank, expected=f"at most {MAX_RANK}",
            because="arrays of NumPy have no more, and a reduction counts each of its axes",
        )  # fmt: skip
