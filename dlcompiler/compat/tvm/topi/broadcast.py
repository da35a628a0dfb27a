"""Operators on two tensors, or on a tensor and a number, with broadcasting."""

from dlcompiler.compat.missing import reporter
from dlcompiler.ops.elementwise import (
    add,
    broadcast_to,
    divide,
    equal,
    floor_divide,
    greater,
    greater_equal,
    less,
    less_equal,
    maximum,
    minimum,
    mod,
    multiply,
    not_equal,
    power,
    subtract,
)

__getattr__ = reporter(__name__)
__all__ = [
    "add",
    "broadcast_to",
    "divide",
    "equal",
    "floor_divide",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "not_equal",
    "power",
    "subtract",
]
