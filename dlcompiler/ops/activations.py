"""Activations: functions of one number, as te expressions and on NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.ir import Expr
from dlcompiler.ir.function_values import call_function
from dlcompiler.ops.rounding import Wide

_erf = call_function("erf", "float64")
_GELU_SCALE = math.sqrt(2 / math.pi)
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


@dataclass(frozen=True, slots=True)
class Activation:
    """A function of one number."""

    element: Callable[..., Any]
    """The te expression of an element."""
    reference: Callable[..., Wide]
    """The same on a float64 array."""
    slope: float
    """Its largest slope, by which an error of the argument is multiplied at most."""
    ulps: float
    """Its own rounding errors, in units in the last place of 1 + |x|."""
    options: Mapping[str, float] = field(default_factory=dict)
    """Parameters of both functions by name, with the values that an epilogue takes."""


def _number(value: float, x: Expr) -> Expr:
    return te.const(value, x.dtype)


def relu(x: Expr) -> Any:
    """Return x, or 0 where it is negative."""
    return te.maximum(x, _number(0, x))


def relu6(x: Expr) -> Any:
    """Return x, limited to the range from 0 to 6."""
    return te.minimum(te.maximum(x, _number(0, x)), _number(6, x))


def leaky_relu(x: Expr, alpha: float = 0.01) -> Any:
    """Return x, or ``alpha * x`` where it is negative."""
    return te.select(x > _number(0, x), x, x * _number(alpha, x))


def gelu(x: Expr) -> Any:
    """Return x times the normal distribution function of x."""
    half, one = _number(0.5, x), _number(1, x)
    return half * x * (one + te.erf(x * _number(math.sqrt(0.5), x)))


def gelu_tanh(x: Expr) -> Any:
    """Return an approximation of `gelu` by a hyperbolic tangent."""
    half, one = _number(0.5, x), _number(1, x)
    inner = x + _number(0.044715, x) * x * x * x
    return half * x * (one + te.tanh(_number(_GELU_SCALE, x) * inner))


def silu(x: Expr) -> Any:
    """Return ``x * sigmoid(x)``."""
    return x * te.sigmoid(x)


def elu(x: Expr, alpha: float = 1.0) -> Any:
    """Return x, or ``alpha * (exp(x) - 1)`` where it is negative."""
    below = te.exp(te.minimum(x, _number(0, x))) - _number(1, x)
    return te.select(x > _number(0, x), x, _number(alpha, x) * below)


def selu(x: Expr) -> Any:
    """Return `elu` with fixed factors, which keep mean and variance of the results."""
    return _number(_SELU_SCALE, x) * elu(x, _SELU_ALPHA)


def celu(x: Expr, alpha: float = 1.0) -> Any:
    """Return x, or ``alpha * (exp(x / alpha) - 1)`` where it is negative."""
    below = te.exp(te.minimum(x, _number(0, x)) * _number(1 / alpha, x)) - _number(1, x)
    return te.select(x > _number(0, x), x, _number(alpha, x) * below)


def softplus(x: Expr) -> Any:
    """Return ``log(1 + exp(x))``; the power is of a negative number and does not overflow."""
    return te.maximum(x, _number(0, x)) + te.log1p(te.exp(-te.abs(x)))


def softsign(x: Expr) -> Any:
    """Return ``x / (1 + |x|)``."""
    return x / (_number(1, x) + te.abs(x))


def mish(x: Expr) -> Any:
    """Return ``x * tanh(log(1 + exp(x)))``.

    With ``n = e**x * (e**x + 2)``, the hyperbolic tangent is ``n / (n + 2)``. It rounds to 1
    where x is limited.
    """
    two = _number(2, x)
    power = te.exp(te.minimum(x, _number(20, x)))
    n = power * (power + two)
    return x * (n / (n + two))


def hard_sigmoid(x: Expr, alpha: float = 1 / 6, beta: float = 0.5) -> Any:
    """Return ``alpha * x + beta``, limited to the range from 0 to 1."""
    line = x * _number(alpha, x) + _number(beta, x)
    return te.minimum(te.maximum(line, _number(0, x)), _number(1, x))


def hard_swish(x: Expr) -> Any:
    """Return ``x * min(max(x + 3, 0), 6) / 6``."""
    return x * relu6(x + _number(3, x)) * _number(1 / 6, x)


def in_float32(element: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes 16-bit floats in float32, and rounds once, at the end."""

    def widened(x: Expr, *more: Any, **options: Any) -> Any:
        if dtypes.bits(dtypes.element(x.dtype)) > 16:
            return element(x, *more, **options)
        wide = (value.astype("float32") for value in more)
        return element(x.astype("float32"), *wide, **options).astype(x.dtype)

    widened.__name__, widened.__doc__ = element.__name__, element.__doc__
    return widened


