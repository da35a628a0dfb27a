"""Activations: functions of one number, as te expressions and on NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.ir import Expr
from dlcompiler.ir.function_values import call_function
from dlcompiler.ops.rounding import Wide

_erf = call_function("erf", "float64")
_GELU_SCALE = math.sqrt(2 / math.pi)


@dataclass(frozen=True, slots=True)
class Activation:
    """A function of one number."""

    element: Callable[[Expr], Any]
    """The te expression of an element."""
    reference: Callable[[Wide], Wide]
    """The same on a float64 array."""
    slope: float
    """Its largest slope, by which an error of the argument is multiplied at most."""
    ulps: float
    """Its own rounding errors, in units in the last place of 1 + |x|."""


def _number(value: float, x: Expr) -> Expr:
    return te.const(value, x.dtype)


def _relu(x: Expr) -> Any:
    return te.maximum(x, _number(0, x))


def _relu6(x: Expr) -> Any:
    return te.minimum(te.maximum(x, _number(0, x)), _number(6, x))


def _leaky_relu(x: Expr) -> Any:
    return te.select(x > _number(0, x), x, x * _number(0.01, x))


def _gelu(x: Expr) -> Any:
    half, one = _number(0.5, x), _number(1, x)
    return half * x * (one + te.erf(x * _number(math.sqrt(0.5), x)))


def _gelu_tanh(x: Expr) -> Any:
    half, one = _number(0.5, x), _number(1, x)
    inner = x + _number(0.044715, x) * x * x * x
    return half * x * (one + te.tanh(_number(_GELU_SCALE, x) * inner))


def _silu(x: Expr) -> Any:
    return x * te.sigmoid(x)


def _sigmoid_of(x: Wide) -> Wide:
    small: Wide = np.exp(-np.abs(x))
    return np.where(x < 0, small, np.ones_like(x)) / (1 + small)


ACTIVATIONS: dict[str, Activation] = {
    "relu": Activation(_relu, lambda x: np.maximum(x, 0), 1.0, 0),
    "relu6": Activation(_relu6, lambda x: np.minimum(np.maximum(x, 0), 6), 1.0, 0),
    "leaky_relu": Activation(_leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x), 1.0, 2),
    "gelu": Activation(_gelu, lambda x: 0.5 * x * (1 + _erf(x * math.sqrt(0.5))), 1.13, 8),
    "gelu_tanh": Activation(
        _gelu_tanh,
        lambda x: 0.5 * x * (1 + np.tanh(_GELU_SCALE * (x + 0.044715 * x**3))),
        1.13,
        12,
    ),
    "silu": Activation(_silu, lambda x: x * _sigmoid_of(x), 1.1, 8),
    "sigmoid": Activation(te.sigmoid, _sigmoid_of, 0.25, 8),
    "tanh": Activation(te.tanh, np.tanh, 1.0, 4),
}
"""Name -> the activation.

**Source:** gelu: D. Hendrycks, K. Gimpel, arXiv:1606.08415; silu: S. Elfwing and others,
arXiv:1702.03118; relu6: A. Krizhevsky, "Convolutional deep belief networks on CIFAR-10", 2010.
"""
