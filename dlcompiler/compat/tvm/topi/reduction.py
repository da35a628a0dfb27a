"""Reductions of whole tensors over some of their dimensions."""

from dlcompiler.compat.missing import reporter
from dlcompiler.ops.reductions import (
    all,
    any,
    argmax,
    argmin,
    max,
    min,
    prod,
    sum,
)

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
