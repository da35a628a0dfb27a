"""Derivatives of operations and functions, as rules from the adjoint of the result to an operand's.

Where a function has no derivative, a rule gives one of the slopes beside the point: 1 for ``abs``
at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from dlcompiler.ir import Expr, binary, compare, const
from dlcompiler.te.arithmetic import power, select
from dlcompiler.te.math import cos, cosh, exp, hypot, ldexp, log, sin, sinh, sqrt, trunc

Rule: TypeAlias = Callable[..., Any]
"""``rule(g, r, *operands)``: gets the adjoint g of the result r and the operands, and returns the
adjoint of one operand."""

STEPS = frozenset({"ceil", "floor", "round", "trunc"})
"""Functions that are constant between jumps: their operand gets 0."""


def _of_base(g: Any, r: Any, x: Any, y: Any) -> Any:
    """Return the adjoint of x in ``x**y``; 0 for ``x**0``, where the formula may give NaN."""
    return select(_is_zero(y), _zero(x), g * (y * power(x, binary("sub", y, 1))))


def _of_exponent(g: Any, r: Any, x: Any, y: Any) -> Any:
    """Return the adjoint of y in ``x**y``; 0 for ``0**y``, where the formula has ``log(0)``."""
    return select(_is_zero(x), _zero(x), g * (r * log(x)))


def _is_zero(x: Expr) -> Expr:
    return compare("eq", x, 0)


def _zero(x: Expr) -> Expr:
    return const(0, x.dtype)


OPERATIONS: dict[str, tuple[Rule, ...]] = {
    "add": (lambda g, r, x, y: g, lambda g, r, x, y: g),
    "sub": (lambda g, r, x, y: g, lambda g, r, x, y: -g),
    "mul": (lambda g, r, x, y: g * y, lambda g, r, x, y: g * x),
    "div": (lambda g, r, x, y: g / y, lambda g, r, x, y: -(g * r) / y),
}
"""Operation -> the rule of each operand."""

FUNCTIONS: dict[str, tuple[Rule, ...]] = {
    "abs": (lambda g, r, x: select(x >= 0, g, -g),),
    "acos": (lambda g, r, x: -g / sqrt((1 - x) * (1 + x)),),
    "acosh": (lambda g, r, x: g / (sqrt(x - 1) * sqrt(x + 1)),),
    "asin": (lambda g, r, x: g / sqrt((1 - x) * (1 + x)),),
    "asinh": (lambda g, r, x: g / hypot(x, 1),),
    "atan": (lambda g, r, x: g / (1 + x * x),),
    "atan2": (
        lambda g, r, y, x: g * (x / hypot(x, y)) / hypot(x, y),
        lambda g, r, y, x: -g * (y / hypot(x, y)) / hypot(x, y),
    ),
    "atanh": (lambda g, r, x: g / ((1 - x) * (1 + x)),),
    "copysign": (
        lambda g, r, x, y: select(compare("eq", r, x), g, -g),
        lambda g, r, x, y: _zero(y),
    ),
    "cos": (lambda g, r, x: -g * sin(x),),
    "cosh": (lambda g, r, x: g * sinh(x),),
    "erf": (lambda g, r, x: g * (2 / math.sqrt(math.pi) * exp(-(x * x))),),
    "exp": (lambda g, r, x: g * r,),
    "exp10": (lambda g, r, x: g * (r * math.log(10)),),
    "exp2": (lambda g, r, x: g * (r * math.log(2)),),
    "fmod": (lambda g, r, x, y: g, lambda g, r, x, y: -g * trunc(x / y)),
    "hypot": (lambda g, r, x, y: g * (x / r), lambda g, r, x, y: g * (y / r)),
    "ldexp": (lambda g, r, x, n: ldexp(g, n),),
    "log": (lambda g, r, x: g / x,),
    "log10": (lambda g, r, x: g / (x * math.log(10)),),
    "log1p": (lambda g, r, x: g / (1 + x),),
    "log2": (lambda g, r, x: g / (x * math.log(2)),),
    "pow": (_of_base, _of_exponent),
    "rsqrt": (lambda g, r, x: g * (r / x) * -0.5,),
    "sigmoid": (lambda g, r, x: g * (r * (1 - r)),),
    "sin": (lambda g, r, x: g * cos(x),),
    "sinh": (lambda g, r, x: g * cosh(x),),
    "sqrt": (lambda g, r, x: g * 0.5 / r,),
    "tan": (lambda g, r, x: g * (1 + r * r),),
    "tf32": (lambda g, r, x: g,),  # as of a conversion
    "tanh": (lambda g, r, x: g * (1 - r * r),),
}
"""Function -> the rule of each operand that is a float; integer operands come last."""
