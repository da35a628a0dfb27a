"""Recurrences that several tests schedule, with their results by NumPy."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcompiler import te


@dataclass(frozen=True)
class Recurrence:
    """The tensors of a recurrence by name, its inputs, and its results."""

    tensors: dict[str, Any]
    inputs: list[Any]
    outputs: list[Any]

    def __getattr__(self, name):
        return self.tensors[name]

    @property
    def args(self):
        return [*self.inputs, *self.outputs]


def running(m, n, dtype="float32", combine=lambda old, new: old + new):
    """Cumulative sums (or what `combine` makes) of the columns of a matrix."""
    X = te.placeholder((m, n), dtype, name="X")
    state = te.placeholder((m, n), dtype, name="state")
    first = te.compute((1, n), lambda t, i: X[0, i], name="first")
    step = te.compute((m, n), lambda t, i: combine(state[t - 1, i], X[t, i]), name="step")
    S = te.scan(first, step, state, inputs=[X], name="S")
    return Recurrence(locals(), [X], [S])


def two_stages(m, n):
    """The tutorial's scan cell of two stages."""
    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n), name="state")
    first = te.compute((1, n), lambda t, i: X[0, i], name="first")
    s1 = te.compute((m, n), lambda t, i: state[t - 1, i] * 2, name="s1")
    s2 = te.compute((m, n), lambda t, i: s1[t, i] + X[t, i], name="s2")
    S = te.scan(first, s2, state, inputs=[X], name="S")
    return Recurrence(locals(), [X], [S])


def fibonacci(m, dtype="int32"):
    """Each number from the two before it."""
    state = te.placeholder((m,), dtype, name="state")
    first = te.compute((2,), lambda t: te.const(1, dtype), name="first")
    step = te.compute((m,), lambda t: state[t - 1] + state[t - 2], name="step")
    S = te.scan(first, step, state, name="S")
    return Recurrence(locals(), [], [S])


def two_states(m, n, k):
    """The tutorial's scan of two states of different shapes."""
    X = te.placeholder((m, n), name="X")
    state1 = te.placeholder((m, n), name="state1")
    state2 = te.placeholder((m, k), name="state2")
    first1 = te.compute((1, n), lambda t, i: X[0, i], name="first1")
    first2 = te.compute((1, k), lambda t, i: 0.0, name="first2")
    step1 = te.compute((m, n), lambda t, i: state1[t - 1, i] + X[t, i], name="step1")
    step2 = te.compute((m, k), lambda t, i: state2[t - 1, i] + state1[t - 1, 0], name="step2")
    S, T = te.scan([first1, first2], [step1, step2], [state1, state2], inputs=[X], name="S")
    return Recurrence(locals(), [X], [S, T])


def rnn(steps, batch, size, hidden):
    """h[t] = tanh(Wx x[t] + Wh h[t - 1])."""
    X = te.placeholder((steps, batch, size), name="X")
    Wx = te.placeholder((hidden, size), name="Wx")
    Wh = te.placeholder((hidden, hidden), name="Wh")
    state = te.placeholder((steps, batch, hidden), name="state")
    kx, kh = te.reduce_axis((0, size), name="kx"), te.reduce_axis((0, hidden), name="kh")
    shape = (steps, batch, hidden)
    xs = te.compute(shape, lambda t, b, i: te.sum(X[t, b, kx] * Wx[i, kx], axis=kx), name="xs")
    hs = te.compute(
        shape, lambda t, b, i: te.sum(state[t - 1, b, kh] * Wh[i, kh], axis=kh), name="hs"
    )
    first = te.compute((1, batch, hidden), lambda t, b, i: 0.0, name="first")
    step = te.compute(shape, lambda t, b, i: te.tanh(xs[t, b, i] + hs[t, b, i]), name="step")
    H = te.scan(first, step, state, inputs=[X, Wx, Wh], name="H")
    return Recurrence(locals(), [X, Wx, Wh], [H])


def rnn_in_numpy(X, Wx, Wh):
    H = np.zeros((*X.shape[:2], Wh.shape[0]))
    for t in range(1, len(X)):
        H[t] = np.tanh(X[t] @ Wx.T.astype("float64") + H[t - 1] @ Wh.T)
    return H


def lstm(steps, batch, size, hidden):
    """A long short-term memory: four gates, the states c and h."""
    X = te.placeholder((steps, batch, size), name="X")
    Wx = te.placeholder((4, hidden, size), name="Wx")
    Wh = te.placeholder((4, hidden, hidden), name="Wh")
    shape = (steps, batch, hidden)
    c_state, h_state = te.placeholder(shape, name="c_state"), te.placeholder(shape, name="h_state")
    kx, kh = te.reduce_axis((0, size), name="kx"), te.reduce_axis((0, hidden), name="kh")
    gates = (steps, 4, batch, hidden)
    xs = te.compute(
        gates, lambda t, g, b, i: te.sum(X[t, b, kx] * Wx[g, i, kx], axis=kx), name="xs"
    )
    hs = te.compute(
        gates, lambda t, g, b, i: te.sum(h_state[t - 1, b, kh] * Wh[g, i, kh], axis=kh), name="hs"
    )
    gate = te.compute(gates, lambda *i: xs(*i) + hs(*i), name="gate")
    put = te.compute(shape, lambda t, b, i: te.sigmoid(gate[t, 0, b, i]), name="put")
    new = te.compute(shape, lambda t, b, i: te.tanh(gate[t, 1, b, i]), name="new")
    keep = te.compute(shape, lambda t, b, i: te.sigmoid(gate[t, 2, b, i]), name="keep")
    show = te.compute(shape, lambda t, b, i: te.sigmoid(gate[t, 3, b, i]), name="show")
    c_step = te.compute(
        shape,
        lambda t, b, i: keep[t, b, i] * c_state[t - 1, b, i] + put[t, b, i] * new[t, b, i],
        name="c_step",
    )
    h_step = te.compute(
        shape, lambda t, b, i: show[t, b, i] * te.tanh(c_step[t, b, i]), name="h_step"
    )
    c_first = te.compute((1, batch, hidden), lambda *i: 0.0, name="c_first")
    h_first = te.compute((1, batch, hidden), lambda *i: 0.0, name="h_first")
    C, H = te.scan(
        [c_first, h_first], [c_step, h_step], [c_state, h_state], inputs=[X, Wx, Wh], name="lstm"
    )
    return Recurrence(locals(), [X, Wx, Wh], [C, H])


def lstm_in_numpy(X, Wx, Wh):
    C = np.zeros((*X.shape[:2], Wh.shape[1]))
    H = np.zeros_like(C)
    for t in range(1, len(X)):
        gate = np.einsum("bk,gik->gbi", X[t].astype("float64"), Wx)
        gate += np.einsum("bk,gik->gbi", H[t - 1], Wh)
        put, keep, show = (1 / (1 + np.exp(-gate[n])) for n in (0, 2, 3))
        C[t] = keep * C[t - 1] + put * np.tanh(gate[1])
        H[t] = show * np.tanh(C[t])
    return C, H