def _sigmoid_of(x: Wide) -> Wide:
    small: Wide = np.exp(-np.abs(x))
    return np.where(x < 0, small, np.ones_like(x)) / (1 + small)


def _elu_of(x: Wide, alpha: float = 1.0) -> Wide:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _celu_of(x: Wide, alpha: float = 1.0) -> Wide:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0) / alpha))


def _softplus_of(x: Wide) -> Wide:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(relu, lambda x: np.maximum(x, 0), 1.0, 0),
    "relu6": Activation(relu6, lambda x: np.minimum(np.maximum(x, 0), 6), 1.0, 0),
    "leaky_relu": Activation(
        leaky_relu, lambda x, alpha=0.01: np.where(x > 0, x, alpha * x), 1.0, 2, {"alpha": 0.01}
    ),
    "gelu": Activation(gelu, lambda x: 0.5 * x * (1 + _erf(x * math.sqrt(0.5))), 1.13, 8),
    "gelu_tanh": Activation(
        gelu_tanh,
        lambda x: 0.5 * x * (1 + np.tanh(_GELU_SCALE * (x + 0.044715 * x**3))),
        1.13,
        12,
    ),
    "silu": Activation(silu, lambda x: x * _sigmoid_of(x), 1.1, 8),
    "sigmoid": Activation(te.sigmoid, _sigmoid_of, 0.25, 8),
    "tanh": Activation(te.tanh, np.tanh, 1.0, 4),
    "elu": Activation(in_float32(elu), _elu_of, 1.0, 4, {"alpha": 1.0}),
    "selu": Activation(
        in_float32(selu), lambda x: _SELU_SCALE * _elu_of(x, _SELU_ALPHA), 1.76, 8
    ),
    "celu": Activation(
        in_float32(celu), _celu_of, 1.0, 6, {"alpha": 1.0}
    ),
    "softplus": Activation(in_float32(softplus), _softplus_of, 1.0, 6),
    "softsign": Activation(in_float32(softsign), lambda x: x / (1 + np.abs(x)), 1.0, 3),
    "mish": Activation(in_float32(mish), lambda x: x * np.tanh(_softplus_of(x)), 1.1, 12),
    "hard_sigmoid": Activation(
        in_float32(hard_sigmoid),
        lambda x, alpha=1 / 6, beta=0.5: np.minimum(np.maximum(x * alpha + beta, 0), 1),
        1.0, 3, {"alpha": 1 / 6, "beta": 0.5},
    ),
    "hard_swish": Activation(
        in_float32(hard_swish), lambda x: x * np.minimum(np.maximum(x + 3, 0), 6) / 6, 1.5, 6
    ),
}  # fmt: skip
"""Name -> the activation.

**Source:** gelu: D. Hendrycks, K. Gimpel, arXiv:1606.08415; silu: S. Elfwing and others,
arXiv:1702.03118; relu6: A. Krizhevsky, "Convolutional deep belief networks on CIFAR-10", 2010; elu:
D.-A. Clevert and others, arXiv:1511.07289; selu: G. Klambauer and others, arXiv:1706.02515; celu:
J. T. Barron, arXiv:1704.07483; mish: D. Misra, arXiv:1908.08681; hard_swish: A. Howard and others,
arXiv:1905.02244.
"""
