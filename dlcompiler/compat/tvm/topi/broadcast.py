"""Operators on two tensors, or on a tensor and a number, with broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler import te
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.tvm.topi.defining import tensor
from dlcompiler.compat.tvm.topi.tag import BROADCAST
from dlcompiler.ir import compare
from dlcompiler.te.broadcast import broadcast_shape, element_indices


def operator(name: str, element: Callable[[Any, Any], Any], doc: str) -> Callable[[Any, Any], Any]:
    """Return an operator that applies `element` to elements of its operands."""

    def apply(lhs: Any, rhs: Any) -> Any:
        for operand in (lhs, rhs):
            if isinstance(operand, te.Tensor):
                return operand.elementwise(name, (lhs, rhs), element)
        return element(lhs, rhs)

    apply.__name__, apply.__doc__ = name, doc
    return apply


add = operator("add", lambda a, b: a + b, "Add.")
subtract = operator("subtract", lambda a, b: a - b, "Subtract.")
multiply = operator("multiply", lambda a, b: a * b, "Multiply.")
divide = operator("divide", lambda a, b: a / b, "Divide.")
floor_divide = operator("floor_divide", te.floordiv, "Divide, rounding toward minus infinity.")
mod = operator("mod", te.floormod, "Return the remainder of `floor_divide`.")
maximum = operator("maximum", te.maximum, "Return the larger element.")
minimum = operator("minimum", te.minimum, "Return the smaller element.")
power = operator("power", te.power, "Raise to a power.")
greater = operator("greater", lambda a, b: compare("gt", a, b), "Tell where a > b.")
greater_equal = operator("greater_equal", lambda a, b: compare("ge", a, b), "Tell where a >= b.")
less = operator("less", lambda a, b: compare("lt", a, b), "Tell where a < b.")
less_equal = operator("less_equal", lambda a, b: compare("le", a, b), "Tell where a <= b.")
equal = operator("equal", lambda a, b: compare("eq", a, b), "Tell where a == b.")
not_equal = operator("not_equal", lambda a, b: compare("ne", a, b), "Tell where a != b.")


def broadcast_to(data: te.Tensor, shape: Any) -> te.Tensor:
    """Repeat a tensor along the dimensions where its extent is 1, to a larger shape."""
    extents = tuple(shape)
    broadcast_shape([data.shape, extents], "broadcast_to")
    return tensor(
        extents,
        lambda *axes: data[element_indices(data.shape, axes)],
        name="T_broadcast_to",
        tag=BROADCAST,
    )


__getattr__ = reporter(__name__)
