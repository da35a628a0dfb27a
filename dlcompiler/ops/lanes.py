"""Schedule reductions in vectors: partial results in lanes, then a tree over the lanes.

*Before*, then *after* ``reduce_in_lanes(s, B, 16)`` and attaching what it returns::

    for i in range(8):                  for i in range(8):
        B[i] = 0.0                          B.rf[0 : +16] = broadcast(0.0, 16)
        for k in range(160):                for k.outer in range(10):
            B[i] += A[i, k]                     B.rf[0 : +16] += A[i, k.outer*16 : +16]
                                            B.rf_1[0 : +8] = B.rf[0 : +8] + B.rf[8 : +8]
                                            B.rf_2[0 : +4] = B.rf_1[0 : +4] + B.rf_1[4 : +4]
                                            …
                                            B[i] = B.rf_3[0] + B.rf_3[1]

All partial results stay in registers. Several vectors of partial results hide the latency of an
addition. Combining the lanes by halves takes ``log2`` dependent steps instead of 16.

Data larger than the caches are read in several *streams*: from several rows, or pieces of one row,
in turns. The hardware prefetcher stops at the end of a page; several streams do not all reach the
end of their page at once. Each stream reads neighbouring rows, and continues in the next one where
a row ends: of 64 rows, eight streams read rows 0, 8, … 56, then 1, 9, … 57.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ir import Axis, Reduce
from dlcompiler.ops.helpers import reduced
from dlcompiler.schedule import Schedule, Stage
from dlcompiler.te import ComputeOp, Tensor

_PAGE = 4096 * 8
"""Size of a page, within which a core prefetches [bit]; a stream is at least this long."""
_PAGES = 256
"""Pages in a piece of a row from which on pieces are faster than several whole rows; measured."""
_LINE = 64 * 8
"""Size of a cache line [bit]; a turn reads at least one line from each row."""


def widest_power(extent: int, most: int) -> int:
    """Return the largest power of two that is at most `most` and at most `extent`.

    Examples
    --------
    >>> widest_power(1000, 64), widest_power(5, 64), widest_power(0, 64)
    (64, 4, 1)
    """
    return 1 << (max(min(extent, most), 1).bit_length() - 1)


def reduce_in_lanes(
    s: Schedule, tensor: Tensor, width: int, *, is_tree: bool = True, streams: int = 1
) -> list[Tensor]:
    """Reduce the innermost reduction loop of a stage in `width` lanes.

    Parameters
    ----------
    s : Schedule
        Changed in place.
    tensor : Tensor
        A reduction whose innermost loop reads neighbours in memory.
    width : int
        Number of partial results, a power of two; 1 leaves the stage as it is.
    is_tree : bool
        Combine the lanes by halves; otherwise one after the other, which is less code where the
        function that combines is long.
    streams : int
        Pieces of the loop that are read in turns; 1 reads from end to end.

    Returns
    -------
    list of Tensor
        The partial results, outermost first: to be computed where the stage is.
    """
    if width == 1:
        return []
    stage = s[tensor]
    steps = stage.state.leaves[-1]
    if streams > 1:
        assert isinstance(steps.extent, int)
        piece = -(-steps.extent // (streams * width)) * width
        _, steps = stage.split(steps, piece)
    _, lane = stage.split(steps, width)
    accumulators = _first(s.rfactor(tensor, lane, factor_axis=-1))
    _vectorize_last(s, accumulators)
    if streams > 1:
        *_, pieces, steps = _reduced_loops(s[accumulators])
        s[accumulators].reorder(steps, pieces)
        s[accumulators].unroll(pieces)
    partial = [accumulators]
    while width > 1 and is_tree:
        width //= 2
        halves, lane = stage.split(stage.state.leaves[-1], width)
        if width == 1:
            stage.unroll(halves)
            break
        folded = _first(s.rfactor(tensor, lane, factor_axis=-1))
        s[folded].unroll(_vectorize_last(s, folded))
        partial.append(folded)
    return partial


def schedule_reduction(
    s: Schedule, out: Tensor, cfg: Mapping[str, Any], lanes: int, parts: int
) -> None:
    """Schedule a reduction, or an elementwise function of its result.

    Parameters
    ----------
    s : Schedule
        A fresh schedule of `out`.
    out : Tensor
        A reduction, or a tensor that reads one at its own indices.
    cfg : mapping
        A config of ``reduction.space``.
    lanes : int
        Lanes of a vector.
    parts : int
        Number of cores to run on.
    """
    *before, sums = _reductions(s)
    if sums.op is out.op:
        sums = s.cache_write(out, "local")
    reductions = (sums, *reversed(before))
    operand, gone = reduced(sums)
    if len(operand.shape) - 1 in gone:
        _reduce_rows(s, out, reductions, cfg, lanes, parts)
    else:
        _reduce_columns(s, out, reductions, cfg, lanes, parts)


def _reductions(s: Schedule) -> list[Tensor]:
    """Return the reductions of a schedule, producers first; for a joint one, its first output."""
    ops = [stage.op for stage in s.stages]
    return [op.output(0) for op in ops if isinstance(op, ComputeOp) and op.reduce_axis]


def _is_plain(sums: Tensor) -> bool:
    """Tell whether a reduction combines values by one built-in operation, not a user's function."""
    assert isinstance(sums.op, ComputeOp)
    head = sums.op.bodies[0]
    return isinstance(head, Reduce) and head.reducer.op is not None


