"""Layouts: the order of the dimensions of a tensor, and blocks of them.

A layout is a text with a letter for each dimension: ``NCHW``. A small letter behind a number is the
inner part of a dimension that is split: ``NCHW16c`` has C / 16 blocks of 16 channels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from dlcompiler.errors import GraphError

_PART = re.compile(r"([A-Z])|(\d+)([a-z])", re.ASCII)


@dataclass(frozen=True, slots=True)
class Layout:
    """The dimensions of a layout, in order."""

    text: str
    axes: tuple[str, ...]
    """Letters: a large one for a dimension or its outer part, a small one for an inner part."""
    factors: tuple[int, ...]
    """For each of `axes` the extent of an inner part, else 0; [1]."""

    def index(self, letter: str) -> int:
        """Return the place of a dimension."""
        return self.axes.index(letter)

    def factor(self, letter: str) -> int:
        """Return the block size of a dimension; 1 if it is not split."""
        small = letter.lower()
        return self.factors[self.axes.index(small)] if small in self.axes else 1

    @property
    def is_blocked(self) -> bool:
        """Whether a dimension is split."""
        return any(self.factors)

    def __str__(self) -> str:
        return self.text


@cache
def layout_of(text: str) -> Layout:
    """Read a layout.

    Raises
    ------
    GraphError
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
        raise GraphError("layout", "not a layout", got=repr(text), expected="NCHW, NHWC, NCHW16c")
    return Layout(text, tuple(axes), tuple(factors))
