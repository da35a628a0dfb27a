"""Operators on two tensors, or on a tensor and a number, with broadcasting."""

from dlcompiler import te
from dlcompiler.compat.division import floordiv, floormod
from dlcompiler.compat.missing import reporter
from dlcompiler.ops.elementwise import (
    add,
    broadcast_to,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    maximum,
    minimum,
    multiply,
    not_equal,
    operator,
    power,
    subtract,
)

divide = operator("divide", te.div, "Divide; integers toward zero, and they stay integers.")
mod = operator("mod", te.truncmod, "Return the remainder of `divide`, of integers.")
floor_divide = operator("floor_divide", floordiv, "Divide, rounding toward minus infinity.")
floor_mod = operator("floor_mod", floormod, "Return the remainder of `floor_divide`.")

__getattr__ = reporter(__name__)
__all__ = [
    "add",
    "broadcast_to",
    "divide",
    "equal",
    "floor_divide",
    "floor_mod",
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
