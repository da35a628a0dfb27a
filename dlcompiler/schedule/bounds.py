"""Bound inference: which part of each stage is computed at its place, by loops of which extents.

A pure function of a state. For an attached stage the region is what its consumers read during one
iteration of the loop it is attached to: the variables of the loops outside stand still, those
inside run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dlcompiler.arith import Affine, Analyzer, Interval, Span, relax, union
from dlcompiler.ir import Axis, Binary, Expr, Var, compare, index_const, substitute
from dlcompiler.schedule.inlining import bodies, consumers, loads_of
from dlcompiler.schedule.state import (
    AttachedAt,
    Fuse,
    Split,
    StageState,
    State,
    unique_name,
)


@dataclass(frozen=True, slots=True, eq=False)
class StageBounds:
    """What a stage computes at its place, and how its axes follow from its loop variables."""

    region: tuple[Span, ...]
    """For each dimension, the part computed: an output or a root stage computes all of it."""
    extents: Mapping[Axis, int]
    """Iterations of every axis, root to leaf; [1]."""
    loop_vars: Mapping[Axis, Var]
    """The variable of each leaf."""
    values: Mapping[Axis, Expr]
    """Each root axis of the operation in terms of the loop variables."""
    guards: tuple[Expr, ...]
    """Conditions under which an iteration is to be executed."""
    enclosing: tuple[Var, ...]
    """Variables of the loops around the attachment, outermost first."""


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """The bounds of all stages that have loops, and the range of every loop variable."""

    stages: Mapping[str, StageBounds]
    ranges: Mapping[Var, Interval]


def infer_bounds(state: State) -> Bounds:
    """Infer the bounds of a state; attachments must be valid (see `validity`)."""
    cached = state.cache.get("bounds")
    if cached is None:
        cached = _Inference(state).run()
        state.cache["bounds"] = cached
    result: Bounds = cached
    return result


class _Inference:
    def __init__(self, state: State) -> None:
        self.state = state
        self.ranges: dict[Var, Interval] = {}
        self.analyzer = Analyzer(self.ranges)
        self.done: dict[str, StageBounds] = {}
        self.names: set[str] = set()

    def run(self) -> Bounds:
        for stage in reversed(self.state.stages):  # consumers first
            if not stage.is_placeholder and not stage.is_inlined:
                self.done[stage.name] = self.stage_bounds(stage)
        return Bounds(self.done, self.ranges)

    def stage_bounds(self, stage: StageState) -> StageBounds:
        enclosing = self.enclosing(stage)
        region = self.region(stage, enclosing)
        extents = self.extents(stage, region)
        loop_vars = self.loop_vars(stage, extents)
        relative = self.relative_values(stage, extents, loop_vars)
        values = dict(relative)
        for axis, span in zip(stage.op.axis, region, strict=True):
            values[axis] = self.analyzer.simplify(
                Binary("add", span.first.to_expr(), relative[axis])
            )
        guards = self.guards(stage, extents, relative, values)
        return StageBounds(region, extents, loop_vars, values, guards, enclosing)

    def enclosing(self, stage: StageState) -> tuple[Var, ...]:
        if not isinstance(stage.attachment, AttachedAt):
            return ()
        parent = self.state.stage(stage.attachment.stage)
        outer = self.done[parent.name]
        inside = parent.leaves[: parent.position(stage.attachment.axis) + 1]
        return (*outer.enclosing, *(outer.loop_vars[leaf] for leaf in inside))

    def region(self, stage: StageState, enclosing: tuple[Var, ...]) -> tuple[Span, ...]:
        shape = stage.tensor.static_shape
        full = tuple(Span(Affine.of_constant(0), extent) for extent in shape)
        if not isinstance(stage.attachment, AttachedAt):
            return full
        spans: list[Span | None] = [None] * len(shape)
        known = [True] * len(shape)
        for consumer in consumers(self.state, stage):
            bounds = self.done[consumer.name]
            values = {axis.var: value for axis, value in bounds.values.items()}
            moving = {*bounds.enclosing, *bounds.loop_vars.values()} - set(enclosing)
            for load in loads_of(bodies(self.state)[consumer.name]):
                if load.tensor not in stage.tensors:
                    continue
                for n, index in enumerate(load.indices):
                    span = relax(substitute(index, values), moving, self.analyzer)
                    old = spans[n]
                    joined = (
                        span if old is None or span is None else union(old, span, self.analyzer)
                    )
                    known[n] = known[n] and joined is not None
                    spans[n] = joined
        return tuple(
            span if ok and span is not None and span.extent < extent else whole
            for span, ok, extent, whole in zip(spans, known, shape, full, strict=True)
        )

    def extents(self, stage: StageState, region: tuple[Span, ...]) -> dict[Axis, int]:
        extents = {axis: span.extent for axis, span in zip(stage.op.axis, region, strict=True)}
        extents.update((axis, axis.static_extent) for axis in stage.op.reduce_axis)
        for relation in stage.relations:
            match relation:
                case Split(parent, outer, inner, factor, nparts):
                    outer_extent, inner_extent = split_extents(extents[parent], factor, nparts)
                    extents[outer], extents[inner] = outer_extent, inner_extent
                case Fuse(outer, inner, fused):
                    extents[fused] = extents[outer] * extents[inner]
        return extents

    def loop_vars(self, stage: StageState, extents: Mapping[Axis, int]) -> dict[Axis, Var]:
        result = {}
        for leaf in stage.leaves:
            name = stage.paths[leaf]
            if name in self.names:
                name = unique_name(f"{stage.name}.{name}", self.names)
            self.names.add(name)
            result[leaf] = Var(name)
            self.ranges[result[leaf]] = Interval(0, max(extents[leaf] - 1, 0))
        return result

    def relative_values(
        self, stage: StageState, extents: Mapping[Axis, int], loop_vars: Mapping[Axis, Var]
    ) -> dict[Axis, Expr]:
        """Return every axis, counted from 0, in terms of the loop variables."""
        values: dict[Axis, Expr] = dict(loop_vars)
        for relation in reversed(stage.relations):
            match relation:
                case Split(parent, outer, inner, _, _):
                    step = index_const(extents[inner])
                    values[parent] = Binary(
                        "add", Binary("mul", values[outer], step), values[inner]
                    )
                case Fuse(outer, inner, fused):
                    count = index_const(max(extents[inner], 1))
                    values[outer] = Binary("floordiv", values[fused], count)
                    values[inner] = Binary("floormod", values[fused], count)
        return {axis: self.analyzer.simplify(value) for axis, value in values.items()}

    def guards(
        self,
        stage: StageState,
        extents: Mapping[Axis, int],
        relative: Mapping[Axis, Expr],
        values: Mapping[Axis, Expr],
    ) -> tuple[Expr, ...]:
        """Return the conditions that are not always true.

        A split that does not divide runs past its parent (and, below another split, would repeat
        iterations); a region may reach outside its tensor.
        """
        conditions: list[Expr] = []
        for relation in stage.relations:
            if isinstance(relation, Split) and extents[relation.parent] > 0:
                # A loop over nothing does not run, and must not forbid what stands beside it.
                parent = relation.parent
                if self.analyzer.interval(relative[parent]).high >= extents[parent]:
                    conditions.append(compare("lt", relative[parent], index_const(extents[parent])))
        for axis in stage.op.axis:
            reach = self.analyzer.interval(values[axis])
            if reach.low < 0:
                conditions.append(compare("ge", values[axis], index_const(0)))
            if reach.high >= axis.static_extent:
                conditions.append(compare("lt", values[axis], index_const(axis.static_extent)))
        unique: dict[str, Expr] = {}
        for condition in conditions:
            unique.setdefault(str(condition), condition)
        return tuple(unique.values())


def split_extents(extent: int, factor: int | None, nparts: int | None) -> tuple[int, int]:
    """Return (outer, inner) extents of a split; a factor beyond the extent is clipped to it."""
    if factor is not None:
        inner = max(min(factor, extent), 1)
        return -(-extent // inner), inner
    assert nparts is not None
    outer = max(min(nparts, extent), 1)
    return outer, -(-extent // outer)
