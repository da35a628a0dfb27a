"""A cache of computed values, which drops the least recently used."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """A cache of at most `most` values; the least recently used value is dropped first.

    Examples
    --------
    >>> squares = Remembered(most=2)
    >>> [squares.get(n, lambda n=n: n * n) for n in (1, 2, 3)]
    [1, 4, 9]
    >>> squares.get(3, lambda: 0)
    9
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the cached value of a key; if there is none, compute it with `make`."""
        if key not in self._values:
            self._values[key] = make()
            if len(self._values) > self._most:
                self._values.popitem(last=False)
        self._values.move_to_end(key)
        return self._values[key]

    def drop(self, key: K) -> None:
        """Forget the value of a key, if there is one."""
        self._values.pop(key, None)
