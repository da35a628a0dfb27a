"""Refuse steps that change the result of a reduction whose order matters."""

from __future__ import annotations

from dlcompiler.ir import Reduce
from dlcompiler.schedule.state import StageState
from dlcompiler.schedule.verdict import Illegal, Refused
from dlcompiler.te import ComputeOp
from dlcompiler.te.reducers.laws import (
    Violation,
    grouping_violation,
    identity_violation,
    is_argmax,
    order_violation,
)

_HINTS = {
    "associative": "leave the reduction whole",
    "commutative": "let equal values be decided by their position, as te.argmax does, or keep the "
    "order",
    "identity": "let the function of the identity return what changes nothing: 0 for a sum",
}
_OF_NAN = "let NaN always lose, as in te.argmax, or always win, as in te.max: te.isnan asks for it"


def require_any_grouping(stage: StageState, *, is_moved: bool) -> None:
    """Refuse to combine partial results of a reduction whose result depends on the grouping.

    Parameters
    ----------
    stage
        The stage that reduces.
    is_moved
        Whether the values also change their order, and not only their grouping.
    """
    head = _reduction(stage)
    if head is None:
        return
    is_ordered = is_argmax(head.reducer)
    if is_moved:
        _require(stage, head, order_violation(head, is_ordered=is_ordered))
    _require(stage, head, grouping_violation(head, is_ordered=is_ordered))
    _require(stage, head, identity_violation(head, is_ordered=is_ordered))


def require_any_order(stage: StageState) -> None:
    """Refuse to reorder the values of a reduction whose result depends on their order."""
    head = _reduction(stage)
    if head is not None:
        _require(stage, head, order_violation(head, is_ordered=is_argmax(head.reducer)))


def _reduction(stage: StageState) -> Reduce | None:
    head = stage.op.bodies[0] if isinstance(stage.op, ComputeOp) else None
    return head if isinstance(head, Reduce) else None


def _require(stage: StageState, head: Reduce, found: Violation | None) -> None:
    if found is None:
        return
    name = head.reducer.name
    reason = (
        f"the reducer {name} of {stage.name} is not {found.law}: another order gives another result"
    )
    if found.law == "identity":
        reason = (
            f"the identity of the reducer {name} of {stage.name} is wrong: it changes what it "
            "is combined with"
        )
    raise Refused(
        Illegal(
            "semantic",
            reason,
            because=found.witness,
            hint=_OF_NAN if "nan" in found.witness else _HINTS[found.law],
            conflicts=(*(stage.key(x) for x in stage.leaves if x.kind == "reduce"), stage.body_key),
        )
    )
