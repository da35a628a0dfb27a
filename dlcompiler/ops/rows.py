"""Schedule blocks of rows, for softmax and the normalisations of rows.

A row lies along the last dimension. *Before*, then *after* ``split_rows`` in blocks of 4 and
``reduce_in_lanes`` of B in 16 lanes::

    for i in range(64):                 for i.outer in range(16):
        B[i] = 0.0                          for i in range(4):
        for k in range(160):                    B.rf[i, 0 : +16] = broadcast(0.0, 16)
            B[i] += A[i, k]                     for k.outer in range(10):
    for i in range(64):                             B.rf[i, 0 : +16] += …
        for j in range(160):                    B[i] = …
            C[i, j] = A[i, j]*B[i]          for i in range(4):
                                                for j in range(160):
                                                    C[i.outer*4 + i, j] = …

If rows are interleaved, each step is taken in all rows of a block before the next step: the sums of
several rows are independent, and hide the latency of an addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler.ir import Axis
from dlcompiler.ops.lanes import widest_power
from dlcompiler.schedule import Schedule
from dlcompiler.space import Filter, Knob
from dlcompiler.te import Tensor

_ROWS = (1, 2, 4, 8, 16, 32)
_MOST_INTERLEAVED = 8
_VECTORS = (1, 2, 4, 8)


def row_knobs(shape: Sequence[int]) -> tuple[Knob, Knob]:
    """Return two knobs: ``rows``, the rows in a block, and whether to ``interleave`` them.

    Examples
    --------
    >>> row_knobs((5, 100))[0]
    Knob(name='rows', values=(1, 2, 4))
    """
    rows = shape[-2] if len(shape) > 1 else 1
    return (
        Knob("rows", tuple(n for n in _ROWS if n <= max(rows, 1))),
        Knob("interleave", (False, True)),
    )


INTERLEAVED = Filter(
    "two to eight rows are interleaved",
    lambda v: not v["interleave"] or 1 < v["rows"] <= _MOST_INTERLEAVED,
)


def width_knob(name: str, extent: int, lanes: int, vectors: Sequence[int] = _VECTORS) -> Knob:
    """Return a knob for the number of elements that are computed together, in whole vectors.

    Examples
    --------
    >>> width_knob("powers", 1000, 8).values, width_knob("powers", 5, 8).values
    ((8, 16, 32, 64), (4,))
    """
    return Knob(name, tuple(sorted({widest_power(extent, lanes * count) for count in vectors})))


def split_rows(s: Schedule, out: Tensor, rows: Any, *, is_parallel: bool) -> Axis | None:
    """Split the rows of a stage into blocks; return the block loop, or None for a single row.

    Parameters
    ----------
    s : Schedule
        Changed in place.
    out : Tensor
        Its rows are all dimensions but the last.
    rows : int
        Rows in a block.
    is_parallel : bool
        Run blocks on several cores.
    """
    *outer, last = out.op.axis[:-1] or (None,)
    if last is None:
        return None
    block, _ = s[out].split(last, rows)
    blocks = s[out].fuse(*outer, block)
    if is_parallel:
        s[out].parallel(blocks)
    return blocks


def interleave_rows(s: Schedule, partial: Sequence[Tensor]) -> None:
    """Reduce all rows of a block together.

    Parameters
    ----------
    s : Schedule
        Changed in place.
    partial : sequence of Tensor
        The partial results that `reduce_in_lanes` returned, computed at the loop over blocks.
    """
    if not partial:
        return
    stage = s[partial[0]]
    *_, row, lane = stage.op.axis
    (steps,) = stage.op.reduce_axis
    stage.reorder(steps, row, lane)
    stage.unroll(row)
