"""Regions, loops and accesses of a schedule's state, as formulas of knobs.

For lowering, `dlcompiler.schedule.inference.bounds` infers regions by symbolic arithmetic. Here,
index expressions are evaluated at chosen iterations: at the first iteration of all loops, one step
along one loop, or over the whole range of some. This needs no simplification, and works alike for
numbers and for formulas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dlcompiler.autotune.features.intervals import (
    ONE,
    ZERO,
    NotAffineError,
    Range,
    joined,
    point,
    quotient,
    range_of,
    rest,
)
from dlcompiler.autotune.features.lanes import lanes_inside
from dlcompiler.autotune.features.numbers import (
    Num,
    add,
    at_most,
    ceildiv,
    least,
    most,
    multiply,
    product,
    select,
    subtract,
)
from dlcompiler.errors import TuningError
from dlcompiler.ir import Axis, Expr, TensorLoad, Var, is_sharer
from dlcompiler.schedule.inference.inlining import bodies, consumers, loads_of
from dlcompiler.schedule.inference.placement import placed
from dlcompiler.schedule.inference.thread_loops import axes_of_threads, scope_of
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
from dlcompiler.te import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A loop around a statement."""

    stage: str
    """The stage that it belongs to."""
    axis: Axis
    extent: Num
    """Iterations; [1]."""
    kind: str
    """``serial``, ``parallel``, ``vectorized``, ``unrolled``."""

    @property
    def is_reduction(self) -> bool:
        """Whether the loop runs over a reduction axis."""
        return self.axis.kind == "reduce"


Places = Mapping[Axis, Range]
"""Iterations of some loops; all others are in their first iteration."""


@dataclass(eq=False)
class StageGeometry:
    """Geometry of one stage: its region, its loops, and the values of its axes."""

    whole: Geometry
    stage: StageState
    enclosing: tuple[Loop, ...]
    """The loops around its attachment point, outermost first."""
    region: tuple[Num, ...]
    """Extents of the region computed at its attachment point, by dimension [1]."""
    is_whole: tuple[Num, ...]
    """By dimension, 1 where the region covers the whole tensor, else 0."""
    extents: dict[Axis, Num] = field(default_factory=dict)
    """Iterations of every axis, root to leaf; [1]."""
    _known: dict[tuple[object, ...], dict[Var, Range]] = field(default_factory=dict)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """All loops around the stage's statement, outermost first."""
        own = tuple(
            Loop(self.stage.name, leaf, self.extents[leaf], self.stage.kind(leaf))
            for leaf in self.stage.leaves
        )
        return (*self.enclosing, *own)

    @cached_property
    def encloses(self) -> frozenset[Axis]:
        """The axes of the enclosing loops that are fixed while the region is computed once.

        Threads that share the stage's memory compute the region together.
        """
        scope = scope_of(self.whole.state, self.stage)
        return frozenset(loop.axis for loop in self.enclosing if not is_sharer(scope, loop.kind))

    def moved(self, kind: str, depth: int, stays: frozenset[Axis]) -> dict[Var, Range]:
        """Return `axis_values` with one loop in its second iteration, or some over all values.

        Parameters
        ----------
        kind : {"step", "run"}
            ``step``: the loop at `depth` is in its second iteration. ``run``: the loops from
            `depth` on take all their values.
        depth : int
            Depth of the loop, or of the outermost running loop.
        stays : frozenset of Axis
            Loops that stay in their first iteration in any case.
        """
        key = (kind, depth, stays)
        if key not in self._known:
            if kind == "step":
                places = {self.loops[depth].axis: ONE}
            else:
                places = {
                    loop.axis: Range(0, subtract(loop.extent, 1))
                    for loop in self.loops[depth:]
                    if loop.axis not in stays
                }
            self._known[key] = self.axis_values(places)
        return self._known[key]

    def axis_values(self, places: Places) -> dict[Var, Range]:
        """Return the ranges of the stage's axes and of symbols; `places` gives those of loops."""
        values = {leaf: places.get(leaf, ZERO) for leaf in self.stage.leaves}
        for relation in reversed(self.stage.relations):
            match relation:
                case Split(parent, outer, inner, _, _):
                    # Not cut off at the end of the axis: what a guard skips counts, as in bound
                    # inference.
                    values[parent] = joined(values[outer], values[inner], self.extents[inner])
                case Fuse(outer, inner, fused):
                    count = most(self.extents[inner], 1)
                    whole = values[fused]
                    values[outer], values[inner] = quotient(whole, count), rest(whole, count)
        bases = self.bases(places)
        for n, axis in enumerate(self.stage.op.axis):
            if bases[n] is not ZERO:
                own = values[axis]
                values[axis] = Range(add(bases[n].first, own.first), add(bases[n].last, own.last))
        return {**self.whole.symbols, **{axis.var: value for axis, value in values.items()}}

    def bases(self, places: Places) -> tuple[Range, ...]:
        """Return the start of the stage's region in each dimension; `places` gives loop ranges."""
        outside = {axis: place for axis, place in places.items() if axis in self.encloses}
        if not outside:
            return (ZERO,) * len(self.stage.op.axis)
        firsts = self.whole.required(self, {a: point(r.first) for a, r in outside.items()})
        lasts = firsts
        if any(not place.is_point for place in outside.values()):
            lasts = self.whole.required(self, {a: point(r.last) for a, r in outside.items()})
        return tuple(
            Range(select(whole, 0, a.first), select(whole, 0, b.first))
            for whole, a, b in zip(self.is_whole, firsts, lasts, strict=True)
        )


