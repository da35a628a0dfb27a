"""Define recurrent layers through the stages that the CPU's schedule needs.

The products of the data are one product of matrices for all steps. Weights lie in panels: for each
term of a sum, the weights of all gates of some elements of the state are side by side. States are
padded to whole panels, so that no step has a condition; the padding is never read by a product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.ops.recurrent_workload import BIASES, WEIGHTS, Layer, operands
from dlcompiler.ops.widening import converted
from dlcompiler.space import Workload
from dlcompiler.te import Tensor

_OF_STATE = 2
"""Gate of a GRU whose bias of the state is not added to that of the data."""


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return the parameters of `recurrent_operator.define`, through the stages of the schedule."""
    layer = Layer.of(workload)
    given = operands(layer)
    weights, biases = _in_panels(layer, given), _padded_biases(layer, given)
    inputs = _inputs(layer, given["data"], weights[0], biases)
    made = _steps(layer, given, inputs, weights[1], biases)
    return (*given.values(), *_results(layer, made))


def _in_panels(layer: Layer, given: dict[str, Tensor]) -> list[Tensor]:
    """Return the weights in panels: as they are given, or packed by the kernel."""
    if layer.packed:
        return [given[name] for name in WEIGHTS]
    size, panel = layer.hidden, layer.panel
    found = []
    for name in WEIGHTS:
        weight = given[name]

        def element(p: Any, k: Any, g: Any, w: Any, *, weight: Tensor = weight) -> Any:
            j = p * panel + w
            if size % panel == 0:
                return weight[g * size + j, k]
            inside = weight[g * size + te.minimum(j, size - 1), k]
            return te.select(j < size, inside, te.const(0, weight.dtype))

        shape = (layer.panels, weight.shape[1], layer.gates, panel)
        found.append(tensor(shape, element, f"recurrent.panels_{name[-2:]}"))
    return found


def _padded_biases(layer: Layer, given: dict[str, Tensor]) -> list[Tensor]:
    """Return the biases of shape ``(gates, padded)``."""
    size, found = layer.hidden, []
    for name in BIASES[: layer.biases]:
        bias = given[name]

        def element(g: Any, j: Any, *, bias: Tensor = bias) -> Any:
            return bias[g * size + te.minimum(j, size - 1)]

        shape = (layer.gates, layer.padded)
        own = f"recurrent.padded_{name[-2:]}"
        found.append(bias if layer.packed else tensor(shape, element, own))
    return found


