"""Count the sectors that an access touches while some loops run: what a cache must hold."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dlcompiler.ir import Var
from dlcompiler.simulate.gpu.contributions import combinations
from dlcompiler.simulate.gpu.forms import Form
from dlcompiler.simulate.gpu.transactions import SECTOR_BYTES

MOST_POINTS = 1 << 16
"""Most values of a part that is not affine that are computed; of more, each is taken to differ."""


def touched(address: Form, extents: Mapping[Var, int], bytes_: int) -> float:
    """Return how many sectors an access touches while variables run; other variables are fixed.

    The set of addresses is taken apart into runs of neighbouring bytes, in rows at equal distances.
    Rows that overlap are counted once where one distance divides the other.

    Parameters
    ----------
    address
        The address. [byte]
    extents
        The variables that run, with their extents.
    bytes_
        Bytes of one execution. [byte]
    """
    if any(extent == 0 for extent in extents.values()):
        return 0.0
    if not address.is_known:  # data decides: each execution may touch another sector
        return float(math.prod(extents.values()))
    inner = {var for part in address.terms if not isinstance(part, Var) for var in part.variables}
    steps = [
        (abs(factor), extents[term])
        for term, factor in address.terms.items()
        if isinstance(term, Var) and term not in inner and extents.get(term, 1) > 1
    ]
    span, rows = _of_parts(address, extents, bytes_)
    steps += rows
    outer: list[tuple[int, int]] = []
    for step, count in sorted(steps):
        if step <= max(span, SECTOR_BYTES) and not outer:
            span += step * (count - 1)
        elif outer and step % outer[-1][0] == 0 and step <= outer[-1][0] * outer[-1][1]:
            pitch, number = outer[-1]
            outer[-1] = pitch, number + (count - 1) * (step // pitch)
        else:
            outer.append((step, count))
    # A run begins at a multiple of `unit`: of all its places in a sector, the mean.
    moving = {term for term in address.terms if isinstance(term, Var) and term in extents}
    fixed = [factor for term, factor in address.terms.items() if term not in moving]
    unit = math.gcd(SECTOR_BYTES, address.constant, *fixed, *(step for step, _ in outer))
    begins = range(0, SECTOR_BYTES, unit)
    of_run = sum((begin + span - 1) // SECTOR_BYTES + 1 for begin in begins) / len(begins)
    return of_run * math.prod(count for _, count in outer)


def _of_parts(
    address: Form, extents: Mapping[Var, int], bytes_: int
) -> tuple[int, list[tuple[int, int]]]:
    """Return the length of a run, and the rows, of the parts of an address that are not affine."""
    parts = [(part, n) for part, n in address.terms.items() if not isinstance(part, Var)]
    loops = sorted({var for part, _ in parts for var in part.variables}, key=id)
    if not parts:
        return bytes_, []
    count = math.prod(extents.get(var, 1) for var in loops)
    if count > MOST_POINTS:
        return bytes_, [(max(SECTOR_BYTES, bytes_) * 2, count)]
    values = combinations(loops, {var: extents.get(var, 1) for var in loops})
    offsets = sum((factor * part.at(values) for part, factor in parts), np.zeros(1, np.int64))
    for var in loops:  # terms of the same variables: (i // 8)·K + i − 8·(i // 8)
        offsets = offsets + address.terms.get(var, 0) * values[var]
    places = np.sort(offsets)  # equal ones may stay: no gap is between them
    gaps = np.diff(places)
    starts = np.flatnonzero(gaps > max(bytes_, SECTOR_BYTES)) + 1
    runs = len(starts) + 1
    length = int((places[-1] - places[0] - gaps[starts - 1].sum()) // runs) + bytes_
    if runs == 1:
        return length, []
    pitch = int((places[starts] - places[np.r_[0, starts[:-1]]]).min())
    return length, [(pitch, runs)]
