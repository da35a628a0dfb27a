"""What the rules on quantized numbers recognise: dequantized values, and centred integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.interpreter import evaluate
from dlcompiler.graph.ir import Call, Constant, Expr, Module, Node, TensorType
from dlcompiler.graph.operators.base import Array
from dlcompiler.graph.passes.tools import KnownTypes, attrs_of, call_like, operator_of

BYTES = ("int8", "uint8")
"""Dtypes of the data that integer kernels multiply."""


@dataclass(frozen=True, slots=True)
class Found:
    """What takes the place of a call."""

    reason: str
    value: Expr | None
    """None: the call stays, for this reason."""


Rule: TypeAlias = Callable[[Call, KnownTypes], Found | None]
"""Returns what takes the place of a call, why it cannot be replaced, or None if nothing is said."""
Rules: TypeAlias = Mapping[str, Rule]


@dataclass(frozen=True)
class Dequantized:
    """A value ``(q - zero) * scale`` whose scale and zero point are known, in float32."""

    q: Expr
    """The integers."""
    dtype: str
    """Their dtype."""
    scale: Array
    """Positive: one number, or one for each slice."""
    zero: Array
    """Of the dtype, and of the same shape."""
    axis: int
    """The dimension of the slices, counted from the end: the last one is -1."""

    @property
    def is_whole(self) -> bool:
        """Whether all elements have one scale."""
        return self.scale.ndim == 0

    @property
    def is_byte(self) -> bool:
        """Whether the integers have 8 bits and one scale."""
        return self.is_whole and self.dtype in BYTES

    def has_same_numbers(self, other: Dequantized) -> bool:
        """Tell whether equal integers are equal numbers."""
        is_same = self.dtype == other.dtype and (self.is_whole or self.axis == other.axis)
        return is_same and _equal(self.scale, other.scale) and _equal(self.zero, other.zero)

    def moved(self, call: Call, q: Expr) -> Call:
        """Return other integers with these scales in the place of a call."""
        attrs = axis_of(self.scale, self.axis)
        return call_like(call, "qnn.dequantize", q, self.scale, one(self.zero), **attrs)


def _equal(a: Array, b: Array) -> bool:
    return a.shape == b.shape and bool((a == b).all())


def dequantized(node: Node, types: KnownTypes) -> Dequantized | None:
    """Return what a node dequantizes; None for another node, or numbers that a run decides."""
    if operator_of(node) != "qnn.dequantize" or not isinstance(node, Call):
        return None
    q, scale, zero = node.args
    if not isinstance(scale, Constant) or not isinstance(zero, Constant):
        return None
    if scale.type.dtype != "float32" or not _is_usual(scale.value):
        return None
    kind = types.tensor(q)
    axis = attrs_of(node)["axis"] % max(kind.rank, 1) - kind.rank
    return Dequantized(q, kind.dtype, *_joined(scale.value, zero.value), axis)


def axis_of(scale: Array, axis: int) -> dict[str, Any]:
    """Return the attribute for the dimension of scales; none for one scale."""
    return {"axis": axis} if scale.ndim else {}


def one(values: Array) -> Array:
    """Return equal numbers as one number."""
    is_same = values.size > 0 and bool((values == values.reshape(-1)[0]).all())
    return np.asarray(values.reshape(-1)[0]) if is_same else values


def _joined(scale: Array, zero: Array) -> tuple[Array, Array]:
    """Return equal scales of all slices as one; each scale has its zero point."""
    zero = np.broadcast_to(zero, scale.shape)
    if scale.ndim and scale.size and (scale == scale[0]).all() and (zero == zero[0]).all():
        return np.asarray(scale[0]), np.asarray(zero[0])
    return scale, zero


_SMALLEST, _LARGEST = 1e-18, 1e18
"""Products and quotients of two scales between these numbers are normal in float32."""


def _is_usual(scale: Array) -> bool:
    return bool(np.isfinite(scale).all() and (scale > _SMALLEST).all() and (scale < _LARGEST).all())


@dataclass(frozen=True)
class Target:
    """What a call of `qnn.quantize` makes."""

    dtype: str
    scale: Array
    zero: Array

    def of(self, x: float) -> int:
        """Return the integer of a number."""
        low, high = limits(self.dtype)
        whole = np.rint(np.float32(x) / np.float32(self.scale)) + np.float32(self.zero)
        return int(min(max(float(whole), low), high))


def target_of(call: Call) -> Target | None:
    """Return what a call of `qnn.quantize` makes, if its scale is one number that is known."""
    _, scale, zero = call.args
    if not isinstance(scale, Constant) or not isinstance(zero, Constant):
        return None
    if scale.type.dtype != "float32" or not _is_usual(scale.value):
        return None
    numbers = _joined(scale.value, zero.value)
    return None if numbers[0].ndim else Target(attrs_of(call)["out_dtype"], *numbers)


def limits(dtype: str) -> tuple[int, int]:
    """Return the least and the largest integer of a dtype."""
    return int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))


def centred_weight(value: Array, zero: Array, axis: int) -> tuple[Array, ...] | None:
    """Return weights less their zero points as sums of int8; None if they do not fit."""
    shape = [1] * value.ndim
    if zero.ndim:
        shape[axis] = len(zero)  # axis counts from the end
    return in_int8(value.astype(np.int64) - zero.astype(np.int64).reshape(shape))


def in_int8(value: Array) -> tuple[Array, ...] | None:
    """Return integers as the sum of one or two arrays of int8; None if two do not hold them.

    Examples
    --------
    >>> in_int8(np.array([-255, 254]))
    (array([-128,  127], dtype=int8), array([-127,  127], dtype=int8))
    """
    low, high = limits("int8")
    first = np.clip(value, low, high)
    parts = [first] if (first == value).all() else [first, value - first]
    if any(part.size and (part.min() < low or part.max() > high) for part in parts):
        return None
    return tuple(np.ascontiguousarray(part.astype(np.int8)) for part in parts)


def known(node: Expr, types: KnownTypes) -> Array | None:
    """Return the value of an expression of constants; None for another one."""
    if isinstance(node, Constant):
        return node.value
    return np.asarray(evaluate(Module.from_expr(node))) if types.is_constant(node) else None


@dataclass(frozen=True)
class Centred:
    """Integers less their zero point, as int32: ``cast(q) - zero``."""

    q: Expr
    dtype: str
    zero: Expr | None
    """An expression in int32; None for 0."""

    def number(self, types: KnownTypes) -> int | None:
        """Return the zero point; None if it is not one known number."""
        if self.zero is None:
            return 0
        value = known(self.zero, types)
        if value is None or value.size != 1:
            return None
        found = int(value.reshape(-1)[0])
        low, high = limits(self.dtype)
        return found if low <= found <= high else None


def centred(node: Node, types: KnownTypes) -> Centred | None:
    """Return the integers of 8 bits that a node of int32 is made of; None for another node."""
    kind = types[node]
    if not isinstance(kind, TensorType) or kind.dtype != "int32" or not isinstance(node, Call):
        return None
    zero: Expr | None = None
    inner: Node = node
    if operator_of(node) == "subtract":
        inner, zero = node.args
        if types[inner] != kind:
            return None
    if operator_of(inner) != "cast" or not isinstance(inner, Call):
        return None
    q = inner.args[0]
    dtype = types.tensor(q).dtype
    return Centred(q, dtype, zero) if dtype in BYTES else None