def _reduce_rows(
    s: Schedule,
    out: Tensor,
    reductions: Sequence[Tensor],
    cfg: Mapping[str, Any],
    lanes: int,
    parts: int,
) -> None:
    """Schedule reductions of contiguous dimensions: the last ones, and perhaps others."""
    operand, gone = reduced(reductions[0])
    width, streams, is_tree = lanes, 1, False
    if all(map(_is_plain, reductions)):
        width, streams, is_tree = lanes * cfg["vectors"], cfg["streams"], cfg["halves"]
    count = _trailing(operand, lambda n: n in gone)
    extent, bits = math.prod(operand.static_shape[-count:]), dtypes.bits(operand.dtype)
    pages = extent * bits // _PAGE
    if not out.shape:
        parts = parts if extent >= parts * width else 1
        width, streams = widest_power(extent // parts, width), widest_power(pages // parts, streams)
        for sums in reductions:
            _reduce_all(s, sums, width, streams, parts, is_tree=is_tree)
        return
    at, at_once = _rows_at_once(out.static_shape, extent * bits, streams, parts)
    pieces = widest_power(pages if at_once == 1 else pages // _PAGES, streams)
    at_once, pieces = (1, pieces) if at_once < pieces else (at_once, 1)
    width = widest_power(extent, max(width // at_once, 1))
    steps = max(_LINE * cfg["lines"] // (bits * width), 1)
    *around, last = s[out].op.axis[: at + 1]
    if at_once > 1:
        few, last = s[out].split(last, nparts=at_once)
        s[out].reorder(*around, last, few)
        s[out].unroll(few)
    row = s[out].fuse(*around, last)
    for sums in reductions:
        if at_once > 1:
            _split_layout(s[sums], at, -(-out.static_shape[at] // at_once))
        s[sums].fuse(*s[sums].op.reduce_axis[-count:])
        partial = reduce_in_lanes(s, sums, width, is_tree=is_tree, streams=pieces)
        for tensor in (sums, *partial):
            s[tensor].compute_at(s[out], row)
            if at_once > 1:
                _unroll_rows(s[tensor], at, steps if tensor is (*partial, sums)[0] else 1)
    if parts > 1:
        s[out].parallel(row)


def _reduce_all(
    s: Schedule, sums: Tensor, width: int, streams: int, parts: int, *, is_tree: bool
) -> None:
    """Schedule a reduction of all elements to one result."""
    stage = s[sums]
    neighbours = stage.fuse(*stage.op.reduce_axis)
    if parts > 1 and _is_plain(sums):
        share, _ = stage.split(neighbours, nparts=parts)
        sums = _first(s.rfactor(sums, share))
        s[sums].parallel(s[sums].op.axis[0])
    _attach(s, reduce_in_lanes(s, sums, width, is_tree=is_tree, streams=streams), sums)


def _rows_at_once(shape: Sequence[int], row: int, most: int, parts: int) -> tuple[int, int]:
    """Return the last dimension longer than 1, and how many of its rows to read alternately.

    A row has `row` bits, and each stream of rows at least a page.
    """
    at = max((n for n, extent in enumerate(shape) if extent > 1), default=0)
    most = widest_power(shape[at] * row // _PAGE, most)
    return at, widest_power(min(shape[at], math.prod(shape) // parts), most)


def _split_layout(stage: Stage, dimension: int, piece: int) -> None:
    """Store one dimension of a result as two: pieces, and positions in a piece."""

    def index(*at: Any) -> list[Any]:
        i = at[dimension]
        return [*at[:dimension], i // piece, i % piece, *at[dimension + 1 :]]

    stage.transform_layout(index)


def _unroll_rows(stage: Stage, dimension: int, steps: int) -> None:
    """Interleave rows: a few steps in each row, then the next steps."""
    row, (*around, step) = stage.op.axis[dimension], _reduced_loops(stage)
    if steps > 1:
        step, few = stage.split(step, steps)
        stage.reorder(*around, step, row, few)
        stage.unroll(few)
    else:
        stage.reorder(*around, step, row)
    stage.unroll(row)


def _attach(s: Schedule, partial: list[Tensor], host: Tensor) -> None:
    """Compute partial results inside the first data loop of a stage, if it has one."""
    for loop in s[host].op.axis[:1]:
        for tensor in partial:
            s[tensor].compute_at(s[host], loop)


def _reduce_columns(
    s: Schedule,
    out: Tensor,
    reductions: Sequence[Tensor],
    cfg: Mapping[str, Any],
    lanes: int,
    parts: int,
) -> None:
    """Schedule reductions in which contiguous elements belong to different results."""
    operand, gone = reduced(reductions[0])
    stage, axes, strip = s[out], s[out].op.axis, cfg["strip"]
    count = _joined(operand.static_shape, _trailing(operand, lambda n: n not in gone), strip)
    extent = math.prod(out.static_shape[-count:])
    rest, inner = axes[:-count], stage.fuse(*axes[-count:])
    if extent > strip:
        columns, inner = stage.split(inner, min(strip, -(-extent // parts)))
        rest = (*rest, columns)
    width = widest_power(extent, lanes * cfg["side"])
    _, vector = stage.split(inner, width)
    stage.vectorize(vector)
    if rest:
        outer = stage.fuse(*rest)
        for sums in reductions:
            s[sums].compute_at(stage, outer)
        if parts > 1:
            stage.parallel(outer)
    at_once = cfg["rows"] if all(map(_is_plain, reductions)) else 1
    at_once = widest_power(operand.static_shape[gone[-1]], at_once)
    for sums in reductions:
        _add_rows(s[sums], count, width, at_once)


def _add_rows(partial: Stage, count: int, lanes: int, at_once: int) -> None:
    """Add `at_once` rows per step to vectors of results, after fusing `count` last dimensions."""
    *around, last = partial.op.reduce_axis
    row = partial.fuse(*partial.op.axis[-count:])
    vectors, vector = partial.split(row, lanes)
    steps, step = partial.split(last, at_once)
    partial.reorder(*around, steps, vectors, step, vector)
    partial.unroll(step)
    partial.vectorize(vector)


def _trailing(operand: Tensor, is_counted: Callable[[int], bool]) -> int:
    """Return the number of consecutive last dimensions for which a predicate holds."""
    last = len(operand.shape) - 1
    return next((n for n in range(last + 1) if not is_counted(last - n)), last + 1)


def _joined(shape: Sequence[int], most: int, strip: int) -> int:
    """Return how many last dimensions to fuse: as many as fit in a strip, but at least 1."""
    return max((n for n in range(1, most + 1) if math.prod(shape[-n:]) <= strip), default=1)


def _first(made: Tensor | Sequence[Tensor]) -> Tensor:
    """Return a tensor, or the first of several tensors that share a stage."""
    return made if isinstance(made, Tensor) else made[0]


def _vectorize_last(s: Schedule, partial: Tensor) -> Axis:
    """Vectorize the last dimension of partial results; return the innermost loop around it."""
    stage = s[partial]
    *outer, lane = stage.op.axis
    reduced_loops = _reduced_loops(stage)
    stage.reorder(*outer, *reduced_loops, lane)
    stage.vectorize(lane)
    return reduced_loops[-1]


def _reduced_loops(stage: Stage) -> list[Axis]:
    return [leaf for leaf in stage.state.leaves if leaf.kind == "reduce"]
