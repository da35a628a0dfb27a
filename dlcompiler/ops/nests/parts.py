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
        Most iterations of a part; [1]. A smaller size is chosen if it leaves no rest, so that the
        body of the loop is written once.

    Examples
    --------
    >>> list(parts_of(1000, 512)), list(parts_of(1009, 512))
    ([(0, 2, 500)], [(0, 1, 512), (512, 1, 497)])
    """
    even = max((n for n in range(1, size + 1) if count % n == 0), default=size)
    size = even if 4 * even >= size else size
    full, rest = divmod(count, size)
    if full:
        yield 0, full, size
    if rest:
        yield full * size, 1, rest
