"""Find the stage that an operator's schedule binds to threads, and what is computed with it.

A fused group has stages before and behind those that the operator defines: what they are called,
and how many they are, does not matter. The *host* is the last stage each of whose elements needs
one place of the operator's stages only. What stands between is inlined into it; what comes behind
it is a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from dlcompiler.ir import Expr, TensorLoad, Var, substitute, walk
from dlcompiler.schedule import Schedule
from dlcompiler.te import ComputeOp, Tensor


def computed(s: Schedule) -> list[ComputeOp]:
    """Return the operations of a schedule that compute elements, producers first."""
    return [stage.op for stage in s.stages if isinstance(stage.op, ComputeOp)]


def reductions_of(s: Schedule) -> list[Tensor]:
    """Return the reductions of a schedule, producers first; of a joint one, the first output."""
    return [op.output(0) for op in computed(s) if op.reduce_axis]


def reads(tensor: Tensor, ends: Collection[Tensor]) -> Iterator[TensorLoad]:
    """Yield what an element reads of some tensors, through the stages between.

    Parameters
    ----------
    tensor : Tensor
        No reduction.
    ends : collection of Tensor
        Where to stop: at these, at inputs, and at reductions.
    """
    assert isinstance(tensor.op, ComputeOp)
    yield from _reads(tensor.op.bodies, ends)


def _reads(bodies: Sequence[Expr], ends: Collection[Tensor]) -> Iterator[TensorLoad]:
    nodes = {id(node): node for body in bodies for node in walk(body)}
    for node in nodes.values():
        if not isinstance(node, TensorLoad):
            continue
        assert isinstance(node.tensor, Tensor)
        op = node.tensor.op
        if node.tensor in ends or not isinstance(op, ComputeOp) or op.reduce_axis:
            yield node
            continue
        values = {axis.var: i for axis, i in zip(op.axis, node.indices, strict=True)}
        yield from _reads([substitute(body, values) for body in op.bodies], ends)


def is_at_own_place(load: TensorLoad, own: Sequence[Var]) -> bool:
    """Tell whether the indices of a load are some variables, in this order."""
    return len(load.indices) == len(own) and all(
        index is var for index, var in zip(load.indices, own, strict=True)
    )


def host_of(s: Schedule, outs: Iterable[Tensor], is_host: Callable[[Tensor], bool]) -> Tensor:
    """Return the last stage that may be the host: at the latest, the first that is an output.

    Parameters
    ----------
    s : Schedule
        A fresh schedule.
    outs : iterable of Tensor
        The outputs.
    is_host : callable
        Tells whether a stage without a reduction may be the host; one of them must.
    """
    found = [op.output(0) for op in computed(s) if not op.reduce_axis and is_host(op.output(0))]
    ends = {out.op for out in outs}
    return next((tensor for tensor in found if tensor.op in ends), found[-1])


def behind(s: Schedule, tensors: Iterable[Tensor]) -> set[Tensor]:
    """Return some tensors, and all that are computed from them."""
    found = set(tensors)
    for op in computed(s):
        if found.intersection(op.input_tensors):
            found.update(op.outputs)
    return found


def needed(host: Tensor) -> set[Tensor]:
    """Return all tensors that a tensor is computed from."""
    found: set[Tensor] = set()
    pending = [host]
    while pending:
        for tensor in pending.pop().op.input_tensors:
            if tensor not in found:
                found.add(tensor)
                pending.append(tensor)
    return found
