"""Put what precedes an anchor in front of the stages of its operator.

*Before*, then *after* ``preceded([C], {A: E})``, where ``E[i, j] = exp(X[i, j])``::

    A.pack[…] = A[…]                    A.pack[…] = E[…]
    C[i, j] += A.pack[…]*B[k, j]        C[i, j] += A.pack[…]*B[k, j]

Where only copies read ``E``, the copies compute it; else it is stored as a whole before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dlcompiler.ir import TensorLoad
from dlcompiler.ir.rewrite import Node
from dlcompiler.schedule import Schedule
from dlcompiler.te import ComputeOp, PlaceholderOp, ScanOp, Tensor, post_order
from dlcompiler.te.bodies import rewrite_bodies


def is_injective(tensor: Tensor) -> bool:
    """Tell whether a tensor is computed element by element from placeholders."""
    return all(
        isinstance(op, PlaceholderOp) or (isinstance(op, ComputeOp) and not op.reduce_axis)
        for op in post_order([tensor])
    )


def preceded(
    outputs: Sequence[Tensor], given: Mapping[Tensor, Tensor]
) -> Mapping[Tensor, Tensor] | None:
    """Return the tensors of a kernel, computed from other tensors than their placeholders.

    Parameters
    ----------
    outputs : sequence of Tensor
        What the kernel stores.
    given : mapping
        Placeholder -> the tensor in its place.

    Returns
    -------
    mapping or None
        Old tensor -> new one, where they differ; None if a stage is neither a `te.compute` nor a
        `te.scan`.
    """
    made: dict[Tensor, Tensor] = dict(given)

    def rule(node: Node) -> Node:
        if isinstance(node, TensorLoad) and node.tensor in made:
            return TensorLoad(made[node.tensor], node.indices)  # type: ignore[index]  # a tensor
        return node

    for op in post_order(outputs):
        if isinstance(op, PlaceholderOp):
            continue
        if isinstance(op, ScanOp):
            made.update(_scan_of(op, made))
            continue
        if not isinstance(op, ComputeOp):
            return None
        bodies = rewrite_bodies(op.bodies, rule)
        if any(a is not b for a, b in zip(bodies, op.bodies, strict=True)):
            new = ComputeOp(op.name, op.axis, bodies, op.tag)
            made.update(zip(op.outputs, new.outputs, strict=True))
    return made


def _scan_of(op: ScanOp, made: Mapping[Tensor, Tensor]) -> Mapping[Tensor, Tensor]:
    """Return the results of a recurrence whose first rows or steps are other tensors."""
    if not any(tensor in made for tensor in (*op.inits, *op.updates)):
        return {}
    inits, updates = (
        tuple(made.get(tensor, tensor) for tensor in group) for group in (op.inits, op.updates)
    )
    new = ScanOp(op.name, inits, updates, op.states)
    return dict(zip(op.outputs, new.outputs, strict=True))


def place_before(s: Schedule, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Inline what precedes an anchor where only copies read it.

    Parameters
    ----------
    s : Schedule
        Changed in place; no step has been applied.
    tensors : sequence of Tensor
        What the anchor reads in place of its placeholders.

    Returns
    -------
    list of Tensor
        Those that are stored as a whole: a reduction would compute their elements many times.
    """
    stored = []
    for tensor in tensors:
        for op in post_order([tensor]):
            if isinstance(op, ComputeOp) and op is not tensor.op:
                s[op].compute_inline()
        readers = [each.op for each in s.stages if tensor in each.op.input_tensors]
        if any(isinstance(op, ComputeOp) and op.reduce_axis for op in readers):
            stored.append(tensor)
        else:
            s[tensor].compute_inline()
    return stored
