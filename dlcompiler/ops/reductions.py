"""Reductions over some of the dimensions of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler import te
from dlcompiler.ops.defining import COMM_REDUCE, dimensions, over, tensor


def reduction(name: str, reduce: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """Return a reduction over dimensions, by a reducer of te."""

    def apply(data: te.Tensor, axis: Any = None, keepdims: bool = False) -> Any:
        gone = dimensions(axis, len(data.shape), name)
        axes = [over(data.shape[n], name=f"k{n}") for n in gone]
        kept = [n for n in range(len(data.shape)) if n not in gone]
        shape = [1 if n in gone else extent for n, extent in enumerate(data.shape)]
        result = shape if keepdims else [data.shape[n] for n in kept]

        def element(*indices: Any) -> Any:
            places = [indices[n] for n in kept] if keepdims else list(indices)
            full: list[Any] = [None] * len(data.shape)
            for n, index in (*zip(kept, places, strict=True), *zip(gone, axes, strict=True)):
                full[n] = index
            value = data[tuple(full)]
            return reduce(value, axis=axes) if axes else value

        return tensor(tuple(result), element, name=f"{data.name}_red", tag=COMM_REDUCE)

    apply.__name__, apply.__doc__ = name, doc
    return apply


sum = reduction("sum", te.sum, "Add up over dimensions, all by default.")
max = reduction("max", te.max, "Return the largest over dimensions, all by default.")
min = reduction("min", te.min, "Return the smallest over dimensions, all by default.")
prod = reduction("prod", te.prod, "Multiply over dimensions, all by default.")