class Geometry:
    """All stages of a state that have loops.

    Parameters
    ----------
    state : State
        Of a schedule or of a symbolic schedule; attachments must be valid.
    symbols : mapping of Var to Num, optional
        Values of the symbols of a symbolic schedule.
    regions : mapping of str to sequence of Num, optional
        Of stages whose region is known exactly: its extents by dimension [1]. The regions of other
        stages follow from the ranges of indices, and can be larger than what is computed.
    """

    def __init__(
        self,
        state: State,
        symbols: Mapping[Var, Num] | None = None,
        regions: Mapping[str, Sequence[Num]] | None = None,
    ) -> None:
        self.regions = regions or {}
        self.state = lanes_inside(placed(state))
        for stage in state.stages:
            if is_scan(stage) or stage.is_extern:
                what = "a recurrence" if is_scan(stage) else "code from outside"
                raise TuningError(
                    "features of a schedule", f"{what} has none yet", got=stage.name,
                    hint="tune without a cost model: tuner=\"random\"",
                )  # fmt: skip
        self.symbols: dict[Var, Range] = {v: point(n) for v, n in (symbols or {}).items()}
        self.bodies = bodies(self.state)
        self.stages: dict[str, StageGeometry] = {}
        """By name, consumers first."""
        for stage in reversed(self.state.stages):
            if not stage.is_placeholder and not stage.is_inlined:
                self.stages[stage.name] = self._stage(stage)

    def number(self, extent: int | Expr) -> Num:
        """Return the number or formula of an extent, which may be an expression of symbols."""
        return extent if isinstance(extent, int) else range_of(extent, self.symbols).first

    def shape(self, tensor: Tensor) -> tuple[Num, ...]:
        """Return the extents of a tensor's buffer: its region, or all of it if it has no loops."""
        producer = self.producer(tensor)
        return self.extents(tensor) if producer is None else producer.region

    def extents(self, tensor: Tensor) -> tuple[Num, ...]:
        """Return the extents of a whole tensor."""
        return tuple(map(self.number, tensor.shape))

    def producer(self, tensor: Tensor) -> StageGeometry | None:
        """Return the stage with loops that computes a tensor; None if there is none."""
        return next((s for s in self.stages.values() if tensor in s.stage.tensors), None)

    def loads(self, stage: StageState) -> tuple[TensorLoad, ...]:
        """Return the tensor elements that the statement of a stage reads."""
        return loads_of(self.bodies[stage.name])

    # -- one stage -------------------------------------------------------------------------------

    def _stage(self, stage: StageState) -> StageGeometry:
        shape = self.extents(stage.tensor)
        always = (1,) * len(shape)
        geometry = StageGeometry(self, stage, self._enclosing(stage), shape, always)
        if geometry.enclosing:
            self._limit(geometry, shape)
        geometry.extents = self._extents(stage, geometry.region)
        return geometry

    def _enclosing(self, stage: StageState) -> tuple[Loop, ...]:
        if not isinstance(stage.attachment, AttachedAt):
            return ()
        host = self.stages[stage.attachment.stage]
        inside = host.stage.position(stage.attachment.axis) + 1
        return host.loops[: len(host.enclosing) + inside]

    def _limit(self, geometry: StageGeometry, shape: tuple[Num, ...]) -> None:
        """Reduce a region to the part read in one iteration of the loops around it."""
        if geometry.stage.name in self.regions:
            geometry.region = tuple(self.regions[geometry.stage.name])
            geometry.is_whole = tuple(map(at_most, shape, geometry.region))
            return
        needed = [span.width for span in self.required(geometry, {})]
        for n, axis in enumerate(geometry.stage.op.axis):
            if axis in geometry.stage.rounded:
                factor = self.number(geometry.stage.rounded[axis])
                needed[n] = multiply(ceildiv(needed[n], factor), factor)
        geometry.region = tuple(map(least, needed, shape))
        geometry.is_whole = tuple(map(at_most, shape, needed))

    def required(self, producer: StageGeometry, places: Places) -> tuple[Range, ...]:
        """Return the region of a stage that its readers read in one iteration at `places`."""
        result: list[Range | None] = [None] * len(producer.stage.op.axis)
        shape = self.extents(producer.stage.tensor)
        for reader in consumers(self.state, producer.stage):
            own = self.stages[reader.name]
            moving = {
                loop.axis: Range(0, subtract(loop.extent, 1))
                for loop in own.loops
                if loop.axis not in producer.encloses
            }
            values = own.axis_values({**places, **moving})
            for load in self.loads(reader):
                if load.tensor in producer.stage.tensors:
                    spans = self.dimensions(load, values, shape)
                    result = [_union(old, new) for old, new in zip(result, spans, strict=True)]
        return tuple(span or ZERO for span in result)

    def dimensions(
        self, load: TensorLoad, values: Mapping[Var, Range], shape: Sequence[Num]
    ) -> list[Range]:
        """Return the ranges of an access's indices; for an unknown index, the whole dimension."""
        spans = []
        for index, extent in zip(load.indices, shape, strict=True):
            try:
                spans.append(range_of(index, values))
            except NotAffineError:
                spans.append(Range(0, subtract(extent, 1)))
        return spans

    def _extents(self, stage: StageState, region: Sequence[Num]) -> dict[Axis, Num]:
        extents: dict[Axis, Num] = dict(zip(stage.op.axis, region, strict=True))
        for axis in stage.op.reduce_axis:
            extents[axis] = self.number(axis.extent)
        on_threads = axes_of_threads(stage)
        for relation in stage.relations:
            match relation:
                case Split(parent, outer, inner, factor, nparts):
                    parts = factor if factor is not None else nparts
                    assert parts is not None
                    count = self.number(parts)
                    if (inner if factor is not None else outer) not in on_threads:
                        count = most(least(count, extents[parent]), 1)
                    other = ceildiv(extents[parent], count)
                    pair = (other, count) if factor is not None else (count, other)
                    extents[outer], extents[inner] = pair
                case Fuse(outer, inner, fused):
                    extents[fused] = multiply(extents[outer], extents[inner])
                case Singleton(axis) | Launched(axis):
                    extents[axis] = self.number(axis.extent)
        return extents


