"""User-defined reducers: a step that would change the result must be refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.te import Tensor
from tests.fuzz.scalars import INTEGERS
from tests.fuzz.templates import Sizes

Combine = Callable[[Any, Any], Any]
CHOOSING: tuple[Combine, ...] = (
    lambda x, y: te.maximum(x, y),
    lambda x, y: te.select(abs(x) >= abs(y), x, y),
    lambda x, y: y,
    lambda x, y: x,
    lambda x, y: te.select(x < y, y, x),
    lambda x, y: te.select(y > 0, y, x),
    lambda x, y: te.minimum(te.maximum(x, te.const(-3, x.dtype)), y),
    lambda x, y: te.select(te.isnan(y), x, te.minimum(x, y)) if dtypes.is_float(x.dtype) else x,
)
"""They return one of their operands: no rounding."""
COMPUTING: tuple[Combine, ...] = (
    lambda x, y: x + y,
    lambda x, y: x * y,
    lambda x, y: x - y,
    lambda x, y: x & y,
    lambda x, y: x | y,
    lambda x, y: x ^ y,
    lambda x, y: x * 2 + y,
    lambda x, y: x + y + x * y,
    lambda x, y: (x + y) // 2,
    lambda x, y: te.maximum(x, y) + 1,
    lambda x, y: te.maximum(abs(x), abs(y)),
)
NEUTRAL = (0, 1, "least", "greatest", -1)


def _identity(z: Sizes) -> Callable[[str], Any]:
    choice = z.rng.choice(NEUTRAL)

    def identity(dtype: str) -> Any:
        if choice == "least":
            return te.min_value(dtype)
        if choice == "greatest":
            return te.max_value(dtype)
        return te.const(abs(choice) if dtype.startswith("u") else choice, dtype)

    return identity


def _reduced(z: Sizes, reduce: Any, dtype: str) -> Tensor:
    """Reduce over one or two axes, now and then from a start, or under a condition."""
    n, m, p = z.small(), z.one(), z.rng.choice((1, 2, 3))
    A = te.placeholder((n, m, p), dtype, name="A")
    start = te.placeholder((n,), dtype, name="start")
    k, q = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, p), name="q")
    options: list[str] = ["plain", "plain", "where", "init"]
    chosen = z.rng.choice(options)

    def element(i: Any) -> Any:
        value = A[i, k, q]
        if chosen == "where":
            return reduce(value, axis=[k, q], where=k <= i + 1)
        if chosen == "init":
            return reduce(value, axis=[k, q], init=start[i])
        return reduce(value, axis=[k, q])

    C = te.compute((n,), element, name="C")
    if z.rng.chance(0.3):
        return te.compute((n,), lambda i: te.maximum(C[i], C[n - 1 - i]), name="D")
    return C


def own_choice(z: Sizes) -> Tensor:
    dtype = z.dtype(("int32", "int8", "float32", "float64", "int64", "float16", "bfloat16"))
    return _reduced(z, te.comm_reducer(z.rng.choice(CHOOSING), _identity(z), name="own"), dtype)


def own_operation(z: Sizes) -> Tensor:
    dtype = z.dtype(INTEGERS)
    return _reduced(z, te.comm_reducer(z.rng.choice(COMPUTING), _identity(z), name="own"), dtype)


def own_float_sum(z: Sizes) -> Tensor:
    """Sums and differences of floats, whose numbers are small enough to be exact."""
    functions = (lambda x, y: x + y, lambda x, y: x - y, lambda x, y: te.maximum(x, y) + 1.0)
    reduce = te.comm_reducer(z.rng.choice(functions), _identity_of_sums(z), name="own")
    return _reduced(z, reduce, z.dtype(("float32", "float64")))


def _identity_of_sums(z: Sizes) -> Callable[[str], Any]:
    number = z.rng.choice((0, 1, -2))
    return lambda dtype: te.const(number, dtype)


def saturating(z: Sizes) -> Tensor:
    """Sums that stop at the ends of a dtype: the order decides."""
    dtype = z.dtype(("int8", "int16", "uint8"))
    low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))

    def combine(x: Any, y: Any) -> Any:
        total = x.astype("int32") + y.astype("int32")
        return te.maximum(te.minimum(total, high), low).astype(dtype)

    return _reduced(z, te.comm_reducer(combine, lambda d: te.const(0, d), name="clamped"), dtype)


def own_argmax(z: Sizes) -> tuple[Tensor, ...]:
    """The position and value of the greatest element as classic code writes it, ties and all."""
    n, m = z.small(), z.one()
    dtype = z.dtype(("float32", "int32", "int8", "uint8", "int64", "uint64", "float64", "float16"))
    A = te.placeholder((n, m), dtype, name="A")
    k = te.reduce_axis((0, m), name="k")
    chooses = z.rng.choice(_ARGMAX)
    best = te.comm_reducer(
        lambda x, y: tuple(te.select(chooses(x, y), a, b) for a, b in zip(x, y, strict=True)),
        lambda a, b: (te.const(-1, a), te.min_value(b)),
        name="best",
    )
    at, value = te.compute((n,), lambda i: best((k.astype("int32"), A[i, k]), axis=k), name="best")
    return (at, value)


_ARGMAX: tuple[Combine, ...] = (
    lambda x, y: x[1] >= y[1],
    lambda x, y: x[1] > y[1],
    lambda x, y: te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0])),
    lambda x, y: te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] > y[0])),
)


TEMPLATES: dict[str, Callable[[Sizes], Tensor | tuple[Tensor, ...]]] = {
    function.__name__: function
    for function in (own_choice, own_operation, own_float_sum, saturating, own_argmax)
}
