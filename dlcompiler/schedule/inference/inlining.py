"""The expressions of each stage after the inlined stages are substituted into them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

from dlcompiler.ir import Expr, Reduce, TensorLoad, substitute, walk
from dlcompiler.ir.rewrite import Node
from dlcompiler.ir.structural import sharing
from dlcompiler.schedule.state import StageState, State
from dlcompiler.te import ComputeOp, ExternOp, Operation, PlaceholderOp, ScanOp, Tensor
from dlcompiler.te.bodies import rewrite_bodies

Bodies: TypeAlias = tuple[Expr, ...]
"""The expression of each output of one operation."""


def bodies(state: State) -> dict[str, Bodies]:
    """Return the bodies of each computed stage by its name; extern stages have none."""
    cached = state.cache.get("bodies")
    if cached is None:
        cached = _inline_all(state)
        state.cache["bodies"] = cached
    result: dict[str, Bodies] = cached
    return result


def _inline_all(state: State) -> dict[str, Bodies]:
    result: dict[str, Bodies] = {}
    inlined: dict[Tensor, tuple[ComputeOp, Expr]] = {}
    for stage in state.stages:  # producers come first, so what is substituted is inlined already
        if isinstance(stage.op, ScanOp | ExternOp):
            # The steps of a scan are other stages; an extern operation has statements instead.
            result[stage.name] = ()
        if not isinstance(stage.op, ComputeOp):
            continue
        op = stage.op
        done = inline(op.bodies, inlined) if inlined else op.bodies
        if stage.is_inlined:
            pairs = zip(stage.tensors, done, strict=True)
            inlined.update((tensor, (op, body)) for tensor, body in pairs)
        else:
            result[stage.name] = done
    return result


def inline(parts: Bodies, inlined: Mapping[Tensor, tuple[ComputeOp, Expr]]) -> Bodies:
    """Substitute tensors into the bodies of a stage.

    Equal parts of the result are one node: each of n stages ``y + y`` that were inlined into each
    other would else double the expression.

    Parameters
    ----------
    parts : tuple of Expr
        The bodies of a stage.
    inlined : mapping
        Tensor -> the operation with its axes, and the expression of an element.
    """

    def rule(node: Node) -> Node:
        if isinstance(node, TensorLoad) and node.tensor in inlined:
            op, expr = inlined[node.tensor]  # type: ignore[index]  # a tensor
            values = {axis.var: i for axis, i in zip(op.axis, node.indices, strict=True)}
            return substitute(expr, values)
        return node

    made = rewrite_bodies(parts, rule)
    if all(new is old for new, old in zip(made, parts, strict=True)):
        return parts
    share = sharing()
    head = share(made[0])
    if isinstance(head, Reduce):
        return results_of(head, len(made))
    return (head, *map(share, made[1:]))


def results_of(head: Reduce, count: int) -> Bodies:
    """Return all results of a reduction from its first one."""
    return tuple(replace(head, index=n) if n else head for n in range(count))


def read_from(op: Operation, renamed: Mapping[Tensor, Tensor]) -> Operation:
    """Return an operation that reads other tensors, as `renamed` says."""
    if isinstance(op, PlaceholderOp):
        return op
    if isinstance(op, ExternOp):
        inputs = tuple(renamed.get(tensor, tensor) for tensor in op.inputs)
        return ExternOp(
            op.name, inputs, op.in_buffers, op.out_buffers, op.body, op.tag,
            is_complete=op.is_complete,
        )  # fmt: skip
    assert isinstance(op, ComputeOp)  # the steps of a scan read for it

    def rule(node: Node) -> Node:
        if isinstance(node, TensorLoad) and node.tensor in renamed:
            return TensorLoad(renamed[node.tensor], node.indices)  # type: ignore[index]
        return node

    return ComputeOp(op.name, op.axis, rewrite_bodies(op.bodies, rule), op.tag)


@lru_cache(maxsize=1024)  # cached: most steps do not change the bodies, and every check reads them
def loads_of(parts: Bodies) -> tuple[TensorLoad, ...]:
    """Return the tensor elements that the bodies of a stage read."""
    nodes = {id(node): node for body in parts for node in walk(body)}
    return tuple(node for node in nodes.values() if isinstance(node, TensorLoad))


def consumers(state: State, producer: StageState) -> tuple[StageState, ...]:
    """Return the stages with loops that read `producer`, directly or through inlined stages."""
    readers = state.cache.get("readers")
    if readers is None:
        readers = _readers(state)
        state.cache["readers"] = readers
    found: dict[StageState, None] = {}
    for tensor in producer.tensors:
        found.update(dict.fromkeys(readers.get(tensor, ())))
    return tuple(found)


def _readers(state: State) -> dict[Tensor, list[StageState]]:
    """Return the stages with loops that read each tensor."""
    result: dict[Tensor, list[StageState]] = {}
    own = bodies(state)
    for stage in state.stages:
        loads = loads_of(own[stage.name]) if stage.name in own else ()
        is_whole = isinstance(stage.op, ScanOp | ExternOp)
        read = stage.op.input_tensors if is_whole else [load.tensor for load in loads]
        for tensor in dict.fromkeys(read):
            result.setdefault(tensor, []).append(stage)  # type: ignore[arg-type]
    return result
