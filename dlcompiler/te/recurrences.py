"""Recurrences (`te.scan`): tensors computed row by row, each row from earlier rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from dlcompiler.errors import ExpressionError
from dlcompiler.ir import (
    Axis,
    Reduce,
    TensorLoad,
    Var,
    compare,
    extent_binary,
    numeric,
    walk,
)
from dlcompiler.ir.rewrite import Node
from dlcompiler.te.access import check_accesses, earlier_reads
from dlcompiler.te.bodies import rewrite_bodies
from dlcompiler.te.broadcast import same_extent
from dlcompiler.te.definition import checked_name
from dlcompiler.te.requirements import Requirement, requirements
from dlcompiler.te.tensor import (
    ComputeOp,
    Operation,
    PlaceholderOp,
    ScanOp,
    Tensor,
    post_order,
)


def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state_placeholder: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor] | None = None,
    name: str = "scan",
) -> Any:
    """Define tensors by a recurrence: each row along the first dimension follows from earlier rows.

    The first dimension is called the *time*, and computing one row is a *step*.

    Parameters
    ----------
    init : Tensor or sequence of Tensor
        The first rows, shape ``(k, …)`` with a number ``k >= 1``.
    update : Tensor or sequence of Tensor
        The expression of every row, shape ``(m, …)``; it is used for the rows from ``k`` on. It
        reads earlier rows of the result as elements of the state, ``state[t - 1, …]`` to
        ``state[t - k, …]``: directly, or through other tensors whose first dimension is the time.
    state_placeholder : Tensor or sequence of Tensor
        A `placeholder` of shape ``(m, …)`` for each init and update: it stands for the result.
    inputs : sequence of Tensor, optional
        Ignored apart from its type: the inputs follow from the updates. Classic TVM has a parameter
        of this name.
    name : str
        Name of the result and of its stage.

    Returns
    -------
    Tensor or tuple of Tensor
        The rows of all steps, shape ``(m, …)``; a tuple if there are several states.

    Raises
    ------
    ExpressionError
        If shapes or dtypes do not fit together, or a step reads a row that is not computed yet.

    Notes
    -----
    The bounds of `tolerance` grow with the number of steps: linearly if states are added, and
    exponentially if they are multiplied by each other. So verify such a program with few steps.

    **Source:** classic TVM's function of this name; the time axis is ``result.op.scan_axis``.

    Examples
    --------
    >>> import numpy as np
    >>> from dlcompiler import te
    >>> X = te.placeholder((5,), name="X")
    >>> state = te.placeholder((5,), name="state")
    >>> first = te.compute((1,), lambda t: X[t], name="first")
    >>> step = te.compute((5,), lambda t: state[t - 1] + X[t], name="step")
    >>> S = te.scan(first, step, state, name="S")
    >>> te.evaluate(S, {X: np.arange(5, dtype="float32")})
    array([ 0.,  1.,  3.,  6., 10.], dtype=float32)
    """
    where = f"te.scan {checked_name(name, 'te.scan')}"
    inits, updates, states = (
        _tensors(where, what, given)
        for what, given in (("init", init), ("update", update), ("state", state_placeholder))
    )
    _tensors(where, "input", inputs or ())
    if not len(inits) == len(updates) == len(states) != 0:
        raise ExpressionError(
            where, "the numbers of inits, updates and states differ",
            got=f"{len(inits)}, {len(updates)} and {len(states)}",
        )  # fmt: skip
    for triple in zip(inits, updates, states, strict=True):
        _check_kinds(where, *triple)
        _check_shapes(where, *triple, like=(inits[0], states[0]))
    _check_different(where, (*inits, *updates, *states))
    op = ScanOp(name, inits, updates, states)
    for inner in op.cell:
        _check_step(where, op, inner)
    _check_inits(where, op)
    return op.outputs if len(op.outputs) > 1 else op.outputs[0]


def _tensors(where: str, what: str, given: Any) -> tuple[Tensor, ...]:
    items = tuple(given) if isinstance(given, list | tuple) else (given,)
    for item in items:
        if not isinstance(item, Tensor):
            raise ExpressionError(where, f"the {what} is not a tensor", got=repr(item))
    return items


def _check_kinds(where: str, init: Tensor, update: Tensor, state: Tensor) -> None:
    if not isinstance(state.op, PlaceholderOp):
        raise ExpressionError(
            where, f"the state {state.name} is not a placeholder", got=repr(state.op),
            hint="declare it: te.placeholder(shape), and let the update read it",
        )  # fmt: skip
    for what, tensor in (("init", init), ("update", update)):
        if not isinstance(tensor.op, ComputeOp):
            raise ExpressionError(
                where, f"the {what} {tensor.name} is not computed", got=repr(tensor.op),
                hint=f"copy it: te.compute({tensor.name}.shape, lambda *i: {tensor.name}(*i))",
            )  # fmt: skip


def _check_shapes(
    where: str, init: Tensor, update: Tensor, state: Tensor, like: tuple[Tensor, Tensor]
) -> None:
    """Refuse shapes that do not fit together, or differ from `like` in the number of rows."""
    wanted = f"(k, …), (m, …) and (m, …): those of {like[0].name} and {like[1].name}"
    got = f"{init.name} {init.shape}, {update.name} {update.shape}, {state.name} {state.shape}"
    if not init.ndim == update.ndim == state.ndim != 0:
        raise ExpressionError(
            where, "the numbers of dimensions differ, or are 0", got=got, expected=wanted,
            because="the first dimension is the time",
        )  # fmt: skip
    pairs = [*zip(update.shape, state.shape, strict=True)]
    pairs += [*zip(init.shape[1:], state.shape[1:], strict=True)]
    pairs += [(init.shape[0], like[0].shape[0]), (state.shape[0], like[1].shape[0])]
    if not all(same_extent(a, b) for a, b in pairs):
        raise ExpressionError(where, "the shapes do not fit together", got=got, expected=wanted)
    rows, steps = init.shape[0], state.shape[0]
    if not isinstance(rows, int) or rows < 1 or (isinstance(steps, int) and steps < rows):
        raise ExpressionError(
            where, f"the number of first rows in {init.name} is not valid for {state.name}",
            got=got, expected=f"1 to {steps} rows",
        )  # fmt: skip
    if not init.dtype == update.dtype == state.dtype:
        raise ExpressionError(
            where, "the dtypes differ",
            got=f"{init.name} {init.dtype}, {update.name} {update.dtype}, {state.name} "
            f"{state.dtype}",
        )  # fmt: skip


def _check_different(where: str, tensors: Sequence[Tensor]) -> None:
    twice = next((t for n, t in enumerate(tensors) if t in tensors[:n]), None)
    if twice is not None:
        raise ExpressionError(
            where, f"{twice.name} is given twice",
            hint="give each state its own init, update and placeholder",
        )  # fmt: skip


def _check_step(where: str, scan: ScanOp, op: Any) -> None:
    """Refuse an operation of the cell that does not compute one step from earlier ones."""
    if not isinstance(op, ComputeOp):
        raise ExpressionError(
            where, f"{op.name} depends on a state, and is not defined by te.compute",
            got=repr(op), because="a step is computed element by element",
        )  # fmt: skip
    steps = scan.states[0].shape[0]
    if not op.axis or not same_extent(op.axis[0].extent, steps):
        raise ExpressionError(
            where, f"the first dimension of {op.name} is not the time",
            got=f"shape {op.outputs[0].shape}", expected=f"({steps}, …)",
            because="it depends on a state, so its values differ from step to step",
        )  # fmt: skip
    made = {tensor for inner in scan.cell for tensor in inner.outputs}
    for load in _loads(op):
        offset = _offset(load, op.axis[0].var)
        if load.tensor in scan.states and (offset is None or not -scan.first <= offset <= -1):
            raise ExpressionError(
                where, f"{op.name} reads {load}, which is not always an earlier row",
                expected=f"{load.tensor.name}[{op.axis[0].name} - c, …] with c from 1 to "
                f"{scan.first}",
                because=f"{scan.inits[0].name} gives {scan.first} first "
                f"row{'s' if scan.first > 1 else ''}",
            )  # fmt: skip
        if load.tensor in made and offset != 0:
            raise ExpressionError(
                where, f"{op.name} reads {load}, which belongs to another step",
                expected=f"{load.tensor.name}[{op.axis[0].name}, …]",
                hint="make it a state: only states keep values for later steps",
            )  # fmt: skip
    later = started(op, scan.first)
    for body in later.bodies:
        reduced = body.axes if isinstance(body, Reduce) else ()
        check_accesses(body, (*later.axis, *reduced), f"{where}: {op.name}")


def _offset(load: TensorLoad, time: Var) -> int | None:
    """Return n if the first index of an element is ``time + n``; otherwise None."""
    if not load.indices:
        return None
    terms, constant = numeric.linear_form(load.indices[0]) or ({}, 0)
    return constant if terms == {time: 1} else None


def _check_inits(where: str, scan: ScanOp) -> None:
    before = post_order(scan.inits)
    states = {state.op for state in scan.states}
    wrong = next((op for op in before if op in states or op in scan.cell), None)
    if wrong is not None:
        names = ", ".join(init.name for init in scan.inits)
        raise ExpressionError(
            where, f"the first rows ({names}) depend on {wrong.name}, which is computed after them"
        )


def _loads(op: ComputeOp) -> Iterator[TensorLoad]:
    for body in op.bodies:
        yield from (node for node in walk(body) if isinstance(node, TensorLoad))


def started(op: ComputeOp, first: int) -> ComputeOp:
    """Return an operation of a scan's cell restricted to the steps from `first` on."""
    time = op.axis[0]
    rest = Axis(time.name, extent_binary("sub", time.extent, first), "data")
    now = {time.var: rest.var + first}

    def rule(node: Node) -> Node:
        return now.get(node, node) if isinstance(node, Var) else node

    return ComputeOp(op.name, (rest, *op.axis[1:]), rewrite_bodies(op.bodies, rule), op.tag)


