"""Compute the set of elements that accesses touch while some loops run, exact where possible."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from dlcompiler.analysis.enumeration import addresses
from dlcompiler.analysis.index_sets import IndexSet
from dlcompiler.analysis.references import Bound, Reference, Sum
from dlcompiler.arith import Analyzer
from dlcompiler.ir import Var

Values = Mapping[Var, int]
"""The values of the outer loops; [1]."""

MOST_INCLUDED = 8
"""Most regions whose union is counted by inclusion and exclusion."""


@dataclass(frozen=True, slots=True)
class Region:
    """Elements of a buffer: a product of index sets, one per dimension, or one set of addresses."""

    sets: tuple[IndexSet, ...]
    is_flat: bool = False
    """Whether `sets` is one set of row-major addresses."""
    is_exact: bool = True

    @property
    def count(self) -> int:
        """Number of elements; [1]."""
        return math.prod(item.count for item in self.sets)

    def flat(self, shape: Sequence[int]) -> Region:
        """Return the region as row-major addresses."""
        if self.is_flat:
            return self
        return Region((flattened(self.sets, _strides(shape)),), True, self.is_exact)

    def contains(self, other: Region) -> bool:
        """Tell whether another region is known to be contained; only quick tests are made."""
        return self.is_flat == other.is_flat and all(
            a.contains(b) for a, b in zip(self.sets, other.sets, strict=True)
        )


EMPTY = Region((IndexSet(0, 1, 0),), True)


def flattened(sets: Iterable[IndexSet], strides: Iterable[int]) -> IndexSet:
    """Return the set of row-major addresses [element] of a product of index sets."""
    whole = IndexSet.single(0)
    # The innermost first: contiguous rows stay progressions.
    for item, stride in reversed(list(zip(sets, strides, strict=True))):
        if not item.count:
            return item
        if stride:
            whole = whole.plus_set(item.scaled(stride))
    return whole


def _strides(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[n + 1 :]) for n in range(len(shape))]


def region(reference: Reference, depth: int, values: Values | None, analyzer: Analyzer) -> Region:
    """Return the region that an access touches while the loops from `depth` on run.

    Parameters
    ----------
    reference
        The access.
    depth
        Number of outer loops that are fixed at one iteration.
    values
        Their values; 0 for those without. If None, bounds are widened to hold for all values, so
        that the moved region contains what any iteration touches.
    analyzer
        Holds the range of each variable.
    """
    outside = reference.fixed(depth)
    free = reference.extents.keys() - set(outside)
    if any(reference.extents[var] == 0 for var in free):
        return EMPTY
    place = dict.fromkeys(outside, 0) | dict(values or {})
    bounds = [_inside(bound, free, reference, place if values is not None else None)
              for bound in reference.bounds]  # fmt: skip
    if any(not bound.sum.factors and not bound.low <= 0 <= bound.high for bound in bounds):
        return EMPTY
    if reference.is_affine:
        sums = [_free(index, free, place) for index in reference.indices if index is not None]
        found = product(sums, bounds, reference.extents)
        if found is not None:
            return Region(found, False, reference.is_known and all(s.is_exact for s in found))
    shape = reference.access.buffer.static_shape
    if values is not None:
        flat = addresses(reference, shape, free, place)
        if flat is not None:
            return Region((flat,), True)
    return _box(reference, shape, analyzer)


def _box(reference: Reference, shape: Sequence[int], analyzer: Analyzer) -> Region:
    """Return a superset of what an access touches, over all iterations of all loops."""
    spans = []
    for index, extent in zip(reference.access.indices, shape, strict=True):
        interval = analyzer.interval(index)
        low, high = max(interval.low, 0), min(interval.high, extent - 1)
        spans.append(IndexSet.between(int(low), int(high)))
    return Region(tuple(spans), False, False)


def _inside(bound: Bound, free: Set[Var], reference: Reference, place: Values | None) -> Bound:
    """Return a bound on the free variables alone, from a bound on free and fixed variables."""
    inner = {var: factor for var, factor in bound.sum.factors.items() if var in free}
    low = high = 0
    for var, factor in bound.sum.factors.items():
        if var not in free and place is not None:
            low, high = low + factor * place[var], high + factor * place[var]
        elif var not in free:
            ends = (0, factor * max(reference.extents[var] - 1, 0))
            low, high = low + min(ends), high + max(ends)
    return Bound(Sum(inner, 0), bound.low - high, bound.high - low)


def _free(index: Sum, free: Set[Var], place: Values) -> Sum:
    inner = {var: factor for var, factor in index.factors.items() if var in free}
    return Sum(inner, index.at(place))


def product(
    sums: Sequence[Sum], bounds: Sequence[Bound], extents: Mapping[Var, int]
) -> tuple[IndexSet, ...] | None:
    """Return the set of values of each index, or None if the indices depend on each other.

    Parameters
    ----------
    sums
        The indices, of free variables only.
    bounds
        Bounds on the free variables.
    extents
        Extents of the loops.
    """
    owner: dict[Var, int] = {}
    for number, sum_ in enumerate(sums):
        for var in sum_.factors:
            if owner.setdefault(var, number) != number:
                return None
    limits: list[list[tuple[dict[Var, int], float, float]]] = [[] for _ in sums]
    hidden: set[Var] = set()
    for bound in bounds:
        within = {owner[var] for var in bound.sum.factors if var in owner}
        narrowed = _without_hidden(bound, owner, hidden, extents)
        if narrowed is None or len(within) > 1:
            return None
        factors, low, high = narrowed
        if within:
            limits[within.pop()].append((factors, low, high))
        elif not low <= 0 <= high:
            return tuple(IndexSet(0, 1, 0) for _ in sums) or (IndexSet(0, 1, 0),)
    found = [_values(sum_, own, extents) for sum_, own in zip(sums, limits, strict=True)]
    sets = tuple(item for item in found if item is not None)
    return sets if len(sets) == len(sums) else None


def _without_hidden(
    bound: Bound, owner: Mapping[Var, int], hidden: set[Var], extents: Mapping[Var, int]
) -> tuple[dict[Var, int], float, float] | None:
    """Return the bounds that a condition puts on the variables of an index.

    The other variables may take any value that satisfies the condition. None if their values
    have gaps, or if two bounds contain the same one of them.
    """
    own = {var: factor for var, factor in bound.sum.factors.items() if var in owner}
    others = {var: factor for var, factor in bound.sum.factors.items() if var not in owner}
    if hidden & others.keys():
        return None
    hidden |= others.keys()
    rest = _sum_of(others, extents)
    is_one_sided = bound.low == -math.inf or bound.high == math.inf
    if not own:
        return {}, *((0, 0) if rest.clipped(bound.low, bound.high).count else (1, 0))
    if not (rest.is_dense or is_one_sided):
        return None
    return own, bound.low - rest.high, bound.high - rest.low


def _sum_of(factors: Mapping[Var, int], extents: Mapping[Var, int]) -> IndexSet:
    whole = IndexSet.single(0)
    for var, factor in sorted(factors.items(), key=lambda item: abs(item[1])):
        whole = whole.plus(factor, extents[var])
    return whole


def _values(
    index: Sum, limits: Iterable[tuple[dict[Var, int], float, float]], extents: Mapping[Var, int]
) -> IndexSet | None:
    """Return the set of values of an index, given bounds on parts of it.

    None unless any two bounded parts share no variable, or one contains the other.
    """
    groups: list[tuple[frozenset[Var], IndexSet]] = []
    for factors, low, high in sorted(limits, key=lambda limit: len(limit[0])):
        scale, ends = _scale(index, factors), (low, high)
        if scale is None:
            return None
        ends = (low * scale, high * scale) if scale > 0 else (high * scale, low * scale)
        members = frozenset(factors)
        mine = [group for group in groups if group[0] & members]
        if any(not group[0] <= members for group in mine):
            return None
        groups = [group for group in groups if group not in mine]
        known = frozenset().union(*(group[0] for group in mine))
        part = _joined(mine, {v: index.factors[v] for v in factors if v not in known}, extents)
        groups.append((members, part.clipped(*ends)))
    known = frozenset().union(*(group[0] for group in groups))
    rest = {var: factor for var, factor in index.factors.items() if var not in known}
    return _joined(groups, rest, extents).shifted(index.constant)


def _scale(index: Sum, factors: Mapping[Var, int]) -> int | None:
    """Return n if the factors of the index are n times `factors`; None if there is no such n."""
    first = next(iter(factors))
    scale, remainder = divmod(index.factors[first], factors[first])
    if remainder or any(index.factors[var] != scale * factors[var] for var in factors):
        return None
    return scale


def _joined(
    groups: Iterable[tuple[frozenset[Var], IndexSet]],
    factors: Mapping[Var, int],
    extents: Mapping[Var, int],
) -> IndexSet:
    parts = sorted(((abs(factor), var, factor) for var, factor in factors.items()),
                   key=lambda part: part[0])  # fmt: skip
    sets = sorted((group[1] for group in groups), key=lambda item: item.step)
    whole = IndexSet.single(0)
    for item in sets:
        while parts and parts[0][0] < item.step:
            _, var, factor = parts.pop(0)
            whole = whole.plus(factor, extents[var])
        whole = whole.plus_set(item)
    for _, var, factor in parts:
        whole = whole.plus(factor, extents[var])
    return whole


def union(regions: Iterable[Region], shape: Sequence[int]) -> tuple[list[Region], int, bool]:
    """Return regions with the same union, its number of elements, and whether that is exact."""
    parts = [item for item in regions if item.count]
    if any(item.is_flat for item in parts):
        parts = [item.flat(shape) for item in parts]
    exact = all(item.is_exact for item in parts)
    parts = _merged(parts)
    if not parts:
        return [], 0, exact
    if len(parts) == 1:
        return parts, parts[0].count, exact
    if len(parts) <= MOST_INCLUDED:
        return parts, *_included(parts, exact)
    whole = parts[0].flat(shape).sets[0]
    for item in parts[1:]:
        whole = whole.union(item.flat(shape).sets[0])
    return [Region((whole,), True)], whole.count, exact and whole.is_exact


def _merged(regions: list[Region]) -> list[Region]:
    """Merge regions that differ in only one dimension."""
    parts: list[Region] = []
    for item in regions:
        while True:
            near = (n for n, other in enumerate(parts) if _differing(item, other) < 2)
            partner = next(near, None)
            if partner is None:
                break
            other = parts.pop(partner)
            sets = tuple(
                a if a == b else a.union(b) for a, b in zip(item.sets, other.sets, strict=True)
            )
            item = Region(sets, item.is_flat, item.is_exact and other.is_exact)
        parts.append(item)
    return [a for a in parts if not any(b is not a and b.contains(a) for b in parts)]


def _differing(a: Region, b: Region) -> int:
    """Return in how many dimensions two regions differ; 0 if one contains the other."""
    if a.contains(b) or b.contains(a):
        return 0
    return sum(x != y for x, y in zip(a.sets, b.sets, strict=True))


def _included(parts: Sequence[Region], exact: bool) -> tuple[int, bool]:
    """Count a union by inclusion and exclusion; return the number, and whether it is exact."""
    total = 0
    terms: list[tuple[int, tuple[IndexSet, ...]]] = []
    for part in parts:
        new = [(1, part.sets)]
        for sign, sets in terms:
            both = tuple(a.common(b) for a, b in zip(sets, part.sets, strict=True))
            exact = exact and all(item.is_exact for item in both)
            if all(item.count for item in both):
                new.append((-sign, both))
        terms += new
        total += sum(sign * math.prod(item.count for item in sets) for sign, sets in new)
    return total, exact
