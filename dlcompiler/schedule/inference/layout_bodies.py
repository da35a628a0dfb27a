"""Layout bodies: the bodies of an operation over the axes of another, maybe padded layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dlcompiler.ir import (
    Const,
    Expr,
    IfThenElse,
    Reduce,
    Var,
    const,
    logical,
    substitute,
)
from dlcompiler.schedule.inference.inlining import Bodies, results_of
from dlcompiler.te import ComputeOp


def layout_bodies(op: ComputeOp, values: Mapping[Var, Expr], condition: Expr | None) -> Bodies:
    """Return the bodies of an operation over the axes of a layout.

    Parameters
    ----------
    op
        The operation.
    values
        The axes of the operation as expressions of the axes of the layout.
    condition
        Whether a point of the layout is an element of the operation; None if all are. The other
        points are padding, whose values are unspecified.
    """
    head = substitute(op.bodies[0], values)
    if isinstance(head, Reduce):
        return results_of(_guarded(head, condition), len(op.bodies))
    bodies = (head, *(substitute(body, values) for body in op.bodies[1:]))
    if condition is None:
        return bodies
    return tuple(IfThenElse(condition, body, const(0, body.dtype)) for body in bodies)


def _guarded(body: Reduce, condition: Expr | None) -> Reduce:
    if condition is None:
        return body
    both = [condition] if body.condition is None else [condition, body.condition]
    identities = body.reducer.identity_of(body.values)
    init = tuple(
        start if isinstance(start, Const) else IfThenElse(condition, start, identity)
        for start, identity in zip(body.init, identities, strict=False)
    )
    return replace(body, condition=logical("and", *both), init=init)
