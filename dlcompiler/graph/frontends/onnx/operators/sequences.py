"""Sequences and optionals: they are known when a model is imported, and no operator computes them.

A sequence is a `Tuple` of tensors. An optional is the value inside it, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import Expr, Tuple

MOST_TENSORS = 10_000
"""Most tensors of a sequence that a tensor is split into; [1]."""


def _construct(node: Node) -> Expr:
    return node.tuple([node.input(i) for i in range(len(node.inputs))])


def _empty(node: Node) -> Expr:
    return node.tuple([])


def _position(node: Node, i: int, count: int, default: int | None = None) -> int:
    """Return the place that an operand names, counted from the front."""
    if node.optional(i) is None and default is not None:
        return default
    place = int(node.integers(i, "the place in the sequence")[0])
    if not -count <= place < count:
        node.fail("there is no such place in the sequence", got=str(place),
                  expected=f"{-count} to {count - 1}")  # fmt: skip
    return place % count


def _at(node: Node) -> Expr:
    values = node.sequence(0)
    return values[_position(node, 1, len(values))]


def _insert(node: Node) -> Expr:
    values = list(node.sequence(0))
    count = len(values)
    place = count
    if node.optional(2) is not None:
        place = int(node.integers(2, "the place in the sequence")[0])
        if not -count <= place <= count:
            node.fail("there is no such place in the sequence", got=str(place),
                      expected=f"{-count} to {count}")  # fmt: skip
        place += count if place < 0 else 0
    values.insert(place, node.input(1))
    return node.tuple(values)


def _erase(node: Node) -> Expr:
    values = list(node.sequence(0))
    del values[_position(node, 1, len(values), len(values) - 1)]
    return node.tuple(values)


def _length(node: Node) -> Expr:
    return constant_of(np.asarray(len(node.sequence(0)), np.int64))


def _split_to_sequence(node: Node) -> Expr:
    x = node.input(0)
    if node.rank(x) == 0:
        node.fail("a scalar cannot be split")
    axis = node.axis(0, node.rank(x))
    extent = node.shape(x)[axis]
    sizes = _sizes(node, extent)
    if len(sizes) > MOST_TENSORS:
        node.fail(f"it makes more than {MOST_TENSORS:,} tensors", got=f"{len(sizes):,}")
    if any(n < 0 for n in sizes) or sum(sizes) != extent:
        node.fail("the parts are not the whole", got=f"{sizes[:20]} of {extent} elements")
    parts: list[Expr] = []
    begin = 0
    for size in sizes:
        parts.append(node.call("strided_slice", x, begin=(begin,), end=(begin + size,),
                               axes=(axis,)))  # fmt: skip
        begin += size
    if node.optional(1) is None and not node.attr("keepdims", 1):
        parts = [node.call("squeeze", part, axis=(axis,)) for part in parts]
    return node.tuple(parts)


def _sizes(node: Node, extent: int) -> Sequence[int]:
    """Return the extents of the parts: 1 by default; by one size, equal parts and a rest."""
    split = node.optional(1)
    if split is None:
        return [1] * min(extent, MOST_TENSORS + 1)
    given = node.integers(1, "the sizes of the parts")
    if node.rank(split):
        return given
    if given[0] < 1:
        node.fail("the size of a part is not positive", got=str(given[0]))
    whole, rest = divmod(extent, given[0])
    return [given[0]] * min(whole, MOST_TENSORS + 1) + [rest] * (rest > 0)


def _concat_from_sequence(node: Node) -> Expr:
    values = node.sequence(0)
    if not values:
        node.fail("the sequence is empty, so that the result has no shape")
    is_new = bool(node.attr("new_axis", 0))
    axis = node.axis(0, node.rank(values[0]) + is_new)
    return node.call("stack" if is_new else "concatenate", node.tuple(values), axis=axis)


def _optional(node: Node) -> list[Expr | None]:
    return [node.optional(0)]


def _has_element(node: Node) -> Expr:
    return constant_of(np.asarray(node.optional(0) is not None))


def _get_element(node: Node) -> Expr:
    if node.optional(0) is None:
        node.fail("the optional has no value")
    return node.input(0)


def _identity(node: Node) -> list[Expr | None]:
    x = node.optional(0)
    return [x if x is None or isinstance(x, Tuple) else node.call("copy", x)]


TABLE: dict[str, Callable[[Node], Any]] = {
    "SequenceConstruct": _construct, "SequenceEmpty": _empty, "SequenceAt": _at,
    "SequenceInsert": _insert, "SequenceErase": _erase, "SequenceLength": _length,
    "SplitToSequence": _split_to_sequence, "ConcatFromSequence": _concat_from_sequence,
    "Optional": _optional, "OptionalHasElement": _has_element, "OptionalGetElement": _get_element,
    "Identity": _identity,
}  # fmt: skip
"""The converters of this module."""
