"""Recurrences with one or two states, steps of one or several stages, and readers of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler import te
from dlcompiler.te import Tensor
from tests.fuzz.templates import Sizes


def running(z: Sizes) -> tuple[Tensor, ...]:
    """Running sums (wrapping products of integers), with stages before, in and behind the steps."""
    dtype = z.dtype(("float32", "int32", "int16", "float64"))
    first = z.rng.choice((1, 1, 2, 3))
    m, n = first + z.small() - z.rng.choice((0, 1)), z.one()
    A = te.placeholder((m, n), dtype, name="A")
    scaled = te.compute((m, n), lambda t, i: A[t, i] * 2, name="scaled")
    state = te.placeholder((m, n), dtype, name="state")
    start = te.compute((first, n), lambda t, i: scaled[t, i] - 1, name="start")
    back = te.compute((m, n), lambda t, i: state[t - first, n - 1 - i] + scaled[t, i], name="back")
    is_product = not dtype.startswith("f") and z.rng.chance(0.5)

    def step_of(t: Any, i: Any) -> Any:
        old = state[t - 1, i]
        return old * back[t, i] if is_product else te.maximum(old, back[t, i]) + A[t - 1, i]

    step = te.compute((m, n), step_of, name="step")
    S = te.scan(start, step, state, name="S")
    if z.rng.chance(0.5):
        return (S,)
    C = te.compute((n, m), lambda i, t: S[t, i] + start[0, i], name="C")
    return (C, S) if z.rng.chance(0.5) else (C,)


def cell(z: Sizes) -> tuple[Tensor, ...]:
    """Two states, one of which is reduced over; a step of four stages."""
    m, n, k = z.small() + 1, z.small(), z.small()
    X = te.placeholder((m, k), "int32", name="X")
    W = te.placeholder((n, k), "int32", name="W")
    V = te.placeholder((n, n), "int32", name="V")
    h_state = te.placeholder((m, n), "int32", name="h_state")
    c_state = te.placeholder((m, n), "int32", name="c_state")
    kx, kh = te.reduce_axis((0, k), name="kx"), te.reduce_axis((0, n), name="kh")
    xs = te.compute((m, n), lambda t, i: te.sum(X[t, kx] * W[i, kx], axis=kx), name="xs")
    hs = te.compute((m, n), lambda t, i: te.sum(h_state[t - 1, kh] * V[i, kh], axis=kh), name="hs")
    gate = te.compute((m, n), lambda t, i: xs[t, i] + hs[t, i], name="gate")
    c_step = te.compute((m, n), lambda t, i: c_state[t - 1, i] + gate[t, i], name="c_step")
    h_step = te.compute((m, n), lambda t, i: te.maximum(c_step[t, i], gate[t, n - 1 - i]), "h_step")
    firsts = (te.compute((1, n), lambda t, i: te.const(1, "int32"), name=f"f{x}") for x in "ch")
    C, H = te.scan(list(firsts), [c_step, h_step], [c_state, h_state], name="S")
    return (C, H)


def batched(z: Sizes) -> tuple[Tensor, ...]:
    """One recurrence for each element of a batch, which is not the last dimension."""
    m, b, n = z.small() + 1, z.small(), z.small()
    X = te.placeholder((m, b, n), "int32", name="X")
    V = te.placeholder((n, n), "int32", name="V")
    state = te.placeholder((m, b, n), "int32", name="state")
    k = te.reduce_axis((0, n), name="k")
    hs = te.compute(
        (m, b, n), lambda t, b, i: te.sum(state[t - 1, b, k] * V[i, k], axis=k), name="hs"
    )
    sums = te.compute((m, b, n), lambda t, b, i: hs[t, b, i] + X[t, b, i], name="sums")
    step = te.compute((m, b, n), lambda t, b, i: te.maximum(sums[t, b, i], -sums[t, b, i]), "step")
    first = te.compute((1, b, n), lambda t, b, i: X[0, b, i], name="first")
    return (te.scan(first, step, state, name="S"),)


TEMPLATES: dict[str, Callable[[Sizes], Tensor | tuple[Tensor, ...]]] = {
    "running": running,
    "cell": cell,
    "batched": batched,
}
