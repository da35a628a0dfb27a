"""Loop nests of all configs of a skeleton: symbols stand for the numbers that knobs decide.

Lowering builds the nests. It gets bounds whose extents are symbols, each of which stands for a
formula of knobs. Nothing is simplified by the value of a knob: loops of one iteration and
conditions that always hold stay in the nests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dlcompiler.arith import Affine, Analyzer, Interval, Span
from dlcompiler.autotune.features.geometry import Geometry
from dlcompiler.autotune.features.intervals import Range, point, range_of
from dlcompiler.autotune.features.numbers import (
    Num,
    Number,
    add,
    at_most,
    high,
    low,
    most,
    multiply,
    subtract,
)
from dlcompiler.ir import (
    WARP,
    Axis,
    Binary,
    Expr,
    Extent,
    PrimFunc,
    TensorLoad,
    Var,
    binary,
    free_vars,
    index_const,
    substitute,
    walk,
)
from dlcompiler.lowering import build_nests
from dlcompiler.schedule.inference.bounds import BoundInference, StageBounds
from dlcompiler.schedule.inference.inlining import consumers
from dlcompiler.schedule.inference.thread_loops import reduced_by_threads, scope_of
from dlcompiler.schedule.state import PREFETCH, AttachedAt, StageState, State, is_scan
from dlcompiler.te import Tensor


class NotCoveredError(Exception):
    """Raised for a schedule whose nests are built from numbers only; it says what is not known."""


class Symbols:
    """Symbols that stand for formulas of knobs; equal formulas have one symbol."""

    def __init__(self) -> None:
        self.formulas: dict[Var, Num] = {}
        self.required: list[Num] = []
        """Conditions on a config, each 1 or 0: the nests have its extents if all are 1."""
        self._by_formula: dict[Number, Var] = {}

    def extent(self, value: Num) -> Extent:
        """Return the symbol of an extent, which is 1 or more, or the number if it is one."""
        value = most(value, 1)  # the ranges of formulas are estimates
        if not isinstance(value, Number):
            return int(value)
        if value not in self._by_formula:
            var = Var(f"size{len(self.formulas)}", "index", is_symbol=True)
            self._by_formula[value], self.formulas[var] = var, value
        return self._by_formula[value]


def symbolic_nests(state: State, formulas: Mapping[Var, Num], symbols: Symbols) -> PrimFunc:
    """Return the loop nests of a state as lowering builds them, before all passes.

    They are those of the configs for which `Symbols.required` holds.

    Parameters
    ----------
    state
        State of a symbolic schedule.
    formulas
        Formulas of the symbols in the state.
    symbols
        Gets the symbols of the nests.

    Raises
    ------
    NotCoveredError
        The nests depend on numbers in a way that formulas do not express.
    """
    for stage in state.stages:
        _refuse(state, stage)
    geometry = Geometry(state, formulas)
    own = State(state.id, geometry.state.stages)
    own.cache.update(placed=own, bodies=geometry.bodies)
    own.cache["bounds"] = _FormulaBounds(own, geometry, symbols).run()
    read = {
        load.tensor for stage in geometry.stages.values() for load in geometry.loads(stage.stage)
    }
    tensors = [s.tensor for s in own.stages if s.is_placeholder and s.tensor in read]
    tensors += [tensor for s in own.stages if s.is_output for tensor in s.tensors]
    return build_nests(own, tensors, "main")


def _refuse(state: State, stage: StageState) -> None:
    """Raise `NotCoveredError` for a stage whose code depends on more than extents."""
    if stage.is_placeholder or stage.is_inlined:
        return
    pragmas = [key for each in stage.pragmas.values() for key in each]
    features = {
        "a recurrence": is_scan(stage),
        "code from outside": stage.is_extern,
        "an intrinsic": stage.tensorized is not None,
        "vectorized loops": any(kind == "vectorized" for kind in stage.kinds.values()),
        "a double buffer": bool(stage.double_buffered_by),
        "a rolling buffer": bool(stage.rolled_by),
        "padded memory": bool(stage.alignments or stage.separators or stage.rounded),
        "prefetching": any(key.startswith(PREFETCH) for key in pragmas),
        "threads that share a reduction": bool(reduced_by_threads(stage)),
        "memory of a warp": scope_of(state, stage) == WARP,
        "an extent that is 0 or a symbol": not all(
            isinstance(extent, int) and extent
            for tensor in stage.tensors
            for extent in tensor.shape
        ),
    }
    for what, is_there in features.items():
        if is_there:
            raise NotCoveredError(f"{what} in {stage.name}")


class _FormulaBounds(BoundInference):
    """Infers bounds whose extents are symbols of formulas."""

    def __init__(self, state: State, geometry: Geometry, symbols: Symbols) -> None:
        super().__init__(state)
        self.geometry, self.symbols = geometry, symbols
        self.spans: dict[Var, Range] = {}
        """The values of symbols and loops."""

    def stage_bounds(self, stage: StageState) -> StageBounds:
        """Return the bounds of a stage."""
        bounds = super().stage_bounds(stage)
        extents = self.geometry.stages[stage.name].extents
        for leaf, var in bounds.loop_vars.items():
            if leaf in bounds.joined:  # more threads than the loop around has are refused
                self.symbols.required.append(at_most(extents[leaf], add(self.spans[var].last, 1)))
            else:
                self.spans[var] = Range(0, subtract(extents[leaf], 1))
        return bounds

    def symbol(self, value: Num) -> Extent:
        """Return the symbol of a formula, and let the analyzer know its range."""
        result = self.symbols.extent(value)
        if isinstance(result, Var) and result not in self.ranges:
            known = self.symbols.formulas[result]
            self.ranges[result] = Interval(int(low(known)), int(high(known)))
            self.spans[result] = point(known)
        return result

    def extents(self, stage: StageState, region: tuple[Span, ...]) -> dict[Axis, Extent]:
        """Return the extents of all axes of a stage."""
        known = self.geometry.stages[stage.name].extents
        return {axis: self.symbol(extent) for axis, extent in known.items()}

    def region(self, stage: StageState, enclosing: tuple[Var, ...]) -> tuple[Span, ...]:
        """Return the region of a stage: where it begins is an expression of the loops around it."""
        own = self.geometry.stages[stage.name]
        extents = [self.symbol(extent) for extent in own.region]
        if not isinstance(stage.attachment, AttachedAt):
            return tuple(Span(Affine.of_constant(0), extent) for extent in extents)
        firsts = self.firsts(stage, self.standing(stage, enclosing))
        return tuple(
            Span(self.begin(first, is_whole), extent)
            for first, is_whole, extent in zip(firsts, own.is_whole, extents, strict=True)
        )

    def begin(self, first: Expr, is_whole: Num) -> Affine:
        """Return where a region begins: at 0 where it covers the whole tensor."""
        if not isinstance(is_whole, Number) and is_whole:
            return Affine.of_constant(0)
        if isinstance(is_whole, Number):
            # No other symbol is needed where the region begins at 0 in any case.
            farthest = range_of(first, self.spans).last
            self.symbols.required.append(at_most(multiply(is_whole, farthest), 0))
        return self.analyzer.affine(first)

    def firsts(self, stage: StageState, standing: set[Var]) -> list[Expr]:
        """Return the least index in each dimension that readers need at once."""
        best: list[Expr | None] = [None] * len(stage.op.axis)
        for reader, load in self.reads(stage):
            bounds = self.done[reader.name]
            values = {axis.var: value for axis, value in bounds.values.items()}
            moving = {*bounds.enclosing, *bounds.loop_vars.values()} - standing
            self.refuse_backward(stage, reader, load)
            for n, index in enumerate(load.indices):
                whole = substitute(index, values)
                _refuse_mixed(whole, moving, standing)
                begin = substitute(whole, dict.fromkeys(moving, index_const(0)))
                best[n] = _lower(best[n], begin, self.analyzer, stage.name)
        return [index_const(0) if each is None else each for each in best]

    def reads(self, stage: StageState) -> Iterator[tuple[StageState, TensorLoad]]:
        """Yield the loads of a stage's tensors."""
        for reader in consumers(self.state, stage):
            for load in self.geometry.loads(reader):
                if load.tensor in stage.tensors:
                    yield reader, load

    def refuse_backward(self, stage: StageState, reader: StageState, load: TensorLoad) -> None:
        """Refuse a load whose least index is not that of the first iteration of its loops.

        Raises
        ------
        NotCoveredError
            A region cannot begin where its first iteration is.
        """
        own = self.geometry.stages[reader.name]
        fixed = self.geometry.stages[stage.name].encloses
        running = {
            loop.axis: Range(0, subtract(loop.extent, 1))
            for loop in own.loops
            if loop.axis not in fixed
        }
        tensor = load.tensor
        assert isinstance(tensor, Tensor)
        shape = self.geometry.extents(tensor)
        first = self.geometry.dimensions(load, own.axis_values({}), shape)
        spans = self.geometry.dimensions(load, own.axis_values(running), shape)
        for a, b in zip(first, spans, strict=True):
            if a.first is not b.first and a.first != b.first:
                raise NotCoveredError(f"the order in which {reader.name} reads {stage.name}")


def _lower(old: Expr | None, new: Expr, analyzer: Analyzer, name: str) -> Expr:
    """Return the smaller of two indices.

    Raises
    ------
    NotCoveredError
        Which one is smaller depends on knobs, or on loops.
    """
    if old is None:
        return new
    distance = analyzer.affine(binary("sub", new, old))
    if distance.is_constant:
        return new if distance.constant < 0 else old
    raise NotCoveredError(f"which of the reads of {name} begins first")


def _refuse_mixed(index: Expr, moving: set[Var], standing: set[Var]) -> None:
    """Refuse a quotient or remainder of loops inside and outside of a region.

    Raises
    ------
    NotCoveredError
        There is one: the region may begin at another place than its first iteration.
    """
    for node in walk(index):
        if isinstance(node, Binary) and node.op not in ("add", "sub", "mul"):
            used = free_vars(node)
            if used & moving and used & standing:
                raise NotCoveredError("a region that wraps around")