def _union(a: Range | None, b: Range) -> Range:
    if a is None:
        return b
    return Range(least(a.first, b.first), most(a.last, b.last))


# -- accesses ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """An access of a statement to one buffer."""

    name: str
    """Of the buffer."""
    is_write: bool
    itemsize: int
    """[byte]"""
    shape: tuple[Num, ...]
    """Of the buffer."""
    strides: tuple[Num, ...]
    """Its stride for one step of each loop, outermost first [element]."""
    widths: tuple[tuple[Num, ...], ...]
    """For each depth d, from 0 to the number of loops: the number of indices that the loops from
    d on touch in each dimension."""

    def touched(self, depth: int) -> Num:
        """Return the number of elements that the loops from `depth` on touch."""
        return product(self.widths[depth])


def access_of(
    geometry: Geometry, own: StageGeometry, load: TensorLoad, itemsize: int, *, is_write: bool
) -> Access:
    """Return the strides and footprints of an access of a stage's statement."""
    tensor = load.tensor
    assert isinstance(tensor, Tensor)
    producer = geometry.producer(tensor)
    shape = geometry.shape(tensor)
    stays: frozenset[Axis] = producer.encloses if producer is not None else frozenset()
    nowhere: frozenset[Axis] = frozenset()
    loops = own.loops
    start = geometry.dimensions(load, own.moved("run", len(loops), nowhere), shape)
    pitches = _pitches(shape)
    strides: list[Num] = []
    for depth, loop in enumerate(loops):
        if loop.axis in stays:
            strides.append(0)
            continue
        moved = geometry.dimensions(load, own.moved("step", depth, nowhere), shape)
        total: Num = 0
        for new, old, pitch in zip(moved, start, pitches, strict=True):
            total = add(total, multiply(subtract(new.first, old.first), pitch))
        # A loop with one iteration has no stride, whatever its index is multiplied by.
        strides.append(select(at_most(loop.extent, 1), 0, total))
    widths = []
    for depth in range(len(loops) + 1):
        spans = geometry.dimensions(load, own.moved("run", depth, stays), shape)
        widths.append(tuple(map(least, (span.width for span in spans), shape)))
    name = producer.stage.name if producer is not None else tensor.op.name
    return Access(name, is_write, itemsize, shape, tuple(strides), tuple(widths))


def _pitches(shape: Sequence[Num]) -> tuple[Num, ...]:
    """Return the strides of the dimensions of an array [element]."""
    result: list[Num] = []
    pitch: Num = 1
    for extent in reversed(shape):
        result.append(pitch)
        pitch = multiply(pitch, extent)
    return tuple(reversed(result))
