"""Reductions of whole tensors over some of their dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler import te
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm.topi.defining import over, tensor
from dlcompiler.compat.tvm.topi.tag import COMM_REDUCE
from dlcompiler.errors import ExpressionError


def normalized(axis: Any, ndim: int, operation: str) -> tuple[int, ...]:
    """Return which dimensions `axis` means: None all, negative numbers from the last."""
    given = range(ndim) if axis is None else axis if isinstance(axis, list | tuple) else (axis,)
    found = tuple(sorted({int(n) + ndim if n < 0 else int(n) for n in given}))
    if any(not 0 <= n < ndim for n in found):
        raise ExpressionError(operation, "no such dimension", got=axis, expected=f"below {ndim}")
    return found


def reduction(name: str, reduce: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """Return a reduction over dimensions, by a reducer of te."""

    def apply(data: te.Tensor, axis: Any = None, keepdims: bool = False) -> Any:
        gone = normalized(axis, len(data.shape), f"topi.{name}")
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

__getattr__ = reporter(__name__)
