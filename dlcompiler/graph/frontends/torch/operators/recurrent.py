"""Recurrent layers: LSTM, GRU and the plain one, of several layers, in one direction or both."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.graph.frontends.torch.node import AtenNode, Converter
from dlcompiler.graph.ir import Expr


def _recurrent(kind: str, activation: str = "") -> Converter:
    """Return the converter of a layer: outputs of all steps, then the last states."""

    def convert(node: AtenNode) -> list[Expr]:
        if node["train"] and float(node["dropout"]):
            node.fail("it drops elements at random, as in training", hint="module.eval()")
        data = node.tensor("input")
        given = node["hx"]
        before = list(given) if isinstance(given, list | tuple) else [given]
        directions = 2 if node["bidirectional"] else 1
        if node["batch_first"]:
            data = node.call("transpose", data, axes=(1, 0, 2))
        weights = node.tensors("params")
        count = len(weights) // (int(node["num_layers"]) * directions)
        attrs = {"activation": activation} if activation else {}
        last: list[list[Expr]] = []
        for layer in range(int(node["num_layers"])):
            outputs = []
            for turned in range(directions):
                place = layer * directions + turned
                own = weights[place * count : (place + 1) * count]
                states = [_state(node, state, place) for state in before]
                found = _direction(node, kind, data, states, own, attrs, is_turned=bool(turned))
                outputs.append(found[0])
                last.append(found[1:])
            data = outputs[0] if directions == 1 else node.call(
                "concatenate", node.tuple(outputs), axis=2
            )  # fmt: skip
        if node["batch_first"]:
            data = node.call("transpose", data, axes=(1, 0, 2))
        states = [
            node.call("stack", node.tuple(parts), axis=0) for parts in zip(*last, strict=True)
        ]
        return [data, *states]

    return convert


def _direction(
    node: AtenNode, kind: str, data: Expr, states: Sequence[Expr], weights: Sequence[Expr],
    attrs: dict[str, str], *, is_turned: bool,
) -> list[Expr]:  # fmt: skip
    """Return the outputs of all steps in one direction, and the last states."""
    if kind == "lstm" and node.shape(weights[0])[0] != 4 * node.shape(states[0])[-1]:
        node.fail("its states are projected (proj_size)")
    if is_turned:
        data = node.call("reverse", data, axis=0)
    found = node.call(f"nn.{kind}", data, *states, *weights, **attrs)
    rows: Expr = found[0]
    if is_turned:
        rows = node.call("reverse", rows, axis=0)
    return [rows, *(found[1 + n] for n in range(len(states)))]


def _state(node: AtenNode, states: Expr, place: int) -> Expr:
    """Return the state of one layer and direction before the first step."""
    shape = node.shape(states)
    part = node.call("strided_slice", states, begin=(place,), end=(place + 1,), axes=(0,))
    return node.reshape(part, shape[1:])


TABLE: dict[str, Converter] = {
    "lstm.input": _recurrent("lstm"), "gru.input": _recurrent("gru"),
    "rnn_tanh.input": _recurrent("rnn", "tanh"), "rnn_relu.input": _recurrent("rnn", "relu"),
}  # fmt: skip
"""The converters of this module."""
