"""Insert checks of indices that are not proved to be in bounds, before a stage if possible.

``T[I[i], j]`` is in bounds only if the elements of ``I`` are in range. So a separate loop nest
over the axes that the index depends on checks them before the loops of the stage::

    for i in range(3):
        assert I[i] >= 0 and I[i] < 10, 'T[I[i], j] is outside T: …'

The schedule's loops do not change. If the index is computed inside these loops, the assertion is
placed before the statement that uses it; so it is in a program for the threads of a device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dlcompiler.ir import (
    Axis,
    Expr,
    For,
    StepRef,
    Stmt,
    TensorHandle,
    TensorLoad,
    Var,
    binary,
    compare,
    extent_expr,
    free_vars,
    index_const,
    seq,
    walk,
)
from dlcompiler.lowering.pieces import under
from dlcompiler.schedule import AttachedAt, StageBounds, StageState, State
from dlcompiler.schedule.inference.thread_loops import uses_threads
from dlcompiler.te.access import OpenRead, open_reads
from dlcompiler.te.extern.checks import index_assertion

CHECK = "(check)"
"""Marks the part of a stage that checks its indices."""
Substituted = Callable[[Expr, dict[Var, Expr]], Expr]
"""Gives an expression of tensors and axes over buffers and loop variables."""


@dataclass(frozen=True)
class IndexChecks:
    """The index checks of one stage, where the stage is attached.

    Parameters
    ----------
    state
        The schedule.
    stage
        The stage that reads.
    bounds
        The region that it computes there.
    first
        The first value of its first axis.
    expr
        Replaces tensors and axes in an expression by buffers and loop variables.
    """

    state: State
    stage: StageState
    bounds: StageBounds
    first: int
    expr: Substituted

    @property
    def origin(self) -> StepRef:
        """The origin of the loops that check indices before a stage."""
        return StepRef("", self.stage.name, CHECK)

    def before(self, bodies: Sequence[Expr]) -> Stmt | None:
        """Return the checks before the loops of the stage; None if there are none."""
        reads = (read for read in self.open(bodies) if not self.is_late(read))
        nests = [self.nest(self.axes_of(read), read) for read in reads]
        return seq(nests) if nests else None

    def inside(self, bodies: Sequence[Expr], values: dict[Var, Expr]) -> Stmt:
        """Return the checks directly before the statement that computes `bodies`."""
        late = filter(self.is_late, self.open(bodies))
        return seq(self.check(read, self.axes_of(read), values) for read in late)

    def open(self, bodies: Sequence[Expr]) -> Iterator[OpenRead]:
        """Yield the reads in the bodies that may be out of bounds."""
        op = self.stage.op
        for body in bodies:
            yield from open_reads(body, (*op.axis, *op.reduce_axis), self.first)

    def axes_of(self, read: OpenRead) -> tuple[Axis, ...]:
        """Return the axes that an index and its guards depend on."""
        used = set[Var]().union(*map(free_vars, (read.index, *read.guards)))
        return tuple(a for a in (*self.stage.op.axis, *self.stage.op.reduce_axis) if a.var in used)

    def is_late(self, read: OpenRead) -> bool:
        """Tell whether an index is checked at its statement.

        It is if it reads a tensor that is computed inside the loops of the stage, and for threads
        of a device: each checks what it reads itself.
        """
        if uses_threads(self.state):
            return True
        parts = (read.index, *read.guards)
        loads = (node for part in parts for node in walk(part) if isinstance(node, TensorLoad))
        return any(self.is_inside(load.tensor) for load in loads)

    def is_inside(self, tensor: TensorHandle) -> bool:
        """Tell whether a tensor is computed inside the loops of the stage."""
        place = self.state.producer_of(tensor)
        while isinstance(place.attachment, AttachedAt):
            place = self.state.stage(place.attachment.stage)
            if place is self.stage:
                return True
        return False

    def nest(self, axes: Sequence[Axis], read: OpenRead) -> Stmt:
        """Return the loops that check a read over the region of some axes that the stage computes.

        Each read has its own nest. In ``A[B[i]]``, all assertions on the index of ``B`` must hold
        before the index of ``A``, which reads ``B``, is evaluated.
        """
        places = {axis: n for n, axis in enumerate(self.stage.op.axis)}
        values: dict[Var, Expr] = {}
        loops: list[tuple[Var, Expr]] = []
        guards: list[Expr] = []
        for axis in sorted(
            axes, key=_length
        ):  # the longest is innermost: `batch_assertions` vectorizes it
            var = Var(f"{axis.name}.check")
            values[axis.var] = var
            extent = self.bounds.extents[axis]
            if axis in places:
                span = self.bounds.region[places[axis]]
                values[axis.var] = value = binary("add", span.first.to_expr(), var)
                guards += (compare("ge", value, 0), compare("lt", value, extent_expr(axis.extent)))
            loops.append((var, extent_expr(extent)))
        body = under(guards, self.check(read, axes, values))
        for var, count in reversed(loops):
            body = For(var, count, "serial", body, (self.origin,))
        return under(self.points_exist(axes, read), body)

    def points_exist(self, axes: Sequence[Axis], read: OpenRead) -> list[Expr]:
        """Return the conditions that axes without a loop are not empty: else nothing is read."""
        first = {axis.var: self.first for axis in self.stage.op.axis[:1]}
        looped = {axis.var for axis in axes}
        return [
            compare("lt", index_const(first.get(axis.var, 0)), extent_expr(axis.extent))
            for axis in read.axes
            if axis.var not in looped and not isinstance(axis.extent, int)
        ]

    def check(self, read: OpenRead, axes: Sequence[Axis], values: Mapping[Var, Expr]) -> Stmt:
        """Return the assertion that one index is in bounds if its guards hold."""
        known = dict(values)
        bounds = self.expr(read.index, known), read.extent
        place = [(axis.name, known[axis.var]) for axis in axes]
        name = read.load.tensor.name
        check = index_assertion(str(read.load), name, read.dimension, bounds, place)
        return under([self.expr(guard, known) for guard in read.guards], check)


def _length(axis: Axis) -> float:
    return axis.extent if isinstance(axis.extent, int) else math.inf
