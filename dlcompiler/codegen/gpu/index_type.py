"""Decide whether 32 bits hold all indices of a kernel: GPUs compute with 64 bits more slowly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dlcompiler import dtypes
from dlcompiler.arith import Analyzer, Interval
from dlcompiler.ir import (
    Allocate,
    Buffer,
    Const,
    Expr,
    For,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    index_const,
    walk,
)
from dlcompiler.ir.lanes import at_lane
from dlcompiler.ir.rewrite import Node
from dlcompiler.passes.flatten_storage import elements_spanned, flat_index

LEAST, MOST = -(2**31), 2**31 - 1


def fits_32_bits(body: Stmt, arrays: Sequence[Buffer], extents: Mapping[Var, Expr]) -> bool:
    """Tell whether no index in what a thread does, and no part of one, exceeds 32 bits.

    Parameters
    ----------
    body
        The statements of one thread.
    arrays
        The memory that it does not allocate.
    extents
        The number of values of each variable that it does not declare.
    """
    nodes = list(walk(body))
    buffers = (*arrays, *(node.buffer for node in nodes if isinstance(node, Allocate)))
    if not all(_is_small(elements_spanned(buffer)) for buffer in buffers):
        return False
    loops = {node.var: node.extent for node in nodes if isinstance(node, For)}
    ranges = {var: _values(extent) for var, extent in {**loops, **extents}.items()}
    for node in nodes:  # outer names first
        if isinstance(node, Let) and _is_index(node.var):
            ranges[node.var] = Analyzer(ranges).interval(node.value)
    analyzer = Analyzer(ranges)
    return all(_fits(index, analyzer) for node in nodes for index in _indices(node))


def _is_small(elements: int | Expr) -> bool:
    return isinstance(elements, int) and elements <= MOST


def _values(extent: Expr) -> Interval:
    """Return the values of a variable that counts up to an extent."""
    last = int(extent.value) - 1 if isinstance(extent, Const) else float("inf")
    return Interval(0, max(last, 0))


def _indices(node: Node) -> Iterator[Expr]:
    """Yield the indices that a node computes: its own value, and positions in memory."""
    if isinstance(node, Load | Store):
        parts = walk(flat_index(node.buffer, node.indices))
        found = (part for part in parts if isinstance(part, Expr) and _is_index(part))
        yield from (lane for part in found for lane in _lanes(part))
    if isinstance(node, Expr) and _is_index(node):
        yield from _lanes(node)


def _lanes(index: Expr) -> Iterator[Expr]:
    """Yield an index, or that of each lane of a vector."""
    count = dtypes.lanes(index.dtype)
    if count == 1:
        yield index
        return
    for number in range(count):
        lane = at_lane(index, index_const(number), {})
        yield from (part for part in walk(lane) if isinstance(part, Expr) and _is_index(part))


def _is_index(expr: Expr) -> bool:
    return dtypes.is_index(dtypes.element(expr.dtype))


def _fits(index: Expr, analyzer: Analyzer) -> bool:
    bounds = analyzer.interval(index)
    return bounds.low >= LEAST and bounds.high <= MOST
