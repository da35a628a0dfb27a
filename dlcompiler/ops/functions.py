"""The table of elementwise functions: definition, reference, dtypes and error of each.

Integers wrap. Results that differ between machines are not specified: the sign of a NaN, and which
of 0 and -0 is the larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.ir import compare
from dlcompiler.ir.expr import Not
from dlcompiler.ir.function_values import call_function
from dlcompiler.ir.functions import FUNCTION_ULPS
from dlcompiler.ir.numeric import cast_function
from dlcompiler.ops import elementwise
from dlcompiler.ops.activations import ACTIVATIONS, Activation, in_float32
from dlcompiler.ops.elementwise import clip_bounds
from dlcompiler.ops.rounding import Array
from dlcompiler.ops.shapes import FLOATS, INTEGERS
from dlcompiler.te import Tensor

SCALE = 0.5
"""The factor of ``scale``."""
_NUMBERS = (*FLOATS, *INTEGERS)
_ALL = (*_NUMBERS, "bool")
_POSITIVE = (0.01, 4.0)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the elements of one to three tensors."""

    define: Callable[..., Tensor]
    """Makes the result's tensor from those of the operands, and the options by name."""
    reference: Callable[..., Array]
    """The same on arrays: integers in their dtype, floats in float64."""
    arity: int = 1
    dtypes: tuple[str, ...] = _NUMBERS
    ulps: float = 0
    """Error in units in the last place of the result; 0 if it is exact."""
    absolute: float = 0
    """Additional error, in units in the last place of 1 + |x|."""
    options: Mapping[str, float | str] = field(default_factory=dict)
    """Parameters other than tensors, with their default values; a text is the name of a dtype."""
    ranges: tuple[tuple[float, float], ...] = ()
    """Where the random elements of each operand lie; () is the usual range of the dtype."""
    has_condition: bool = False
    """Whether the first operand is a bool."""


# -- functions of one operand ---------------------------------------------------------------------


