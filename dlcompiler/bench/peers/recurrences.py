"""Recurrent layers by the peers: the outputs of all steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dlcompiler.bench.peers.job import Absent, Array, Job
from dlcompiler.bench.peers.onnxruntime_movements import Node, Nodes

_GATES = {"lstm": 4, "gru": 3, "rnn": 1}
_ONNX_ORDER = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}
"""Family -> the order of its gates in ONNX."""
_WEIGHTS, _BIASES = ("weight_ih", "weight_hh"), ("bias_ih", "bias_hh")


# -- PyTorch --------------------------------------------------------------------------------------


def by_torch(torch: Any, job: Job) -> Callable[..., Any]:
    """Return PyTorch's layer as a function of tensors by role.

    Raises
    ------
    Absent
        PyTorch has no such layer.
    """
    _refuse_reset_before(job, "torch")
    kind = f"rnn_{job.sizes['activation']}" if job.family == "rnn" else job.family
    layer = getattr(torch, kind)
    count = job.sizes["biases"]

    def compute(data: Any, hidden: Any, cell: Any = None, **weights: Any) -> Any:
        biases = [weights[role] for role in _BIASES[:count]]
        if count == 1:
            biases.append(torch.zeros_like(biases[0]))
        state = hidden[None] if cell is None else (hidden[None], cell[None])
        given = [*(weights[role] for role in _WEIGHTS), *biases]
        return layer(data, state, given, bool(count), 1, 0.0, False, False, False)[0]

    return compute


def _refuse_reset_before(job: Job, name: str) -> None:
    if not job.sizes.get("reset_after", 1):
        raise Absent(f"{name} resets the product with the state, not the state")


# -- ONNX Runtime ---------------------------------------------------------------------------------


def by_onnx(job: Job) -> Nodes:
    """Return the layer of ONNX; its weights are constants in each row."""
    kind = job.family.upper()
    gates = [_in_order(job, job.arrays[role]) for role in _WEIGHTS]
    nothing = np.zeros(gates[0].shape[0], gates[0].dtype)
    biases = [
        _in_order(job, job.arrays[role]) if role in job.arrays else nothing for role in _BIASES
    ]
    constants = {"W": gates[0][None], "R": gates[1][None], "B": np.concatenate(biases)[None]}
    constants |= {"first": np.array([0], np.int64), "second": np.array([1], np.int64)}
    states = [role for role in ("hidden", "cell") if role in job.arrays]
    more: dict[str, Any] = {"hidden_size": job.out[-1]}
    if job.family == "gru":
        more["linear_before_reset"] = int(job.sizes["reset_after"])
    if job.family == "rnn":
        more["activations"] = [job.sizes["activation"].capitalize()]
    wide: list[Node] = [("Unsqueeze", [role, "first"], f"{role}_0", {}) for role in states]
    inputs = ["data", "W", "R", "B", "", *(f"{role}_0" for role in states)]
    return [*wide, (kind, inputs, "rows", more), ("Squeeze", ["rows", "second"], "out", {})], (
        constants
    )


def _in_order(job: Job, array: Array) -> Array:
    parts = np.split(array, _GATES[job.family])
    return np.concatenate([parts[n] for n in _ONNX_ORDER[job.family]])


# -- NumPy ----------------------------------------------------------------------------------------


def by_numpy(job: Job, out: Array) -> Callable[[], object]:
    """Return a function that computes step by step, with the data's products ahead."""
    arrays = job.arrays
    nothing = np.zeros(arrays["weight_ih"].shape[0], out.dtype)
    own, other = (arrays[role].T for role in _WEIGHTS)
    own_bias, bias = (arrays.get(role, nothing) for role in _BIASES)
    step = {"lstm": _lstm, "gru": _gru, "rnn": _rnn}[job.family]

    def call() -> None:
        products = arrays["data"] @ own + own_bias
        states = [arrays[role] for role in ("hidden", "cell") if role in arrays]
        for t, row in enumerate(products):
            states = step(job, row, states, other, bias)
            out[t] = states[0]

    return call


def _sigmoid(x: Array) -> Array:
    made: Array = 1 / (1 + np.exp(-x))
    return made


def _lstm(job: Job, row: Array, states: list[Array], weight: Array, bias: Array) -> list[Array]:
    i, f, g, o = np.split(row + states[0] @ weight + bias, 4, axis=1)
    cell = _sigmoid(f) * states[1] + _sigmoid(i) * np.tanh(g)
    return [_sigmoid(o) * np.tanh(cell), cell]


def _gru(job: Job, row: Array, states: list[Array], weight: Array, bias: Array) -> list[Array]:
    (hidden,), size = states, states[0].shape[1]
    mine = np.split(row, 3, axis=1)
    if job.sizes["reset_after"]:
        other = np.split(hidden @ weight + bias, 3, axis=1)
        inner = _sigmoid(mine[0] + other[0]) * other[2]
    else:
        other = np.split(hidden @ weight[:, : 2 * size] + bias[: 2 * size], 2, axis=1)
        reset = _sigmoid(mine[0] + other[0]) * hidden
        inner = reset @ weight[:, 2 * size :] + bias[2 * size :]
    update = _sigmoid(mine[1] + other[1])
    return [(1 - update) * np.tanh(mine[2] + inner) + update * hidden]


def _rnn(job: Job, row: Array, states: list[Array], weight: Array, bias: Array) -> list[Array]:
    total = row + states[0] @ weight + bias
    return [np.tanh(total) if job.sizes["activation"] == "tanh" else np.maximum(total, 0)]
