"""Recurrent layers: LSTM, GRU and the plain one, in one direction or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import Expr

_GATES = {"lstm": (0, 2, 3, 1), "gru": (1, 0, 2), "rnn": (0,)}
"""Kind of layer -> where each of our gates stands among those of ONNX."""
_ACTIVATIONS = {"lstm": ["Sigmoid", "Tanh", "Tanh"], "gru": ["Sigmoid", "Tanh"], "rnn": ["Tanh"]}


@dataclass(frozen=True)
class _Layer:
    """A recurrent layer, and its operands: data in the order of steps, batch, elements."""

    node: Node
    kind: str
    data: Expr
    batch: int
    hidden: int
    activation: str = "tanh"


def _recurrent(kind: str) -> Callable[[Node], Any]:
    def convert(node: Node) -> list[Expr]:
        is_batch_first = bool(node.attr("layout", 0))
        data = node.input(0)
        if is_batch_first:
            data = node.call("transpose", data, axes=(1, 0, 2))
        steps, batch, _ = node.shape(data)
        directions, _, hidden = node.shape(node.input(2))
        _check(node, kind, steps, directions)
        layer = _Layer(node, kind, data, batch, hidden, _activation(node, kind))
        turned = str(node.attr("direction", "forward"))
        is_turned = [turned == "reverse"] if directions == 1 else [False, True]
        found = [_direction(layer, n, turned) for n, turned in enumerate(is_turned)]
        rows, *states = (_stacked(node, parts) for parts in zip(*found, strict=True))
        outputs = [node.call("transpose", rows, axes=(1, 0, 2, 3)), *states]
        if is_batch_first:
            outputs = [node.call("transpose", outputs[0], axes=(2, 0, 1, 3)),
                       *(node.call("transpose", s, axes=(1, 0, 2)) for s in states)]  # fmt: skip
        return outputs

    return convert


def _check(node: Node, kind: str, steps: int, directions: int) -> None:
    """Refuse what no operator of graphs computes."""
    if node.optional(4) is not None:
        lengths = node.integers(4, "the lengths of the sequences")
        if any(n != steps for n in lengths):
            node.fail("the sequences have several lengths", got=repr(lengths)[:100])
    if kind == "lstm" and node.optional(7) is not None:
        node.fail("its gates look at the cell (peepholes)")
    if node.attr("clip") is not None or node.attr("input_forget", 0):
        node.fail("it clips values, or joins two gates")
    if directions not in (1, 2):
        node.fail("it has no such number of directions", got=str(directions))


def _activation(node: Node, kind: str) -> str:
    """Return the function of a plain layer; the others have the usual ones."""
    names = [str(name).title() for name in node.attr("activations") or []]
    usual = _ACTIVATIONS[kind]
    first, second = names[: len(usual)] or usual, names[len(usual) :]
    if second and second != first:
        node.fail("its directions have other functions", got=repr(names))
    if kind == "rnn" and first in (["Tanh"], ["Relu"]):
        return first[0].lower()
    if first != usual:
        node.fail("it has other functions", got=repr(names), expected=repr(usual))
    return "tanh"


def _direction(layer: _Layer, n: int, is_turned: bool) -> list[Expr]:
    """Return the outputs of all steps in one direction, and the last states."""
    node, data = layer.node, layer.data
    if is_turned:
        data = node.call("reverse", data, axis=0)
    weights = [_gates(layer, node.input(i), n) for i in (1, 2)]
    biases: list[Expr] = []
    if node.optional(3) is not None:
        both = _chosen(node, node.input(3), n)
        count = len(_GATES[layer.kind]) * layer.hidden
        halves = [
            node.call("strided_slice", both, begin=(a,), end=(a + count,)) for a in (0, count)
        ]
        biases = [_in_order(layer, half) for half in halves]
    states = [_state(layer, i, n) for i in ((5, 6) if layer.kind == "lstm" else (5,))]
    attrs: dict[str, Any] = {}
    if layer.kind == "gru":
        attrs["reset_after"] = bool(node.attr("linear_before_reset", 0))
    if layer.kind == "rnn":
        attrs["activation"] = layer.activation
    found = node.call(f"nn.{layer.kind}", data, *states, *weights, *biases, **attrs)
    rows: Expr = found[0]
    if is_turned:
        rows = node.call("reverse", rows, axis=0)
    return [rows, *(found[1 + i] for i in range(len(states)))]


def _chosen(node: Node, value: Expr, n: int) -> Expr:
    """Return the part of an operand for one direction."""
    shape = node.shape(value)
    part = node.call("strided_slice", value, begin=(n,), end=(n + 1,), axes=(0,))
    return node.reshape(part, shape[1:])


def _gates(layer: _Layer, value: Expr, n: int) -> Expr:
    return _in_order(layer, _chosen(layer.node, value, n))


def _in_order(layer: _Layer, value: Expr) -> Expr:
    """Return weights with the gates in our order."""
    order = _GATES[layer.kind]
    if len(order) == 1:
        return value
    rows = np.concatenate([np.arange(g * layer.hidden, (g + 1) * layer.hidden) for g in order])
    return layer.node.call("take", value, constant_of(rows.astype(np.int64)), axis=0)


def _state(layer: _Layer, i: int, n: int) -> Expr:
    """Return a state before the first step: 0 if it is left out."""
    node = layer.node
    value = node.optional(i)
    if value is None:
        shape = (layer.batch, layer.hidden)
        return node.call("full", node.scalar(0, layer.data), shape=shape,
                         dtype=node.dtype(layer.data))  # fmt: skip
    if node.attr("layout", 0):
        value = node.call("transpose", value, axes=(1, 0, 2))
    return _chosen(node, value, n)


def _stacked(node: Node, parts: Sequence[Expr]) -> Expr:
    """Return the outputs of all directions, along a new first dimension."""
    return node.call("stack", node.tuple(parts), axis=0)


TABLE: dict[str, Callable[[Node], Any]] = {
    "LSTM": _recurrent("lstm"), "GRU": _recurrent("gru"), "RNN": _recurrent("rnn"),
}  # fmt: skip
"""The converters of this module."""
