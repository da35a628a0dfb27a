"""The rows of a tensor along one of its dimensions, as loops."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dlcompiler.ir import Builder
from dlcompiler.ops.helpers import without
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.ops.transforms import unravelled
from dlcompiler.target import Target


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows of a tensor along a dimension."""

    shape: tuple[int, ...]
    """Shape of the tensor."""
    axis: int
    """The dimension."""

    @property
    def extent(self) -> int:
        """Elements of a row; [1]."""
        return self.shape[self.axis]

    @property
    def count(self) -> int:
        """Number of rows; [1]."""
        return math.prod(without(self.shape, self.axis))

    def at(self, row: Any, place: Any) -> tuple[Any, ...]:
        """Return the indices of an element of a row."""
        others = unravelled(row, without(self.shape, self.axis))
        return (*others[: self.axis], place, *others[self.axis :])

    @contextmanager
    def loop(self, ib: Builder, cycles: float, target: Target) -> Iterator[Any]:
        """Open a loop over the rows, on several cores if that is worth it.

        Parameters
        ----------
        ib : Builder
            Gets the loop.
        cycles : float
            About how long a row takes on one core [cycle].
        target : Target
            A CPU.
        """
        kind = "parallel" if is_worth_sharing(cycles * self.count, target) else "serial"
        with ib.for_range(0, self.count, "row", kind=kind) as row:
            yield row
