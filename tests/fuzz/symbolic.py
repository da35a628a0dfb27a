"""Expressions whose extents are known only at the call: each case runs on several sizes."""

from __future__ import annotations

from collections.abc import Callable

from dlcompiler import te
from dlcompiler.te import Tensor
from tests.fuzz.templates import Sizes

DTYPES = ("float32", "int32", "int8", "float64")


def symbolic_chain(z: Sizes) -> Tensor:
    n, m = te.size_var("n"), _second(z)
    dtype = z.dtype(DTYPES)
    A = te.placeholder((n, m), dtype, name="A")
    B = te.placeholder((m,), dtype, name="B")
    P = te.compute((n, m), lambda i, j: A[i, j] * 2 + B[j], name="P")
    Q = te.compute((m, n), lambda j, i: te.maximum(P[i, j], B[m - 1 - j]), name="Q")
    return te.compute((n, m), lambda i, j: Q[j, n - 1 - i] - P[i, j], name="C")


def symbolic_matmul(z: Sizes) -> Tensor:
    n, m, length = te.size_var("n"), _second(z), _second(z, "length")
    A = te.placeholder((n, length), name="A")
    B = te.placeholder((length, m), name="B")
    k = te.reduce_axis((0, length), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    if z.rng.chance(0.5):
        return C
    return te.compute((n, m), lambda i, j: te.maximum(C[i, j], 0.0), name="D")


def symbolic_window(z: Sizes) -> Tensor:
    n, kernel, stride = te.size_var("n"), z.rng.choice((1, 2, 3)), z.rng.choice((1, 2))
    A = te.placeholder((n,), "int32", name="A")
    W = te.placeholder((kernel,), "int32", name="W")
    pad = z.rng.choice((0, 1, 2))
    padded = te.compute(
        (n * stride + kernel + pad,),
        lambda i: te.if_then_else(te.all(i >= pad, i < n + pad), A[i - pad], 0),
        name="padded",
    )
    d = te.reduce_axis((0, kernel), name="d")
    return te.compute((n,), lambda i: te.sum(padded[i * stride + d] * W[d], axis=d), name="Y")


def symbolic_resize(z: Sizes) -> Tensor:
    n, factor = te.size_var("n"), z.rng.choice((2, 3))
    A = te.placeholder((n,), "int16", name="A")
    P = te.compute((n,), lambda i: A[i] + 1, name="P")
    Q = te.compute((n * factor,), lambda i: P[i // factor] * 2, name="Q")
    return te.compute((n,), lambda i: Q[i * factor] - Q[i * factor + factor - 1], name="C")


def symbolic_reshape(z: Sizes) -> Tensor:
    n, m = te.size_var("n"), _second(z)
    A = te.placeholder((n, m), "int32", name="A")
    P = te.compute((n, m), lambda i, j: A[i, j] * 3, name="P")
    return te.compute((n * m,), lambda i: P[i // m, i % m] + 1, name="C")


def symbolic_gather(z: Sizes) -> Tensor:
    n, m = te.size_var("n"), te.size_var("m")
    table = te.placeholder((m,), "int32", name="table")
    at = te.placeholder((n,), "int32", name="at")
    P = te.compute((m,), lambda i: table[i] + 1, name="P")
    inside = lambda i: te.all(at[i] >= 0, at[i] < m)  # noqa: E731
    return te.compute((n,), lambda i: te.if_then_else(inside(i), P[at[i]], 0), name="C")


def symbolic_softmax(z: Sizes) -> Tensor:
    n, m = te.size_var("n"), te.size_var("m")
    X = te.placeholder((n, m), "int32", name="X")
    k, q = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="q")
    largest = te.compute((n,), lambda i: te.max(X[i, k], axis=k), name="largest")
    shifted = te.compute((n, m), lambda i, j: X[i, j] - largest[i], name="shifted")
    total = te.compute((n,), lambda i: te.sum(shifted[i, q], axis=q), name="total")
    return te.compute((n, m), lambda i, j: shifted[i, j] * 8 - total[i], name="Y")


def symbolic_arg(z: Sizes) -> tuple[Tensor, ...]:
    n, m = te.size_var("n"), te.size_var("m")
    A = te.placeholder((n, m), "int32", name="A")
    P = te.compute((n, m), lambda i, j: A[i, j] * 2, name="P")
    k = te.reduce_axis((0, m), name="k")
    at, value = te.compute((n,), lambda i: te.argmax(P[i, k], axis=k), name="best")
    return (at, value)


def _second(z: Sizes, name: str = "m"):
    """Return another extent: a symbol, or a number."""
    return te.size_var(name) if z.rng.chance(0.5) else z.small()


TEMPLATES: dict[str, Callable[[Sizes], Tensor | tuple[Tensor, ...]]] = {
    function.__name__: function
    for function in (
        symbolic_chain, symbolic_matmul, symbolic_window, symbolic_resize, symbolic_reshape,
        symbolic_gather, symbolic_softmax, symbolic_arg,
    )
}  # fmt: skip
