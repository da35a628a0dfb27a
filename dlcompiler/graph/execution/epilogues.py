"""Put what follows an anchor into the expression that stores its result.

*Before*, then *after* ``folded(C, D)``::

    C[i, j] = sums[i, j]                C[i, j] = max(sums[i, j] + b[j], 0)
    D[i, j] = max(C[i, j] + b[j], 0)

The schedule of the anchor then computes the whole group: it splits the loops of what is stored, and
does not look at the expression.
"""

from __future__ import annotations

import itertools

from dlcompiler.ir import Axis, Const, Expr, TensorLoad, substitute, walk
from dlcompiler.ir.rewrite import Node
from dlcompiler.schedule.inference.inlining import inline
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
        None if `last` has another shape, reads none or others of the elements of `result`, or is a
        reduction.
    """
    op = result.op
    if last is result:
        return result
    if not isinstance(op, ComputeOp) or op.reduce_axis or len(op.bodies) > 1:
        return None
    body = _Inliner(result).of(last)
    if body is None or last.shape != result.shape:
        return None
    assert isinstance(last.op, ComputeOp)
    own = {axis.var: other.var for axis, other in zip(last.op.axis, op.axis, strict=True)}
    body = substitute(body, own)
    loads = [node for node in walk(body) if isinstance(node, TensorLoad) and node.tensor is result]
    if not loads or not all(_is_own(load, op.axis) for load in loads):
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


class _Inliner:
    """Expressions of tensors over the result of an anchor and placeholders."""

    def __init__(self, result: Tensor) -> None:
        self.result = result
        self.known: dict[Tensor, Expr | None] = {}

    def of(self, tensor: Tensor) -> Expr | None:
        """Return the expression of a tensor; None if it has none, or one that is too large."""
        if tensor not in self.known:
            self.known[tensor] = self._made(tensor)
        return self.known[tensor]

    def _made(self, tensor: Tensor) -> Expr | None:
        op = tensor.op
        if not isinstance(op, ComputeOp) or op.reduce_axis or len(op.bodies) > 1:
            return None
        (body,) = op.bodies
        inside: dict[Tensor, tuple[ComputeOp, Expr]] = {}
        for each in {n.tensor for n in walk(body) if isinstance(n, TensorLoad)}:
            if each is self.result or not isinstance(each, Tensor):
                continue
            if isinstance(each.op, ComputeOp):
                found = self.of(each)
                if found is None:
                    return None
                inside[each] = each.op, found

        (made,) = inline((body,), inside)
        return made if _is_small(made) else None


def _is_small(expr: Expr) -> bool:
    return sum(1 for _ in itertools.islice(walk(expr), MOST_NODES + 1)) <= MOST_NODES
