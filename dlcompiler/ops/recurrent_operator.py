"""The operators lstm, gru and rnn: recurrent layers, or one step of them.

`dlcompiler.ops.recurrent` defines them, `dlcompiler.ops.recurrent_schedule` schedules them on a
CPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dlcompiler import dtypes
from dlcompiler.ops.base import Operator, Reference, by_device
from dlcompiler.ops.helpers import tensor
from dlcompiler.ops.recurrent import Cell, cell_sequence, cell_step
from dlcompiler.ops.recurrent_tiles import define as define_in_tiles
from dlcompiler.ops.recurrent_workload import (
    BIASES,
    WEIGHTS,
    WORKLOADS,
    Layer,
    operands,
    prepack,
)
from dlcompiler.ops.rounding import SMALLEST, Array, Wide, unit
from dlcompiler.space import Workload
from dlcompiler.te import Tensor


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return the data, the states, the weights and biases, and the results."""
    layer = Layer.of(workload)
    if layer.packed:
        return define_in_tiles(workload)
    given = operands(layer)
    cell = Cell(
        layer.kind, given["weight_ih"], given["weight_hh"], given.get("bias_ih"),
        given.get("bias_hh"), layer.activation, layer.resets_after,
    )  # fmt: skip
    states = [given[name] for name in layer.states]
    made = (cell_step if layer.is_cell else cell_sequence)(cell, given["data"], states)
    named = [
        tensor(each.shape, lambda *i, each=each: each[i], name)
        for name, each in zip(layer.results, made, strict=False)
    ]
    return (*given.values(), *named)


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs, with weights of a usual size, the results and their bounds."""
    layer = Layer.of(workload)
    generator = np.random.default_rng(seed)
    rows = layer.gates * layer.hidden
    plain: dict[str, Array] = {}
    for name, each in operands(layer).items():
        shape, largest = each.static_shape, 1.0
        if name in WEIGHTS:  # with larger weights of the state, errors would grow step by step
            shape = (rows, shape[1])
            largest = 1 / layer.hidden if name == "weight_hh" else layer.inputs**-0.5
        elif name in BIASES:
            shape = (rows,)
        kind = dtypes.to_numpy(each.dtype)
        plain[name] = generator.uniform(-largest, largest, shape).astype(kind)
    results, bounds = exact(layer, plain)
    names = layer.results
    return Reference(
        prepack(workload, plain), dict(zip(names, results, strict=False)),
        dict(zip(names, bounds, strict=False)), plain,
    )  # fmt: skip


# -- the reference --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Known:
    """Values in float64, and how far those of a kernel may be off."""

    value: Wide
    error: Wide

    def __add__(self, other: _Known) -> _Known:
        return _Known(self.value + other.value, self.error + other.error)

    def __mul__(self, other: _Known) -> _Known:
        error = self.error * np.abs(other.value) + np.abs(self.value) * other.error
        return _Known(self.value * other.value, error)

    def part(self, number: int, count: int) -> _Known:
        """Return the values of a gate."""
        parts = (np.split(each, count, axis=-1)[number] for each in (self.value, self.error))
        return _Known(*parts)


def exact(layer: Layer, arrays: Mapping[str, Array]) -> tuple[list[Wide], list[Wide]]:
    """Return the results in float64 and their error bounds.

    Notes
    -----
    A product of e terms is off by ``(e + 4)·u·Σ|a||b|`` and by the errors of its terms. A function
    is off by ``4·u`` and by the error of its argument times its largest slope: 1/4 of a sigmoid,
    1 of tanh and relu. Other roundings are at most ``4·u`` of the sum of magnitudes.
    **Source:** N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 3.1
    """
    known = {name: array.astype(np.float64) for name, array in arrays.items()}
    own = unit(layer.dtype) * (2 if layer.dtype == "float64" else 1)
    steps = _Steps(layer, known, own)
    states = [_Known(known[name], np.zeros_like(known[name])) for name in layer.states]
    outputs = []
    for row in known["data"][None] if layer.is_cell else known["data"]:
        states = steps.after(row, states)
        outputs.append(states[0])
    found = list(states)
    if not layer.is_cell:
        rows = (np.stack([getattr(each, f) for each in outputs]) for f in ("value", "error"))
        found.insert(0, _Known(*rows))
    smallest = SMALLEST[layer.dtype]
    return [each.value for each in found], [1.2 * (each.error + smallest) for each in found]


class _Steps:
    """The steps of a layer in float64."""

    def __init__(self, layer: Layer, known: Mapping[str, Wide], own: float) -> None:
        self.layer = layer
        self.known = known
        self.own = own
        nothing = np.zeros(layer.gates * layer.hidden)
        self.biases = [known.get(name, nothing) for name in BIASES]

    def after(self, row: Wide, states: list[_Known]) -> list[_Known]:
        """Return the states after a step."""
        count = self.layer.gates
        data = self._product(_Known(row, np.zeros_like(row)), self.known["weight_ih"], 0)
        whole = self._product(states[0], self.known["weight_hh"], 1)
        total = [data.part(n, count) + whole.part(n, count) for n in range(count)]
        match self.layer.kind:
            case "lstm":
                return self._lstm(total, states[1])
            case "gru":
                inner = whole.part(2, 3)
                return self._gru(total, data.part(2, 3), inner, states[0])
        if self.layer.activation == "relu":
            return [_Known(np.maximum(total[0].value, 0), total[0].error)]
        return [self._tanh(total[0])]

    def _lstm(self, gates: list[_Known], cell: _Known) -> list[_Known]:
        i, f, o = (self._sigmoid(gates[n]) for n in (0, 1, 3))
        new = self._rounded(f * cell + i * self._tanh(gates[2]))
        return [self._rounded(o * self._tanh(new)), new]

    def _gru(
        self, gates: list[_Known], data: _Known, inner: _Known, hidden: _Known
    ) -> list[_Known]:
        reset, update = self._sigmoid(gates[0]), self._sigmoid(gates[1])
        if self.layer.resets_after:
            own = reset * inner
        else:
            weight = np.split(self.known["weight_hh"], 3)[2]
            bias = np.split(self.biases[1], 3)[2]
            own = self._product(self._rounded(reset * hidden), weight, 1, bias)
        new = self._tanh(self._rounded(data + own))
        rest = _Known(1 - update.value, update.error)
        made = rest * new + update * hidden
        size = np.abs(new.value) + np.abs(hidden.value)
        return [_Known(made.value, made.error + 4 * self.own * size)]

    def _product(self, left: _Known, weight: Wide, number: int, bias: Wide | None = None) -> _Known:
        """Return the product with a weight, and its bias."""
        added = self.biases[number] if bias is None else bias
        sizes = np.abs(left.value) @ np.abs(weight).T + np.abs(added)
        error = left.error @ np.abs(weight).T + (weight.shape[1] + 4) * self.own * sizes
        return _Known(left.value @ weight.T + added, error)

    def _rounded(self, known: _Known) -> _Known:
        return _Known(known.value, known.error + 4 * self.own * np.abs(known.value))

    def _sigmoid(self, known: _Known) -> _Known:
        value = self._rounded(known)
        made = 1 / (1 + np.exp(-value.value))
        return _Known(made, value.error / 4 + 4 * self.own)

    def _tanh(self, known: _Known) -> _Known:
        value = self._rounded(known)
        return _Known(np.tanh(value.value), value.error + 4 * self.own)


LSTM, GRU, RNN = (
    Operator(
        kind,
        workload,
        define,
        reference,
        by_device(
            {
                "cpu": "dlcompiler.ops.recurrent_schedule:TILES",
                "gpu": "dlcompiler.ops.gpu.recurrent:RECURRENT",
            }
        ),
        prepack,
    )
    for kind, workload in WORKLOADS.items()
)
