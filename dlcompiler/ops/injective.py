"""The schedule of operators that compute each element by itself.

*Before*, then *after* ``schedule_injective(s, C, target)`` for vectors of 8::

    for i in range(4):                  for i in parallel(4):
        for j in range(30):                 for j.outer in range(2):
            C[i, j] = A[i, j]*s[j]              for j.inner in vectorized(16):
                                                    if j.outer*16 + j.inner < 30:
                                                        C[i, j] = A[i, j]*s[j]

Dimensions that every operand holds side by side are one loop. Where an operand lies across (a
transposition), blocks of vectors times vectors are read by rows and written by rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ir import Axis, TensorLoad, free_vars, walk
from dlcompiler.ops.lanes import widest_power
from dlcompiler.ops.sharing import is_worth_sharing
from dlcompiler.schedule import Schedule
from dlcompiler.schedule.auto_inline import inline_injective
from dlcompiler.schedule.inlining import bodies
from dlcompiler.space import Config, Knob, Space, Workload, parallel_knob
from dlcompiler.target import Target
from dlcompiler.te import ComputeOp, Tensor

_SQUARE = 4
"""Blocks side by side in a square whose lines all stay in the nearest cache."""
_CYCLES = 1.0
"""What an element takes one core [cycle]: measured, of sums of two float32."""


def schedule_injective(
    s: Schedule, out: Tensor, target: Target, *, vectors: int = 4, is_parallel: bool = False
) -> None:
    """Schedule a tensor that is no reduction, and what it is made from, as one nest.

    Parameters
    ----------
    s : Schedule
        Changed in place; stages before `out` that are no reductions are inlined.
    out : Tensor
        An output.
    target : Target
        A CPU.
    vectors : int
        Vectors of results in one iteration.
    is_parallel : bool
        Run the outermost loop on several cores.
    """
    inline_injective(s)
    op = s[out].op
    assert isinstance(op, ComputeOp)
    if not op.axis:
        return
    loads = _loads(s, out)
    lanes = target.lanes(out.dtype)
    across = _across(op.axis, loads)
    if across is not None:
        _schedule_blocks(s, out, across, lanes, is_parallel=is_parallel)
        return
    joined = _side_by_side(op.axis, loads)
    inner = s[out].fuse(*joined)
    extent = math.prod(axis.extent for axis in joined if isinstance(axis.extent, int))
    outer, vector = s[out].split(inner, widest_power(extent, lanes * vectors))
    s[out].vectorize(vector)
    if is_parallel:
        rest = op.axis[: len(op.axis) - len(joined)]
        s[out].parallel(s[out].fuse(*rest) if rest else outer)
    if _is_beyond_caches(out, target):
        s[out].pragma(s[out].leaf_iter_vars[0], "nontemporal")


def _is_beyond_caches(out: Tensor, target: Target) -> bool:
    """Tell whether a result is larger than all caches: whoever reads it reads memory anyway."""
    extents = [extent for extent in out.shape if isinstance(extent, int)]
    size = math.prod(extents) * dtypes.bytes_of(out.dtype)
    return len(extents) == len(out.shape) and size > target.cache_bytes(-1)


def _loads(s: Schedule, out: Tensor) -> list[TensorLoad]:
    exprs = bodies(s.state)[s[out].name]
    return [node for body in exprs for node in walk(body) if isinstance(node, TensorLoad)]


def _side_by_side(axes: Sequence[Axis], loads: Sequence[TensorLoad]) -> list[Axis]:
    """Return the last dimensions that are one in memory, in all operands."""
    joined = [axes[-1]]
    for axis in reversed(axes[:-1]):
        if not all(_joins(axis, joined[0], load) for load in loads):
            break
        joined.insert(0, axis)
    return joined


def _joins(outer: Axis, inner: Axis, load: TensorLoad) -> bool:
    """Tell whether a load goes on at the next `outer` where `inner` ends, or reads neither."""
    uses = [n for n, i in enumerate(load.indices) if free_vars(i) & {outer.var, inner.var}]
    if not uses:
        return True
    if len(uses) != 2 or uses[1] != uses[0] + 1:
        return False
    first, second = (load.indices[n] for n in uses)
    extent = load.tensor.shape[uses[1]]
    return first is outer.var and second is inner.var and _same(extent, inner.extent)


def _across(axes: Sequence[Axis], loads: Sequence[TensorLoad]) -> Axis | None:
    """Return the dimension that runs along memory in an operand where the last one does not."""
    for load in loads:
        *others, last = load.indices or (None,)
        side = next((axis for axis in axes[:-1] if axis.var is last), None)
        if side is not None and any(index is axes[-1].var for index in others):
            return side
    return None


def _schedule_blocks(
    s: Schedule, out: Tensor, across: Axis, lanes: int, *, is_parallel: bool
) -> None:
    """Schedule blocks of two vectors by two, and squares of such blocks for the caches."""
    stage, last = s[out], out.op.axis[-1]
    rest = [axis for axis in out.op.axis if axis is not across and axis is not last]
    rows, row = stage.split(across, 2 * lanes)
    columns, column = stage.split(last, 2 * lanes)
    vectors, vector = stage.split(column, lanes)
    row_squares, rows = stage.split(rows, _SQUARE)
    column_squares, columns = stage.split(columns, _SQUARE)
    loops = [*rest, row_squares, column_squares]
    stage.reorder(*loops, rows, columns, vectors, row, vector)
    stage.unroll(vectors)
    stage.unroll(row)
    stage.vectorize(vector)
    if is_parallel:
        stage.parallel(stage.fuse(*loops[:-1]))


def _same(a: Any, b: Any) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a == b


# -- the choices of an operator -----------------------------------------------------------------


def injective_space(workload: Workload, target: Target) -> Space:
    """Return the configs of an operator that is scheduled by `schedule_injective`.

    ============  ==============================================================================
    ``vectors``   vectors of results in one iteration
    ``parallel``  run the outermost loop on several cores
    ============  ==============================================================================
    """
    knobs = [
        Knob("vectors", (1, 2, 4, 8)),
        parallel_knob(target.cores),
    ]
    return Space(workload, knobs)


def default_injective(workload: Workload, target: Target, elements: int) -> Config:
    """Return four vectors in an iteration, and several cores for a result of many elements."""
    is_parallel = is_worth_sharing(_CYCLES * elements, target)
    return injective_space(workload, target).config(vectors=4, parallel=is_parallel)
