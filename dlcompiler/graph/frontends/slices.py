"""Parts of tensors, as Python cuts lists, for operators whose bounds are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlcompiler.graph.frontends.origin import Origin, constant_of
from dlcompiler.graph.ir import Expr


def cut(origin: Origin, x: Expr, bounds: Sequence[slice]) -> Expr:
    """Return a part of a tensor, whose first dimensions are cut by slices."""
    shape = origin.shape(x)
    for axis, each in enumerate(bounds):
        first, last, step = each.indices(shape[axis])
        count = len(range(first, last, step))
        if (first, count, step) == (0, shape[axis], 1):
            continue
        places = np.arange(first, first + count * step, step, dtype="int64")[:count]
        x = origin.call("take", x, constant_of(places), axis=axis) if step < 0 else origin.call(
            "strided_slice", x, begin=(first,), end=(max(last, first),), strides=(step,),
            axes=(axis,),
        )  # fmt: skip
    return x
