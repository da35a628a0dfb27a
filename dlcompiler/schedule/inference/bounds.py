"""Bound inference: the region that each stage computes, and the extents of its loops.

The bounds depend only on the state. The region of an attached stage is what its consumers read
during one iteration of the loop that it is attached at: the variables of the loops outside are
constant, those of the loops inside vary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dlcompiler.arith import Affine, Analyzer, Interval, Span, relax, union
from dlcompiler.ir import (
    Axis,
    Binary,
    Const,
    Expr,
    Extent,
    Var,
    binary,
    compare,
    extent_binary,
    extent_expr,
    index_const,
    is_in_block,
    is_sharer,
    structural_equal,
    substitute,
)
from dlcompiler.ir.names import unique_name
from dlcompiler.schedule.inference.inlining import bodies, consumers, loads_of
from dlcompiler.schedule.inference.needed_guards import needed_guards
from dlcompiler.schedule.inference.placement import placed
from dlcompiler.schedule.inference.recurrences import hosts, is_update, region_of_time, time_of
from dlcompiler.schedule.inference.relations import outward
from dlcompiler.schedule.inference.thread_loops import (
    axes_of_threads,
    axis_of,
    is_launched,
    scope_of,
    threads_around,
)
from dlcompiler.schedule.state import (
    AttachedAt,
    Fuse,
    Launched,
    Singleton,
    Split,
    StageState,
    State,
    is_scan,
)

SIZE = Interval(0, math.inf)
"""The range of an extent that is not known."""
KNOB = Interval(1, math.inf)
"""The range of a factor that is a symbol (a knob)."""


@dataclass(frozen=True, slots=True, eq=False)
class StageBounds:
    """The bounds of one stage: the region that it computes, and its axes in terms of its loops."""

    region: tuple[Span, ...]
    """For each dimension, the span computed; an output or a root stage computes all of it."""
    extents: Mapping[Axis, Extent]
    """Iterations of every axis, root to leaf; [1]."""
    loop_vars: Mapping[Axis, Var]
    """The variable of each leaf."""
    values: Mapping[Axis, Expr]
    """The value of each root axis of the operation in terms of the loop variables."""
    guards: tuple[Expr, ...]
    """Conditions under which an iteration is to be executed."""
    enclosing: tuple[Var, ...]
    """Variables of the loops around the attachment, outermost first."""
    joined: frozenset[Axis] = frozenset()
    """Leaves run by the threads of an outer loop; they use the variable of that loop."""


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """The bounds of all stages that have loops, and the range of every loop variable."""

    stages: Mapping[str, StageBounds]
    ranges: Mapping[Var, Interval]
    """The range of every variable and symbol."""


def infer_bounds(state: State) -> Bounds:
    """Infer the bounds of all loops of a state.

    Parameters
    ----------
    state : State
        The state of a schedule (``s.state``) for which `has_bounds` is true.

    Returns
    -------
    Bounds
        The bounds of each stage that has loops, and the range of each variable.
    """
    state = placed(state)
    cached = state.cache.get("bounds")
    if cached is None:
        cached = BoundInference(state).run()
        state.cache["bounds"] = cached
    result: Bounds = cached
    return result


class BoundInference:
    """Infers the bounds of a state, consumers first; `infer_bounds` is its usual caller.

    Parameters
    ----------
    state
        A placed state for which `has_bounds` is true.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.ranges: dict[Var, Interval] = dict.fromkeys(size_symbols(state), SIZE)
        self.ranges.update(dict.fromkeys(knobs_of(state), KNOB))
        self.symbolic: dict[Var, Expr] = {}
        self.analyzer = Analyzer(self.ranges, self.symbolic)
        self.done: dict[str, StageBounds] = {}
        self.names: set[str] = set()

    def run(self) -> Bounds:
        """Return the bounds of all stages that have loops."""
        for stage in reversed(self.state.stages):  # consumers first
            if not stage.is_placeholder and not stage.is_inlined:
                self.done[stage.name] = self.stage_bounds(stage)
        return Bounds(self.done, self.ranges)

    def stage_bounds(self, stage: StageState) -> StageBounds:
        """Return the bounds of a stage, whose consumers are done."""
        enclosing = self.enclosing(stage)
        region = self.region(stage, enclosing)
        extents = self.extents(stage, region)
        threads = self.threads(stage)
        joined = frozenset(leaf for leaf in stage.leaves if stage.kind(leaf) in threads)
        loop_vars = self.loop_vars(stage, extents, threads)
        counted = outward(stage.relations, loop_vars, extents)
        relative = {axis: self.analyzer.simplify(value) for axis, value in counted.items()}
        values = dict(relative)
        for axis, span in zip(stage.op.axis, region, strict=True):
            values[axis] = self.analyzer.simplify(
                Binary("add", span.first.to_expr(), relative[axis])
            )
        guards = self.guards(stage, extents, relative, values)
        guards = (*self.thread_guards(stage, extents, threads), *guards)
        return StageBounds(region, extents, loop_vars, values, guards, enclosing, joined)

    def threads(self, stage: StageState) -> dict[str, tuple[Var, Extent]]:
        """Return the variable and the extent of each thread axis around a stage."""
        return {
            tag: (self.done[host.name].loop_vars[leaf], self.done[host.name].extents[leaf])
            for tag, (host, leaf) in threads_around(self.state, stage).items()
        }

    def thread_guards(
        self,
        stage: StageState,
        extents: Mapping[Axis, Extent],
        threads: Mapping[str, tuple[Var, Extent]],
    ) -> Iterator[Expr]:
        """Yield guards by which only one thread computes each element that threads share."""
        own = {stage.kind(leaf): leaf for leaf in stage.leaves}
        scope, is_row = scope_of(self.state, stage), is_update(self.state, stage)
        for tag, (var, extent) in threads.items():
            if tag in own:
                if not is_same(extents[own[tag]], extent):
                    yield compare("lt", var, extent_expr(extents[own[tag]]))
            elif is_same(extent, 1):
                continue
            elif is_sharer(scope, axis_of(tag)) or (is_row and is_in_block(axis_of(tag))):
                yield compare("lt", var, index_const(1))

    def enclosing(self, stage: StageState) -> tuple[Var, ...]:
        """Return the variables of the loops around a stage, outermost first."""
        if not isinstance(stage.attachment, AttachedAt):
            return ()
        parent = self.state.stage(stage.attachment.stage)
        outer = self.done[parent.name]
        inside = parent.leaves[: parent.position(stage.attachment.axis) + 1]
        return (*outer.enclosing, *(outer.loop_vars[leaf] for leaf in inside))

    def standing(self, stage: StageState, enclosing: tuple[Var, ...]) -> set[Var]:
        """Return the enclosing loop variables that are constant while a stage is computed once.

        Threads that share the stage compute it together, so their variables are left out.
        """
        scope = scope_of(self.state, stage)
        threads = self.threads(stage).items()
        return set(enclosing) - {var for tag, (var, _) in threads if is_sharer(scope, axis_of(tag))}

    def region(self, stage: StageState, enclosing: tuple[Var, ...]) -> tuple[Span, ...]:
        """Return the region that a stage computes at once."""
        if stage.is_extern:
            return ()  # it has no axes: all of its outputs are computed, of whatever shapes
        shape = stage.tensor.shape
        full = tuple(Span(Affine.of_constant(0), extent) for extent in shape)
        if is_scan(stage):
            return region_of_time(stage)
        if is_update(self.state, stage):
            scan = hosts(self.state)[stage.name]
            now = self.analyzer.affine(time_of(scan, self.done[scan.name].values))
            return (Span(now, 1), *full[1:])
        if not isinstance(stage.attachment, AttachedAt):
            return full
        standing = self.standing(stage, enclosing)
        spans: list[Span | None] = [None] * len(shape)
        known = [True] * len(shape)
        for consumer in consumers(self.state, stage):
            bounds = self.done[consumer.name]
            values = {axis.var: value for axis, value in bounds.values.items()}
            moving = {*bounds.enclosing, *bounds.loop_vars.values()} - standing
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
        parts = (
            span if ok and span is not None and self.is_part(span.extent, extent) else whole
            for span, ok, extent, whole in zip(spans, known, shape, full, strict=True)
        )
        return tuple(map(_rounded, parts, map(stage.rounded.get, stage.op.axis)))

    def is_part(self, part: Extent, whole: Extent) -> bool:
        """Tell whether an extent is certainly smaller than the whole; a formula may be larger."""
        if isinstance(part, int):
            return not isinstance(whole, int) or part < whole
        less = compare("lt", part, extent_expr(whole))
        return self.analyzer.can_prove(less)

    def extents(self, stage: StageState, region: tuple[Span, ...]) -> dict[Axis, Extent]:
        """Return the extents of all axes of a stage that computes a region."""
        parts = tuple(span.extent for span in region)
        return derived_extents(stage, parts, self.simple)

    def simple(self, extent: Extent) -> Extent:
        """Return an extent as a number, if it is one."""
        if isinstance(extent, int):
            return extent
        result = self.analyzer.simplify(extent)
        return int(result.value) if isinstance(result, Const) else result

    def loop_vars(
        self,
        stage: StageState,
        extents: Mapping[Axis, Extent],
        threads: Mapping[str, tuple[Var, Extent]],
    ) -> dict[Axis, Var]:
        """Return the variable of each loop, and note its range."""
        result = {}
        for leaf in stage.leaves:
            if stage.kind(leaf) in threads:
                result[leaf], _ = threads[stage.kind(leaf)]
                continue
            name = stage.paths[leaf]
            if name in self.names:
                name = unique_name(f"{stage.name}.{name}", self.names)
            self.names.add(name)
            result[leaf] = Var(name)
            extent = extents[leaf]
            if isinstance(extent, int):
                self.ranges[result[leaf]] = Interval(0, max(extent - 1, 0))
            else:
                self.ranges[result[leaf]] = SIZE
                self.symbolic[result[leaf]] = extent
        return result

    def guards(
        self,
        stage: StageState,
        extents: Mapping[Axis, Extent],
        relative: Mapping[Axis, Expr],
        values: Mapping[Axis, Expr],
    ) -> tuple[Expr, ...]:
        """Return the guards of a stage: conditions that are not true in all iterations.

        If a factor does not divide, a split loop runs past its parent's extent, or repeats
        iterations of another split around it. Also, a region may reach outside its tensor.
        """
        conditions: list[Expr] = []
        if is_launched(stage):
            # All threads must reach the barriers between the steps: updates are guarded instead.
            return ()
        for relation in stage.relations:
            if isinstance(relation, Split) and not is_zero(extents[relation.parent]):
                # A loop of extent 0 does not run; it must not disable the code beside it.
                parent = relation.parent
                if not self.is_below(relative[parent], extents[parent]):
                    conditions.append(compare("lt", relative[parent], extent_expr(extents[parent])))
        for axis in self.checked_axes(stage):
            if not self.is_natural(values[axis]):
                conditions.append(compare("ge", values[axis], index_const(0)))
            if not self.is_below(values[axis], axis.extent):
                conditions.append(compare("lt", values[axis], extent_expr(axis.extent)))
        unique: dict[str, Expr] = {}
        for condition in conditions:
            unique.setdefault(str(condition), condition)
        return needed_guards(list(unique.values()), self.analyzer)

    def checked_axes(self, stage: StageState) -> tuple[Axis, ...]:
        """Return the axes whose values may be outside the tensor, so that they need a guard.

        The time of a scan needs none, except in a launch: its threads may run past the last step.
        """
        if is_scan(stage):
            return ()
        if not is_update(self.state, stage) or is_launched(hosts(self.state)[stage.name]):
            return stage.op.axis
        return stage.op.axis[1:]

    def is_below(self, value: Expr, extent: Extent) -> bool:
        """Tell whether a value is certainly smaller than an extent."""
        if isinstance(extent, int) and self.analyzer.interval(value).high < extent:
            return True
        return self.analyzer.can_prove(compare("lt", value, extent_expr(extent)))

    def is_natural(self, value: Expr) -> bool:
        """Tell whether a value is certainly not negative."""
        if self.analyzer.interval(value).low >= 0:
            return True
        return self.analyzer.can_prove(compare("ge", value, index_const(0)))


