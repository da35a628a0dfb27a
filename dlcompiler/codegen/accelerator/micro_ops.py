"""Lists of micro-ops: kept once in DRAM, and loaded into their memory when an instruction runs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import ScheduleError
from dlcompiler.target.accelerators import Memory

PAIR = 2
"""Lists begin at even places, since a beat of 64 bits holds two micro-ops."""


class NoRoomError(Exception):
    """The micro-ops of a program do not fit into their memory all together."""


@dataclass(slots=True)
class MicroOpCache:
    """The memory of micro-ops as a ring: a new list takes the place of the oldest ones."""

    memory: Memory
    is_preloaded: bool = False
    """Whether one load at the start brings all lists, each to the place that it has in DRAM."""
    lists: list[npt.NDArray[np.int64]] = field(default_factory=list)
    """All lists, in the order in which they lie in DRAM."""
    length: int = 0
    """Micro-ops in DRAM so far; [1]."""
    _known: dict[tuple[int, bytes], int] = field(default_factory=dict)
    """Site and list -> its place in DRAM."""
    _held: dict[tuple[int, bytes], tuple[int, int]] = field(default_factory=dict)
    """Site and list -> its place in the memory, and its size; the oldest first."""
    _next: int = 0

    def find(
        self, micro_ops: npt.NDArray[np.int64], site: int = 0
    ) -> tuple[int, tuple[int, int] | None]:
        """Return where a list is in the memory, and what must be loaded for that.

        Parameters
        ----------
        micro_ops
            (count, operands) [elements].
        site
            Number of the statement that it belongs to. Only equal lists of one site are shared.

        Returns
        -------
        place : int
            Of the first micro-op in the memory.
        load : tuple of int or None
            The place in DRAM and the number of micro-ops to load; None if they are there.

        Raises
        ------
        ScheduleError
            The list is longer than the memory.
        NoRoomError
            All lists are to be there from the start, and do not fit.
        """
        key, count = (site, micro_ops.tobytes()), len(micro_ops)
        if self.is_preloaded:
            place = self._kept(key, micro_ops)
            if self.length > self.memory.depth:
                raise NoRoomError
            return place, None
        if key in self._held:
            return self._held[key][0], None
        size = -(-count // PAIR) * PAIR
        if size > self.memory.depth:
            raise ScheduleError(
                "make micro-ops", "an instruction needs more than its memory holds",
                got=f"{count} micro-ops", expected=f"at most {self.memory.depth}",
                hint="attach the computation deeper, so that fewer loops are left inside",
            )  # fmt: skip
        if self._next + size > self.memory.depth:
            self._next = 0
        place, end = self._next, self._next + size
        overlapping = [k for k, (p, n) in self._held.items() if p < end and place < p + n]
        for old in overlapping:
            del self._held[old]
        self._held[key], self._next = (place, size), end
        return place, (self._kept(key, micro_ops), count)

    def _kept(self, key: tuple[int, bytes], micro_ops: npt.NDArray[np.int64]) -> int:
        """Return the place of a list in DRAM, where it is put if it is new."""
        if key not in self._known:
            self._known[key] = self.length
            odd = len(micro_ops) % PAIR
            self.lists.append(np.pad(micro_ops, ((0, odd), (0, 0))))
            self.length += len(micro_ops) + odd
        return self._known[key]
