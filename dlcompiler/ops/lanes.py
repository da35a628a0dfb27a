"""Reductions in vectors: partial results in each lane, then a tree over the lanes.

*Before*, then *after* ``reduce_in_lanes(s, B, 16)`` and attaching what it returns::

    for i in range(8):                  for i in range(8):
        B[i] = 0.0                          B.rf[0 : +16] = broadcast(0.0, 16)
        for k in range(160):                for k.outer in range(10):
            B[i] += A[i, k]                     B.rf[0 : +16] += A[i, k.outer*16 : +16]
                                            B.rf_1[0 : +8] = B.rf[0 : +8] + B.rf[8 : +8]
                                            B.rf_2[0 : +4] = B.rf_1[0 : +4] + B.rf_1[4 : +4]
                                            …
                                            B[i] = B.rf_3[0] + B.rf_3[1]

All of it stays in registers. With several vectors the partial results hide the latency of an
addition, and the halves make a chain of ``log2`` steps of what would be one of 16.
"""

from __future__ import annotations

from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.schedule import Schedule
from dlcompiler.te import Tensor


def widest_power(extent: int, most: int) -> int:
    """Return the largest power of two that is at most `most` and at most `extent`.

    Examples
    --------
    >>> widest_power(1000, 64), widest_power(5, 64), widest_power(0, 64)
    (64, 4, 1)
    """
    return 1 << (max(min(extent, most), 1).bit_length() - 1)


def reduce_in_lanes(s: Schedule, tensor: Tensor, width: int) -> list[Tensor]:
    """Reduce the innermost reduction loop of a stage in `width` lanes.

    Parameters
    ----------
    s : Schedule
        Changed in place.
    tensor : Tensor
        A reduction whose innermost loop reads neighbours in memory.
    width : int
        Number of partial results, a power of two; 1 leaves the stage as it is.

    Returns
    -------
    list of Tensor
        The partial results, outermost first: to be computed where the stage is.
    """
    if width == 1:
        return []
    stage = s[tensor]
    _, lane = stage.split(stage.state.leaves[-1], width)
    accumulators = s.rfactor(tensor, lane)
    _vectorize_first(s, accumulators)
    partial = [accumulators]
    while width > 1:
        width //= 2
        halves, lane = stage.split(stage.state.leaves[-1], width)
        if width == 1:
            stage.unroll(halves)
            break
        folded = s.rfactor(tensor, lane)
        s[folded].unroll(_vectorize_first(s, folded))
        partial.append(folded)
    return partial


def _vectorize_first(s: Schedule, partial: Any) -> Axis:
    """Make the first dimension of partial results lanes; returns the innermost loop around."""
    stage = s[partial]
    leaves = stage.state.leaves
    stage.reorder(*leaves[1:], leaves[0])
    stage.vectorize(leaves[0])
    return leaves[-1]
