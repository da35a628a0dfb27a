"""The expression of each stage after the inlined stages are substituted into it."""

from __future__ import annotations

from functools import lru_cache

from dlcompiler.ir import Expr, TensorLoad, rewrite, substitute, walk
from dlcompiler.ir.rewrite import Node
from dlcompiler.schedule.state import StageState, State
from dlcompiler.te import ComputeOp, Tensor


def bodies(state: State) -> dict[str, Expr]:
    """Return the body of every stage that is computed, by stage name."""
    cached = state.cache.get("bodies")
    if cached is None:
        cached = _inline_all(state)
        state.cache["bodies"] = cached
    result: dict[str, Expr] = cached
    return result


def _inline_all(state: State) -> dict[str, Expr]:
    result: dict[str, Expr] = {}
    inlined: dict[Tensor, tuple[ComputeOp, Expr]] = {}
    for stage in state.stages:  # producers come first, so what is substituted is inlined already
        if not isinstance(stage.op, ComputeOp):
            continue
        body = _inline(stage.op.body, inlined) if inlined else stage.op.body
        if stage.is_inlined:
            inlined[stage.tensor] = (stage.op, body)
        else:
            result[stage.name] = body
    return result


def _inline(body: Expr, inlined: dict[Tensor, tuple[ComputeOp, Expr]]) -> Expr:
    def rule(node: Node) -> Node:
        if isinstance(node, TensorLoad) and node.tensor in inlined:
            op, expr = inlined[node.tensor]
            values = {axis.var: i for axis, i in zip(op.axis, node.indices, strict=True)}
            return substitute(expr, values)
        return node

    return rewrite(body, rule)


@lru_cache(maxsize=1024)  # most steps leave the bodies alone, and each one asks
def loads_of(body: Expr) -> tuple[TensorLoad, ...]:
    """Return the tensor elements that an expression reads."""
    return tuple(node for node in walk(body) if isinstance(node, TensorLoad))


def consumers(state: State, producer: StageState) -> tuple[StageState, ...]:
    """Return the stages with loops that read `producer`, directly or through inlined stages."""
    result = []
    for name, body in bodies(state).items():
        if any(load.tensor is producer.tensor for load in loads_of(body)):
            result.append(state.stage(name))
    return tuple(result)
