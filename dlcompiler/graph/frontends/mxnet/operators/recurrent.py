"""The operator `RNN`: several recurrent layers whose weights are one vector."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler.graph.frontends.mxnet.node import Converter, MxnetNode
from dlcompiler.graph.ir import Expr

_MODES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "lstm": ("nn.lstm", 4, {}), "gru": ("nn.gru", 3, {"reset_after": True}),
    "rnn_tanh": ("nn.rnn", 1, {"activation": "tanh"}),
    "rnn_relu": ("nn.rnn", 1, {"activation": "relu"}),
}  # fmt: skip
"""Mode -> the operator of a layer, how many gates it has, and its attributes."""
_MOST_LAYERS = 1000


@dataclass(frozen=True)
class _Stack:
    """Layers above each other; the gates are in the order that our operators have, too."""

    node: MxnetNode
    mode: str
    directions: int
    layers: int
    hidden: int

    def sizes(self, width: int) -> list[tuple[int, ...]]:
        """Return the shapes of all weights, in their order; those of the biases are last."""
        rows, count = _MODES[self.mode][1] * self.hidden, self.layers * self.directions
        found: list[tuple[int, ...]] = []
        for n in range(count):
            given = width if n < self.directions else self.hidden * self.directions
            found += [(rows, given), (rows, self.hidden)]
        return found + [(rows,)] * (2 * count)

    def weights(self, vector: Expr, width: int) -> list[Expr]:
        """Return the parts of the vector."""
        shapes, place, found = self.sizes(width), 0, []
        total = sum(map(math.prod, shapes))
        if self.node.shape(vector) != (total,):
            self.node.fail("its vector of weights has another size",
                           got=repr(self.node.shape(vector)), expected=repr((total,)))  # fmt: skip
        for shape in shapes:
            end = place + math.prod(shape)
            part = self.node.call("strided_slice", vector, begin=(place,), end=(end,))
            found.append(self.node.reshape(part, shape))
            place = end
        return found

    def states(self, data: Expr) -> list[list[Expr]]:
        """Return the states before the first step: for each kind, those of layers and directions.

        Gluon writes zeros for a batch of any size, with 0 in place of its extent.
        """
        node, found = self.node, list[list[Expr]]()
        shape = (node.shape(data)[1], self.hidden)
        for i in (2, 3) if self.mode == "lstm" else (2,):
            if 0 in node.shape(node.input(i)):
                zeros = node.call("full", node.scalar(0, data), shape=shape, dtype=node.dtype(data))
                found.append([zeros] * (self.layers * self.directions))
                continue
            found.append([
                node.reshape(node.call("strided_slice", node.input(i), begin=(n,), end=(n + 1,),
                                       axes=(0,)), shape)
                for n in range(self.layers * self.directions)
            ])  # fmt: skip
        return found


def _rnn(node: MxnetNode) -> list[Expr]:
    data = node.input(0)
    _check(node)
    mode, layers = node.choice("mode", "lstm", *_MODES), node.integer("num_layers")
    if not 1 <= layers <= _MOST_LAYERS:
        node.fail("no such number of layers", got=str(layers), expected=f"1 to {_MOST_LAYERS}")
    directions = 2 if node.flag("bidirectional") else 1
    stack = _Stack(node, mode, directions, layers, node.integer("state_size"))
    weights, states = stack.weights(node.input(1), node.shape(data)[2]), stack.states(data)
    last: list[list[Expr]] = [[] for _ in states]
    for first in range(0, layers * directions, directions):
        rows = []
        for n in range(first, first + directions):
            biases = weights[2 * (layers * directions + n) :][:2]
            found = _layer(stack, data, [kind[n] for kind in states],
                           [*weights[2 * n : 2 * n + 2], *biases], is_turned=n > first)  # fmt: skip
            rows.append(found[0])
            for kind, state in zip(last, found[1:], strict=True):
                kind.append(state)
        data = rows[0] if directions == 1 else node.call("concatenate", node.tuple(rows), axis=2)
    if not node.flag("state_outputs"):
        return [data]
    return [data, *(node.call("stack", node.tuple(kind), axis=0) for kind in last)]


def _check(node: MxnetNode) -> None:
    """Refuse what no operator of graphs computes."""
    node.number("p", 0.0)
    node.flag("lstm_state_clip_nan")
    names = ("projection_size", "lstm_state_clip_min", "lstm_state_clip_max")
    given = [name for name in names if node.text(name) is not None]
    if given or node.flag("use_sequence_length"):
        node.fail("it projects or clips states, or has lengths of sequences",
                  got=", ".join(given) or "use_sequence_length")  # fmt: skip


def _layer(
    stack: _Stack, data: Expr, states: Sequence[Expr], weights: Sequence[Expr], *, is_turned: bool
) -> list[Expr]:
    """Return the outputs of all steps in one direction, and the last states."""
    node = stack.node
    name, _, attrs = _MODES[stack.mode]
    if is_turned:
        data = node.call("reverse", data, axis=0)
    found = node.call(name, data, *states, *weights, **attrs)
    rows: Expr = found[0]
    if is_turned:
        rows = node.call("reverse", rows, axis=0)
    return [rows, *(found[1 + i] for i in range(len(states)))]


TABLE: dict[str, Converter] = {"RNN": _rnn}
"""The converters of this module."""
