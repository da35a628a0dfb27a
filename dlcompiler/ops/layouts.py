"""Layouts: the order in which the dimensions of a tensor are stored, and their inner blocks.

A layout is a text. A large letter is a dimension, or the outer part of one that is split; a number
with a small letter is an inner part: ``NCHW16c`` has C / 16 blocks of 16 channels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from dlcompiler.errors import ExpressionError
from dlcompiler.ops.rounding import Array

_PART = re.compile(r"([A-Z])|(\d+)([a-z])", re.ASCII)


@dataclass(frozen=True, slots=True)
class Layout:
    """The dimensions of a layout, in order.

    Examples
    --------
    >>> blocked = layout_of("NCHW16c")
    >>> blocked.shape({"N": 1, "C": 32, "H": 7, "W": 5})
    (1, 2, 7, 5, 16)
    >>> blocked.place({"N": 0, "C": 17, "H": 2, "W": 3})
    (0, 1, 2, 3, 1)
    """

    text: str
    axes: tuple[str, ...]
    """Letters: a large one for a dimension or its outer part, a small one for an inner part."""
    factors: tuple[int, ...]
    """For each of `axes` the extent of an inner part, else 0; [1]."""

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The large letters, in order."""
        return tuple(axis for axis in self.axes if axis.isupper())

    @property
    def is_blocked(self) -> bool:
        """Whether a dimension is split."""
        return any(self.factors)

    def index(self, letter: str) -> int:
        """Return the place of a dimension."""
        return self.axes.index(letter)

    def factor(self, letter: str) -> int:
        """Return the block size of a dimension; 1 if it is not split."""
        small = letter.lower()
        return self.factors[self.axes.index(small)] if small in self.axes else 1

    def shape(self, extents: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the shape of a tensor from the extents of its dimensions, which blocks divide."""
        return tuple(
            factor or (extents[axis] // split if (split := self.factor(axis)) > 1
                       else extents[axis])
            for axis, factor in zip(self.axes, self.factors, strict=True)
        )  # fmt: skip

    def extents(self, shape: Sequence[Any]) -> dict[str, Any]:
        """Return the extents of the dimensions from the shape of a tensor."""
        sizes = dict(zip(self.axes, shape, strict=True))
        return {
            axis: sizes[axis] * sizes[axis.lower()] if axis.lower() in sizes else sizes[axis]
            for axis in self.dimensions
        }

    def place(self, indices: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return where an element is stored, from its indices in the dimensions."""
        found: list[Any] = []
        for axis in self.axes:
            index, factor = indices[axis.upper()], self.factor(axis.upper())
            if factor == 1:
                found.append(0 if axis.islower() else index)
            else:
                found.append(index % factor if axis.islower() else index // factor)
        return tuple(found)

    def element(self, places: Sequence[Any]) -> dict[str, Any]:
        """Return the indices of a stored element in the dimensions: the inverse of `place`."""
        at = dict(zip(self.axes, places, strict=True))
        return {
            axis: at[axis] * self.factor(axis) + at[axis.lower()] if axis.lower() in at
            else at[axis]
            for axis in self.dimensions
        }  # fmt: skip

    def plain(self, stored: Array, order: str) -> Array:
        """Return an array whose dimensions are in an order, from one that is stored so."""
        parts = [self.axes.index(p) for axis in order for p in (axis, axis.lower())
                 if p in self.axes]  # fmt: skip
        extents = self.extents(stored.shape)
        return stored.transpose(parts).reshape([extents[axis] for axis in order])

    def store(self, plain: Array, order: str) -> Array:
        """Return an array in this layout from one whose dimensions are in an order."""
        split: list[int] = []
        names: list[str] = []
        for axis, extent in zip(order, plain.shape, strict=True):
            inner = self.factor(axis)
            names += [axis, axis.lower()] if axis.lower() in self.axes else [axis]
            split += [extent // inner, inner] if axis.lower() in self.axes else [extent]
        return plain.reshape(split).transpose([names.index(axis) for axis in self.axes]).copy()

    def __str__(self) -> str:
        return self.text


@cache
def layout_of(text: str) -> Layout:
    """Read a layout.

    Raises
    ------
    ExpressionError
        If the text is none.

    Examples
    --------
    >>> layout_of("NCHW16c").factor("C")
    16
    """
    axes, factors, place = [], [], 0
    while place < len(text) and (match := _PART.match(text, place)):
        axes.append(match[1] or match[3])
        factors.append(int(match[2] or 0))
        place = match.end()
    is_split = all(axis.upper() in axes and n > 0 for axis, n in zip(axes, factors, strict=True)
                   if axis.islower())  # fmt: skip
    if place < len(text) or not axes or len(set(axes)) < len(axes) or not is_split:
        raise ExpressionError(
            "layout", "not a layout", got=repr(text), expected="NCHW, NHWC, NCHW16c"
        )
    return Layout(text, tuple(axes), tuple(factors))
