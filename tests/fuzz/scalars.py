"""Expressions of random scalar operations: bits, conversions, exact functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.te import Tensor
from tests.fuzz.templates import Sizes

INTEGERS = tuple(name for name in dtypes.SCALARS if dtypes.is_int(name))
DATA = tuple(name for name in dtypes.SCALARS if name not in ("bool", "index"))
OF_INTEGERS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x & y, lambda x, y: x | ~y, lambda x, y: x ^ y, lambda x, y: x << (y & 7),
    lambda x, y: x >> y, lambda x, y: te.popcount(x) - y, lambda x, y: x * x - y,
    lambda x, y: te.clz(x).astype(y.dtype) + y, lambda x, y: te.truncdiv(x, y) % 5,
)  # fmt: skip
OF_FLOATS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: te.floor(x * 0.5) + y, lambda x, y: te.round(y * 0.5) - x,
    lambda x, y: te.fmod(x, y), lambda x, y: te.maximum(abs(x), y), lambda x, y: te.trunc(x - y),
    lambda x, y: te.select(te.isnan(x), y, x), lambda x, y: te.ceil(x * 0.25 - y),
    lambda x, y: te.if_then_else(te.likely(te.isfinite(y)), x, -y),
)  # fmt: skip


def _combined(z: Sizes, a: Any, b: Any) -> Any:
    functions = OF_FLOATS if dtypes.is_float(a.dtype) else OF_INTEGERS
    return z.rng.choice(functions)(a, b)


def bits(z: Sizes) -> Tensor:
    n, m, dtype = z.one(), z.small(), z.dtype(INTEGERS)
    A, B = (te.placeholder((n, m), dtype, name=name) for name in "AB")
    P = te.compute((n, m), lambda i, j: _combined(z, A[i, j], B[i, j]), name="P")
    Q = te.compute((n, m), lambda i, j: _combined(z, P[i, j], A[i, j]), name="Q")
    k = te.reduce_axis((0, m), name="k")
    return te.compute((n,), lambda i: te.max(Q[i, k] ^ P[i, k], axis=k), name="C")


def conversions(z: Sizes) -> Tensor:
    n, m = z.one(), z.small()
    first, second, third = (z.dtype(DATA) for _ in range(3))
    A = te.placeholder((n, m), first, name="A")
    B = te.placeholder((n, m), second, name="B")
    P = te.compute((n, m), lambda i, j: _combined(z, A[i, j].astype(second), B[i, j]), name="P")
    return te.compute(
        (n, m), lambda i, j: _combined(z, P[i, j].astype(third), B[i, j].astype(third)), name="C"
    )


def scattered(z: Sizes) -> Tensor:
    shift = z.rng.choice((1, 2, 3))
    n, m = 8, z.small()
    A = te.placeholder((n, m), name="A")
    P = te.compute((n, m), lambda i, j: A[i ^ shift, j] * 2.0, name="P")
    return te.compute((n, m), lambda i, j: P[(i << 1 | i >> 2) & 7, j] + P[i & 3, j], name="C")


TEMPLATES: dict[str, Callable[[Sizes], Tensor | tuple[Tensor, ...]]] = {
    function.__name__: function for function in (bits, conversions, scattered)
}
