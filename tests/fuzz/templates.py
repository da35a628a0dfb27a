"""Expressions of the kinds that operators are made of, of awkward sizes.

Each function of `TEMPLATES` takes a `Sizes` and returns the outputs. Inputs are small whole
numbers, so that all but the templates of `INEXACT` have one right result in any order of summation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dlcompiler import te
from dlcompiler.te import Tensor
from tests.fuzz.choices import Choices

SIZES = (1, 2, 3, 4, 5, 7, 8, 13, 16, 31)
SMALL_SIZES = (1, 2, 3, 4, 5, 7)
FLOATS = ("float32", "float32", "float64")


@dataclass
class Sizes:
    """A source of sizes and types."""

    rng: Choices

    def one(self) -> int:
        return self.rng.choice(SIZES)

    def small(self) -> int:
        return self.rng.choice(SMALL_SIZES)

    def dtype(self, choices: tuple[str, ...] = FLOATS) -> str:
        return self.rng.choice(choices)


def elementwise(z: Sizes) -> Tensor:
    shape, dtype = (z.one(), z.one()), z.dtype(("float32", "float64", "int32", "int8", "uint8"))
    A = te.placeholder(shape, dtype, name="A")
    B = te.placeholder(shape, dtype, name="B")
    P = te.compute(shape, lambda i, j: A[i, j] * 2 + B[i, j], name="P")
    zero = te.const(0, dtype)
    return te.compute(shape, lambda i, j: te.maximum(P[i, j], zero) - A[i, j], name="C")


def matmul(z: Sizes) -> Tensor:
    n, m, length, dtype = z.one(), z.one(), z.one(), z.dtype()
    A = te.placeholder((n, length), dtype, name="A")
    B = te.placeholder((length, m), dtype, name="B")
    k = te.reduce_axis((0, length), name="k")
    return te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")


def matmul_bias(z: Sizes) -> Tensor:
    C = matmul(z)
    bias = te.placeholder((C.shape[1],), C.dtype, name="bias")
    zero = te.const(0, C.dtype)
    return te.compute(C.shape, lambda i, j: te.maximum(C[i, j] + bias[j], zero), name="D")


def matmul_packed(z: Sizes) -> Tensor:
    n, m, length, width = z.one(), z.one(), z.one(), z.rng.choice((1, 2, 4, 5))
    A = te.placeholder((n, length), name="A")
    B = te.placeholder((length, m), name="B")
    blocks = -(-m // width)
    packed = te.compute(
        (blocks, length, width),
        lambda b, k, j: te.if_then_else(
            b * width + j < m, B[k, te.minimum(b * width + j, m - 1)], 0.0
        ),
        name="packed",
    )
    k = te.reduce_axis((0, length), name="k")
    return te.compute(
        (n, m),
        lambda i, j: te.sum(A[i, k] * packed[j // width, k, j % width], axis=k),
        name="C",
    )


def matmul_int8(z: Sizes) -> Tensor:
    n, m, length = z.one(), z.one(), z.one()
    A = te.placeholder((n, length), z.dtype(("int8", "uint8")), name="A")
    B = te.placeholder((length, m), "int8", name="B")
    k = te.reduce_axis((0, length), name="k")
    return te.compute(
        (n, m),
        lambda i, j: te.sum(A[i, k].astype("int32") * B[k, j].astype("int32"), axis=k),
        name="C",
    )


def conv2d(z: Sizes) -> Tensor:
    channels, out, h, w = z.rng.choice((1, 2, 3)), z.rng.choice((1, 3, 4)), z.small(), z.small()
    kernel, pad, stride = z.rng.choice((1, 2, 3)), z.rng.choice((0, 1, 2)), z.rng.choice((1, 2))
    X = te.placeholder((channels, h, w), name="X")
    W = te.placeholder((out, channels, kernel, kernel), name="W")
    inside = lambda y, x: te.all(y >= pad, y < h + pad, x >= pad, x < w + pad)  # noqa: E731
    padded = te.compute(
        (channels, h + 2 * pad + kernel, w + 2 * pad + kernel),
        lambda c, y, x: te.if_then_else(inside(y, x), X[c, y - pad, x - pad], 0.0),
        name="padded",
    )
    c = te.reduce_axis((0, channels), name="c")
    dy, dx = (te.reduce_axis((0, kernel), name=name) for name in ("dy", "dx"))
    oh, ow = ((size + 2 * pad - 1) // stride + 1 for size in (h, w))
    return te.compute(
        (out, oh, ow),
        lambda o, y, x: te.sum(
            padded[c, y * stride + dy, x * stride + dx] * W[o, c, dy, dx], axis=[c, dy, dx]
        ),
        name="Y",
    )


def depthwise(z: Sizes) -> Tensor:
    channels, size, kernel, dilation = (
        z.small(),
        z.one(),
        z.rng.choice((1, 3)),
        z.rng.choice((1, 2)),
    )
    reach = (kernel - 1) * dilation
    X = te.placeholder((channels, size + reach), name="X")
    W = te.placeholder((channels, kernel), name="W")
    scaled = te.compute(X.shape, lambda c, i: X[c, i] * 3.0, name="scaled")
    d = te.reduce_axis((0, kernel), name="d")
    return te.compute(
        (channels, size),
        lambda c, i: te.sum(scaled[c, i + d * dilation] * W[c, d], axis=d),
        name="Y",
    )


def pool_max(z: Sizes) -> Tensor:
    h, w, kernel, stride = z.one(), z.one(), z.rng.choice((2, 3)), z.rng.choice((1, 2, 3))
    dtype = z.dtype(("float32", "int8", "int32", "float64"))
    X = te.placeholder((h, w), dtype, name="X")
    lowest = te.min_value(dtype)
    oh, ow = ((size - 1) // stride + 1 for size in (h, w))
    padded = te.compute(
        (h + kernel + stride, w + kernel + stride),
        lambda y, x: te.if_then_else(
            te.all(y >= 1, y <= h, x >= 1, x <= w), X[y - 1, x - 1], lowest
        ),
        name="padded",
    )
    dy, dx = (te.reduce_axis((0, kernel), name=name) for name in ("dy", "dx"))
    return te.compute(
        (oh, ow),
        lambda y, x: te.max(padded[y * stride + dy, x * stride + dx], axis=[dy, dx]),
        name="Y",
    )


def stencils(z: Sizes) -> Tensor:
    n, dtype = z.one(), z.dtype(("float32", "float64", "int32"))
    A = te.placeholder((n + 6,), dtype, name="A")
    P = te.compute((n + 4,), lambda i: A[i] + A[i + 1] * 2 + A[i + 2], name="P")
    Q = te.compute((n + 2,), lambda i: P[i] - P[i + 2], name="Q")
    return te.compute((n,), lambda i: Q[i] + Q[i + 1] + Q[i + 2] + P[i + 2], name="R")


def blur(z: Sizes) -> Tensor:
    h, w = z.one(), z.one()
    A = te.placeholder((h + 2, w + 2), z.dtype(("float32", "int16")), name="A")
    across = te.compute((h + 2, w), lambda y, x: A[y, x] + A[y, x + 1] + A[y, x + 2], name="across")
    return te.compute(
        (h, w), lambda y, x: across[y, x] + across[y + 1, x] + across[y + 2, x], name="down"
    )


def transpose(z: Sizes) -> Tensor:
    n, m = z.one(), z.one()
    A = te.placeholder((n, m), name="A")
    B = te.placeholder((m, n), name="B")
    T = te.compute((m, n), lambda i, j: A[j, i] + 1.0, name="T")
    return te.compute((m, n), lambda i, j: T[i, j] * B[i, j], name="C")


def broadcast(z: Sizes) -> Tensor:
    n, m = z.one(), z.one()
    a = te.placeholder((n,), name="a")
    b = te.placeholder((m,), name="b")
    scaled = te.compute((n,), lambda i: a[i] * 3.0, name="scaled")
    outer = te.compute((n, m), lambda i, j: scaled[i] * b[j], name="outer")
    return te.compute((n, m), lambda i, j: outer[i, j] - scaled[i], name="C")


def softmax(z: Sizes) -> Tensor:
    n, m = z.one(), z.one()
    X = te.placeholder((n, m), name="X")
    k, q = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="q")
    largest = te.compute((n,), lambda i: te.max(X[i, k], axis=k), name="largest")
    shifted = te.compute((n, m), lambda i, j: te.exp(X[i, j] - largest[i]), name="shifted")
    total = te.compute((n,), lambda i: te.sum(shifted[i, q], axis=q), name="total")
    return te.compute((n, m), lambda i, j: shifted[i, j] / total[i], name="Y")


def two_sums(z: Sizes) -> tuple[Tensor, ...]:
    n, m = z.one(), z.one()
    X = te.placeholder((n, m), name="X")
    k = te.reduce_axis((0, m), name="k")
    rows = te.compute((n,), lambda i: te.sum(X[i, k], axis=k), name="rows")
    centred = te.compute((n, m), lambda i, j: X[i, j] * float(m) - rows[i], name="centred")
    q = k if z.rng.random() < 0.5 else te.reduce_axis((0, m), name="q")
    squares = te.compute(
        (n,), lambda i: te.sum(centred[i, q] * centred[i, q], axis=q), name="squares"
    )
    return (centred, squares) if z.rng.random() < 0.5 else (squares,)


def gather(z: Sizes) -> Tensor:
    n, rows, m = z.one(), z.one(), z.small()
    table = te.placeholder((rows, m), name="table")
    raw = te.placeholder((n,), "int32", name="raw")
    index = te.compute((n,), lambda i: (raw[i] + i.astype("int32")) % rows, name="index")
    scaled = te.compute((rows, m), lambda r, j: table[r, j] * 2.0, name="scaled")
    if z.rng.random() < 0.5:
        return te.compute((n, m), lambda i, j: scaled[index[i], j] * 3.0, name="C")
    return te.compute((n, m), lambda i, j: scaled[index[i], j] + scaled[0, j], name="C")


def clipped(z: Sizes) -> Tensor:
    n, m, dtype = z.one(), z.one(), z.dtype(("int32", "int8", "int64"))
    A = te.placeholder((n, m), "int16", name="A")
    at = te.placeholder((n,), dtype, name="at")
    P = te.compute((n, m), lambda i, j: A[i, j] - 1, name="P")
    row = lambda i: te.maximum(te.minimum(at[i] + i.astype(dtype), n - 1), 0)  # noqa: E731
    Q = te.compute((n, m), lambda i, j: P[row(i), (j + m // 2) % m], name="Q")
    return te.compute(
        (n, m), lambda i, j: Q[n - 1 - i, j] + P[i, te.minimum(j * 2, m - 1)], name="C"
    )


def convolutions(z: Sizes) -> Tensor:
    n, first, second = z.one(), z.rng.choice((1, 2, 3)), z.rng.choice((1, 2, 3))
    A = te.placeholder((2, (n - 1) * second + 2 + first), name="A")
    W = te.placeholder((3, 2, first), name="W")
    V = te.placeholder((3, 2), name="V")
    c, d = te.reduce_axis((0, 2), name="c"), te.reduce_axis((0, first), name="d")
    Y = te.compute(
        (3, (n - 1) * second + 2),
        lambda o, i: te.sum(A[c, i + d] * W[o, c, d], axis=[c, d]),
        name="Y",
    )
    o, e = te.reduce_axis((0, 3), name="o"), te.reduce_axis((0, 2), name="e")
    return te.compute((n,), lambda i: te.sum(Y[o, i * second + e] * V[o, e], axis=[e, o]), name="Z")


def shuffled(z: Sizes) -> Tensor:
    a, b, c = z.small(), z.small(), z.small()
    A = te.placeholder((a, b, c), "int32", name="A")
    flat = te.compute((a * b * c,), lambda i: A[i // (b * c), i // c % b, i % c] * 3, name="flat")
    wide = te.compute((c, a * b), lambda i, j: flat[i * (a * b) + j] + 1, name="wide")
    return te.compute(
        (b, c, a), lambda x, y, w: wide[(x * c + y) % c, (w * b + x) % (a * b)], name="C"
    )


def lookups(z: Sizes) -> Tensor:
    n, m = z.one(), z.small()
    A = te.placeholder((n, m), name="A")
    mask = te.placeholder((n,), "int8", name="mask")
    k = te.reduce_axis((0, m), name="k")
    rows = te.compute((n,), lambda i: te.max(A[i, k], axis=k), name="rows")
    kept = te.compute(
        (n, m),
        lambda i, j: te.select(mask[i] > 0, A[i, j] - rows[i], te.const(-1.0, "float32")),
        name="kept",
    )
    return te.compute(
        (m, n),
        lambda j, i: te.if_then_else(
            te.all(mask[n - 1 - i] > 0, i + j < n), kept[i + j, j], rows[i] * 2.0
        ),
        name="C",
    )


def reversed_(z: Sizes) -> Tensor:
    n = z.one()
    A = te.placeholder((n,), name="A")
    P = te.compute((n,), lambda i: A[n - 1 - i] * 2.0, name="P")
    return te.compute((n,), lambda i: P[n - 1 - i] + P[i], name="C")


def strided(z: Sizes) -> Tensor:
    n, a, b = z.one(), z.rng.choice((1, 2, 3)), z.rng.choice((2, 3, 5))
    A = te.placeholder((a * (n - 1) + b + 1,), name="A")
    P = te.compute(A.shape, lambda i: A[i] + 1.0, name="P")
    Q = te.compute((n,), lambda i: P[a * i] - P[a * i + b], name="Q")
    return te.compute((n,), lambda i: Q[i // b] + P[i % b] + Q[n - 1 - i // a], name="C")


def groups(z: Sizes) -> Tensor:
    n, m, c = z.one(), z.rng.choice((2, 3, 5, 7)), z.rng.choice((2, 3, 5))
    first, step = z.rng.randrange(4), z.rng.choice((1, 2))
    A = te.placeholder(((n * step + first) // c + 1,), "int32", name="A")
    B = te.placeholder((m,), "int32", name="B")
    P = te.compute(A.shape, lambda i: A[i] * 3, name="P")
    Q = te.compute(B.shape, lambda i: B[i] + 5, name="Q")
    return te.compute(
        (n,), lambda i: P[(i * step + first) // c] - Q[(i * step + first) % m], name="C"
    )


def upsample(z: Sizes) -> Tensor:
    h, w, factor = z.small(), z.small(), z.rng.choice((2, 3))
    A = te.placeholder((h, w, factor), name="A")
    P = te.compute(A.shape, lambda y, x, c: A[y, x, c] * 2.0, name="P")
    return te.compute(
        (h * factor, w * factor),
        lambda y, x: P[y // factor, x // factor, (y + x) % factor] + P[y // factor, x % w, 0],
        name="C",
    )


def prefix(z: Sizes) -> Tensor:
    n = z.one()
    A = te.placeholder((n,), name="A")
    P = te.compute((n,), lambda i: A[i] + 1.0, name="P")
    k = te.reduce_axis((0, n), name="k")
    return te.compute((n,), lambda i: te.sum(te.if_then_else(k <= i, P[k], 0.0), axis=k), name="C")


def shifted_reduction(z: Sizes) -> Tensor:
    n, m, first = z.one(), z.small(), z.rng.choice((1, 2, 5))
    dtype = z.dtype(("float32", "int32", "int8"))
    A = te.placeholder((n + first + m, 4), dtype, name="A")
    P = te.compute(A.shape, lambda i, j: A[i, j] - 1, name="P")
    k = te.reduce_axis((first, first + m), name="k")
    j = te.reduce_axis((1, 4), name="j")
    reduce = z.rng.choice((te.sum, te.min, te.max))
    return te.compute((n,), lambda i: reduce(P[i + k, j], axis=[k, j]), name="C")


def scalar(z: Sizes) -> tuple[Tensor, ...]:
    n, m = z.one(), z.small()
    A = te.placeholder((n, m), name="A")
    i, j = te.reduce_axis((0, n), name="i"), te.reduce_axis((0, m), name="j")
    total = te.compute((), lambda: te.sum(A[i, j], axis=[i, j]), name="total")
    C = te.compute((n,), lambda x: A[x, 0] * 2.0 - total[()], name="C")
    return (total, C) if z.rng.random() < 0.5 else (C,)


def several_readers(z: Sizes) -> tuple[Tensor, ...]:
    n, m = z.one(), z.one()
    A = te.placeholder((n + 1, m + 1), name="A")
    P = te.compute(A.shape, lambda i, j: A[i, j] * 2.0, name="P")
    Q = te.compute((n, m), lambda i, j: P[i, j] + P[i + 1, j + 1], name="Q")
    R = te.compute((n, m), lambda i, j: P[i + 1, j] - Q[i, j], name="R")
    S = te.compute((n, m), lambda i, j: Q[i, j] * R[i, m - 1 - j] + P[i, j], name="S")
    return (S, Q) if z.rng.random() < 0.3 else (S,)


def integers(z: Sizes) -> Tensor:
    n, dtype = z.one(), z.dtype(("int8", "int32", "uint8", "int16"))
    A = te.placeholder((n,), dtype, name="A")
    B = te.placeholder((n,), dtype, name="B")
    P = te.compute((n,), lambda i: A[i] * 100 + 27, name="P")  # wraps around
    Q = te.compute((n,), lambda i: te.select(B[i] == 0, P[i], P[i] // B[i]), name="Q")
    return te.compute((n,), lambda i: Q[i] % 7 - P[i] // 3 + te.truncmod(P[i], 5), name="C")


def positions(z: Sizes) -> Tensor:
    n, m = z.one(), z.one()
    A = te.placeholder((n, m), "int32", name="A")
    P = te.compute((n, m), lambda i, j: (i * m + j).astype("int32") - A[i, j], name="P")
    low, high = z.rng.randrange(n + 1), z.rng.randrange(m + 1)
    return te.compute(
        (n, m),
        lambda i, j: te.if_then_else(
            te.any(te.all(i >= low, j < high), P[i, j] > 3), P[i, j], (i - j).astype("int32")
        ),
        name="C",
    )


def three_products(z: Sizes) -> Tensor:
    n, m, p, q = z.small(), z.small(), z.small(), z.small()
    A = te.placeholder((n, m), name="A")
    B = te.placeholder((m, p), name="B")
    C = te.placeholder((p, q), name="C")
    k, r = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, p), name="r")
    AB = te.compute((n, p), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="AB")
    return te.compute((n, q), lambda i, j: te.sum(AB[i, r] * C[r, j], axis=r), name="ABC")


def empty(z: Sizes) -> Tensor:
    n, m = z.rng.choice(((0, 3), (3, 0), (0, 0)))
    A = te.placeholder((n, m), name="A")
    P = te.compute((n, m), lambda i, j: A[i, j] * 2.0, name="P")
    k = te.reduce_axis((0, m), name="k")
    rows = te.compute((n,), lambda i: te.sum(P[i, k], axis=k), name="rows")
    return te.compute((n,), lambda i: rows[i] + 1.0, name="C")


TEMPLATES: dict[str, Callable[[Sizes], Tensor | tuple[Tensor, ...]]] = {
    function.__name__.rstrip("_"): function
    for function in (
        elementwise, matmul, matmul_bias, matmul_packed, matmul_int8, conv2d, depthwise, pool_max,
        stencils, groups, blur, transpose, broadcast, softmax, two_sums, gather, reversed_, strided,
        upsample, prefix, shifted_reduction, scalar, several_readers, integers, positions,
        three_products, empty, clipped, convolutions, shuffled, lookups,
    )
}  # fmt: skip
INEXACT = frozenset({"softmax"})
