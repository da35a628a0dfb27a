"""What the rules of `decompose_ops` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler.graph.ir import Call, Expr
from dlcompiler.graph.passes.tools import KnownTypes, call_like


@dataclass(frozen=True, slots=True)
class Written:
    """What takes the place of a call."""

    reason: str
    value: Expr


Rule: TypeAlias = Callable[[Call, KnownTypes], "Written | None"]


def reshaped(old: Call, value: Expr, shape: Sequence[int], suffix: str = "shape") -> Call:
    """Return a call that changes the shape of a value."""
    return call_like(old, "reshape", value, suffix=suffix, newshape=tuple(shape))


def turned(old: Call, value: Expr, axes: Sequence[int], suffix: str = "turned") -> Expr:
    """Return a value with its dimensions in another order."""
    if list(axes) == sorted(axes):
        return value
    return call_like(old, "transpose", value, suffix=suffix, axes=tuple(axes))


def order_of(letters: str, wanted: str) -> list[int]:
    """Return where each letter of `wanted` stands.

    Examples
    --------
    >>> order_of("NHWC", "NCHW")
    [0, 3, 1, 2]
    """
    return [letters.index(letter) for letter in wanted]
