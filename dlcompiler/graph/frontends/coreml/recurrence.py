"""LSTM in one direction or both, for operations and for layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlcompiler.graph.frontends.coreml.node import CoremlOrigin
from dlcompiler.graph.frontends.slices import cut
from dlcompiler.graph.ir import Expr


@dataclass(frozen=True)
class Direction:
    """The weights of a direction, with the gates in the order input, forget, cell, output."""

    weight_ih: Expr
    weight_hh: Expr
    bias: Expr | None
    is_turned: bool


def lstm(
    node: CoremlOrigin, x: Expr, states: Sequence[Expr], directions: Sequence[Direction],
    *, has_sequence: bool,
) -> list[Expr]:  # fmt: skip
    """Return the outputs of all steps, or of the last one, and the last states.

    Data are (steps, batch, elements), states (batch, directions · elements).
    """
    found = []
    for n, each in enumerate(directions):
        size = node.shape(each.weight_hh)[-1]
        own = [cut(node, s, [slice(None), slice(n * size, (n + 1) * size)]) for s in states]
        data = node.call("reverse", x, axis=0) if each.is_turned else x
        bias = [] if each.bias is None else [each.bias]
        made = node.call("nn.lstm", data, *own, each.weight_ih, each.weight_hh, *bias)
        rows: Expr = made[0]
        if each.is_turned:
            rows = node.call("reverse", rows, axis=0)
        if not has_sequence:
            rows = node.call("expand_dims", made[1], axis=0)
        found.append([rows, made[1], made[2]])
    if len(found) == 1:
        return found[0]
    return [
        node.call("concatenate", node.tuple(parts), axis=axis)
        for parts, axis in zip(zip(*found, strict=True), (2, 1, 1), strict=True)
    ]
