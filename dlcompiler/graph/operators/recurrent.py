"""Recurrent cells, and sequences of their steps: LSTM, GRU and the plain one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.graph.ir.types import ANY, Dimension, TensorType, TupleType
from dlcompiler.graph.operators.attributes import Attribute, boolean, one_of
from dlcompiler.graph.operators.base import (
    Array,
    CallTypes,
    GraphOperator,
    NotKnown,
    Pattern,
    Result,
)
from dlcompiler.graph.operators.relations import expect, of_floats
from dlcompiler.graph.operators.values import rounded, wide
from dlcompiler.ops.recurrent import GATES, Cell, cell_sequence, cell_step

# -- types ----------------------------------------------------------------------------------------


def _type(kind: str, *, is_sequence: bool) -> Callable[[CallTypes], TensorType | TupleType]:
    """Return the relation of a cell or a sequence; it infers the types of states and weights."""
    states = 2 if kind == "lstm" else 1

    def relation(call: CallTypes) -> TensorType | TupleType:
        data = of_floats(call)
        if data.rank != 2 + is_sequence:
            call.fail(f"argument data has {data.rank} dimensions", expected=f"{2 + is_sequence}")
        size = _hidden_size(call, kind, states)
        batch, gates = data.shape[-2], _times(size, GATES[kind])
        for n in range(states):
            expect(call, 1 + n, (batch, size), data.dtype)
        expect(call, 1 + states, (gates, data.shape[-1]), data.dtype)
        expect(call, 2 + states, (gates, size), data.dtype)
        for n in range(3 + states, len(call.args)):
            expect(call, n, (gates,), data.dtype)
        state = TensorType((batch, size), data.dtype)
        if is_sequence:
            rows = TensorType((data.shape[0], batch, size), data.dtype)
            return TupleType((rows, *[state] * states))
        return TupleType((state, state)) if states > 1 else state

    return relation


def _hidden_size(call: CallTypes, kind: str, states: int) -> Dimension:
    """Return the size of the state, from the first argument that says it."""
    for n in (*range(1, 1 + states), 2 + states):
        found = call.args[n]
        if isinstance(found, TensorType) and found.rank == 2 and found.shape[1] is not ANY:
            return found.shape[1]
    found = call.args[1 + states]
    if isinstance(found, TensorType) and found.rank == 2 and isinstance(found.shape[0], int):
        if found.shape[0] % GATES[kind]:
            call.fail(f"argument weight_ih has {found.shape[0]} rows",
                      expected=f"a multiple of {GATES[kind]}")  # fmt: skip
        return found.shape[0] // GATES[kind]
    if all(kind is None for kind in call.args[1:]):
        raise NotKnown
    return ANY


def _times(extent: Dimension, factor: int) -> Dimension:
    return extent * factor if isinstance(extent, int) else ANY


# -- values ---------------------------------------------------------------------------------------


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-x))


def _step(
    kind: str, call: Result, x: Array, states: Sequence[Array], weights: Sequence[Array]
) -> Any:
    """Return the states after a step; all arrays are float64."""
    hidden = states[0]
    own, other, *biases = weights
    nothing = np.zeros(len(own))
    data_bias, state_bias = (*biases, nothing, nothing)[:2]
    a, b = x @ own.T + data_bias, hidden @ other.T + state_bias
    if kind == "rnn":
        total = a + b
        return (np.tanh(total) if call.attrs["activation"] == "tanh" else np.maximum(total, 0),)
    if kind == "lstm":
        i, f, g, o = np.split(a + b, 4, axis=1)
        cell = _sigmoid(f) * states[1] + _sigmoid(i) * np.tanh(g)
        return _sigmoid(o) * np.tanh(cell), cell
    (ar, az, an), (br, bz, bn) = np.split(a, 3, axis=1), np.split(b, 3, axis=1)
    reset, update = _sigmoid(ar + br), _sigmoid(az + bz)
    if call.attrs["reset_after"]:
        inner = reset * bn
    else:
        inner = (reset * hidden) @ np.split(other, 3)[2].T + np.split(state_bias, 3)[2]
    return ((1 - update) * np.tanh(an + inner) + update * hidden,)


def _evaluate(kind: str, *, is_sequence: bool) -> Callable[..., Any]:
    count = 2 if kind == "lstm" else 1

    def evaluate(call: Result, x: Array, *others: Array) -> Any:
        values = [wide(other) for other in others]
        states, weights = values[:count], values[count:]
        outputs = []
        for row in wide(x) if is_sequence else [wide(x)]:
            states = list(_step(kind, call, row, states, weights))
            outputs.append(states[0])
        if not is_sequence:
            return _as_types(call, states)
        rows = np.stack(outputs) if outputs else np.zeros((0, *states[0].shape))
        return _as_types(call, [rows, *states])

    return evaluate


def _as_types(call: Result, values: Sequence[Array]) -> Any:
    if isinstance(call.type, TensorType):
        return rounded(values[0], call.type)
    assert isinstance(call.type, TupleType)
    kinds = [kind for kind in call.type.fields if isinstance(kind, TensorType)]
    return tuple(rounded(value, kind) for value, kind in zip(values, kinds, strict=True))


# -- definitions ----------------------------------------------------------------------------------


def _define(kind: str, *, is_sequence: bool) -> Callable[..., Any]:
    count = 2 if kind == "lstm" else 1

    def define(call: Result, x: te.Tensor, *others: te.Tensor) -> Any:
        states, weights = others[:count], others[count:]
        attrs = call.attrs
        biases = (*weights[2:], None, None)
        cell = Cell(
            kind, weights[0], weights[1], biases[0], biases[1],
            activation=attrs.get("activation", "tanh"),
            resets_after=attrs.get("reset_after", True),
        )  # fmt: skip
        made = (cell_sequence if is_sequence else cell_step)(cell, x, states)
        return made if len(made) > 1 else made[0]

    return define


# -- the table ------------------------------------------------------------------------------------

_ATTRIBUTES = {
    "lstm": (),
    "gru": (Attribute("reset_after", boolean, True, "the reset gate multiplies the product with "
                      "the state, not the state"),),
    "rnn": (Attribute("activation", one_of("tanh", "relu"), "tanh", "of the new state"),),
}  # fmt: skip
_WORDS = {
    "lstm": "an LSTM: hidden state and cell; gates: input, forget, cell, output",
    "gru": "a GRU: hidden state; gates: reset, update, new",
    "rnn": "a recurrent layer: hidden state",
}


def _operator(kind: str, *, is_sequence: bool) -> GraphOperator:
    states = ("hidden", "cell") if kind == "lstm" else ("hidden",)
    words = "All steps of" if is_sequence else "One step of"
    results = "; the outputs of all steps (t, n, h), and the last states" if is_sequence else ""
    return GraphOperator(
        f"nn.{kind}" if is_sequence else f"nn.{kind}_cell",
        ("data", *states, "weight_ih", "weight_hh", "bias_ih?", "bias_hh?"),
        _type(kind, is_sequence=is_sequence), _evaluate(kind, is_sequence=is_sequence),
        Pattern.OPAQUE if is_sequence else Pattern.ANCHOR, _define(kind, is_sequence=is_sequence),
        _ATTRIBUTES[kind], f"{words} {_WORDS[kind]}{results}.", kernel=kind,
    )  # fmt: skip


TABLE = (
    *(_operator(kind, is_sequence=False) for kind in GATES),
    *(_operator(kind, is_sequence=True) for kind in GATES),
)
"""The operators of this module."""
