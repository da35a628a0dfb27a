"""Expressions with several results: of one computation, and of one reduction."""

from __future__ import annotations

from collections.abc import Callable

from dlcompiler import te
from dlcompiler.te import Tensor
from tests.fuzz.templates import Sizes


def arg_extremum(z: Sizes) -> tuple[Tensor, ...]:
    n, m = z.one(), z.one()
    dtype = z.dtype(("float32", "int32", "int8", "float64", "uint8"))
    A = te.placeholder((n, m), dtype, name="A")
    scaled = te.compute((n, m), lambda i, j: A[i, j] * 2, name="scaled")
    first = z.rng.choice((0, 0, 1))
    k = te.reduce_axis((min(first, m), m), name="k")
    find = z.rng.choice((te.argmax, te.argmin))
    at, value = te.compute((n,), lambda i: find(scaled[i, k], axis=k), name="best")
    if z.rng.chance(0.5):
        one = te.const(1, "int32")
        C = te.compute((n,), lambda i: at[i] * 2 + one, name="C")
        return (C, value) if z.rng.chance(0.5) else (C,)
    return (at, value) if z.rng.chance(0.5) else (value,)


def two_results(z: Sizes) -> tuple[Tensor, ...]:
    n, m, dtype = z.one(), z.one(), z.dtype(("float32", "int32", "int16"))
    A = te.placeholder((n, m), dtype, name="A")
    B = te.placeholder((n, m), dtype, name="B")
    P, Q = te.compute((n, m), lambda i, j: (A[i, j] + B[i, j], A[i, j] - B[i, j]), name="PQ")
    C = te.compute((m, n), lambda j, i: P[i, j] * Q[n - 1 - i, j], name="C")
    return (C, Q) if z.rng.chance(0.5) else (C,)


def own_reducer(z: Sizes) -> tuple[Tensor, ...]:
    """Sum and sum of absolute values together, or the largest value and how often it occurs."""
    n, m = z.one(), z.small()
    A = te.placeholder((n, m), "int32", name="A")
    k = te.reduce_axis((0, m), name="k")
    if z.rng.chance(0.5):
        add = te.comm_reducer(
            lambda x, y: (x[0] + y[0], x[1] + y[1]),
            lambda a, b: (te.const(0, a), te.const(0, b)),
            name="sums",
        )
        P, Q = te.compute(
            (n,), lambda i: add((A[i, k], te.maximum(A[i, k], 0 - A[i, k])), axis=k), name="PQ"
        )
    else:
        count = te.comm_reducer(_most_often, lambda a, b: (te.min_value(a), te.const(0, b)))
        one = te.const(1, "int32")
        P, Q = te.compute((n,), lambda i: count((A[i, k], one), axis=k), name="PQ")
    C = te.compute((n,), lambda i: P[i] * 3 - Q[n - 1 - i], name="C")
    return (C, P) if z.rng.chance(0.3) else (C,)


def _most_often(x, y):
    both = x[1] + y[1]
    count = te.select(x[0] == y[0], both, te.select(x[0] > y[0], x[1], y[1]))
    return te.maximum(x[0], y[0]), count


def ordered(z: Sizes) -> tuple[Tensor, ...]:
    """A reduction that keeps the last selected value, so that its result depends on the order."""
    n, m, p = z.one(), z.small(), z.small()
    A = te.placeholder((n, m, p), "int32", name="A")
    k, q = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, p), name="q")
    last = te.comm_reducer(
        lambda x, y: (te.select(y[1] > 0, y[0], x[0]), te.maximum(x[1], y[1])),
        lambda a, b: (te.const(0, a), te.const(0, b)),
        name="last",
    )
    counts = lambda i: te.select(A[i, k, q] > 0, 1, 0)  # noqa: E731
    P, Q = te.compute((n,), lambda i: last((A[i, k, q], counts(i)), axis=[k, q]), name="PQ")
    return (P, Q)


def products(z: Sizes) -> Tensor:
    n, m, dtype = z.one(), z.small(), z.dtype(("float32", "int32", "int8"))
    A = te.placeholder((n, m), dtype, name="A")
    k = te.reduce_axis((0, m), name="k")
    P = te.compute((n,), lambda i: te.prod(A[i, k], axis=k), name="P")
    return te.compute((n,), lambda i: P[i] + P[n - 1 - i], name="C")


def masked_reduction(z: Sizes) -> Tensor:
    n, m = z.one(), z.one()
    A = te.placeholder((n, m), "int32", name="A")
    start = te.placeholder((n,), "int32", name="start")
    k = te.reduce_axis((0, m), name="k")
    P = te.compute((n, m), lambda i, j: A[i, j] + 1, name="P")
    S = te.compute((n,), lambda i: te.sum(P[i, k], axis=k, where=k <= i, init=start[i]), name="S")
    return te.compute((n,), lambda i: S[i] * 2, name="C")


TEMPLATES: dict[str, Callable[[Sizes], Tensor | tuple[Tensor, ...]]] = {
    function.__name__: function
    for function in (arg_extremum, two_results, own_reducer, ordered, products, masked_reduction)
}
