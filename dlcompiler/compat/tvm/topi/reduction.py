"""Reductions of whole tensors over some of their dimensions."""

from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.compat.missing import reporter
from dlcompiler.ops import reductions
from dlcompiler.ops.reductions import all, any, argmax, argmin, max, min, prod


def sum(data: te.Tensor, axis: Any = None, keepdims: bool = False) -> Any:
    """Add up over dimensions, all by default; conditions are joined by ``or``."""
    add = reductions.any if dtypes.is_bool(data.dtype) else reductions.sum
    return add(data, axis, keepdims)


__getattr__ = reporter(__name__)
__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "max",
    "min",
    "prod",
    "sum",
]
