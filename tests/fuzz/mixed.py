"""Expressions of several dtypes on their edge values, each with one right result.

No float is rounded in a way that an order could change: one addition or one product, comparisons,
choices and conversions. A product is never added to, since both may be fused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.te import Tensor
from tests.fuzz.scalars import OF_INTEGERS
from tests.fuzz.templates import Sizes

DTYPES = tuple(name for name in dtypes.SCALARS if name != "index")
Operation = Callable[[Any, Any], Any]
OF_FLOATS: tuple[Operation, ...] = (
    lambda x, y: x + y, lambda x, y: te.maximum(x, y), lambda x, y: te.minimum(-x, y),
    lambda x, y: te.select(x < y, x, -y), lambda x, y: te.select(x == y, abs(x), y),
    lambda x, y: te.select(te.isnan(x), y, x), lambda x, y: te.floor(x), lambda x, y: te.trunc(y),
    lambda x, y: te.select(te.any(te.isinf(x), x != x), y, x), lambda x, y: te.round(x),
)  # fmt: skip
OF_ANY_INTEGERS: tuple[Operation, ...] = (
    *OF_INTEGERS,
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: te.maximum(x, y), lambda x, y: x // 3,
    lambda x, y: te.select(y != 0, x // te.select(y == 0, te.const(1, y.dtype), y), x),
    lambda x, y: te.select(x < y, x, y), lambda x, y: x % 7, lambda x, y: -x, lambda x, y: abs(y),
)  # fmt: skip
OF_BOOLS: tuple[Operation, ...] = (
    lambda x, y: te.all(x, y), lambda x, y: te.any(x, ~y), lambda x, y: x == y,
    lambda x, y: te.select(x, y, ~y), lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y,
)  # fmt: skip


def _operation(z: Sizes, a: Any, b: Any) -> Any:
    if dtypes.is_bool(a.dtype):
        return z.rng.choice(OF_BOOLS)(a, b)
    return z.rng.choice(OF_FLOATS if dtypes.is_float(a.dtype) else OF_ANY_INTEGERS)(a, b)


def edges(z: Sizes) -> Tensor:
    """Two operations on edge values of one type."""
    n, m, dtype = z.one(), z.small(), z.dtype(DTYPES)
    A, B = (te.placeholder((n, m), dtype, name=name) for name in "AB")
    P = te.compute((n, m), lambda i, j: _operation(z, A[i, j], B[i, j]), name="P")
    return te.compute((n, m), lambda i, j: _operation(z, P[n - 1 - i, j], B[i, j]), name="C")


def mixed_edges(z: Sizes) -> Tensor:
    """Operations on edge values that are converted from type to type."""
    n, m = z.one(), z.small()
    first, second, third = (z.dtype(DTYPES) for _ in range(3))
    A = te.placeholder((n, m), first, name="A")
    B = te.placeholder((m,), second, name="B")
    P = te.compute((n, m), lambda i, j: _operation(z, A[i, j].astype(second), B[j]), name="P")
    return te.compute(
        (m, n), lambda j, i: _operation(z, P[i, j].astype(third), B[j].astype(third)), name="C"
    )


def compared_edges(z: Sizes) -> Tensor:
    """A truth value of two types, and what it decides."""
    n, m, first, second = z.one(), z.small(), z.dtype(DTYPES), z.dtype(DTYPES)
    A = te.placeholder((n, m), first, name="A")
    B = te.placeholder((n, m), first, name="B")
    D = te.placeholder((n, m), second, name="D")
    test = z.rng.choice(_COMPARISONS)
    P = te.compute((n, m), lambda i, j: test(A[i, j], B[i, j]), name="P")
    return te.compute(
        (n, m), lambda i, j: te.if_then_else(P[i, m - 1 - j], D[i, j], D[n - 1 - i, j]), name="C"
    )


_COMPARISONS: tuple[Operation, ...] = (
    lambda x, y: x == y, lambda x, y: x != y, lambda x, y: x < y, lambda x, y: x <= y,
    lambda x, y: x > y, lambda x, y: te.any(x >= y, x == y),
)  # fmt: skip


def reduced_edges(z: Sizes) -> Tensor:
    """The extremum of edge values, or a sum of integers that wraps."""
    n, m, dtype = z.small(), z.one(), z.dtype(tuple(name for name in DTYPES if name != "bool"))
    A = te.placeholder((n, m), dtype, name="A")
    k = te.reduce_axis((0, m), name="k")
    choices = (te.max, te.min) if dtypes.is_float(dtype) else (te.max, te.min, te.sum, te.prod)
    reduce = z.rng.choice(choices)
    P = te.compute((n,), lambda i: reduce(A[i, k], axis=k), name="P")
    if z.rng.chance(0.5):
        return P
    return te.compute((n,), lambda i: te.select(P[i] == A[i, 0], P[n - 1 - i], A[i, 0]), name="C")


TEMPLATES: dict[str, Callable[[Sizes], Tensor | tuple[Tensor, ...]]] = {
    function.__name__: function for function in (edges, mixed_edges, compared_edges, reduced_edges)
}
