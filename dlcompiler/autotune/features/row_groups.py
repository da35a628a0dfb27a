"""Equal rows of matrices of integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Integers: TypeAlias = npt.NDArray[np.int64]


def groups_of(rows: Integers) -> Iterator[tuple[tuple[int, ...], Integers]]:
    """Yield the different rows of a matrix, each with the positions where it is."""
    unique, inverse = unique_rows(rows)
    for number, row in enumerate(unique):
        yield tuple(row.tolist()), np.flatnonzero(inverse == number)


def unique_rows(rows: Integers) -> tuple[Integers, Integers]:
    """Return the different rows of a matrix, and for each row which of them it is."""
    whole = np.ascontiguousarray(rows).view(
        np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))
    )
    _, first, inverse = np.unique(whole.ravel(), return_index=True, return_inverse=True)
    return rows[first], inverse.reshape(-1)
