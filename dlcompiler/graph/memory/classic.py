"""The pool of Relay's ``GraphPlanMemory``: buffers that values take and give back.

**Source:** TVM v0.11.1, ``graph_plan_memory.cc`` and ``token_allocator.cc``.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter

from dlcompiler.graph.memory.values import Program, Value, aligned

MATCH_RANGE = 16
"""A free buffer of up to this many times the size is taken, or a smaller one grows; [1]."""


def classic_bytes(program: Program) -> int:
    """Return the bytes of all buffers by the classic rule; [byte].

    A kernel takes buffers for its outputs before it gives back those of its inputs, so nothing is
    computed in place. Each buffer is as long as a multiple of the alignment, as in the arena.
    """
    sizes: list[int] = []
    free: list[tuple[int, int]] = []  # size and number of a buffer, in order of size
    buffer_of: dict[Value, int] = {}
    for kernel in program.kernels:
        for value in kernel.outputs:
            number = _take(value.bytes, free, sizes)
            buffer_of[value] = number
        done = Counter(value for _, value in kernel.inputs)
        for value in (*done, *kernel.outputs):
            if value.used_at == kernel.number:
                insort(free, (sizes[buffer_of[value]], buffer_of[value]))
    return sum(map(aligned, sizes))


def _take(size: int, free: list[tuple[int, int]], sizes: list[int]) -> int:
    """Return a free buffer that is larger, or a smaller one that grows, or a new one."""
    larger = [entry for entry in free if size <= entry[0] <= size * MATCH_RANGE]
    smaller = [entry for entry in free if size // MATCH_RANGE <= entry[0] < size]
    if larger or smaller:
        entry = larger[0] if larger else smaller[-1]
        free.remove(entry)
        sizes[entry[1]] = max(size, entry[0])
        return entry[1]
    sizes.append(size)
    return len(sizes) - 1
