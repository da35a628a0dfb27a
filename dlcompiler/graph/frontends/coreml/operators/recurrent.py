"""Recurrent operations."""

from __future__ import annotations

import numpy as np

from dlcompiler.graph.frontends.coreml.node import Operation, OperationConverter
from dlcompiler.graph.frontends.coreml.recurrence import Direction, lstm
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import Expr

_ORDER = (0, 1, 3, 2)
"""The order of the LSTM gates in MIL: for each of our gates, its place there."""
_FUNCTIONS = {"recurrent_activation": "sigmoid", "cell_activation": "tanh", "activation": "tanh"}


def _lstm(node: Operation) -> list[Expr]:
    turned = node.text("direction", "forward")
    if turned not in ("forward", "reverse", "bidirectional"):
        node.fail("no such direction", got=repr(turned)[:100])
    for name, usual in _FUNCTIONS.items():
        if node.text(name, usual) != usual:
            node.fail(f"its {name} is not {usual}", got=node.text(name)[:100])
    for name in ("peephole", "peephole_back", "clip"):
        if node.has(name):
            node.fail(f"it has the parameter {name}")
    directions = [_direction(node, "", turned == "reverse")]
    if turned == "bidirectional":
        directions.append(_direction(node, "_back", True))
    states = [node.input("initial_h"), node.input("initial_c")]
    return lstm(node, node.input(), states, directions, has_sequence=node.flag("output_sequence"))


def _direction(node: Operation, ending: str, is_turned: bool) -> Direction:
    weights = [_in_order(node, f"weight_{name}{ending}") for name in ("ih", "hh")]
    has_bias = node.has(f"bias{ending}")
    bias = _in_order(node, f"bias{ending}") if has_bias else None
    return Direction(weights[0], weights[1], bias, is_turned)


def _in_order(node: Operation, name: str) -> Expr:
    """Return weights with the gates in our order."""
    array = node.array(name)
    if array.ndim < 1 or array.shape[0] % 4:
        node.fail(f"{name} has no four gates", got=str(array.shape))
    parts = np.split(array, 4)
    return constant_of(np.concatenate([parts[n] for n in _ORDER]))


TABLE: dict[str, OperationConverter] = {"lstm": _lstm}
"""The converters of this module."""
