"""The workloads of recurrent layers: their sizes, their operands, and how weights are packed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.errors import TuningError
from dlcompiler.ops.recurrent import GATES
from dlcompiler.ops.rounding import Array
from dlcompiler.ops.shapes import checked_dtype
from dlcompiler.ops.widening import stored
from dlcompiler.space import Workload
from dlcompiler.target import Target
from dlcompiler.te import Tensor

DTYPES = ("float32", "float64")
ACTIVATIONS = ("tanh", "relu")
MAX_PANEL = 256
"""Most elements of the state in a panel of packed weights."""
WEIGHTS = ("weight_ih", "weight_hh")
BIASES = ("bias_ih", "bias_hh")
_VECTORS = {"lstm": 1, "gru": 1, "rnn": 4}
"""Vectors of each gate in a panel: with all gates, three or four sums for a row of data."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A recurrent layer, or one step of it.

    Examples
    --------
    >>> layer = Layer.of(lstm_workload(steps=35, batch=20, inputs=100, hidden=200))
    >>> layer.gates, layer.shapes["weight_hh"], layer.shapes["outputs"]
    (4, (800, 200), (35, 20, 200))
    """

    kind: str
    """``lstm``, ``gru`` or ``rnn``."""
    steps: int
    batch: int
    inputs: int
    hidden: int
    biases: int
    """Number of biases: 0, 1 (of the data) or 2 (of the data, of the state)."""
    is_cell: bool
    """The data are of one step, and only the states after it are results."""
    has_last: bool
    """The last states are results, too."""
    packed: int
    """Elements of the state in a panel of packed weights; 0: the weights are not packed."""
    dtype: str
    resets_after: bool = True
    """Of ``gru``: the reset gate multiplies the product with the state, not the state."""
    activation: str = "tanh"
    """Of ``rnn``: ``tanh`` or ``relu``."""
    weight_dtype: str = ""
    """Dtype that weights are stored in, if it is not `dtype`."""

    @staticmethod
    def of(workload: Workload) -> Layer:
        """Return the layer that a workload describes."""
        p: Mapping[str, Any] = workload.as_dict()
        return Layer(
            workload.op, p["steps"], p["batch"], p["inputs"], p["hidden"], p["biases"],
            bool(p["cell"]), bool(p["last"]), p["packed"], p["dtype"],
            bool(p.get("reset_after", 1)), p.get("activation", "tanh"), p.get("weight_dtype", ""),
        )  # fmt: skip

    @property
    def gates(self) -> int:
        """Gates of an element of the state."""
        return GATES[self.kind]

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states."""
        return ("hidden", "cell") if self.kind == "lstm" else ("hidden",)

    @property
    def panel(self) -> int:
        """Elements of the state in a panel, also if the kernel packs the weights itself."""
        return self.packed or (16 if self.dtype == "float32" else 8)

    @property
    def panels(self) -> int:
        """Panels of packed weights."""
        return -(-self.hidden // self.panel)

    @property
    def padded(self) -> int:
        """Elements of the state that whole panels have."""
        return self.panels * self.panel

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the operands and of the results by name."""
        lead = () if self.is_cell else (self.steps,)
        rows, state, gates = (*lead, self.batch), (self.batch, self.hidden), self.gates
        found: dict[str, tuple[int, ...]] = {"data": (*rows, self.inputs)}
        found |= dict.fromkeys(self.states, state)
        for name, terms in zip(WEIGHTS, (self.inputs, self.hidden), strict=True):
            packed = (self.panels, terms, gates, self.panel)
            found[name] = packed if self.packed else (gates * self.hidden, terms)
        bias = (gates, self.padded) if self.packed else (gates * self.hidden,)
        found |= dict.fromkeys(BIASES[: self.biases], bias)
        if not self.is_cell:
            found["outputs"] = (*rows, self.hidden)
        return found | {f"last_{name}": state for name in self.states if self.has_last}

    @property
    def results(self) -> tuple[str, ...]:
        """Names of the results."""
        last = tuple(f"last_{name}" for name in self.states if self.has_last)
        return last if self.is_cell else ("outputs", *last)


def _size(kind: str, name: str, value: int, least: int = 1, most: int | None = None) -> int:
    number = operator.index(value)
    if number < least or (most is not None and number > most):
        expected = f"{least} or more" if most is None else f"{least} to {most}"
        raise TuningError(kind, f"{name} is not valid", got=repr(value), expected=expected)
    return number


def _sizes(
    kind: str,
    steps: int,
    batch: int,
    inputs: int,
    hidden: int,
    biases: int,
    cell: int,
    last: int,
    packed: int,
) -> dict[str, int]:
    given = {"steps": steps, "batch": batch, "inputs": inputs, "hidden": hidden}
    found = {name: _size(kind, name, value) for name, value in given.items()}
    found["biases"] = _size(kind, "biases", biases, 0, 2)
    found["cell"] = _size(kind, "cell", cell, 0, 1)
    found["last"] = _size(kind, "last", last, 0, 1)
    found["packed"] = _size(kind, "packed", packed, 0, MAX_PANEL)
    if cell and found["steps"] != 1:
        raise TuningError(kind, "a cell computes one step", got=f"steps={steps}", expected="1")
    if cell and not last:
        raise TuningError(kind, "a cell has no other results than its states", got="last=0")
    return found


def _stored(kind: str, dtype: str, weight_dtype: str, packed: int) -> dict[str, str]:
    extras = stored(kind, dtype, weight_dtype)
    if extras and not packed:
        raise TuningError(
            kind, "weights that are not packed are stored in the dtype of the data",
            got=f"weight_dtype={weight_dtype!r}, packed=0", expected="packed weights",
        )  # fmt: skip
    return extras


def lstm_workload(
    *,
    steps: int = 1,
    batch: int = 1,
    inputs: int,
    hidden: int,
    biases: int = 2,
    cell: int = 0,
    last: int = 1,
    packed: int = 0,
    dtype: str = "float32",
    weight_dtype: str = "",
) -> Workload:
    """Return the workload of an LSTM.

    Parameters
    ----------
    steps, batch, inputs : int
        The data have the shape ``(steps, batch, inputs)``.
    hidden : int
        Elements of a state: states have the shape ``(batch, hidden)``.
    biases : int
        0: none; 1: one that is added to the products of the data; 2: also one of the state.
    cell : int
        1: one step, whose data have the shape ``(batch, inputs)``; only states are results.
    last : int
        1: the last states are results behind the outputs of all steps; 0: they are not.
    packed : int
        Elements of the state in a panel of packed weights; 0: weights have the shape
        ``(gates · hidden, …)``.
    dtype : str
        Of all arrays.
    weight_dtype : {"", "float16", "bfloat16"}
        Dtype of packed weights alone, where the others are of float32: weights take half the
        memory, and are converted as they are read; "": that of the others.
    """
    sizes = _sizes("lstm", steps, batch, inputs, hidden, biases, cell, last, packed)
    kind = checked_dtype(dtype, DTYPES, "lstm")
    return Workload.of("lstm", **sizes, dtype=kind, **_stored("lstm", kind, weight_dtype, packed))


def gru_workload(
    *,
    steps: int = 1,
    batch: int = 1,
    inputs: int,
    hidden: int,
    biases: int = 2,
    reset_after: int = 1,
    cell: int = 0,
    last: int = 1,
    packed: int = 0,
    dtype: str = "float32",
    weight_dtype: str = "",
) -> Workload:
    """Return the workload of a GRU.

    Parameters
    ----------
    steps, batch, inputs, hidden, biases, cell, last, packed, dtype, weight_dtype
        As of `lstm_workload`.
    reset_after : int
        1: the reset gate multiplies the product with the state; 0: the state.
    """
    sizes = _sizes("gru", steps, batch, inputs, hidden, biases, cell, last, packed)
    after = _size("gru", "reset_after", reset_after, 0, 1)
    kind = checked_dtype(dtype, DTYPES, "gru")
    extras = _stored("gru", kind, weight_dtype, packed)
    return Workload.of("gru", **sizes, reset_after=after, dtype=kind, **extras)


def rnn_workload(
    *,
    steps: int = 1,
    batch: int = 1,
    inputs: int,
    hidden: int,
    biases: int = 2,
    activation: str = "tanh",
    cell: int = 0,
    last: int = 1,
    packed: int = 0,
    dtype: str = "float32",
    weight_dtype: str = "",
) -> Workload:
    """Return the workload of a plain recurrent layer.

    Parameters
    ----------
    steps, batch, inputs, hidden, biases, cell, last, packed, dtype, weight_dtype
        As of `lstm_workload`.
    activation : str
        Of the new state: ``tanh`` or ``relu``.
    """
    sizes = _sizes("rnn", steps, batch, inputs, hidden, biases, cell, last, packed)
    if activation not in ACTIVATIONS:
        raise TuningError(
            "rnn", "no such activation", got=repr(activation), expected=", ".join(ACTIVATIONS)
        )
    kind = checked_dtype(dtype, DTYPES, "rnn")
    extras = _stored("rnn", kind, weight_dtype, packed)
    return Workload.of("rnn", **sizes, activation=str(activation), dtype=kind, **extras)


WORKLOADS: Mapping[str, Callable[..., Workload]] = {
    "lstm": lstm_workload,
    "gru": gru_workload,
    "rnn": rnn_workload,
}
"""Operator -> the function that makes its workloads."""


def operands(layer: Layer) -> dict[str, Tensor]:
    """Return a placeholder for each operand of a layer by name."""
    shapes = layer.shapes
    kinds = dict.fromkeys(WEIGHTS, layer.weight_dtype or layer.dtype)
    return {
        name: te.placeholder(shape, kinds.get(name, layer.dtype), name)
        for name, shape in shapes.items()
        if name not in layer.results
    }


def packed_size(kind: str, hidden: int, target: Target, dtype: str) -> int:
    """Return the elements of the state in a panel of packed weights.

    Parameters
    ----------
    kind : str
        ``lstm``, ``gru`` or ``rnn``.
    hidden : int
        Elements of the state.
    target : Target
        Where it runs.
    dtype : str
        Of the weights.

    Examples
    --------
    >>> from dlcompiler.target import resolve
    >>> [packed_size("rnn", n, resolve("x86-64-avx2"), "float32") for n in (5, 20, 100)]
    [8, 24, 32]
    """
    lanes = target.lanes(dtype)
    return min(lanes * min(_VECTORS[kind], -(-hidden // lanes)), MAX_PANEL)


def prepack(workload: Workload, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the arrays with the weights and the biases packed if the workload says so.

    Parameters
    ----------
    workload : Workload
        With ``packed``, the elements of the state in a panel.
    arrays : mapping of str to array
        The caller's: weights of shape ``(gates · hidden, terms)``, biases ``(gates · hidden,)``.

    Returns
    -------
    mapping of str to array
        Weights of shape ``(panels, terms, gates, packed)`` and biases ``(gates, panels · packed)``,
        filled up with 0.
    """
    layer = Layer.of(workload)
    if not layer.packed:
        return arrays
    found = dict(arrays)
    for name in (*WEIGHTS, *BIASES):
        if name in arrays:
            found[name] = _packed(layer, arrays[name])
    return found


def _packed(layer: Layer, array: Array) -> Array:
    by_gate = array.reshape(layer.gates, layer.hidden, *array.shape[1:])
    padded = np.zeros((layer.gates, layer.padded, *array.shape[1:]), array.dtype)
    padded[:, : layer.hidden] = by_gate
    if array.ndim == 1:
        return padded
    panels = padded.reshape(layer.gates, layer.panels, layer.panel, array.shape[1])
    return np.ascontiguousarray(panels.transpose(1, 3, 0, 2))
