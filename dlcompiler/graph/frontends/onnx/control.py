"""Control flow that is known when a model is imported: branches, and loops that are unrolled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import Constant, Expr, Tuple

if TYPE_CHECKING:
    from dlcompiler.graph.frontends.onnx.importer import Importer

MOST_ITERATIONS = 1000
"""Most iterations of a loop that is unrolled; [1]."""

Scope = dict[str, Expr | None]


def branch(node: Node, importer: Importer, scope: Scope) -> list[Expr | None]:
    """Return the outputs of the branch that a known condition chooses."""
    is_true = bool(np.ravel(node.constant(0, "its condition"))[0])
    return importer.subgraph(node.attr("then_branch" if is_true else "else_branch"), [], scope)


def loop(node: Node, importer: Importer, scope: Scope) -> list[Expr | None]:
    """Unroll a loop whose number of iterations is known."""
    most = MOST_ITERATIONS + 1
    if node.optional(0) is not None:
        most = int(node.integers(0, "its number of iterations")[0])
    goes_on: Expr = constant_of(np.asarray(True))
    if node.optional(1) is not None:
        goes_on = node.input(1)
    states = list(node.inputs[2:])
    rows: list[list[Expr]] = []
    for step in range(min(most, MOST_ITERATIONS + 1)):
        if not isinstance(goes_on, Constant):
            node.fail("whether it goes on is computed when the model runs")
        if not bool(np.ravel(goes_on.value)[0]):
            break
        if step == MOST_ITERATIONS:
            node.fail(f"it has more than {MOST_ITERATIONS} iterations")
        given = [_number(step), goes_on, *states]
        values = importer.subgraph(node.attr("body"), given, scope)
        if len(values) <= len(states):
            node.fail("its body has too few outputs", got=str(len(values)))
        goes_on, *_ = _known(node, values[:1])
        values = values[1:]
        states = values[: len(states)]
        rows.append(_known(node, values[len(states) :]))
    if not rows and len(node.outputs) > len(states):
        node.fail("it has no iteration, so that the shape of its rows is not known")
    return [*states, *_stacked(node, rows, [0] * len(node.outputs), [False] * len(node.outputs))]


def scan(node: Node, importer: Importer, scope: Scope) -> list[Expr | None]:
    """Unroll a loop over the slices of its operands."""
    if node.version < 9:
        node.fail("it is of an old version, with batches")
    count = int(node.attr("num_scan_inputs", 0))
    if not 0 < count <= len(node.inputs):
        node.fail("it reads no slices", got=f"num_scan_inputs {count}")
    states = [node.input(i) for i in range(len(node.inputs) - count)]
    read = [node.input(i) for i in range(len(node.inputs) - count, len(node.inputs))]
    if any(node.rank(x) == 0 for x in read):
        node.fail("a scalar has no slices")
    axes = [axis % node.rank(x) for axis, x in zip(_listed(node, "scan_input_axes", count), read,
                                                   strict=True)]  # fmt: skip
    turned = _listed(node, "scan_input_directions", count)
    steps = node.shape(read[0])[axes[0]] if read else 0
    if not 0 < steps <= MOST_ITERATIONS:
        node.fail(f"no loop of 1 to {MOST_ITERATIONS} iterations", got=f"{steps} iterations")
    rows: list[list[Expr]] = []
    for step in range(steps):
        given = list(states)
        for x, axis, is_turned in zip(read, axes, turned, strict=True):
            place = steps - 1 - step if is_turned else step
            part = node.call("strided_slice", x, begin=(place,), end=(place + 1,), axes=(axis,))
            given.append(importer.folded(node.call("squeeze", part, axis=(axis,))))
        values = _known(node, importer.subgraph(node.attr("body"), given, scope))
        states, row = values[: len(states)], values[len(states) :]
        rows.append(row)
    written = len(rows[0])
    return [
        *states,
        *_stacked(
            node, rows, _listed(node, "scan_output_axes", written),
            [bool(n) for n in _listed(node, "scan_output_directions", written)],
        ),
    ]  # fmt: skip


def sequence_map(node: Node, importer: Importer, scope: Scope) -> list[Expr | None]:
    """Compute the body for the tensors of sequences at one place after the other."""
    count = len(node.sequence(0))
    rows: list[list[Expr]] = []
    for place in range(count):
        given: list[Expr] = []
        for i in range(len(node.inputs)):
            value = node.input(i)
            if isinstance(value, Tuple) and len(value.fields) != count:
                node.fail("its sequences have several lengths",
                          got=f"{count} and {len(value.fields)}")  # fmt: skip
            given.append(value.fields[place] if isinstance(value, Tuple) else value)
        rows.append(_known(node, importer.subgraph(node.attr("body"), given, scope)))
        if len(rows[-1]) < len(node.outputs):
            node.fail("its body has fewer outputs", got=str(len(rows[-1])))
    return [node.tuple([row[n] for row in rows]) for n in range(len(node.outputs))]


def _number(value: int) -> Expr:
    return constant_of(np.asarray(value, np.int64))


def _listed(node: Node, name: str, count: int) -> list[int]:
    found = [int(n) for n in node.attr(name) or [0] * count]
    if len(found) != count:
        node.fail(f"{name} has another number of entries", got=repr(found), expected=str(count))
    return found


def _known(node: Node, values: Sequence[Expr | None]) -> list[Expr]:
    found = [value for value in values if value is not None]
    if len(found) < len(values):
        node.fail("its body has an output that is not computed")
    return found


def _stacked(
    node: Node, rows: Sequence[Sequence[Expr]], axes: Sequence[int], turned: Sequence[bool]
) -> list[Expr]:
    """Return what the iterations gave, along a new dimension."""
    found: list[Expr] = []
    for n, column in enumerate(zip(*rows, strict=True)):
        parts = list(reversed(column)) if turned[n] else list(column)
        rank = node.rank(parts[0]) + 1
        found.append(node.call("stack", node.tuple(parts), axis=axes[n] % rank))
    return found


CONTROL: dict[str, Callable[[Node, Any, Scope], list[Expr | None]]] = {
    "If": branch, "Loop": loop, "Scan": scan, "SequenceMap": sequence_map,
}  # fmt: skip
"""Operators with bodies, which read values from around them."""
