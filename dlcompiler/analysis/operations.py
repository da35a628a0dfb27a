"""Count the operations of a program: how often each store runs, and what it computes.

`work_of` counts the operations of an expression. This counts those of its schedule, with
recomputed elements and elements beyond the end of a dimension.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dlcompiler import dtypes
from dlcompiler.analysis.accesses import conjuncts
from dlcompiler.analysis.footprint import ProgramFootprint
from dlcompiler.analysis.index_sets import IndexSet
from dlcompiler.analysis.references import Bound, Reference, merged
from dlcompiler.ir import Binary, Call, Expr, IfThenElse, Not, Stmt, Store, Var
from dlcompiler.ir.rewrite import children

MOST_POINTS = 1 << 20
"""Most combinations of variables that several bounds tie together, tried one by one."""
LONGEST = 1 << 20
"""Most sums, from the least to the greatest, over which solutions are distributed."""

LARGEST = 1 << 62
"""Fewer ways than that are counted in machine integers."""


@dataclass(frozen=True, slots=True, eq=False)
class StoreCount:
    """A store, or a call of outside code that stores, and how often it runs."""

    store: Stmt
    times: int
    """Elements stored; [1]."""
    operations: int
    """Arithmetic operations on data in all these stores; [1]."""
    is_exact: bool
    """Whether the counts are exact; otherwise they are upper bounds."""


def count_stores(footprint: ProgramFootprint) -> list[StoreCount]:
    """Return how often each store of a program runs, in the order of the text."""
    items = {
        item.access.statement: item
        for accesses in footprint.root.references.values()
        for item in accesses
        if item.access.is_write
    }
    return [_count(footprint, item) for item in items.values()]


def operations_of(footprint: ProgramFootprint) -> tuple[int, bool]:
    """Return how many operations a program computes in all, and whether that is exact; [1]."""
    counts = count_stores(footprint)
    return sum(item.operations for item in counts), all(item.is_exact for item in counts)


def _count(footprint: ProgramFootprint, item: Reference) -> StoreCount:
    store = item.access.statement
    times, exact = solutions(item.bounds, item.extents)
    if not isinstance(store, Store):
        return StoreCount(store, times, 0, False)  # the operations of outside code are not known
    exact = exact and item.is_known
    total = 0
    for conditions, operations in _operations(store.value).items():
        if not conditions:
            total += times * operations
            continue
        read = [footprint.reader.bound(condition, item.extents) for condition in conditions]
        extra = [bound for bound in read if bound is not None]
        some, is_exact = solutions(merged([*item.bounds, *extra]), item.extents)
        total += some * operations
        exact = exact and is_exact and len(extra) == len(read)
    return StoreCount(store, times, total, exact)


def _operations(value: Expr) -> dict[tuple[Expr, ...], int]:
    """Return the number of operations in an expression for each set of conditions around them."""
    found: dict[tuple[Expr, ...], int] = {(): 0}
    seen: set[tuple[int, tuple[Expr, ...]]] = set()
    stack: list[tuple[Expr, tuple[Expr, ...]]] = [(value, ())]
    while stack:
        expr, conditions = stack.pop()
        if (id(expr), conditions) in seen:
            continue
        seen.add((id(expr), conditions))
        if isinstance(expr, Binary | Call) and _is_data(expr):
            found[conditions] = found.get(conditions, 0) + 1
        if isinstance(expr, IfThenElse):
            stack.append((expr.condition, conditions))
            stack.append((expr.a, (*conditions, *conjuncts(expr.condition))))
            stack.append((expr.b, (*conditions, Not(expr.condition))))
        else:
            stack += ((child, conditions) for child in children(expr) if isinstance(child, Expr))
    return {conditions: count for conditions, count in found.items() if count}


def _is_data(expr: Expr) -> bool:
    return expr.dtype != "index" and not dtypes.is_bool(dtypes.element(expr.dtype))


def solutions(bounds: Sequence[Bound], extents: Mapping[Var, int]) -> tuple[int, bool]:
    """Return how many iterations satisfy all bounds, and whether this number is exact."""
    if 0 in extents.values():
        return 0, True
    total, exact = 1, True
    left = set(extents)
    for group in _tied(bounds):
        variables = list(dict.fromkeys(var for bound in group for var in bound.sum.factors))
        left -= set(variables)
        sizes = {var: extents[var] for var in variables}
        count = _of_group(group, sizes)
        if count is None:
            count, exact = math.prod(sizes.values()), False
        total *= count
    return total * math.prod(extents[var] for var in left), exact


def _tied(bounds: Sequence[Bound]) -> list[list[Bound]]:
    """Group bounds so that different groups share no variable."""
    groups: list[list[Bound]] = []
    for bound in bounds:
        mine = [g for g in groups if any(b.sum.factors.keys() & bound.sum.factors for b in g)]
        groups = [g for g in groups if g not in mine]
        groups.append([*(b for g in mine for b in g), bound])
    return groups


def _of_group(bounds: Sequence[Bound], extents: Mapping[Var, int]) -> int | None:
    points = math.prod(extents.values())
    if len(bounds) == 1:
        (bound,) = bounds
        sums = IndexSet.single(0)
        for var, factor in sorted(bound.sum.factors.items(), key=lambda item: abs(item[1])):
            sums = sums.plus(factor, extents[var])
        if sums.count == points and sums.is_exact:
            return sums.clipped(bound.low, bound.high).count
        if sums.high - sums.low < LONGEST:
            return _distributed(bound, extents)
    if points > MOST_POINTS:
        return None
    axes = dict(zip(extents, np.indices(tuple(extents.values()), sparse=True), strict=True))
    holds = np.ones(tuple(extents.values()), bool)
    for bound in bounds:
        value = sum(factor * axes[var] for var, factor in bound.sum.factors.items())
        holds &= (value >= bound.low) & (value <= bound.high)
    return int(holds.sum())


def _distributed(bound: Bound, extents: Mapping[Var, int]) -> int:
    """Count the solutions of ``low <= sum <= high`` from the number of ways to get each sum."""
    many = math.prod(extents.values()) >= LARGEST
    ways, low = np.ones(1, object if many else np.int64), 0
    for var, factor in bound.sum.factors.items():
        low += min(factor * (extents[var] - 1), 0)
        ways = _widened(ways, abs(factor), extents[var])
    first = max(bound.low - low, 0)
    end = min(bound.high - low + 1, len(ways))
    return int(ways[int(first) : int(end)].sum()) if first < end else 0


def _widened(ways: np.ndarray, step: int, extent: int) -> np.ndarray:
    """Return ``sum(ways[n - step*m] for m in range(extent))`` for each n."""
    length = len(ways) + step * (extent - 1)
    rows = -(-length // step)
    padded = np.zeros(rows * step, ways.dtype)
    padded[: len(ways)] = ways
    sums = padded.reshape(rows, step).cumsum(axis=0)
    sums[extent:] -= sums[:-extent].copy()
    return sums.reshape(-1)[:length]