def requirements_of(ops: Iterable[Operation], sizes: Collection[Var]) -> Iterator[Requirement]:
    """Yield the `requirements` of operations, including those in the cells of scans."""
    for op in ops:
        if isinstance(op, ComputeOp):
            yield from requirements(op, sizes)
        if not isinstance(op, ScanOp):
            continue
        for inner in op.cell:
            assert isinstance(inner, ComputeOp)
            yield from requirements(started(inner, op.first), sizes)
        if not isinstance(rows := op.states[0].shape[0], int):
            # Rows that the inits give must exist; with a number of rows, `scan` has checked it.
            yield compare("ge", rows, op.first), f"{op.name} has fewer rows than its inits"


def check_recurrences(outputs: Iterable[Tensor]) -> None:
    """Refuse uses of a scan's states and steps from outside the scan, and reads before row 0.

    `te.compute` accepts ``A[t - 1]`` of a placeholder ``A``, since ``A`` may become the state of a
    scan later. Whether it did is known here, where the whole expression is used.

    Parameters
    ----------
    outputs : iterable of Tensor
        The results of the expression.

    Raises
    ------
    ExpressionError
        If a state, or a tensor that a scan computes at each step, is used outside the scan; if an
        operation outside all scans reads an element before the first.
    """
    wanted = tuple(outputs)
    order = post_order(wanted)
    owners: dict[Tensor, ScanOp] = {}
    for scan in (op for op in order if isinstance(op, ScanOp)):
        own = [tensor for op in scan.cell for tensor in op.outputs]
        for tensor in (*own, *scan.states, *scan.inits):
            if owners.setdefault(tensor, scan) is not scan:
                raise ExpressionError(
                    f"te.scan {scan.name}",
                    f"{tensor.name} is already part of the scan {owners[tensor].name}",
                    hint="give each scan its own states, inits and updates",
                )
    private = {tensor for tensor, scan in owners.items() if tensor not in scan.inits}
    for op in order:
        for tensor in private.intersection(op.input_tensors):
            if op is not owners[tensor] and op not in owners[tensor].cell:
                raise _inside(op.name, tensor, owners[tensor])
        if isinstance(op, ComputeOp) and not any(op in scan.cell for scan in owners.values()):
            _check_early_reads(op)
    for tensor in wanted:
        if tensor in owners:
            raise _inside("the caller", tensor, owners[tensor])


def _check_early_reads(op: ComputeOp) -> None:
    if earlier_reads(op.bodies, op.axis):
        for body in op.bodies:
            reduced = body.axes if isinstance(body, Reduce) else ()
            check_accesses(body, (*op.axis, *reduced), f"te.compute {op.name}")


def _inside(reader: str, tensor: Tensor, scan: ScanOp) -> ExpressionError:
    results = ", ".join(output.name for output in scan.outputs)
    return ExpressionError(
        f"te.scan {scan.name}", f"{reader} uses {tensor.name}, which exists only within a step",
        hint=f"use the results of the scan: {results}",
    )  # fmt: skip
