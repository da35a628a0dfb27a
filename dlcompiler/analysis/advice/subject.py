"""The input of a rule of advice: a schedule, its loops with their footprints, and the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from dlcompiler import dtypes
from dlcompiler.analysis.footprint import Nest, ProgramFootprint
from dlcompiler.analysis.operations import StoreCount, count_stores
from dlcompiler.analysis.references import Reference
from dlcompiler.errors import DLCompilerError
from dlcompiler.ir import Axis, Buffer, Expr, Stmt, Var
from dlcompiler.schedule import Schedule, StageState, Step
from dlcompiler.schedule.legality.obligations import obligations
from dlcompiler.schedule.moves.unchanged import why_unchanged
from dlcompiler.schedule.state import JSON
from dlcompiler.schedule.trace import decode
from dlcompiler.simulate.gpu.kernel import KernelFacts
from dlcompiler.target import Target
from dlcompiler.target.presets import NO_VECTORS

Severity = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a rule at a loop."""

    stage: str
    path: str
    """Path of the loop in its stage; '' if the finding is about the whole stage."""
    text: str
    """One sentence, with the numbers."""
    severity: Severity
    step: Step | None = None
    """The step to try; it is legal in this state."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of advice."""

    name: str
    source: str
    """The publication that describes the effect: paper and section, or manual."""
    find: Callable[[Subject], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a program ran, beside what the machine could do."""

    gflops: float
    """Measured rate [GFLOP/s]."""
    peak_gflops: float
    """Largest rate of the threads that it ran on [GFLOP/s]."""
    threads: int
    source: str
    """Where the peak comes from: ``estimated for 3 GHz``."""

    @property
    def share(self) -> float:
        """The measured rate as a part of the peak; [1]."""
        return self.gflops / self.peak_gflops


class Subject:
    """A state of a schedule, for the rules to analyse."""

    def __init__(
        self,
        schedule: Schedule,
        footprint: ProgramFootprint,
        target: Target,
        speed: Speed | None = None,
        kernels: Sequence[KernelFacts] = (),
    ) -> None:
        self.schedule = schedule
        self.footprint = footprint
        self.target = target
        self.speed = speed
        """How fast the program ran; None if it was not measured."""
        self.kernels = tuple(kernels)
        """What is known of its kernels on a GPU; empty for other targets."""

    # -- loops -------------------------------------------------------------------------------------

    @cached_property
    def parents(self) -> Mapping[Nest, Nest]:
        """Each loop mapped to the loop around it, or to the program for an outermost loop."""
        root = self.footprint.root
        return {child: nest for nest in root.walk() for child in nest.children}

    def chain(self, nest: Nest) -> list[Nest]:
        """Return the loops around a loop, outermost first, and the loop itself at the end."""
        path = []
        while nest.loop is not None:
            path.append(nest)
            nest = self.parents[nest]
        return path[::-1]

    @cached_property
    def innermost(self) -> list[Nest]:
        """The loops without inner loops, except those of intrinsics, which no step can change."""
        return [nest for nest in self.footprint.nests if not nest.children and self.name(nest)[1]]

    def name(self, nest: Nest) -> tuple[str, str]:
        """Return the stage that a loop belongs to, and the path of its axis in this stage."""
        if nest.loop is not None:
            for ref in getattr(nest.loop.statement, "origin", ()):
                if ref.axis and not ref.axis.startswith("("):
                    return ref.stage, ref.axis
        return self.footprint.func.name, ""

    def stage(self, nest: Nest) -> StageState | None:
        """Return the stage of a loop; None if the schedule has no such stage."""
        name = self.name(nest)[0]
        return self.schedule.state.stage(name) if self.schedule.state.has_stage(name) else None

    def axis(self, nest: Nest) -> Axis | None:
        """Return the axis of a loop if it is a leaf of its stage, else None."""
        stage, path = self.stage(nest), self.name(nest)[1]
        leaves = stage.leaves if stage is not None else ()
        return next((leaf for leaf in leaves if stage and stage.paths[leaf] == path), None)

    def is_reduction(self, nest: Nest) -> bool:
        """Tell whether a loop reduces."""
        axis = self.axis(nest)
        return axis is not None and axis.kind == "reduce"

    # -- accesses ----------------------------------------------------------------------------------

    def stride(self, item: Reference, nest: Nest) -> int | None:
        """Return the stride of an access in a loop [element]; None if it has no constant stride.

        In a fused loop this is the stride of the innermost axis: the jumps where an outer axis
        advances are not counted.
        """
        if nest.loop is None or not item.is_affine:
            return None
        strides = item.access.buffer.static_strides
        return sum(
            sum_.factors.get(item.innermost(nest.loop.var), 0) * stride
            for sum_, stride in zip(item.indices, strides, strict=True)
            if sum_ is not None
        )

    def stride_bytes(self, item: Reference, nest: Nest) -> int | None:
        """Return `stride` in bytes."""
        stride = self.stride(item, nest)
        return None if stride is None else stride * dtypes.bytes_of(item.access.buffer.dtype)

    def variables(self, condition: Expr) -> tuple[Var, ...]:
        """Return the variables of a condition."""
        return self.footprint.accesses.analyzer.vars_of(condition)

    def writes(self, nest: Nest) -> list[Reference]:
        """Return the stores that are directly in a loop, not in one of its inner loops."""
        return [item for item in nest.own if item.access.is_write]

    def written(self, nest: Nest) -> Buffer | None:
        """Return the buffer of the first store directly in a loop."""
        return next((item.access.buffer for item in self.writes(nest)), None)

    # -- vectors -----------------------------------------------------------------------------------

    @property
    def emits_vectors(self) -> bool:
        """Whether generated code contains vectors; in C, the user's compiler decides."""
        return "vectors" in self.target.emits

    def lanes(self, dtype: str) -> int:
        """Return the number of elements in one vector of the generated code; 1 without vectors."""
        has_vectors = self.emits_vectors and self.target.vector_extension != NO_VECTORS.name
        return self.target.lanes(dtype) if has_vectors else 1

    # -- work --------------------------------------------------------------------------------------

    @cached_property
    def counts(self) -> Mapping[Stmt, StoreCount]:
        """How often each store is executed."""
        return {count.store: count for count in count_stores(self.footprint)}

    def operations(self, nest: Nest) -> int:
        """Return the number of operations of a loop, summed over all its runs; [1]."""
        return sum(self.count_of(item).operations for item in self._all_writes(nest))

    @cached_property
    def all_operations(self) -> int:
        """Number of operations of the program; [1]."""
        return max(self.operations(self.footprint.root), 1)

    def count_of(self, item: Reference) -> StoreCount:
        """Return how often a store is executed."""
        return self.counts[item.access.statement]

    def _all_writes(self, nest: Nest) -> list[Reference]:
        return [
            item for items in nest.references.values() for item in items if item.access.is_write
        ]

    def share(self, nest: Nest) -> float:
        """Return the fraction of the program's operations and stores that is in a loop."""
        return self._work(nest) / max(self._work(self.footprint.root), 1)

    def _work(self, nest: Nest) -> int:
        counts = map(self.count_of, self._all_writes(nest))
        return sum(count.operations + count.times for count in counts)

    # -- suggested steps ---------------------------------------------------------------------------

    def step(self, primitive: str, stage: str, **args: JSON) -> Step | None:
        """Return a step if it is legal, changes something, and leaves no pending obligation."""
        step = Step(primitive, stage, args)
        try:
            values: dict[str, Any] = decode(self.schedule.state, step)
            attempt = self.schedule.attempt(primitive, stage, values)
        except DLCompilerError:
            return None
        if not attempt.verdict or attempt.state is None:
            return None
        state = self.schedule.state
        if why_unchanged(state, state.stage(stage), primitive, values):
            return None
        pending = set(obligations(attempt.state)) - set(self.schedule.obligations)
        return None if pending else step

    def first(self, *steps: Step | None) -> Step | None:
        """Return the first step that is not None."""
        return next((step for step in steps if step is not None), None)
