"""Build the loops of a tensorized stage, with calls of its intrinsic inside."""

from __future__ import annotations

from dlcompiler.ir import Expr, IntrinsicMode, Region, Stmt, index_const
from dlcompiler.lowering.intrinsics import check_strides, intrinsic_statement
from dlcompiler.lowering.loop_builder import LoopBuilder
from dlcompiler.lowering.pieces import INIT, Inside, under
from dlcompiler.schedule import StageBounds, StageState
from dlcompiler.schedule.legality.matching import Operand
from dlcompiler.schedule.legality.tensorized import Match, matched
from dlcompiler.schedule.state import step_ref
from dlcompiler.te import Tensor


def tensorized_nest(
    builder: LoopBuilder, stage: StageState, bounds: StageBounds, inner_guards: tuple[Expr, ...]
) -> Stmt:
    """Return the loops around an intrinsic, with its calls.

    If some of these loops are reduction loops, the call in mode ``reset`` is before the first of
    them, and the call in mode ``update`` is inside. Otherwise there is one call in mode ``body``.
    """
    match = matched(builder.state, stage)
    outer = match.outer
    first = next((n for n, leaf in enumerate(outer) if leaf.kind == "reduce"), None)
    if first is None:
        call = under(inner_guards, _call(builder, stage, match, "body"))
        return builder.loops(stage, bounds, outer, (), Inside(None, call))
    shared, inner = outer[:first], outer[first:]
    update = under(inner_guards, _call(builder, stage, match, "update"))
    reset = _call(builder, stage, match, "reset")
    init = builder.init_nest(stage, bounds, reset, inner, inner_guards)
    main = builder.loops(stage, bounds, inner, shared, Inside(None, update))
    return builder.loops(stage, bounds, shared, (), Inside(init, main))


def _call(builder: LoopBuilder, stage: StageState, match: Match, mode: IntrinsicMode) -> Stmt:
    """Return the call of an intrinsic in one mode."""
    leaves = [leaf for leaf in stage.leaves if mode != "reset" or leaf.kind == "data"]
    origin = builder.origin(stage, INIT if mode == "reset" else "", leaves)
    outer = set(match.outer)
    own = (step_ref(builder.state, stage, leaf) for leaf in leaves if leaf not in outer)
    regions = [_region(builder, operand, tensor) for operand, tensor in match.operands]
    dims = [operand.dims for operand, _ in match.operands]
    check_strides(f"lower {builder.name}", match.intrin, regions, dims)
    return intrinsic_statement(match.intrin, mode, regions, dims, (*origin, *own))


def _region(builder: LoopBuilder, operand: Operand, declared: Tensor) -> Region:
    """Return the region of a buffer that takes the place of a declared tensor."""
    indices = builder.shift(operand.tensor, [builder.expr(i, {}) for i in operand.indices])
    lengths = dict(zip(operand.dims, declared.static_shape, strict=True))
    extents = (index_const(lengths.get(dim, 1)) for dim in range(len(indices)))
    return Region(builder.buffers[operand.tensor], indices, tuple(extents), "")