def _rounded(span: Span, factor: Extent | None) -> Span:
    """Return a span with its extent rounded up to a multiple of a factor; see `_multiple`."""
    return Span(span.first, _multiple(span.extent, factor))


def _multiple(extent: Extent, factor: Extent | None) -> Extent:
    """Round an extent up to a multiple of a factor; unchanged unless both are numbers."""
    if not (isinstance(factor, int) and isinstance(extent, int)):
        return extent
    return -(-extent // factor) * factor


def derived_extents(
    stage: StageState,
    parts: Sequence[Extent],
    simple: Callable[[Extent], Extent] = lambda extent: extent,
) -> dict[Axis, Extent]:
    """Return the extents of all axes of a stage that computes a part of its tensor.

    Parameters
    ----------
    stage
        The stage.
    parts
        Extents of the part, one for each dimension. [elements]
    simple
        Simplifies the extents that splits and fuses make.
    """
    extents: dict[Axis, Extent] = dict(zip(stage.op.axis, parts, strict=True))
    extents.update((axis, axis.extent) for axis in stage.op.reduce_axis)
    on_threads = axes_of_threads(stage)
    for relation in stage.relations:
        match relation:
            case Split(parent, outer, inner, factor, nparts):
                chosen = inner if factor is not None else outer
                is_clipped = chosen not in on_threads
                pair = split_extents(extents[parent], factor, nparts, is_clipped=is_clipped)
                extents[outer], extents[inner] = map(simple, pair)
            case Fuse(outer, inner, fused):
                extents[fused] = simple(extent_binary("mul", extents[outer], extents[inner]))
            case Singleton(axis) | Launched(axis):
                extents[axis] = axis.extent
    return extents


def largest_extents(stage: StageState) -> Mapping[Axis, Extent]:
    """Return the extents of a stage's axes when it computes its whole (rounded) tensor.

    Wherever the stage is attached, none of its loops has more iterations.
    """
    known: Mapping[Axis, Extent] | None = stage.cache.get("largest extents")
    if known is None:  # cached: each step asks for those of all unrolled stages
        whole = [_multiple(axis.extent, stage.rounded.get(axis)) for axis in stage.op.axis]
        known = stage.cache["largest extents"] = derived_extents(stage, whole)
    return known


def is_same(a: Extent, b: Extent) -> bool:
    """Tell whether two extents are the same number, or the same expression."""
    return structural_equal(extent_expr(a), extent_expr(b), rename=False)


def is_zero(extent: Extent) -> bool:
    """Tell whether an extent is known to be 0."""
    return isinstance(extent, int) and extent == 0


def knobs_of(state: State) -> tuple[Var, ...]:
    """Return the symbols that splits use as `factor` or `nparts`."""
    relations = (relation for stage in state.stages for relation in stage.relations)
    splits = (relation for relation in relations if isinstance(relation, Split))
    return tuple(dict.fromkeys(knob for split in splits for knob in split.knobs))


def size_symbols(state: State) -> Iterator[Var]:
    """Yield the symbols that are the extent of a dimension; these are not negative."""
    for stage in state.stages:
        for tensor in stage.tensors:
            yield from (extent for extent in tensor.shape if isinstance(extent, Var))


def split_extents(
    extent: Extent, factor: Extent | None, nparts: Extent | None, *, is_clipped: bool = True
) -> tuple[Extent, Extent]:
    """Return (outer, inner) extents of a split.

    If `is_clipped`, a factor larger than a known extent is replaced by the extent.
    """
    parts = factor if factor is not None else nparts
    assert parts is not None
    if isinstance(extent, int) and isinstance(parts, int):
        count = max(min(parts, extent), 1) if is_clipped else parts
        other: Extent = -(-extent // count)
        return (other, count) if factor is not None else (count, other)
    above = binary("add", extent_expr(extent), binary("sub", extent_expr(parts), 1))
    other = binary("floordiv", above, extent_expr(parts))
    return (other, parts) if factor is not None else (parts, other)