def _inputs(layer: Layer, data: Tensor, weight: Tensor, biases: Sequence[Tensor]) -> Tensor:
    """Define the products of the data for all steps, with the biases."""
    batch, panel, k = layer.batch, layer.panel, over(layer.inputs, "k")
    rows = layer.steps * batch

    def row(m: Any, k: Any) -> Any:
        return data[m, k] if layer.is_cell else data[m // batch, m % batch, k]

    flat = tensor((rows, layer.inputs), row, "recurrent.rows")
    shape = (rows, layer.gates, layer.padded)
    sums = tensor(
        shape,
        lambda m, g, j: te.sum(
            flat[m, k] * converted(weight[j // panel, k, g, j % panel], layer.dtype), axis=k
        ),
        "recurrent.data_sums",
    )

    def biased(m: Any, g: Any, j: Any) -> Any:
        total = sums[m, g, j]
        if biases:
            total = total + biases[0][g, j]
        if len(biases) > 1:
            other = biases[1][g, j]
            if layer.kind == "gru":
                other = te.select(g < _OF_STATE, other, te.const(0, layer.dtype))
            total = total + other
        return total

    return tensor(shape, biased, "recurrent.inputs")


def _steps(
    layer: Layer, given: dict[str, Tensor], inputs: Tensor, weight: Tensor, biases: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Define the states of all steps; row 0 has those before the first step."""
    size, kind = layer.hidden, layer.kind
    shape = (layer.steps + 1, layer.batch, layer.padded)
    kept = [te.placeholder(shape, layer.dtype, f"recurrent.kept_{name}") for name in layer.states]
    first = [
        tensor(
            (1, *shape[1:]),
            lambda t, n, j, *, state=given[name]: state[n, te.minimum(j, size - 1)],
            f"recurrent.first_{name}",
        )
        for name in layer.states
    ]
    step = {"lstm": _lstm, "gru": _gru, "rnn": _rnn}[kind]
    updates = step(layer, shape, _Terms(layer, inputs, weight, biases), kept)
    made = te.scan(first, list(updates), kept, name="recurrent.steps")
    return (made,) if len(kept) == 1 else tuple(made)


class _Terms:
    """What the gates of a step are computed from."""

    def __init__(
        self, layer: Layer, inputs: Tensor, weight: Tensor, biases: Sequence[Tensor]
    ) -> None:
        self.layer = layer
        self.biases = biases
        self._inputs = inputs
        self._weight = weight

    def of_data(self, gate: int, t: Any, n: Any, j: Any) -> Any:
        """Return the biased product of the data. Row 0 is no step: its value is not used."""
        return self._inputs[te.maximum(t - 1, 0) * self.layer.batch + n, gate, j]

    def _factor(self, j: Any, k: Any, gate: Any) -> Any:
        """Return the weight of a term of the hidden state."""
        panel = self.layer.panel
        return converted(self._weight[j // panel, k, gate, j % panel], self.layer.dtype)

    def products(self, kept: Tensor) -> Tensor:
        """Define the products of the hidden state for all gates."""
        layer, k = self.layer, over(self.layer.hidden, "h")
        steps, batch, padded = kept.shape

        def element(t: Any, n: Any, g: Any, j: Any) -> Any:
            return te.sum(kept[t - 1, n, k] * self._factor(j, k, g), axis=k)

        return tensor((steps, batch, layer.gates, padded), element, "recurrent.sums")

    def reset_product(self, kept: Tensor) -> Tensor:
        """Define the product of the hidden state for the reset gate of a GRU."""
        k = over(self.layer.hidden, "r")

        def element(t: Any, n: Any, j: Any) -> Any:
            return te.sum(kept[t - 1, n, k] * self._factor(j, k, 0), axis=k)

        return tensor(kept.shape, element, "recurrent.reset_sums")

    def later_products(self, kept: Tensor, reset: Tensor) -> Tensor:
        """Define the products for the update gate, and of the reset state for the new state."""
        k = over(self.layer.hidden, "h")
        steps, batch, padded = kept.shape

        def element(t: Any, n: Any, g: Any, j: Any) -> Any:
            term = te.select(g < 1, kept[t - 1, n, k], reset[t, n, k])
            return te.sum(term * self._factor(j, k, g + 1), axis=k)

        return tensor((steps, batch, 2, padded), element, "recurrent.sums")


def _lstm(layer: Layer, shape: Any, terms: _Terms, kept: Sequence[Tensor]) -> Sequence[Tensor]:
    """Define the states of an LSTM; see `recurrent._cell_state`."""
    hidden, cell = kept
    sums = terms.products(hidden)

    def gate(number: int, t: Any, n: Any, j: Any) -> Any:
        return terms.of_data(number, t, n, j) + sums[t, n, number, j]

    def new(*i: Any) -> Any:
        kept_part = te.sigmoid(gate(1, *i)) * cell[(i[0] - 1, *i[1:])]
        return kept_part + te.sigmoid(gate(0, *i)) * te.tanh(gate(2, *i))

    state = tensor(shape, new, "recurrent.new")
    made: Sequence[Tensor] = te.compute(
        shape,
        lambda *i: (te.sigmoid(gate(3, *i)) * te.tanh(state[i]), state[i]),
        name="recurrent.step",
    )
    return made


def _gru(layer: Layer, shape: Any, terms: _Terms, kept: Sequence[Tensor]) -> Sequence[Tensor]:
    """Define the state of a GRU; see `recurrent._gru`."""
    (hidden,) = kept
    has_bias = len(terms.biases) > 1

    def inner(value: Any, j: Any) -> Any:
        return value + terms.biases[1][_OF_STATE, j] if has_bias else value

    def mixed(update: Any, new: Any, t: Any, n: Any, j: Any) -> Any:
        gate = te.sigmoid(update)
        return (te.const(1, layer.dtype) - gate) * new + gate * hidden[t - 1, n, j]

    if layer.resets_after:
        sums = terms.products(hidden)

        def after(t: Any, n: Any, j: Any) -> Any:
            reset = te.sigmoid(terms.of_data(0, t, n, j) + sums[t, n, 0, j])
            own = reset * inner(sums[t, n, 2, j], j)
            update = terms.of_data(1, t, n, j) + sums[t, n, 1, j]
            return mixed(update, te.tanh(terms.of_data(2, t, n, j) + own), t, n, j)

        return [tensor(shape, after, "recurrent.step")]
    product = terms.reset_product(hidden)
    reset_state = tensor(
        shape,
        lambda *i: te.sigmoid(terms.of_data(0, *i) + product[i]) * hidden[(i[0] - 1, *i[1:])],
        "recurrent.reset",
    )
    later = terms.later_products(hidden, reset_state)

    def before(t: Any, n: Any, j: Any) -> Any:
        update = terms.of_data(1, t, n, j) + later[t, n, 0, j]
        own = inner(later[t, n, 1, j], j)
        return mixed(update, te.tanh(terms.of_data(2, t, n, j) + own), t, n, j)

    return [tensor(shape, before, "recurrent.step")]


def _rnn(layer: Layer, shape: Any, terms: _Terms, kept: Sequence[Tensor]) -> Sequence[Tensor]:
    """Define the state of a plain recurrent layer."""
    (hidden,) = kept
    sums = terms.products(hidden)

    def element(t: Any, n: Any, j: Any) -> Any:
        total = terms.of_data(0, t, n, j) + sums[t, n, 0, j]
        is_tanh = layer.activation == "tanh"
        return te.tanh(total) if is_tanh else te.maximum(total, te.const(0, layer.dtype))

    return [tensor(shape, element, "recurrent.step")]


def _results(layer: Layer, rows: Sequence[Tensor]) -> list[Tensor]:
    """Define the results from the rows of the states."""
    shapes, steps = layer.shapes, layer.steps
    last = [
        tensor(shapes[f"last_{name}"], lambda n, j, *, row=row: row[steps, n, j], f"last_{name}")
        for name, row in zip(layer.states, rows, strict=True)
        if layer.has_last
    ]
    if layer.is_cell:
        return last
    outputs = tensor(shapes["outputs"], lambda t, n, j: rows[0][t + 1, n, j], "outputs")
    return [outputs, *last]
