"""What the rules of `decompose_ops` share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dlcompiler.graph.ir import Call, Constant, Expr, Node, TensorType, Var, post_order
from dlcompiler.graph.passes.tools import KnownTypes, call_like


@dataclass(frozen=True, slots=True)
class Written:
    """What takes the place of a call."""

    reason: str
    value: Expr


Rule: TypeAlias = Callable[[Call, KnownTypes], "Written | None"]


def shape_of(node: Node, types: KnownTypes) -> tuple[int, ...] | None:
    """Return the shape of a tensor; None if an extent is not known or the tensor is empty."""
    kind = types[node]
    if not isinstance(kind, TensorType) or not all(isinstance(n, int) for n in kind.shape):
        return None
    shape = tuple(n for n in kind.shape if isinstance(n, int))
    return shape if math.prod(shape) else None


def is_constant(node: Node) -> bool:
    """Tell whether a value is known before the model runs."""
    leaves = [each for each in post_order(node) if isinstance(each, Constant | Var)]
    return bool(leaves) and all(isinstance(leaf, Constant) for leaf in leaves)


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
