"""Magnitudes of expressions: sizes of their terms without cancellation; see `absolute_bound`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.ir import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    IfThenElse,
    Reducer,
    Select,
    TensorLoad,
    Var,
)
from dlcompiler.ir.function_values import call_function
from dlcompiler.te.elements import Array, Arrays, Elements, choose
from dlcompiler.te.roundings import Rounding, may_underflow

# The absolute value of the derivative of a function, or an upper bound of it.
_SLOPES: dict[str, Callable[[Any], Any]] = {
    "abs": lambda x: 1.0,
    "acos": lambda x: 1 / np.sqrt(1 - x * x),
    "acosh": lambda x: 1 / np.sqrt(x * x - 1),
    "asin": lambda x: 1 / np.sqrt(1 - x * x),
    "asinh": lambda x: 1 / np.hypot(1, x),
    "atan": lambda x: 1 / (1 + x * x),
    "atanh": lambda x: 1 / np.abs(1 - x * x),
    "cos": lambda x: 1.0,
    "cosh": lambda x: np.abs(np.sinh(x)),
    "erf": lambda x: 2 / math.sqrt(math.pi),
    "exp": np.exp,
    "exp10": lambda x: math.log(10) * 10.0**x,
    "exp2": lambda x: math.log(2) * 2.0**x,
    "log": lambda x: 1 / np.abs(x),
    "log10": lambda x: 1 / np.abs(math.log(10) * x),
    "log1p": lambda x: 1 / np.abs(1 + x),
    "log2": lambda x: 1 / np.abs(math.log(2) * x),
    "rsqrt": lambda x: 0.5 / (x * np.sqrt(x)),
    "sigmoid": lambda x: 0.25 / np.square(np.cosh(x / 2)),
    "sin": lambda x: 1.0,
    "sinh": np.cosh,
    "sqrt": lambda x: 0.5 / np.sqrt(x),
    "tan": lambda x: 1 + np.tan(x) ** 2,
    "tanh": lambda x: 1.0,
}
_STEPS = frozenset({"ceil", "floor", "round", "sort_key", "tf32", "to_bits", "trunc"})
"""Functions that are constant between jumps."""


def _power_slopes(x: Any, y: Any) -> tuple[Any, Any]:
    value = np.abs(np.power(x, y))
    relative = np.abs(y / x), np.abs(np.log(np.abs(x)))
    return np.where(value == 0, 0, value * relative[0]), np.where(
        value == 0, 0, value * relative[1]
    )


# The same, for each argument of a function of two.
_SLOPES_OF_TWO: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "atan2": lambda y, x: (np.abs(x) / (x * x + y * y), np.abs(y) / (x * x + y * y)),
    "copysign": lambda x, y: (1.0, 0.0),
    "fmod": lambda x, y: (1.0, np.abs(np.trunc(x / y))),
    "hypot": lambda x, y: (1.0, 1.0),
    "ldexp": lambda x, n: (np.ldexp(1.0, n), 0.0),
    "nextafter": lambda x, y: (1.0, 0.0),
    "pow": _power_slopes,
}


class Magnitudes:
    """Magnitudes of the expressions of an operation over a block, in float64.

    Parameters
    ----------
    elements
        The values, computed in float64.
    magnitudes
        The magnitudes of the tensors that the operation reads.
    rounding
        How values are rounded. With it, magnitudes also cover errors that are not proportional to a
        value: a product that underflows, or a divisor or argument that rounding may move out of the
        domain of a function. A magnitude is infinite if no number bounds the error.
    """

    def __init__(
        self, elements: Elements, magnitudes: Arrays, rounding: Rounding | None = None
    ) -> None:
        self.elements = elements
        self.magnitudes = magnitudes
        self.rounding = rounding
        self.memo: dict[tuple[int, int], tuple[Any, Any]] = {}

    def of(self, expr: Expr, mask: Any = None) -> Any:
        """Return the magnitudes of `expr`; where `mask` is false they are not defined."""
        plan = self.elements.plan
        if id(expr) in plan.inside:
            mask = None
        if id(expr) not in plan.shared:
            return self.compute(expr, mask)
        key = (id(expr), id(mask))
        if key not in self.memo:
            self.memo[key] = (self.compute(expr, mask), mask)
        return self.memo[key][0]

    def compute(self, expr: Expr, mask: Any) -> Any:
        """Return the magnitudes of one node, by the table of `absolute_bound`."""
        if not dtypes.is_float(expr.dtype) or isinstance(expr, Const):
            return self.size(expr, mask)
        magnitude = self.in_float64(expr, mask)
        if self.rounding is None:
            return within_range(magnitude, expr.dtype)
        if may_underflow(expr):
            magnitude = np.where(magnitude == 0, 0.0, magnitude + self.rounding.lost(expr.dtype))
        return within_range(magnitude, expr.dtype, self.rounding.error(expr))

    def radius(self, expr: Expr, size: Any) -> Any:
        """Return the bound of an expression's rounding error: relative error times magnitude."""
        return 0.0 if self.rounding is None else self.rounding.error(expr) * size

    def in_float64(self, expr: Expr, mask: Any) -> Any:
        """Return the magnitudes of one node, without regard to the range of its dtype."""
        match expr:
            case TensorLoad():
                return self.elements.load(expr, self.magnitudes, mask)
            case Binary(op, a, b):
                return self.binary(op, a, b, mask)
            case Select(condition, a, b):
                chosen = self.elements.of(condition, mask)
                return np.where(chosen, self.of(a, mask), self.of(b, mask))
            case IfThenElse(condition, a, b):
                chosen = self.elements.of(condition, mask)
                return choose(chosen, mask, lambda m: self.of(a, m), lambda m: self.of(b, m))
            case Cast(value, _):
                return self.of(value, mask)
            case Call():
                return self.call(expr, mask)
        return self.size(expr, mask)

    def size(self, expr: Expr, mask: Any) -> Any:
        """Return the absolute values of an expression."""
        return np.abs(np.asarray(self.elements.of(expr, mask)).astype(np.float64))

    def binary(self, op: str, a: Expr, b: Expr, mask: Any) -> Any:
        """Return the magnitudes of an arithmetic operation."""
        x, y = self.of(a, mask), self.of(b, mask)
        match op:
            case "add" | "sub":
                return x + y
            case "mul":
                return _product(x, y)
            case "div":
                divisor, radius = np.abs(self.elements.of(b, mask)), self.radius(b, y)
                least = np.where(divisor > radius, divisor - radius, 0.0)
                quotient = _product(x, y) / np.square(least)
                return np.where((least == 0) & (radius > 0), math.inf, quotient)
        return np.maximum(x, y)

    def call(self, expr: Call, mask: Any) -> Any:
        """Return the magnitudes of a function: its value, plus slopes times magnitudes."""
        name, result = expr.name, self.size(expr, mask)
        values = [self.elements.of(arg, mask) for arg in expr.args]
        sizes = [self.of(arg, mask) for arg in expr.args]
        if name in _STEPS:
            return np.maximum(result, sizes[0])
        result = _stretched(result, _slopes(name, values), sizes)
        return result if self.rounding is None else self.near(expr, values, sizes, result)

    def near(self, expr: Call, values: list[Any], sizes: list[Any], result: Any) -> Any:
        """Return the magnitudes of a function whose arguments have rounding errors.

        `result` holds the magnitudes for exact arguments. Here the function is also evaluated at
        both ends of the arguments' error intervals, and the largest magnitude is taken. It is
        infinite if the function is not defined at an end.
        """
        function = call_function(expr.name, self.elements.dtype(expr.args[0].dtype))
        is_finite = np.isfinite(function(*values))
        for place, (arg, size) in enumerate(zip(expr.args, sizes, strict=True)):
            radius = self.radius(arg, size)
            if not np.any(radius):
                continue
            for there in (values[place] - radius, values[place] + radius):
                moved = [*values[:place], there, *values[place + 1 :]]
                reached = function(*moved)
                steep = _stretched(np.abs(reached), _slopes(expr.name, moved), sizes)
                result = np.fmax(result, steep)
                result = np.where(is_finite == np.isfinite(reached), result, math.inf)
        return result


