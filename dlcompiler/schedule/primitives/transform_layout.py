"""Store a stage in another layout, and compute it in the order of that layout.

*Before*, then *after* ``s[P].transform_layout(lambda i, j: [j // 4, i, j % 4])``::

    allocate P: float32[8, 8]           allocate P: float32[2, 8, 4]
    for i in range(8):                  for ax0 in range(2):
        for j in range(8):                  for i in range(8):
            P[i, j] = A[i, j]                   for ax2 in range(4):
    for i in range(8):                              P[ax0, i, ax2] = A[i, ax0*4 + ax2]
        for j in range(8):              for i in range(8):
            C[i, j] = P[i, j]               for j in range(8):
                                                C[i, j] = P[j // 4, i, j % 4]

The function maps the indices of an element to its indices in the new layout. Each part of each
index must occur once. If a divisor does not divide the extent, the layout is padded.
``te.AXIS_SEPARATOR`` between two axes separates dimensions of the memory. Flat memory has only one
dimension, so the separator is only shown at the buffer: ``float32[2 | 8, 4]``. The call returns the
new axes. Legal for a stage between inputs and outputs (their layouts are the caller's), before its
loops are changed. The trace holds the function as text, which is parsed and never executed.
In TVM ``transform_layout``; Halide has ``reorder_storage`` for permutations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from dlcompiler.ir import Axis, TensorLoad, Var, logical, substitute, walk
from dlcompiler.ir.rewrite import Node
from dlcompiler.schedule.index_maps import IndexMap, index_map_of, inverse_of
from dlcompiler.schedule.inference.layout_bodies import layout_bodies
from dlcompiler.schedule.inference.relations import ranged
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    is_knob,
    require_compact,
    require_expression,
    require_own_storage,
)
from dlcompiler.schedule.state import StageState, State, new_stage, same_axes
from dlcompiler.schedule.verdict import LEGAL, Illegal, Verdict, answering
from dlcompiler.te import ComputeOp, Tensor
from dlcompiler.te.bodies import rewrite_bodies

MOVED = frozenset(
    {
        "name", "tensors", "op", "leaves", "paths", "attachment", "scope", "is_output", "aliases",
        "separators", "double_buffered_by", "rolled_by", "group",
    }
)  # fmt: skip
"""Fields of a stage that stay valid in another layout; all others must be empty."""
_OF_LOOPS = tuple(item.name for item in fields(StageState) if item.init and item.name not in MOVED)


@answering
def check(state: State, stage: StageState, *, index_map: Any) -> Verdict:
    """Refuse inputs, outputs, stages with changed loops, and maps without an inverse."""
    require_own_storage(stage)
    require_expression(stage)
    require_compact(state, stage)
    loops = (*stage.op.axis, *stage.op.reduce_axis)
    is_plain = not any(getattr(stage, name) for name in _OF_LOOPS)
    if not is_plain or not same_axes(stage.leaves, loops):
        return Illegal(
            "structural",
            f"the loops of {stage.name} or its strides have been changed already",
            hint="call transform_layout first, then schedule the new axes",
            conflicts=tuple(stage.key(leaf) for leaf in stage.leaves),
        )
    layout = index_map_of(index_map, _names(stage))
    if knobs := {node for output in layout.outputs for node in walk(output) if is_knob(node)}:
        return Illegal(
            "limit",
            "the parts of a layout must be numbers",
            got=", ".join(sorted(str(knob) for knob in knobs)),
            hint="give the number, and build a kernel for each",
        )
    inverse_of(layout, stage.tensor.shape)
    return LEGAL


def _names(stage: StageState) -> list[str]:
    return [axis.name for axis in stage.op.axis]


def apply(
    state: State, stage: StageState, context: StepContext, *, index_map: Any
) -> tuple[State, tuple[Axis, ...]]:
    """Return the next state and the new axes."""
    op = stage.op
    assert isinstance(op, ComputeOp)
    layout = index_map_of(index_map, _names(stage))
    inverse = inverse_of(layout, stage.tensor.shape)
    names = [
        output.name if isinstance(output, Var) else f"ax{n}"
        for n, output in enumerate(layout.outputs)
    ]
    axes = tuple(
        context.axis(name, extent, "data")
        for name, extent in zip(names, inverse.extents, strict=True)
    )
    known = {place: axis.var for place, axis in zip(inverse.places, axes, strict=True)}
    analyzer = ranged({axis.var: axis.extent for axis in axes})
    values = {
        old.var: analyzer.simplify(substitute(value, known))
        for old, value in zip(op.axis, inverse.values, strict=True)
    }
    condition = None
    if inverse.conditions:
        both = logical("and", *inverse.conditions)
        condition = analyzer.simplify(substitute(both, known))
    moved = ComputeOp(op.name, axes, layout_bodies(op, values, condition), op.tag)
    fresh = new_stage(moved, stage.name)
    whole = replace(
        stage,
        op=moved,
        tensors=moved.outputs,
        aliases=(*stage.aliases, *stage.tensors),
        separators=layout.separators,
        leaves=fresh.leaves,
        paths=fresh.paths,
    )
    rule = _reading(dict(zip(stage.tensors, moved.outputs, strict=True)), layout)
    stages = (whole if item is stage else _rewritten(item, stage, rule) for item in state.stages)
    return State(context.state_id, tuple(stages)), axes


def _reading(renamed: dict[Tensor, Tensor], layout: IndexMap) -> Callable[[Node], Node]:
    def rule(node: Node) -> Node:
        if isinstance(node, TensorLoad) and node.tensor in renamed:
            return TensorLoad(renamed[node.tensor], layout.at(node.indices))  # type: ignore[index]
        return node

    return rule


def _rewritten(item: StageState, read: StageState, rule: Callable[[Node], Node]) -> StageState:
    """Return a stage whose reads use the new layout."""
    if not set(read.tensors).intersection(item.op.input_tensors):
        return item
    assert isinstance(item.op, ComputeOp)
    bodies = rewrite_bodies(item.op.bodies, rule)
    return replace(item, op=ComputeOp(item.op.name, item.op.axis, bodies, item.op.tag))


TRANSFORM_LAYOUT = Primitive("transform_layout", {"index_map": "index_map"}, check, apply)
