"""Relations between the axes of a stage: values and extents through splits and fuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dlcompiler.arith import Analyzer, Interval
from dlcompiler.ir import Axis, Expr, Extent, Var, binary, compare, index_const
from dlcompiler.ir.stmt import extent_binary, extent_expr, is_one
from dlcompiler.schedule.state import Fuse, Launched, Relation, Singleton, Split


def outward(
    relations: Sequence[Relation],
    values: Mapping[Axis, Expr],
    extents: Mapping[Axis, Extent] | None = None,
) -> dict[Axis, Expr]:
    """Add to the values of leaves the values of the axes that they come from.

    All axes count from 0. Without `extents`, the axes have the extents of their creation.
    """
    result = dict(values)
    for relation in reversed(relations):
        match relation:
            case Split(parent, outer, inner, _, _) if outer in result and inner in result:
                count = inner.extent if extents is None else extents[inner]
                step = binary("mul", result[outer], extent_expr(count))
                result[parent] = binary("add", step, result[inner])
            case Fuse(outer, inner, fused) if fused in result:
                count = inner.extent if extents is None else extents[inner]
                divisor = extent_expr(_at_least_one(count))
                result[outer] = binary("floordiv", result[fused], divisor)
                result[inner] = binary("floormod", result[fused], divisor)
                if extents is not None and is_one(extents[outer]):
                    # Iterations beyond the end, whose quotient is 1 or more, are guarded.
                    result[outer], result[inner] = index_const(0), result[fused]
    return result


def inward(relations: Sequence[Relation], values: Mapping[Axis, Expr]) -> dict[Axis, Expr]:
    """Add to the values of axes the values of the leaves that come from them."""
    result = dict(values)
    for relation in relations:
        match relation:
            case Split(parent, outer, inner, _, _) if parent in result:
                count = extent_expr(_at_least_one(inner.extent))
                result[outer] = binary("floordiv", result[parent], count)
                result[inner] = binary("floormod", result[parent], count)
            case Fuse(outer, inner, fused) if outer in result and inner in result:
                step = binary("mul", result[outer], extent_expr(inner.extent))
                result[fused] = binary("add", step, result[inner])
            case Singleton(axis):
                result[axis] = index_const(0)
    return result


def guards(relations: Sequence[Relation], values: Mapping[Axis, Expr]) -> list[Expr]:
    """Return the conditions that keep each split axis below its extent.

    They are needed where a factor does not divide the extent. With them, exactly one point of the
    leaves reaches each point of the axes.
    """
    result = []
    for relation in relations:
        if not isinstance(relation, Split) or relation.parent not in values:
            continue
        parent, product = relation.parent, _product(relation)
        if not (isinstance(product, int) and product == parent.extent):
            result.append(compare("lt", values[parent], extent_expr(parent.extent)))
    return result


def related(relations: Sequence[Relation], axes: Iterable[Axis]) -> set[Axis]:
    """Return `axes` and all axes related to them, in either direction."""
    found = set(axes)
    size = -1
    while size != len(found):
        size = len(found)
        for relation in relations:
            if found.intersection(axes_of(relation)):
                found.update(axes_of(relation))
    return found


def axes_of(relation: Relation) -> tuple[Axis, ...]:
    """Return the axes of a relation."""
    match relation:
        case Split(parent, outer, inner, _, _):
            return parent, outer, inner
        case Fuse(outer, inner, fused):
            return outer, inner, fused
        case Singleton(axis) | Launched(axis):
            return (axis,)


def ranged(extents: Mapping[Var, Extent], others: Mapping[Var, Interval] | None = None) -> Analyzer:
    """Return an analyzer for variables that run from 0 up to an extent, which is not included.

    `others` are the ranges of other variables.
    """
    known = {v: Interval(0, max(e - 1, 0)) for v, e in extents.items() if isinstance(e, int)}
    symbolic = {v: e for v, e in extents.items() if isinstance(e, Expr)}
    return Analyzer({**(others or {}), **known}, symbolic)


def _product(relation: Split) -> Extent:
    return extent_binary("mul", relation.outer.extent, relation.inner.extent)


def _at_least_one(extent: Extent) -> Extent:
    return max(extent, 1) if isinstance(extent, int) else extent
