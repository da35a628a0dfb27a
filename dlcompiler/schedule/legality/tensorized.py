"""Compare what a tensorized loop computes with what its intrinsic declares.

The tensorized loop and the loops inside it run through a box of the stage's axes. The expression of
the stage on this box must be the computation that the intrinsic declares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dlcompiler.arith import Affine, Analyzer, Interval, Span, relax
from dlcompiler.ir import Axis, Expr, Reduce, Var, binary, extent_expr, free_vars, substitute
from dlcompiler.schedule.inference.bounds import StageBounds, infer_bounds
from dlcompiler.schedule.inference.inlining import bodies
from dlcompiler.schedule.inference.recurrences import storage_aliases
from dlcompiler.schedule.inference.strides import begin_of, strides_of
from dlcompiler.schedule.legality.matching import Comparison, Operand, aligned
from dlcompiler.schedule.state import StageState, State
from dlcompiler.schedule.verdict import Illegal
from dlcompiler.te import Tensor, TensorIntrin


@dataclass(frozen=True, slots=True)
class Match:
    """How an intrinsic replaces loops of a stage: its operands and the loops around it."""

    intrin: TensorIntrin
    outer: tuple[Axis, ...]
    """The loops of the stage around the intrinsic."""
    write: Operand
    reads: tuple[Operand, ...]
    """The operand for each input of the intrinsic."""

    @property
    def operands(self) -> tuple[tuple[Operand, Tensor], ...]:
        """Pairs of an operand and its declared tensor, the result first."""
        declared = (self.intrin.output, *self.intrin.inputs)
        return tuple(zip((self.write, *self.reads), declared, strict=True))


class Mismatch(Exception):  # noqa: N818 - an answer, not a mistake
    """Exception with the reason why an intrinsic does not compute what the loops compute."""

    def __init__(self, verdict: Illegal) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


def matched(state: State, stage: StageState) -> Match:
    """Return how the intrinsic of a tensorized stage replaces its loops, in a valid state."""
    known: dict[str, Match] = state.cache.setdefault("matches", {})
    if stage.name not in known:
        known[stage.name] = _Matcher(state, stage).match()
    return known[stage.name]


def mismatch(state: State, stage: StageState) -> Illegal | None:
    """Return the reason why an intrinsic does not compute what its loops compute, or None."""
    try:
        matched(state, stage)
    except Mismatch as found:
        return found.verdict
    return None


def box_extents(state: State, stage: StageState, axis: Axis) -> tuple[list[int], list[int]] | None:
    """Return the extents above 1 of the box that `axis` and the loops inside it run through.

    They are two lists: of the data axes, and of the reduction axes. None if there is no such box.
    """
    bounds = infer_bounds(state).stages[stage.name]
    box = _Box.of(state, stage, bounds, axis)
    if box is None:
        return None
    data, reduced = (
        [n for a in axes if (n := box.extents[a]) > 1]
        for axes in (stage.op.axis, stage.op.reduce_axis)
    )
    return data, reduced


@dataclass(frozen=True, slots=True)
class _Box:
    """A box in the axes of a stage: the first value and the extent for each axis."""

    first: Mapping[Axis, Affine]
    extents: Mapping[Axis, int]

    @staticmethod
    def of(state: State, stage: StageState, bounds: StageBounds, axis: Axis) -> _Box | None:
        analyzer = Analyzer(infer_bounds(state).ranges)
        inner = stage.leaves[stage.position(axis) :]
        moving = {bounds.loop_vars[leaf] for leaf in inner}
        first: dict[Axis, Affine] = {}
        extents: dict[Axis, int] = {}
        for own in (*stage.op.axis, *stage.op.reduce_axis):
            span = relax(bounds.values[own], moving, analyzer)
            if not isinstance(span, Span) or not isinstance(span.extent, int):
                return None
            first[own], extents[own] = span.first, span.extent
        counts = [n for leaf in inner if isinstance(n := bounds.extents[leaf], int)]
        if len(counts) < len(inner):
            return None
        # Each iteration has a point of its own, so that as many points as the box has fill it.
        is_full = math.prod(counts) == math.prod(extents.values())
        return _Box(first, extents) if is_full else None


class _Matcher:
    def __init__(self, state: State, stage: StageState) -> None:
        assert stage.tensorized is not None
        self.state = state
        self.stage = stage
        self.axis = stage.tensorized.axis
        self.intrin = stage.tensorized.intrin
        self.bounds = infer_bounds(state).stages[stage.name]

    def match(self) -> Match:
        outer = self.stage.leaves[: self.stage.position(self.axis)]
        self.check_guards()
        box = _Box.of(self.state, self.stage, self.bounds, self.axis)
        if box is None:
            raise self.refused(
                "the loops run through no box of known size",
                got=f"those from {self.stage.label(self.axis)} inwards",
                hint="split by numbers, and put the inner loops of the splits innermost",
            )
        declared = self.intrin.op
        data = self.pairs(box, self.stage.op.axis, declared.axis)
        reduced = self.pairs(box, self.stage.op.reduce_axis, declared.reduce_axis)
        places, operands = None, None
        if data is not None and reduced is not None:
            places = [n for n, own in enumerate(self.stage.op.axis) if own in data]
            operands = self.operands(box, data | reduced)
        if places is None or operands is None:
            label = self.stage.label(self.axis)
            hint = f"split loops to the declared extents, and reorder the others outside {label}"
            raise self.different(box, self.extents_differ(box), hint)
        if any(leaf.kind == "reduce" for leaf in outer) and "update" not in self.intrin.parts:
            raise self.refused(
                f"{self.intrin.name} has no update, and part of the reduction is outside of it",
                hint="tensorize with all reduction loops inside, or declare (body, reset, update)",
            )
        begin = tuple(box.first[own].to_expr() for own in self.stage.op.axis)
        match = Match(
            self.intrin, outer, Operand(self.stage.tensor, begin, tuple(places)), operands
        )
        self.check_strides(match)
        self.check_offsets(match)
        return match

    def check_guards(self) -> None:
        """Refuse replaced loops that have guards: an intrinsic computes all iterations."""
        inner = self.stage.leaves[self.stage.position(self.axis) :]
        moving = {self.bounds.loop_vars[leaf] for leaf in inner}
        for guard in self.bounds.guards:
            if free_vars(guard) & moving:
                raise self.refused(
                    "the intrinsic would compute iterations that do not exist",
                    got=f"only those where {guard}",
                    hint="split by a factor that divides the extent, or treat the rest in a "
                    "tensor that is padded",
                )

    def pairs(
        self, box: _Box, own: Sequence[Axis], declared: Sequence[Axis]
    ) -> dict[Axis, Axis] | None:
        """Map axes of the stage to the declared axes with the same extents; None if this fails."""
        wanted = [axis.static_extent for axis in declared]
        places = aligned([box.extents[axis] for axis in own], wanted)
        if places is None:
            return None
        return {own[place]: axis for place, axis in zip(places, declared, strict=True)}

    def operands(self, box: _Box, pairs: Mapping[Axis, Axis]) -> tuple[Operand, ...]:
        """Return the operand for each declared input, or raise `Mismatch` with the difference."""
        mine, declared = self.head, self.intrin.op.body
        if isinstance(mine, Reduce) != isinstance(declared, Reduce):
            raise self.different(box, "one is a reduction, the other is not")
        if isinstance(mine, Reduce) and isinstance(declared, Reduce):
            if mine.reducer.op != declared.reducer.op:
                words = f"{mine.reducer.name} where {declared.reducer.name} is declared"
                raise self.different(box, words)
            if mine.condition is not None or mine.init:
                raise self.different(box, "the reduction has where= or init=")
            mine, declared = mine.value, declared.value
        running = {own: Var(own.name) for own in pairs}
        ranges = {var: Interval(0, box.extents[own] - 1) for own, var in running.items()}
        analyzer = Analyzer({**infer_bounds(self.state).ranges, **ranges})
        values: dict[Var, Expr] = {}
        for own, first in box.first.items():
            begin = first.to_expr()
            values[own.var] = binary("add", begin, running[own]) if own in running else begin
        theirs: dict[Var, Expr] = {pairs[own].var: var for own, var in running.items()}
        comparison = Comparison(analyzer, frozenset(running.values()))
        mine = analyzer.simplify(substitute(mine, values))
        declared = analyzer.simplify(substitute(declared, theirs))
        if not comparison.is_same(mine, declared):
            raise self.different(box, comparison.difference)
        return tuple(comparison.operands[tensor] for tensor in self.intrin.inputs)

    def check_strides(self, match: Match) -> None:
        """Refuse operands whose strides differ from those that the intrinsic declares."""
        for operand, declared in match.operands:
            if operand.tensor in storage_aliases(self.state):
                raise self.refused(f"{operand.tensor.name} is a step of a recurrence, whose memory "
                                   "an intrinsic cannot name")  # fmt: skip
            rolled_by = self.state.producer_of(operand.tensor).rolled_by
            if rolled_by:
                raise self.refused(
                    f"{operand.tensor.name} is in a circular buffer, where a box may wrap around",
                    got=f"requested by: {rolled_by}",
                )
            there = strides_of(self.state, operand.tensor)
            wanted = self.intrin.strides.get(declared, ())
            for n, (dim, stride) in enumerate(zip(operand.dims, wanted, strict=False)):
                is_long = declared.shape[n] != 1
                if stride is not None and is_long and there[dim] != stride:
                    raise self.refused(
                        f"the elements of {operand.tensor.name} lie too far apart",
                        got=f"a stride of {there[dim]} along dimension {dim}",
                        expected=f"{stride}, as dimension {n} of {declared.name} has in "
                        f"{self.intrin.name}",
                        hint=f"store {operand.tensor.name} in another layout: pack it, or "
                        "s.cache_read and transform_layout",
                    )

    def check_offsets(self, match: Match) -> None:
        """Refuse operands that do not begin at a multiple of the declared `offset_factor`."""
        analyzer = Analyzer(infer_bounds(self.state).ranges)
        for operand, declared in match.operands:
            factor = self.intrin.offset_factors.get(declared, 1)
            distance = Affine.of_constant(0)
            strides = strides_of(self.state, operand.tensor)
            begins = begin_of(self.state, operand.tensor)
            for index, begin, stride in zip(operand.indices, begins, strides, strict=True):
                step = analyzer.affine(extent_expr(stride))
                distance = distance.plus(analyzer.affine(index).plus(begin, -1).product(step))
            factors = [term.factor for term in distance.terms.values()]
            if any(number % factor for number in (distance.constant, *factors)):
                raise self.refused(
                    f"{operand.tensor.name} would not begin at an aligned element",
                    got=f"{distance.to_expr()} elements from the start of {operand.tensor.name}",
                    expected=f"a multiple of {factor}, the offset_factor of {declared.name}",
                )

    # -- texts of the differences --------------------------------------------------------------

    @property
    def head(self) -> Expr:
        return bodies(self.state)[self.stage.name][0]

    def extents_differ(self, box: _Box) -> str:
        """Return a text with the extents that differ."""
        op, declared = self.stage.op, self.intrin.op
        for what, own, theirs in (
            ("data", op.axis, declared.axis),
            ("reduced", op.reduce_axis, declared.reduce_axis),
        ):
            if self.pairs(box, own, theirs) is None:
                mine = [box.extents[axis] for axis in own]
                return (
                    f"the {what} axes have the extents {_listed(mine)}, declared are "
                    f"{_listed([axis.static_extent for axis in theirs])}"
                )
        raise AssertionError(box)

    def different(self, box: _Box, difference: str, hint: str | None = None) -> Mismatch:
        """Return the `Mismatch` that shows what the loops compute and what is declared."""
        op, declared = self.stage.op, self.intrin.op
        mine = [(axis, box.extents[axis]) for axis in op.axis]
        own = [(axis, box.extents[axis]) for axis in op.reduce_axis]
        return self.refused(
            f"the loops do not compute what {self.intrin.name} declares",
            got=_shown(self.stage.tensor, self.head, mine, own),
            expected=_shown(
                self.intrin.output, declared.body,
                [(axis, axis.static_extent) for axis in declared.axis],
                [(axis, axis.static_extent) for axis in declared.reduce_axis],
            ),
            because=difference, hint=hint,
        )  # fmt: skip

    def refused(
        self,
        reason: str,
        *,
        got: str | None = None,
        expected: str | None = None,
        because: str | None = None,
        hint: str | None = None,
    ) -> Mismatch:
        key = self.stage.key(self.axis)
        return Mismatch(Illegal("structural", reason, hint, got, because, (key,), expected))


def _shown(
    tensor: Tensor,
    body: Expr,
    data: Sequence[tuple[Axis, int]],
    reduced: Sequence[tuple[Axis, int]],
) -> str:
    """Return a computation on a box as text."""
    loops = [f"{axis.name} < {extent}" for axis, extent in (*data, *reduced)]
    indices = ", ".join(axis.name for axis, _ in data)
    suffix = f" for {', '.join(loops)}" if loops else ""
    return f"{tensor.dtype} {tensor.name}[{indices}] = {body}{suffix}"


def _listed(extents: Sequence[int]) -> str:
    return " x ".join(map(str, extents)) or "none"
