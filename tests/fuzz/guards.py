"""Expressions whose reads are in bounds because of guards, or of the values in index tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.te import Tensor
from tests.fuzz.scalars import INTEGERS
from tests.fuzz.templates import Sizes

DTYPES = ("float32", "int32", "int8", "float64", "uint16", "bool", "float16", "uint64")


def _merged(a: Any, b: Any) -> Any:
    return te.any(a, b) if dtypes.is_bool(a.dtype) else te.maximum(a, b)


def padded(z: Sizes) -> Tensor:
    """A plane in a frame; guards are as wide as the plane, or narrower."""
    h, w, dtype = z.small(), z.one(), z.dtype(DTYPES)
    top, left = z.rng.randrange(3), z.rng.randrange(4)
    low, high = z.rng.choice((0, 0, 1)), z.rng.choice((0, 0, 1))
    A = te.placeholder((h, w), dtype, name="A")
    source = te.compute((h, w), lambda y, x: A[y, w - 1 - x], name="S") if z.rng.chance(0.5) else A
    guard = _FORMS[z.rng.randrange(len(_FORMS))]
    P = te.compute(
        (h + top + 1, w + left + 2),
        lambda y, x: te.if_then_else(
            te.all(guard(y, top, h, low, high), guard(x, left, w, low, high)),
            source[y - top, x - left],
            te.const(1, dtype),
        ),
        name="P",
    )
    if z.rng.chance(0.4):
        return te.compute((h, w), lambda y, x: _merged(P[y + 1, x], P[y, x + 1]), name="C")
    return P


_FORMS: tuple[Callable[[Any, int, int, int, int], Any], ...] = (
    lambda i, at, n, low, high: te.all(i >= at + low, i < at + n - high),
    lambda i, at, n, low, high: te.all(i - at >= low, i - at <= n - 1 - high),
    lambda i, at, n, low, high: te.all(te.likely(i > at + low - 1), at + n - high > i),
    lambda i, at, n, low, high: ~te.any(i < at + low, i >= at + n - high),
    lambda i, at, n, low, high: te.all((i - at) * 2 >= 2 * low, (i - at) * 2 + 1 < 2 * (n - high)),
)
"""Whether i - at is in [low, n - high), in different words."""


def guarded_sum(z: Sizes) -> Tensor:
    """A window that extends past both ends of its row, where a condition excludes reads."""
    n, m, reach = z.one(), z.small(), z.rng.choice((1, 2, 3))
    dtype = z.dtype(("int32", "int8", "uint8", "int64"))
    A = te.placeholder((n, m), dtype, name="A")
    k = te.reduce_axis((0, 2 * reach + 1), name="k")
    P = te.compute((n, m), lambda i, j: A[i, j] * 3, name="P")
    inside = lambda i: te.all(i + k >= reach, i + k < n + reach)  # noqa: E731
    at = lambda i, j: P[i + k - reach, j]  # noqa: E731
    if z.rng.chance(0.5):
        return te.compute((n, m), lambda i, j: te.sum(at(i, j), axis=k, where=inside(i)), name="C")
    value = lambda i, j: te.if_then_else(inside(i), at(i, j), te.const(2, dtype))  # noqa: E731
    return te.compute((n, m), lambda i, j: te.max(value(i, j), axis=k), name="C")


def embedding(z: Sizes) -> Tensor:
    """Rows of a table, at indices of any integer dtype that no condition bounds."""
    n, rows, m = z.one(), z.one(), z.small()
    table = te.placeholder((rows, m), z.dtype(DTYPES), name="table")
    at = te.placeholder((n,), z.dtype(INTEGERS), name="at")
    source = table
    if z.rng.chance(0.5):
        source = te.compute((rows, m), lambda r, j: table[r, m - 1 - j], name="T")
    picked = te.compute((n, m), lambda i, j: source[at[i], j], name="picked")
    if z.rng.chance(0.5):
        return te.compute((m, n), lambda j, i: _merged(picked[i, j], source[0, j]), name="C")
    return picked


def embedding_bag(z: Sizes) -> Tensor:
    """Sums of rows; negative elements stand for no row."""
    n, rows, length = z.small(), z.one(), z.small()
    table = te.placeholder((rows,), z.dtype(("int32", "int8", "uint64")), name="table")
    at = te.placeholder((n, length), z.dtype(("int8", "int16", "int32", "int64")), name="at")
    k = te.reduce_axis((0, length), name="k")
    doubled = te.compute((rows,), lambda r: table[r] * 2, name="doubled")
    known = lambda i: te.all(at[i, k] >= 0, at[i, k] < rows)  # noqa: E731
    if z.rng.chance(0.5):
        return te.compute(
            (n,), lambda i: te.sum(doubled[at[i, k]], axis=k, where=known(i)), name="C"
        )
    zero = te.const(0, table.dtype)
    value = lambda i: te.if_then_else(known(i), doubled[at[i, k]], zero)  # noqa: E731
    return te.compute((n,), lambda i: te.sum(value(i), axis=k), name="C")


def chained_gather(z: Sizes) -> Tensor:
    """An index that is read at an index that is read itself: ``A[I[J[i]]]``."""
    n, m, rows = z.one(), z.small(), z.one()
    first = te.placeholder((n,), z.dtype(INTEGERS), name="first")
    second = te.placeholder((m,), z.dtype(INTEGERS), name="second")
    data = te.placeholder((rows,), z.dtype(DTYPES), name="data")
    if z.rng.chance(0.5):
        inner = te.compute((n,), lambda i: second[first[i]], name="inner")
        return te.compute((n,), lambda i: data[inner[n - 1 - i]], name="C")
    return te.compute((n,), lambda i: data[second[first[i]]], name="C")


TEMPLATES: dict[str, Callable[[Sizes], Tensor | tuple[Tensor, ...]]] = {
    function.__name__: function
    for function in (padded, guarded_sum, embedding, embedding_bag, chained_gather)
}