def _of_elements(name: str, element: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return a definition from a function of one element, which also gets the options."""

    def define(x: Tensor, **options: Any) -> Tensor:
        made: Tensor = elementwise.elementwise(name, lambda v: element(v, **options), x)
        return made

    return define


def _of_floats(name: str, ulps: float = FUNCTION_ULPS, **facts: Any) -> Function:
    """Return a function of the language as one of tensors."""
    define = _of_elements(name, getattr(te, name))
    return Function(define, call_function(name, "float64"), dtypes=FLOATS, ulps=ulps, **facts)


def _activation(name: str, activation: Activation) -> Function:
    return Function(
        _of_elements(name, activation.element),
        activation.reference,
        dtypes=_NUMBERS if name in ("relu", "relu6") else FLOATS,
        absolute=activation.ulps,
        options=dict(activation.options),
    )


def _expm1(x: Any) -> Any:
    """Return ``exp(x) - 1``; near 0, where this would lose digits, its Taylor series."""
    terms = 15 if dtypes.element(x.dtype) == "float64" else 9
    series = te.const(1 / math.factorial(terms), x.dtype)
    for n in reversed(range(1, terms)):
        series = series * x + te.const(1 / math.factorial(n), x.dtype)
    is_near = te.abs(x) < te.const(0.5, x.dtype)
    return te.select(is_near, series * x, te.exp(x) - te.const(1, x.dtype))


def _clipped(x: Array, low: float, high: float) -> Array:
    first, last = clip_bounds(low, high, dtypes.from_numpy(x.dtype))
    limited: Array = np.minimum(np.maximum(x, x.dtype.type(first)), x.dtype.type(last))
    return limited


def _cast(x: Array, to: str) -> Array:
    converted: Array = cast_function(dtypes.from_numpy(x.dtype), to, vector=True)(x)
    return converted


def _thresholded(x: Any, alpha: float) -> Any:
    return te.select(x > te.const(alpha, x.dtype), x, te.const(0, x.dtype))


_OF_ONE: dict[str, Function] = {
    "copy": Function(elementwise.identity, np.array, dtypes=_ALL),
    "negative": Function(elementwise.negative, np.negative),
    "abs": Function(elementwise.abs, np.abs),
    "sign": Function(elementwise.sign, np.sign),
    "square": Function(elementwise.square, np.square, ulps=0.5),
    "scale": Function(
        _of_elements("scale", lambda v: v * te.const(SCALE, v.dtype)),
        lambda x: x * SCALE, dtypes=FLOATS, ulps=0.5,
    ),
    "reciprocal": Function(
        _of_elements("reciprocal", lambda v: te.const(1, v.dtype) / v),
        np.reciprocal, dtypes=FLOATS, ulps=0.5,
    ),
    "sigmoid": _of_floats("sigmoid", 6),
    **{
        name: _of_floats(name)
        for name in (
            *("exp", "exp2", "exp10", "sin", "cos", "tan", "sinh", "cosh", "tanh", "atan"),
            *("asinh", "erf"),
        )
    },
    **{name: _of_floats(name, ranges=(_POSITIVE,)) for name in ("log", "log2", "log10", "rsqrt")},
    "sqrt": _of_floats("sqrt", 0.5, ranges=(_POSITIVE,)),
    "log1p": _of_floats("log1p", ranges=((-0.9, 4.0),)),
    **{name: _of_floats(name, ranges=((-1.0, 1.0),)) for name in ("asin", "acos", "atanh")},
    "acosh": _of_floats("acosh", ranges=((1.0, 9.0),)),
    "expm1": Function(
        _of_elements("expm1", in_float32(_expm1)), np.expm1, dtypes=FLOATS, ulps=8
    ),
    **{name: _of_floats(name, 0) for name in ("floor", "ceil", "trunc", "round")},
    **{name: _of_floats(name, 0) for name in ("isnan", "isinf", "isfinite")},
    **{name: _activation(name, activation) for name, activation in ACTIVATIONS.items()},
    "thresholded_relu": Function(
        _of_elements("thresholded_relu", _thresholded),
        lambda x, alpha: np.where(x > alpha, x, 0), dtypes=FLOATS, options={"alpha": 1.0},
    ),
    "log_sigmoid": Function(
        _of_elements("log_sigmoid", in_float32(lambda v: -ACTIVATIONS["softplus"].element(-v))),
        lambda x: -ACTIVATIONS["softplus"].reference(-x), dtypes=FLOATS, absolute=6,
    ),
    "clip": Function(
        _of_elements("clip", elementwise.clipped), _clipped, options={"low": 0.0, "high": 6.0}
    ),
    "cast": Function(
        lambda x, to: elementwise.cast(x, to), _cast, dtypes=_ALL, options={"to": "float32"}
    ),
    "logical_not": Function(_of_elements("logical_not", Not), np.logical_not, dtypes=("bool",)),
    "bitwise_not": Function(
        _of_elements("bitwise_not", te.bitwise_not), np.invert, dtypes=INTEGERS
    ),
}  # fmt: skip


# -- functions of two and three operands ----------------------------------------------------------


def _of_two(
    name: str, reference: Callable[..., Array], element: Callable[..., Any] | None = None,
    **facts: Any,
) -> Function:  # fmt: skip
    if element is None:
        return Function(getattr(elementwise, name), reference, 2, **facts)
    return Function(elementwise.operator(name, element, name), reference, 2, **facts)


def _by_kind(of_floats: Callable[..., Any], of_integers: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that differs for floats and integers: of expressions, or of arrays."""

    def chosen(a: Any, b: Any) -> Any:
        kind = a.dtype if isinstance(a.dtype, str) else dtypes.from_numpy(a.dtype)
        return (of_floats if dtypes.is_float(kind) else of_integers)(a, b)

    return chosen


def floor_rest(a: Any, b: Any) -> Any:
    """Return the remainder of floats: that of `te.fmod`, moved to the sign of the divisor."""
    rest, zero = te.fmod(a, b), te.const(0, a.dtype)
    is_other = te.select(b < zero, rest > zero, rest < zero)
    return te.select(is_other, rest + b, rest)


def _truncated(a: Array, b: Array) -> Array:
    """Divide integers, and round toward zero."""
    quotient: Array = np.floor_divide(a, b)
    is_below = (np.remainder(a, b) != 0) & ((a < 0) != (b < 0))
    rounded: Array = quotient + is_below.astype(a.dtype)
    return rounded


_FALSE, _TRUE = te.const(False, "bool"), te.const(True, "bool")
_DIVISORS = ((-9.0, 9.0), (1.0, 9.0))
_SHIFTS = ((0.0, 9.0), (0.0, 7.0))

_OF_MORE: dict[str, Function] = {
    "add": _of_two("add", np.add, ulps=0.5),
    "subtract": _of_two("subtract", np.subtract, ulps=0.5),
    "multiply": _of_two("multiply", np.multiply, ulps=0.5),
    "divide": _of_two("divide", np.divide, dtypes=FLOATS, ulps=0.5),
    "maximum": _of_two("maximum", np.maximum),
    "minimum": _of_two("minimum", np.minimum),
    "floor_divide": _of_two(
        "floor_divide", np.floor_divide, te.floordiv, dtypes=INTEGERS, ranges=_DIVISORS
    ),
    "trunc_divide": _of_two(
        "trunc_divide", _truncated, te.truncdiv, dtypes=INTEGERS, ranges=_DIVISORS
    ),
    "floor_mod": _of_two(
        "floor_mod", np.mod, _by_kind(floor_rest, te.floormod), ulps=0.5, ranges=_DIVISORS
    ),
    "trunc_mod": _of_two(
        "trunc_mod", np.fmod, _by_kind(te.fmod, te.truncmod), ranges=_DIVISORS
    ),
    "power": _of_two(
        "power", call_function("pow", "float64"), dtypes=FLOATS, ulps=4,
        ranges=(_POSITIVE, (-3.0, 3.0)),
    ),
    "atan2": _of_two("atan2", np.arctan2, te.atan2, dtypes=FLOATS, ulps=4),
    "hypot": _of_two("hypot", np.hypot, te.hypot, dtypes=FLOATS, ulps=4),
    "prelu": _of_two(
        "prelu", lambda x, slope: np.where(x > 0, x, x * slope),
        lambda x, slope: te.select(x > te.const(0, x.dtype), x, x * slope), dtypes=FLOATS, ulps=0.5,
    ),
    **{
        name: _of_two(name, getattr(np, name))
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    },
    "logical_and": _of_two(
        "logical_and", np.logical_and, lambda a, b: te.select(a, b, _FALSE), dtypes=("bool",)
    ),
    "logical_or": _of_two(
        "logical_or", np.logical_or, lambda a, b: te.select(a, _TRUE, b), dtypes=("bool",)
    ),
    "logical_xor": _of_two(
        "logical_xor", np.logical_xor, lambda a, b: compare("ne", a, b), dtypes=("bool",)
    ),
    "bitwise_and": _of_two("bitwise_and", np.bitwise_and, lambda a, b: a & b, dtypes=INTEGERS),
    "bitwise_or": _of_two("bitwise_or", np.bitwise_or, lambda a, b: a | b, dtypes=INTEGERS),
    "bitwise_xor": _of_two("bitwise_xor", np.bitwise_xor, lambda a, b: a ^ b, dtypes=INTEGERS),
    "left_shift": _of_two(
        "left_shift", np.left_shift, lambda a, b: a << b, dtypes=INTEGERS, ranges=_SHIFTS
    ),
    "right_shift": _of_two(
        "right_shift", np.right_shift, lambda a, b: a >> b, dtypes=INTEGERS, ranges=_SHIFTS
    ),
    "where": Function(elementwise.where, np.where, 3, dtypes=_ALL, has_condition=True),
}  # fmt: skip


FUNCTIONS: dict[str, Function] = {**_OF_ONE, **_OF_MORE}
"""Name -> the function."""
