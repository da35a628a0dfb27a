"""Reduce in two stages: partial results for each iteration of a loop, then their combination.

*Before*, then *after* ``CF = s.rfactor(C, ki)`` of a reduction split by 4::

    C = 0.0                             for k.inner in range(4):
    for k.outer in range(8):                C.rf[k.inner] = 0.0
        for k.inner in range(4):            for k.outer in range(8):
            C += A[k.outer*4 + k.inner]         C.rf[k.inner] += A[k.outer*4 + k.inner]
                                        C = 0.0
                                        for k.inner.v in range(4):
                                            C += C.rf[k.inner.v]

The loop becomes a data axis of the new stage ``C.rf``, namely its dimension number `factor_axis`,
and may then be vectorized or run in parallel. The other reduction loops move to the
new stage; C keeps its data loops and combines the partial results over ``k.inner.v``. If a
split does not divide the extent, the missing iterations contribute the reducer's identity, and so
do points where the condition of the reduction (``where=``) is false. The start value (``init=``)
stays in C, where it is used once.

The values are combined in another order, so floats may be rounded differently, within the bounds
that `verify` allows. Legal on a reduction loop without annotation. A user's reducer is refused if
it is found not to be associative, if its identity is found to be wrong, or if values change their
order and it is found not to be commutative (`te.reducers.laws`).
In TVM and Halide ``rfactor``.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dlcompiler.ir import (
    Axis,
    Expr,
    IfThenElse,
    Reduce,
    TensorLoad,
    Var,
    logical,
    substitute,
)
from dlcompiler.ir.names import unique_name
from dlcompiler.schedule.groups import joined
from dlcompiler.schedule.inference.bounds import is_same, largest_extents
from dlcompiler.schedule.inference.inlining import Bodies, results_of
from dlcompiler.schedule.inference.relations import axes_of, guards, outward, ranged, related
from dlcompiler.schedule.legality.reducers import require_any_grouping
from dlcompiler.schedule.primitives.base import (
    Primitive,
    StepContext,
    moved_attachments,
    require_leaf,
    require_loops,
    require_plain,
)
from dlcompiler.schedule.state import StageState, State, is_reduction, new_stage
from dlcompiler.schedule.verdict import LEGAL, Illegal, Refused, Verdict, answering
from dlcompiler.te import ComputeOp, Tensor


@answering
def check(state: State, stage: StageState, *, axis: Any, factor_axis: Any = 0) -> Verdict:
    """Refuse data loops, annotated loops, a dimension out of range, and ordered reducers."""
    require_loops(stage)
    if not is_reduction(stage):
        return Illegal("structural", f"{stage.name} is not a reduction")
    require_leaf(state, stage, axis)
    reduced = [leaf for leaf in stage.leaves if leaf.kind == "reduce"]
    if axis.kind != "reduce":
        return Illegal(
            "structural",
            "only a reduction loop can be factored",
            got=f"{stage.label(axis)}, a data loop",
            hint=f"the reduction loops are: {', '.join(stage.paths[leaf] for leaf in reduced)}",
            conflicts=(stage.key(axis),),
        )
    require_plain(stage, axis)
    require_place(stage, factor_axis)
    require_any_grouping(stage, is_moved=axis is not reduced[0])
    _require_same_threads(stage, axis)
    return LEGAL


def _require_same_threads(stage: StageState, axis: Axis) -> None:
    """Refuse loops related to `axis` whose number of iterations would change."""
    extents, beside = largest_extents(stage), related(stage.relations, [axis])
    for leaf in stage.leaves:
        if leaf in beside and not is_same(extents[leaf], leaf.extent):
            raise Refused(
                Illegal(
                    "limit",
                    "the number of threads beside the factored loop would change",
                    got=f"{stage.label(leaf)}: {extents[leaf]} iterations, of which "
                    f"{leaf.extent} are needed",
                    because=f"it becomes an axis of {stage.name}.rf by itself",
                    hint="call rfactor first, then split and bind the loops of the new stage",
                    conflicts=(stage.key(leaf), stage.key(axis)),
                )
            )


def require_place(stage: StageState, factor_axis: object) -> None:
    """Refuse a `factor_axis` that is not a dimension of the new stage."""
    count = len(stage.op.axis)
    is_number = isinstance(factor_axis, numbers.Integral) and not isinstance(factor_axis, bool)
    if is_number and -(count + 1) <= factor_axis <= count:  # type: ignore[operator]
        return
    raise Refused(
        Illegal(
            "structural",
            "factor_axis is no dimension of the partial results",
            got=repr(factor_axis),
            hint=f"{-(count + 1)} to {count}: they have one dimension more than {stage.name}",
        )
    )


def apply(
    state: State, stage: StageState, context: StepContext, *, axis: Axis, factor_axis: int = 0
) -> tuple[State, Tensor | tuple[Tensor, ...]]:
    """Return the next state and the tensors of the partial results."""
    op = stage.op
    assert isinstance(op, ComputeOp)
    name = unique_name(f"{stage.name}.rf", (s.name for s in state.stages))
    place = int(factor_axis) % (len(op.axis) + 1)
    parts = _Parts.of(stage, context, axis)
    axes = _inserted(tuple(parts.fresh.values()), place, parts.factor)
    partial = ComputeOp(name, axes, parts.bodies(op), op.tag)
    last = context.axis(f"{stage.paths[axis]}.v", axis.extent, "reduce")
    final = _combined(op, partial, last, place)
    paths = {own: path for own, path in stage.paths.items() if own.kind == "data"}
    whole = replace(
        stage,
        op=final,
        leaves=(*(leaf for leaf in stage.leaves if leaf.kind == "data"), last),
        relations=tuple(r for r in stage.relations if axes_of(r)[0].kind == "data"),
        kinds={leaf: kind for leaf, kind in stage.kinds.items() if leaf.kind == "data"},
        pragmas={leaf: notes for leaf, notes in stage.pragmas.items() if leaf.kind == "data"},
        storing={},  # the predicate named threads of a reduction that the new stage computes now
        paths={**paths, last: unique_name(last.name, paths.values())},
    )
    stages: list[StageState] = []
    for item in state.stages:
        stages.extend((parts.stage(partial), whole) if item is stage else (item,))
    moved = {leaf: leaf for leaf in parts.reduced} | parts.fresh
    stages = moved_attachments(stages, stage.name, name, moved)
    outputs = partial.outputs
    return State(context.state_id, tuple(stages)), outputs if len(outputs) > 1 else outputs[0]


def _inserted(items: Sequence[Any], place: int, item: Any) -> tuple[Any, ...]:
    return (*items[:place], item, *items[place:])


def _combined(op: ComputeOp, partial: ComputeOp, last: Axis, place: int) -> ComputeOp:
    """Return the operation that combines the partial results."""
    head = op.bodies[0]
    assert isinstance(head, Reduce)
    indices = _inserted(tuple(axis.var for axis in op.axis), place, last.var)
    values = tuple(TensorLoad(tensor, indices) for tensor in partial.outputs)
    return ComputeOp(
        op.name,
        op.axis,
        results_of(Reduce(head.reducer, values, (last,), init=head.init), len(op.bodies)),
        op.tag,
    )


@dataclass(frozen=True)
class _Parts:
    """The axes of the partial results."""

    origin: StageState
    fresh: dict[Axis, Axis]
    """For each data axis of the stage, the one that takes its place."""
    factor: Axis
    """The data axis that the reduction loop becomes."""
    roots: tuple[Axis, ...]
    """The remaining reduction axes: those unrelated to the loop, and loops related to it."""
    reduced: tuple[Axis, ...]
    """The loops of these axes, outermost first."""
    touched: frozenset[Axis]
    """The axes that the loop comes from, and all other axes that come from these."""
    values: dict[Var, Expr]
    """The old axes, in terms of the new ones."""
    conditions: tuple[Expr, ...]
    """Where a point is one of the old ones."""

    @staticmethod
    def of(stage: StageState, context: StepContext, axis: Axis) -> _Parts:
        fresh = {a: context.axis(a.name, a.extent, "data") for a in stage.op.axis}
        factor = context.axis(stage.paths[axis], axis.extent, "data")
        touched = related(stage.relations, [axis])
        reduced = tuple(a for a in stage.leaves if a.kind == "reduce" and a is not axis)
        beside = tuple(leaf for leaf in reduced if leaf in touched)
        roots: dict[Axis, None] = {}
        for root in stage.op.reduce_axis:
            roots.update(dict.fromkeys(beside if root in touched else (root,)))
        known: dict[Axis, Expr] = {leaf: leaf.var for leaf in beside}
        relations = [r for r in stage.relations if axes_of(r)[0] in touched]
        values = outward(relations, {**known, axis: factor.var})
        analyzer = ranged({a.var: a.extent for a in (*beside, factor)})
        conditions = [analyzer.simplify(guard) for guard in guards(relations, values)]
        replaced = {root: values[root] for root in stage.op.reduce_axis if root in touched}
        return _Parts(
            stage,
            fresh,
            factor,
            tuple(roots),
            reduced,
            frozenset(touched),
            {old.var: new.var for old, new in fresh.items()}
            | {root.var: analyzer.simplify(value) for root, value in replaced.items()},
            tuple(conditions),
        )

    def bodies(self, op: ComputeOp) -> Bodies:
        """Return the partial results: reductions, or plain values when no loop is left."""
        head = substitute(op.bodies[0], self.values)
        assert isinstance(head, Reduce)
        given = () if head.condition is None else (head.condition,)
        conditions = (*self.conditions, *given)
        condition = logical("and", *conditions) if conditions else None
        if self.roots:
            rest = replace(head, axes=self.roots, condition=condition, init=())
            return results_of(rest, len(op.bodies))
        if condition is None:
            return head.values
        pairs = zip(head.values, head.reducer.identity_of(head.values), strict=True)
        return tuple(IfThenElse(condition, value, identity) for value, identity in pairs)

    def stage(self, partial: ComputeOp) -> StageState:
        """Return the new stage: reduction axes unrelated to the factored loop keep their loops."""
        old = self.origin
        plain = joined(new_stage(partial, partial.name), old)
        kept = tuple(
            r for r in old.relations
            if axes_of(r)[0].kind == "reduce" and axes_of(r)[0] not in self.touched
        )  # fmt: skip
        paths: dict[Axis, str] = {}
        for axis in partial.axis:
            paths[axis] = unique_name(axis.name, paths.values())
        untouched = (a for a in old.paths if a.kind == "reduce" and a not in self.touched)
        for axis in dict.fromkeys((*untouched, *self.reduced)):
            paths[axis] = unique_name(old.paths[axis], paths.values())
        # Of two axes that begin elsewhere, `==` is no truth value: a set asks for identity.
        moved = frozenset(self.reduced)
        return replace(
            plain,
            leaves=(*partial.axis, *self.reduced),
            relations=kept,
            kinds={leaf: kind for leaf, kind in old.kinds.items() if leaf in moved},
            pragmas={leaf: notes for leaf, notes in old.pragmas.items() if leaf in moved},
            paths=paths,
        )


RFACTOR = Primitive("rfactor", {"axis": "axis", "factor_axis": "int"}, check, apply)