def _slopes(name: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """Return the absolute derivative of a function with respect to each of its arguments."""
    return (_SLOPES[name](*values),) if len(values) == 1 else _SLOPES_OF_TWO[name](*values)


def _stretched(size: Any, slopes: Sequence[Any], sizes: Sequence[Any]) -> Any:
    """Add, for each argument, slope times magnitude to the absolute value of a function."""
    for slope, own in zip(slopes, sizes, strict=True):
        size = size + np.where(own == 0, 0.0, slope * own)  # a magnitude of 0 has no error
    return size


def within_range(magnitudes: Any, dtype: str, error: float = 0.0) -> Any:
    """Set magnitudes beyond the range of a dtype to infinity: an overflow has no error bound.

    `error` is the relative rounding error by which a value may exceed its magnitude.
    """
    largest = dtypes.LARGEST.get(dtypes.element(dtype), math.inf)
    return np.where(magnitudes * (1 + error) > largest, math.inf, magnitudes)


def _product(x: Any, y: Any) -> Any:
    """Multiply magnitudes; infinity times 0 is infinity, since it has no bound."""
    result = x * y
    return np.where(np.isnan(result) & ~np.isnan(x) & ~np.isnan(y), math.inf, result)


def combined_magnitudes(reducer: Reducer, a: list[Array], b: list[Array]) -> list[Array]:
    """Return the magnitudes of a user's combination, whichever side its conditions choose."""
    known = dict(zip((*reducer.lhs, *reducer.rhs), (*a, *b), strict=True))

    def of(expr: Expr) -> Any:
        match expr:
            case Var():
                return known[expr]
            case Const(value):
                return abs(float(value))
            case Binary("add" | "sub", x, y):
                return of(x) + of(y)
            case Binary("mul", x, y):
                return of(x) * of(y)
            case Binary("min" | "max", x, y) | Select(_, x, y) | IfThenElse(_, x, y):
                return np.maximum(of(x), of(y))
            case Cast(value, _):
                return of(value)
        return math.inf  # no bound without the values

    return [np.broadcast_to(of(result), a[0].shape) for result in reducer.results]
