"""Define recurrent cells, and sequences of their steps: LSTM, GRU, and the plain one.

A step adds products of the data and of the hidden state, for several gates of each element; the
gates of a kind lie one after the other. A sequence is a `te.scan`: its first row is the given
state, and the products of the data are computed ahead, for all steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler import te
from dlcompiler.ops.helpers import over, tensor
from dlcompiler.te import Tensor

GATES = {"lstm": 4, "gru": 3, "rnn": 1}
"""Kind of cell -> number of gates.

They are: input, forget, cell, output; reset, update, new; the new state."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The weights of a cell, and what it computes."""

    kind: str
    """A key of `GATES`."""
    weight_ih: Tensor
    """For the data: shape ``(gates·h, i)``."""
    weight_hh: Tensor
    """For the hidden state: shape ``(gates·h, h)``."""
    bias_ih: Tensor | None = None
    """Shape ``(gates·h,)``."""
    bias_hh: Tensor | None = None
    """Shape ``(gates·h,)``."""
    activation: str = "tanh"
    """Of ``rnn``: ``tanh`` or ``relu``."""
    resets_after: bool = True
    """Of ``gru``: the reset gate multiplies the product with the state, not the state."""

    @property
    def size(self) -> int:
        """Elements of the hidden state; [1]."""
        return self.weight_hh.static_shape[1]


