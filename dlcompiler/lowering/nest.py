"""Build the loop nests of a schedule state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dlcompiler.ir import (
    Allocate,
    Axis,
    Expr,
    ExternCall,
    For,
    PrimFunc,
    Reduce,
    StepRef,
    Stmt,
    Store,
    Var,
    compare,
    rewrite,
    seq,
)
from dlcompiler.ir.rewrite import Node
from dlcompiler.lowering.barrier_placement import has_barriers, is_cooperative
from dlcompiler.lowering.cross_thread import nest_across_threads
from dlcompiler.lowering.index_checks import IndexChecks
from dlcompiler.lowering.loop_builder import LoopBuilder
from dlcompiler.lowering.pieces import (
    INIT,
    Inside,
    loop_vars_of,
    under,
    with_allocations,
)
from dlcompiler.lowering.tensorized import tensorized_nest
from dlcompiler.schedule import AttachedAt, StageBounds, StageState, State
from dlcompiler.schedule.inference.bounds import knobs_of, size_symbols
from dlcompiler.schedule.inference.recurrences import hosts
from dlcompiler.schedule.inference.thread_loops import (
    reduced_by_threads,
    uses_threads,
)
from dlcompiler.schedule.state import is_scan
from dlcompiler.te import ExternOp, ScanOp, Tensor, symbols_of
from dlcompiler.te.bodies import with_buffers
from dlcompiler.te.extern.checks import with_checks
from dlcompiler.te.extern.zeros import with_zeros
from dlcompiler.te.recurrences import requirements_of


def build_nests(state: State, args: Sequence[Tensor | Var], name: str) -> PrimFunc:
    """Build the program of a schedule state.

    Parameters
    ----------
    state
        A state without open obligations, except those that lowering settles.
    args
        The tensors that become parameters: all inputs and outputs; symbols passed as numbers.
    name
        Name of the function.

    Returns
    -------
    PrimFunc
        One loop nest for each stage that has one, attached stages inside their consumer's.
    """
    builder = LoopBuilder(state, args, name, _nest)
    state = builder.state
    roots = [
        stage
        for stage in state.stages
        if not (
            stage.is_placeholder or stage.is_inlined or isinstance(stage.attachment, AttachedAt)
        )
    ]
    body = with_allocations(builder.allocations(roots), seq(_nest(builder, r) for r in roots))
    outputs = tuple(
        buffer
        for tensor, buffer in builder.buffers.items()
        if buffer in builder.params
        and tensor not in builder.storage_aliases
        and not state.producer_of(tensor).is_placeholder
    )
    knobs = knobs_of(state)
    of_tensors = symbols_of(tensor for stage in state.stages for tensor in stage.tensors)
    symbols = tuple(dict.fromkeys((*of_tensors, *knobs)))
    checks = _checks(state, knobs)
    return PrimFunc(name, builder.params, outputs, body, builder.axes, symbols, checks)


def _checks(state: State, knobs: Iterable[Var]) -> tuple[tuple[Expr, str], ...]:
    """Return the conditions on symbols that each call checks, with their error messages."""
    inside = hosts(state)  # the operations of a cell are their scan's
    ops = [stage.op for stage in state.stages if stage.name not in inside]
    factors = ((compare("ge", knob, 1), f"the factor {knob.name} is too small") for knob in knobs)
    return (*requirements_of(ops, frozenset(size_symbols(state))), *factors)


def _nest(builder: LoopBuilder, stage: StageState) -> Stmt:
    """Return the loops of a stage, with the stages attached to them and index checks before."""
    if isinstance(stage.op, ExternOp):
        return _statements(builder, stage, stage.op)
    bounds = builder.bounds.stages[stage.name]
    if is_scan(stage):  # what its steps compute is attached
        return builder.loops(stage, bounds, stage.leaves, (), Inside(None, seq(())))
    scan = hosts(builder.state).get(stage.name)
    first = scan.op.first if scan is not None and isinstance(scan.op, ScanOp) else 0
    checks = IndexChecks(builder.state, stage, bounds, first, builder.expr)
    own = _own_nest(builder, stage, bounds, checks)
    before = checks.before(builder.bodies[stage.name])
    if before is None:
        return own
    builder.axes[checks.origin] = frozenset()
    return seq((before, own))


def _own_nest(
    builder: LoopBuilder, stage: StageState, bounds: StageBounds, checks: IndexChecks
) -> Stmt:
    """Return the loops of a stage that computes elements one by one."""
    bodies = builder.bodies[stage.name]
    inner_guards: tuple[Expr, ...] = ()
    if has_barriers(builder.state, stage):
        # All threads must reach a barrier: guards go inside the loops that have any.
        inner_guards, bounds = bounds.guards, replace(bounds, guards=())
    if stage.tensorized is not None:
        return tensorized_nest(builder, stage, bounds, inner_guards)
    if isinstance(bodies[0], Reduce):
        if reduced_by_threads(stage):
            return nest_across_threads(builder, stage, bounds, inner_guards)
        return _reduction(builder, stage, bounds, checks, inner_guards)
    values = {axis.var: value for axis, value in bounds.values.items()}
    targets = [builder.target(stage, bounds, tensor) for tensor in stage.tensors]
    parts = zip(stage.tensors, targets, bodies, strict=True)
    store = seq(
        builder.store(stage, tensor, target, builder.expr(body, values), "", stage.leaves)
        for tensor, target, body in parts
    )
    store = seq((checks.inside(bodies, values), store))
    return _late_guarded(builder, stage, bounds, inner_guards, ((), stage.leaves), store)


def _late_guarded(
    builder: LoopBuilder, stage: StageState, bounds: StageBounds, guards: tuple[Expr, ...],
    leaves: tuple[tuple[Axis, ...], tuple[Axis, ...]], body: Stmt,
) -> Stmt:  # fmt: skip
    """Wrap a statement in loops; `guards` are tested inside the innermost loop with barriers.

    `leaves` are the loops that stand outside of this nest already, and its own.
    """
    outside, inner = leaves
    cut = max((n + 1 for n, leaf in enumerate(inner) if _synchronises(builder, stage, leaf)),
              default=0)  # fmt: skip
    if not guards:
        cut = 0
    around = (*outside, *inner[:cut])
    late = replace(bounds, guards=guards) if guards else bounds
    body = builder.loops(stage, late, inner[cut:], around, Inside(None, body))
    if not around or not guards:
        return body
    known = {*bounds.enclosing, *(bounds.loop_vars[leaf] for leaf in around)}
    body = under([guard for guard in guards if loop_vars_of(guard) <= known], body)
    return builder.loops(stage, bounds, inner[:cut], outside, Inside(None, body))


def _synchronises(builder: LoopBuilder, stage: StageState, leaf: Axis) -> bool:
    """Tell whether a stage that is attached to a loop has barriers, or needs one."""
    return any(
        isinstance(other.attachment, AttachedAt)
        and other.attachment.stage == stage.name
        and other.attachment.axis is leaf
        and (is_cooperative(builder.state, other) or has_barriers(builder.state, other))
        for other in builder.state.stages
    )


def _reduction(
    builder: LoopBuilder,
    stage: StageState,
    bounds: StageBounds,
    checks: IndexChecks,
    inner_guards: tuple[Expr, ...],
) -> Stmt:
    """Return the loops of a reduction, initialised before its first reduction loop."""
    head = builder.bodies[stage.name][0]
    assert isinstance(head, Reduce)
    values = {axis.var: value for axis, value in bounds.values.items()}
    targets = [builder.target(stage, bounds, tensor) for tensor in stage.tensors]
    first = next(n for n, leaf in enumerate(stage.leaves) if leaf.kind == "reduce")
    shared, inner = stage.leaves[:first], stage.leaves[first:]
    places = [
        (builder.buffers[tensor], target)
        for tensor, target in zip(stage.tensors, targets, strict=True)
    ]
    update = builder.update(stage, places, head, values)
    update = seq((checks.inside([head], values), update))
    data = [leaf for leaf in stage.leaves if leaf.kind == "data"]
    start = seq(
        builder.store(stage, tensor, target, builder.expr(value, values), INIT, data)
        for tensor, target, value in zip(stage.tensors, targets, head.start, strict=True)
    )
    start = seq((checks.inside(head.init, values), start))
    init = builder.init_nest(stage, bounds, start, inner, inner_guards)
    main = _late_guarded(builder, stage, bounds, inner_guards, (shared, inner), update)
    return builder.loops(stage, bounds, shared, (), Inside(init, main))


def _statements(builder: LoopBuilder, stage: StageState, op: ExternOp) -> Stmt:
    """Return the statements of a stage that external code computes."""
    ref = StepRef("", stage.name)
    builder.axes[ref] = frozenset()
    own, tensors = (*op.in_buffers, *op.out_buffers), (*op.inputs, *stage.tensors)
    known = {a: builder.buffers[tensor] for a, tensor in zip(own, tensors, strict=True)}

    def rule(node: Node) -> Node:
        if isinstance(node, Store | ExternCall | For | Allocate):
            return replace(node, origin=(ref,))
        return node

    body = with_buffers(op.body, known)
    outputs = [known[buffer] for buffer in op.out_buffers]
    if not op.is_complete:
        body = with_zeros(body, outputs, fills_unstored=False)
    if not uses_threads(builder.state):  # the simulator of a device checks each access
        body = with_checks(body, tuple(known.values()))
    return rewrite(body, rule)
