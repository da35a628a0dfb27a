"""Actions at points in time, run in order of time."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

ACT, ARBITRATE, SERVE = range(3)
"""Phases of a cycle: engines and clients act, then a client is chosen, then the memory serves it.

What is requested in a cycle takes part in the choice of the same cycle.
"""
NEVER = 1 << 62
"""A cycle that is later than all others."""


class Events:
    """A queue of actions, each at a cycle and in a phase of it."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def at(self, time: int, phase: int, action: Callable[..., None], *arguments: Any) -> None:
        """Run an action at a cycle."""
        self._count += 1
        heapq.heappush(self._heap, (time, phase, self._count, action, arguments))

    def next_time(self) -> int:
        """Return the cycle of the next action; `NEVER` without one."""
        return self._heap[0][0] if self._heap else NEVER

    def run(self) -> None:
        """Run all actions in order of time, phase, and when they were asked for."""
        heap = self._heap
        while heap:
            *_, action, arguments = heapq.heappop(heap)
            action(*arguments)
