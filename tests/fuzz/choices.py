"""Random choices that can be recorded, repeated and made smaller."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """A source of choices: first the given ones, then random ones. All are recorded.

    Each choice is a number below a limit; 0 stands for the simplest, so that an expression shrinks
    when its choices do.
    """

    def __init__(self, rng: random.Random, given: Sequence[int] = ()) -> None:
        self.rng = rng
        self.given = tuple(given)
        self.made: list[int] = []

    def randrange(self, limit: int) -> int:
        """Return a number of at least 0 and below `limit`."""
        n = len(self.made)
        value = min(self.given[n], limit - 1) if n < len(self.given) else self.rng.randrange(limit)
        self.made.append(value)
        return value

    def choice(self, items: Sequence[T]) -> T:
        return items[self.randrange(len(items))]

    def random(self) -> float:
        """Return a number of at least 0 and below 1."""
        return self.randrange(1000) / 1000

    def chance(self, probability: float) -> bool:
        """Return True with a probability; False is the simpler choice."""
        return self.random() >= 1 - probability

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Return `count` different items."""
        rest = list(items)
        return [rest.pop(self.randrange(len(rest))) for _ in range(count)]
