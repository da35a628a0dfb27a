"""Quick constructors of the small classes of which a compilation makes most objects."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any


def slot_setters(cls: type) -> tuple[Callable[[Any, Any], None], ...]:
    """Return a function for each field of a frozen dataclass that sets it, in their order.

    A constructor that calls them takes two thirds of the time of the one that `dataclass` writes:
    that calls ``object.__setattr__``, which finds the slot by its name.

    Parameters
    ----------
    cls : type
        A frozen dataclass with slots.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True, slots=True)
    ... class Point:
    ...     x: int
    ...     y: int
    ...
    ...     def __init__(self, x, y=0):
    ...         set_x(self, x)
    ...         set_y(self, y)
    >>> set_x, set_y = slot_setters(Point)
    >>> Point(1)
    Point(x=1, y=0)
    """
    return tuple(getattr(cls, field.name).__set__ for field in dataclasses.fields(cls))