def cell_step(cell: Cell, data: Tensor, states: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Define the states after one step.

    Parameters
    ----------
    cell : Cell
        The weights.
    data : Tensor
        Of shape ``(n, i)``.
    states : sequence of Tensor
        The hidden state, and of an LSTM the cell's state, of shape ``(n, h)``.

    Returns
    -------
    tuple of Tensor
        The same states after the step.
    """
    lead = data.shape[:1]
    before = [_reader(state) for state in states]
    return _states(cell, lead, _inputs(cell, data, lead, lambda n: (n,)), before)


def _reader(state: Tensor) -> Callable[..., Any]:
    return lambda *i: state[i]


def cell_sequence(cell: Cell, data: Tensor, states: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Define the hidden states of all steps, and the last states.

    Parameters
    ----------
    cell : Cell
        The weights.
    data : Tensor
        Of shape ``(t, n, i)``.
    states : sequence of Tensor
        The states before the first step, of shape ``(n, h)``.

    Returns
    -------
    tuple of Tensor
        The hidden states of all steps, shape ``(t, n, h)``; then the last states.
    """
    steps, batch = data.static_shape[:2]
    rows = (steps + 1, batch)
    shape = (*rows, cell.size)
    kept = [te.placeholder(shape, data.dtype, f"{cell.kind}.state{n}") for n in range(len(states))]
    # Row 0 is not a step: what is computed for it is not used.
    inputs = _inputs(cell, data, rows, lambda t, n: (te.maximum(t - 1, 0), n)) if steps else None

    def before(state: Tensor) -> Callable[..., Any]:
        return lambda t, *i: state[(t - 1, *i)]

    first = [
        tensor((1, batch, cell.size), lambda t, *i, s=state: s[i], f"{cell.kind}.first{n}")
        for n, state in enumerate(states)
    ]
    if inputs is None:
        return _ends(data, first, steps)
    updates = _states(cell, rows, inputs, [before(state) for state in kept])
    made = te.scan(first, list(updates), kept, name=f"{cell.kind}.steps")
    return _ends(data, [made] if len(states) == 1 else list(made), steps)


def _ends(data: Tensor, rows: Sequence[Tensor], steps: int) -> tuple[Tensor, ...]:
    """Return the hidden states of all steps, and the last states, from rows of states."""
    batch, size = rows[0].static_shape[1:]
    outputs = tensor((steps, batch, size), lambda t, *i: rows[0][(t + 1, *i)], "outputs")
    last = [
        tensor((batch, size), lambda *i, r=row: r[(steps, *i)], f"last{n}")
        for n, row in enumerate(rows)
    ]
    return (outputs, *last)


def _inputs(cell: Cell, data: Tensor, lead: Sequence[Any], place: Callable[..., Any]) -> Tensor:
    """Define the products of the data with the weights, for each row of the result."""
    k = over(data.shape[-1], "k")
    total = cell.weight_ih.shape[0]
    products = tensor(
        (*lead, total),
        lambda *i: te.sum(data[(*place(*i[:-1]), k)] * cell.weight_ih[i[-1], k], axis=k),
        f"{cell.kind}.inputs",
    )
    return _biased(products, cell.bias_ih)


def _biased(products: Tensor, bias: Tensor | None) -> Tensor:
    if bias is None:
        return products
    return tensor(products.shape, lambda *i: products[i] + bias[i[-1]], f"{products.name}_biased")


def _states(
    cell: Cell, lead: Sequence[Any], inputs: Tensor, before: Sequence[Callable[..., Any]]
) -> tuple[Tensor, ...]:
    """Define the states after a step, from functions that give elements of those before it."""
    size, hidden = cell.size, before[0]
    k = over(size, "h")
    products = tensor(
        (*lead, GATES[cell.kind] * size),
        lambda *i: te.sum(hidden(*i[:-1], k) * cell.weight_hh[i[-1], k], axis=k),
        f"{cell.kind}.products",
    )
    products = _biased(products, cell.bias_hh)

    def gate(number: int, i: Sequence[Any]) -> Any:
        place = (*i[:-1], i[-1] + number * size)
        return inputs[place] + products[place]

    shape = (*lead, size)
    match cell.kind:
        case "lstm":
            state = tensor(shape, lambda *i: _cell_state(gate, i, before[1]), "lstm.cell")
            return (
                tensor(shape, lambda *i: te.sigmoid(gate(3, i)) * te.tanh(state[i]), "lstm.hidden"),
                state,
            )
        case "gru":
            return (_gru(cell, shape, inputs, products, hidden),)
    act = te.tanh if cell.activation == "tanh" else _relu
    return (tensor(shape, lambda *i: act(gate(0, i)), "rnn.hidden"),)


def _relu(x: Any) -> Any:
    return te.maximum(x, te.const(0, x.dtype))


def _cell_state(gate: Callable[..., Any], i: Sequence[Any], before: Callable[..., Any]) -> Any:
    """Return an element of the cell's state of an LSTM.

    **Source:** S. Hochreiter, J. Schmidhuber, "Long short-term memory", 1997; with the forget gate
    of F. A. Gers, J. Schmidhuber, F. Cummins, 2000.
    """
    new = te.sigmoid(gate(0, i)) * te.tanh(gate(2, i))
    return te.sigmoid(gate(1, i)) * before(*i) + new


def _gru(
    cell: Cell, shape: Sequence[Any], inputs: Tensor, products: Tensor,
    hidden: Callable[..., Any],
) -> Tensor:  # fmt: skip
    """Define the hidden state of a GRU.

    **Source:** K. Cho and others, arXiv:1406.1078, equations 5 to 8.
    """
    size = cell.size

    def part(of: Tensor, number: int, i: Sequence[Any]) -> Any:
        return of[(*i[:-1], i[-1] + number * size)]

    reset = tensor(
        shape, lambda *i: te.sigmoid(part(inputs, 0, i) + part(products, 0, i)), "gru.reset"
    )
    if cell.resets_after:
        inner = tensor(shape, lambda *i: reset[i] * part(products, 2, i), "gru.inner")
    else:
        k, weight = over(size, "r"), cell.weight_hh
        inner = tensor(
            shape,
            lambda *i: te.sum(
                reset[(*i[:-1], k)] * hidden(*i[:-1], k) * weight[i[-1] + 2 * size, k], axis=k
            ),
            "gru.inner",
        )
        if (bias := cell.bias_hh) is not None:
            plain = inner
            inner = tensor(shape, lambda *i: plain[i] + bias[i[-1] + 2 * size], "gru.inner_biased")
    new = tensor(shape, lambda *i: te.tanh(part(inputs, 2, i) + inner[i]), "gru.new")

    def element(*i: Any) -> Any:
        update = te.sigmoid(part(inputs, 1, i) + part(products, 1, i))
        return (te.const(1, update.dtype) - update) * new[i] + update * hidden(*i)

    return tensor(shape, element, "gru.hidden")
