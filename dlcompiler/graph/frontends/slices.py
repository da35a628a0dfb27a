"""Parts of tensors, as Python cuts lists, for operators whose bounds are known."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.graph.frontends.origin import Origin
from dlcompiler.graph.ir import Expr


def cut(origin: Origin, x: Expr, bounds: Sequence[slice]) -> Expr:
    """Return a part of a tensor, whose first dimensions are cut by slices."""
    shape = origin.shape(x)
    for axis, each in enumerate(bounds):
        first, last, step = each.indices(shape[axis])
        count = len(range(first, last, step))
        if (first, count, step) == (0, shape[axis], 1):
            continue
        if step < 0:  # cut from the other end, then reverse
            first, last = first + (count - 1) * step, first + 1
        x = origin.call(
            "strided_slice", x, begin=(first if count else 0,), end=(last if count else 0,),
            strides=(abs(step),), axes=(axis,),
        )  # fmt: skip
        if step < 0:
            x = origin.call("reverse", x, axis=axis)
    return x
