"""Divide loops into parts of one size, and a rest."""

from __future__ import annotations

from collections.abc import Iterator


def parts_of(count: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Yield where parts of a loop begin, how many there are, and their size.

    Parameters
    ----------
    count : int
        Iterations; [1].
    size : int
        Iterations of a part; [1].

    Examples
    --------
    >>> list(parts_of(1100, 512))
    [(0, 2, 512), (1024, 1, 76)]
    """
    full, rest = divmod(count, size)
    if full:
        yield 0, full, size
    if rest:
        yield full * size, 1, rest
