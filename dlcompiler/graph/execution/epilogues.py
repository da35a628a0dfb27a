"""Put what follows an anchor into the expression that stores its result.

*Before*, then *after* ``folded(C, D)``::

    C[i, j] = sums[i, j]                C[i, j] = max(sums[i, j] + b[j], 0)
    D[i, j] = max(C[i, j] + b[j], 0)

The schedule of the anchor then computes the whole group: it splits the loops of what is stored, and
does not look at the expression.
"""

from __future__ import annotations

from dlcompiler.ir import Axis, Const, Expr, TensorLoad, substitute, walk
from dlcompiler.ir.rewrite import Node
from dlcompiler.te import ComputeOp, Tensor
from dlcompiler.te.bodies import rewrite_bodies

MOST_NODES = 2000
"""Largest expression that is made; [1]."""


def folded(result: Tensor, last: Tensor) -> Tensor | None:
    """Return a tensor that is stored like `result`, and has the elements of `last`.

    Parameters
    ----------
    result : Tensor
        What an anchor stores; it is no reduction itself.
    last : Tensor
        Computed from it, element by element.

    Returns
    -------
    Tensor or None
        None if `last` has another shape, reads other elements of `result`, or is a reduction.
    """
    op = result.op
    if last is result:
        return result
    if not isinstance(op, ComputeOp) or op.reduce_axis or len(op.bodies) > 1:
        return None
    body = _inlined(last, result)
    if body is None or last.shape != result.shape:
        return None
    assert isinstance(last.op, ComputeOp)
    own = {axis.var: other.var for axis, other in zip(last.op.axis, op.axis, strict=True)}
    body = substitute(body, own)
    loads = [node for node in walk(body) if isinstance(node, TensorLoad) and node.tensor is result]
    if not all(_is_own(load, op.axis) for load in loads):
        return None
    (stored,) = op.bodies

    def rule(node: Node) -> Node:
        is_result = isinstance(node, TensorLoad) and node.tensor is result
        return stored if is_result else node

    (whole,) = rewrite_bodies((body,), rule)
    return ComputeOp(op.name, op.axis, (whole,), op.tag).output(0)


def _is_own(load: TensorLoad, axes: tuple[Axis, ...]) -> bool:
    """Tell whether an access reads the element that is stored."""
    return all(
        index is axis.var or (axis.extent == 1 and isinstance(index, Const) and index.value == 0)
        for index, axis in zip(load.indices, axes, strict=True)
    )


def _inlined(tensor: Tensor, result: Tensor) -> Expr | None:
    """Return the expression of a tensor over `result` and placeholders; None if there is none."""
    if not isinstance(tensor.op, ComputeOp) or tensor.op.reduce_axis or len(tensor.op.bodies) > 1:
        return None
    (body,) = tensor.op.bodies
    read = {n.tensor for n in walk(body) if isinstance(n, TensorLoad)}
    known: dict[Tensor, tuple[ComputeOp, Expr]] = {}
    for each in read:
        if each is result or not isinstance(each, Tensor) or not isinstance(each.op, ComputeOp):
            continue
        inside = _inlined(each, result)
        if inside is None:
            return None
        known[each] = each.op, inside

    def rule(node: Node) -> Node:
        if not (isinstance(node, TensorLoad) and node.tensor in known):
            return node
        op, inside = known[node.tensor]  # type: ignore[index]  # a tensor
        return substitute(inside, {a.var: i for a, i in zip(op.axis, node.indices, strict=True)})

    (made,) = rewrite_bodies((body,), rule)
    return made if sum(1 for _ in walk(made)) <= MOST_NODES else None
