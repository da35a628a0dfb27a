"""Substitute a stage's expression into its readers.

*Before*, then *after* ``s[P].compute_inline()``::

    for i in range(8):                  for i in range(8):
        P[i] = A[i] * 2.0                   C[i] = A[i] * 2.0 + 1.0
    for i in range(8):
        C[i] = P[i] + 1.0

Legal for a stage that is neither an output nor a reduction, unless an expression would grow too
large, or an index into the stage is not proved to be inside: its check would be lost, since what is
not stored is not read. In TVM ``compute_inline``, Halide's default.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Expr, Extent, TensorLoad, Var, depth, walk
from dlcompiler.ir.guards import guarded
from dlcompiler.schedule.inference.inlining import bodies, consumers, loads_of
from dlcompiler.schedule.primitives.base import Primitive, StepContext, require_expression
from dlcompiler.schedule.state import INLINED, StageState, State, is_reduction
from dlcompiler.schedule.verdict import LEGAL, Illegal, Refused, Verdict, answering
from dlcompiler.te import ComputeOp
from dlcompiler.te.access import OpenRead, open_reads
from dlcompiler.te.definition import MAX_DEPTH

MAX_NODES = 8192
"""Lowering takes about a second then."""


@answering
def check(state: State, stage: StageState) -> Verdict:
    """Refuse inputs, outputs and reductions."""
    if stage.is_placeholder:
        return Illegal("structural", f"{stage.name} is an input: there is nothing to substitute")
    if stage.is_output:
        return Illegal(
            "structural",
            f"{stage.name} is an output: it must be stored",
            hint="inline the stages that it reads",
            conflicts=(stage.name,),
        )
    require_expression(stage)
    if is_reduction(stage):
        return Illegal(
            "semantic",
            "a reduction cannot be inlined",
            got=f"{stage.name} = {stage.op.bodies[0]}",  # type: ignore[union-attr]
            because="its value is complete only after the last iteration of its loops",
            hint=f"use s[{stage.name}].compute_at(…) to compute it where it is read",
            conflicts=(*(stage.key(x) for x in stage.leaves if x.kind == "reduce"), stage.body_key),
        )
    for reader in consumers(state, stage):
        if reader.is_extern:
            return Illegal(
                "structural",
                f"{reader.name}, code from outside, reads {stage.name}",
                because="it has no expression to substitute into",
                hint=f"leave {stage.name} in memory",
                conflicts=(stage.name, reader.name),
            )
    require_small(state, stage)
    require_checked(state, stage)
    return LEGAL


def require_small(state: State, stage: StageState) -> None:
    """Refuse to inline a stage if a reader's expression would become too large."""
    for reader, copies, nodes, levels in growth(state, stage):
        if nodes <= MAX_NODES and levels <= MAX_DEPTH:
            continue
        raise Refused(
            Illegal(
                "limit",
                f"the expression of {reader.name} would become too large",
                got=f"{nodes} operations, {levels} levels",
                because=f"every place that reads {stage.name} gets a copy, here {copies}",
                hint=f"use s[{stage.name}].compute_at(…), or inline fewer stages: at most "
                f"{MAX_NODES} operations and {MAX_DEPTH} levels",
                conflicts=(reader.body_key,),
            )
        )


def growth(state: State, stage: StageState) -> Iterator[tuple[StageState, int, int, int]]:
    """Yield the readers of a stage: copies, operations and levels if it were inlined."""
    if stage.is_inlined:
        return
    own = bodies(state)[stage.name]
    size = sum(1 for body in own for _ in walk(body))
    levels_below = max(depth(body) for body in own)
    for reader in consumers(state, stage):
        outer = bodies(state)[reader.name]
        copies = sum(load.tensor in stage.tensors for load in loads_of(outer))
        nodes = sum(1 for body in outer for _ in walk(body)) + copies * size
        levels = max((depth(body) for body in outer), default=0)  # a scan has no expressions
        yield reader, copies, nodes, levels + levels_below


def require_checked(state: State, stage: StageState) -> None:
    """Refuse to inline a stage of which a reader may read an element that is not there.

    An element outside has no value: a program that stores the stage ends with an error. A program
    that computes it where it is read would go on with what the expression gives there, unless the
    expression reads a tensor of the same extent at the same index, which is checked instead.
    """
    if stage.is_inlined:
        return
    checked = _checked_dimensions(state, stage)
    for reader in consumers(state, stage):
        if _reads_plainly(state, reader, stage):
            continue
        for read in _open_reads(state, reader):
            if read.load.tensor in stage.tensors and read.dimension not in checked:
                raise Refused(
                    Illegal(
                        "semantic",
                        f"it is not proved that {read.load} is inside {stage.name}",
                        because=f"a program checks it when it runs, if {stage.name} is in memory",
                        hint=f"use s[{stage.name}].compute_at(…), or limit the index: "
                        "te.minimum(te.maximum(index, 0), extent - 1)",
                        conflicts=(reader.body_key,),
                    )
                )


def _checked_dimensions(state: State, stage: StageState) -> set[int]:
    """Return the dimensions of a stage along which it reads a tensor element by element."""
    op = stage.op
    assert isinstance(op, ComputeOp)

    def read_in(body: Expr) -> set[tuple[Expr, Extent]]:
        loads = (load for load, guards in guarded(body, TensorLoad) if guards == ())
        return {
            pair for load in loads for pair in zip(load.indices, load.tensor.shape, strict=True)
        }

    in_each = set.intersection(*map(read_in, bodies(state)[stage.name]))
    return {n for n, axis in enumerate(op.axis) if (axis.var, axis.extent) in in_each}


def _reads_plainly(state: State, reader: StageState, stage: StageState) -> bool:
    """Tell whether all indices into a stage are axes of its extents; to prove more takes 20 ms."""
    op = reader.op
    assert isinstance(op, ComputeOp)
    extents = {
        axis.var: axis.extent
        for axis in (*op.axis, *op.reduce_axis)
        if isinstance(axis.extent, int)
    }
    return all(
        isinstance(index, Var) and isinstance(extent, int) and extents.get(index) == extent
        for load in loads_of(bodies(state)[reader.name])
        if load.tensor in stage.tensors
        for index, extent in zip(load.indices, load.tensor.shape, strict=True)
    )


def _open_reads(state: State, reader: StageState) -> Iterator[OpenRead]:
    """Yield the reads of a stage that are checked when the program runs."""
    op = reader.op
    assert isinstance(op, ComputeOp)
    # Lowering refuses an expression in which too many conditions lead to a read.
    with suppress(ExpressionError):
        for body in bodies(state)[reader.name]:
            yield from open_reads(body, (*op.axis, *op.reduce_axis))


def apply(state: State, stage: StageState, context: StepContext) -> tuple[State, None]:
    """Return the next state."""
    return state.with_stage(replace(stage, attachment=INLINED), context.state_id), None


COMPUTE_INLINE = Primitive("compute_inline", {}, check, apply)
