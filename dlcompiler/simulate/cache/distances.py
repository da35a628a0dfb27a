"""Reuse distances: how many other cache lines a program touches until it touches one again.

An access hits in a cache of n lines that keeps the n lines used last (fully associative, LRU) if
and only if its distance is below n. So one histogram tells the hits of every capacity.

**Source:** R. L. Mattson et al., "Evaluation techniques for storage hierarchies", IBM Systems
Journal 9(2), 1970: stack distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dlcompiler.ir import Buffer
from dlcompiler.simulate.cache.sampling import Sample
from dlcompiler.target import Target

Words: TypeAlias = "np.ndarray[tuple[int, ...], np.dtype[np.int64]]"

FIRST = -1
"""Distance of the first access to a line."""


@dataclass(frozen=True, eq=False)
class ReuseDistances:
    """The reuse distances of a program's accesses, by tensor."""

    target: Target
    line_bytes: int
    """Size of the lines of the first cache; [byte]."""
    by_tensor: dict[Buffer, Words]
    """The distance of each access to a tensor, in order: lines, or `FIRST`; [1]."""
    sampled: tuple[Sample, ...]
    """The loops of which only the first iterations were traced; empty: the whole program."""
    whole_accesses: int
    """Accesses of the whole program; of a sampled one, as if all its conditions held; [1]."""

    @property
    def accesses(self) -> int:
        """Number of traced accesses; [1]."""
        return sum(map(len, self.by_tensor.values()))

    def histogram(self, tensor: Buffer) -> tuple[list[int], int]:
        """Return how many accesses have each distance, and how many are the first to their line.

        Returns
        -------
        list of int
            Accesses with distance 0, 1, 2–3, 4–7, …; bin ``n > 0`` begins at ``2**(n - 1)``. [1]
        int
            First accesses; [1].
        """
        distances = self.by_tensor[tensor]
        known = distances[distances != FIRST]
        bins = np.frexp(known.astype(np.float64))[1]  # the number of bits
        return np.bincount(bins).tolist(), len(distances) - len(known)


def stack_distances(lines: Words) -> Words:
    """Return for each access how many other lines were touched since the last access to its line.

    Parameters
    ----------
    lines : array of int64, shape ``(accesses,)``
        The line of each access.

    Returns
    -------
    array of int64, shape ``(accesses,)``
        Distances [1]; `FIRST` where a line was not touched before.

    Notes
    -----
    The distance of an access is the number of accesses between it and the previous one to its line
    that are the first to theirs in between: those whose previous access is before that one. As each
    access up to there has a previous one that is earlier, too, it is enough to count all earlier
    accesses whose previous access is not later.

    Examples
    --------
    >>> stack_distances(np.array([7, 8, 8, 9, 7, 9]))
    array([-1, -1,  0, -1,  2,  1])
    """
    count = len(lines)
    order = np.argsort(lines, kind="stable")
    is_same = lines[order][1:] == lines[order][:-1]
    previous = np.full(count, FIRST, np.int64)
    previous[order[1:][is_same]] = order[:-1][is_same]
    earlier = _earlier_not_larger(previous)
    return np.where(previous == FIRST, FIRST, earlier - previous - 1)


def _earlier_not_larger(values: Words) -> Words:
    """Return for each value how many of those before it are not larger, by merging halves."""
    count = len(values)
    size = 1 << max(count - 1, 0).bit_length()
    largest = count + 1
    padded = np.full(size, largest, np.int64)
    padded[:count] = values
    found = np.zeros(size, np.int64)
    width = 1
    while width < size:
        rows = padded.reshape(-1, 2, width)
        # One search for all pairs of halves: each pair has numbers of its own.
        shift = np.arange(len(rows), dtype=np.int64)[:, None] * (largest + 2)
        left = (np.sort(rows[:, 0], axis=1) + shift).ravel()
        right = (rows[:, 1] + shift).ravel()
        places = np.searchsorted(left, right, side="right").reshape(-1, width)
        found.reshape(-1, 2, width)[:, 1] += places - np.arange(len(rows))[:, None] * width
        width *= 2
    return found[:count]
