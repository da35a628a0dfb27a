"""The tensor expressions of the book's chapters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Axis, is_one
from dlcompiler.schedule.schedule import Schedule

Tensors = tuple[Any, ...]


def vector_add(n: Any) -> Tensors:
    """Return A, B and their sum, vectors of n elements."""
    A = te.placeholder((n,), name="a")
    B = te.placeholder((n,), name="b")
    return A, B, te.compute((n,), lambda i: A[i] + B[i], name="c")


def broadcast_add(shape1: Sequence[Any], shape2: Sequence[Any]) -> Tensors:
    """Return matrices A and B and their sum; a dimension of extent 1 is broadcast."""
    if len(shape1) != 2 or len(shape2) != 2:
        raise ExpressionError(
            "d2ltvm.broadcast_add", "the tensors are matrices", got=f"{shape1} and {shape2}"
        )
    A = te.placeholder(shape1, name="A")
    B = te.placeholder(shape2, name="B")
    ones_a, ones_b = ([is_one(x) for x in shape] for shape in (shape1, shape2))
    shape = [b if is_one else a for a, b, is_one in zip(shape1, shape2, ones_a, strict=True)]

    def element(i: Any, j: Any) -> Any:
        at_a = tuple(0 if is_one else x for x, is_one in zip((i, j), ones_a, strict=True))
        at_b = tuple(0 if is_one else x for x, is_one in zip((i, j), ones_b, strict=True))
        return A[at_a] + B[at_b]

    return A, B, te.compute(tuple(shape), element, name="C")


def matmul(n: Any, m: Any, l: Any) -> Tensors:  # noqa: E741 - the book's name
    """Return A (n, l), B (l, m) and their product (n, m)."""
    k = te.reduce_axis((0, l), name="k")
    A = te.placeholder((n, l), name="A")
    B = te.placeholder((l, m), name="B")
    C = te.compute((n, m), lambda x, y: te.sum(A[x, k] * B[k, y], axis=k), name="C")
    return A, B, C


def padding(X: Any, ph: int, pw: int, val: Any = 0) -> Any:
    """Return a tensor with a border in its last two dimensions.

    Parameters
    ----------
    X : Tensor
        At least two dimensions.
    ph, pw : int
        Rows above and below, and columns on each side.
    val : number
        What the border holds.
    """
    *head, nh, nw = X.shape

    def element(*i: Any) -> Any:
        row, column = i[-2], i[-1]
        outside = te.any(row < ph, row >= nh + ph, column < pw, column >= nw + pw)
        return te.if_then_else(outside, val, X[(*i[:-2], row - ph, column - pw)])

    return te.compute((*head, nh + ph * 2, nw + pw * 2), element, name="PaddedX")


def conv_out_size(n: Any, k: Any, p: Any, s: Any) -> Any:
    """Return the number of windows of size `k` and stride `s` in size `n` with border `p`."""
    return (n - k + 2 * p) // s + 1


def conv(
    oc: int, ic: int, nh: int, nw: int, kh: int, kw: int,
    ph: int = 0, pw: int = 0, sh: int = 1, sw: int = 1,
) -> Tensors:  # fmt: skip
    """Return image, filters, convolution and padded image.

    Parameters
    ----------
    oc, ic : int
        Channels of the result and of the image.
    nh, nw, kh, kw, ph, pw, sh, sw : int
        Height and width of the image, of the filters, of the border and of a step.

    Returns
    -------
    tuple of Tensor
        X (ic, nh, nw), K (oc, ic, kh, kw), Y (oc, oh, ow), and X with its border.
    """
    ric = te.reduce_axis((0, ic), name="ric")
    rkh = te.reduce_axis((0, kh), name="rkh")
    rkw = te.reduce_axis((0, kw), name="rkw")
    X = te.placeholder((ic, nh, nw), name="X")
    K = te.placeholder((oc, ic, kh, kw), name="K")
    PaddedX = padding(X, ph, pw) if ph * pw != 0 else X
    Y = te.compute(
        (oc, conv_out_size(nh, kh, ph, sh), conv_out_size(nw, kw, pw, sw)),
        lambda c, i, j: te.sum(
            PaddedX[ric, i * sh + rkh, j * sw + rkw] * K[c, ric, rkh, rkw], axis=[ric, rkh, rkw]
        ),
        name="Y",
    )
    return X, K, Y, PaddedX


def depthwise_conv(
    ic: int, nh: int, nw: int, kh: int, kw: int,
    ph: int = 0, pw: int = 0, sh: int = 1, sw: int = 1,
) -> Tensors:  # fmt: skip
    """Return image, filters (ic, 1, kh, kw), depthwise convolution and padded image; see `conv`."""
    rkh = te.reduce_axis((0, kh), name="rkh")
    rkw = te.reduce_axis((0, kw), name="rkw")
    X = te.placeholder((ic, nh, nw), name="X")
    K = te.placeholder((ic, 1, kh, kw), name="K")
    PaddedX = padding(X, ph, pw) if ph * pw != 0 else X
    Y = te.compute(
        (ic, conv_out_size(nh, kh, ph, sh), conv_out_size(nw, kw, pw, sw)),
        lambda c, i, j: te.sum(
            PaddedX[c, i * sh + rkh, j * sw + rkw] * K[c, 0, rkh, rkw], axis=[rkh, rkw]
        ),
        name="Y",
    )
    return X, K, Y, PaddedX


def pool(
    pool_type: str, c: int, nh: int, nw: int, kh: int, kw: int,
    ph: int = 0, pw: int = 0, sh: int = 1, sw: int = 1,
) -> Tensors:  # fmt: skip
    """Return image, pooled image and padded image.

    Parameters
    ----------
    pool_type : {"max", "avg"}
        The largest value of a window, or its mean, border included.
    c, nh, nw, kh, kw, ph, pw, sh, sw : int
        As in `conv`.
    """
    if pool_type not in ("max", "avg"):
        raise ExpressionError("d2ltvm.pool", "unknown type", got=pool_type, expected="max or avg")
    rkh = te.reduce_axis((0, kh), name="rkh")
    rkw = te.reduce_axis((0, kw), name="rkw")
    X = te.placeholder((c, nh, nw), name="X")
    border = te.min_value(X.dtype) if pool_type == "max" else 0
    PaddedX = padding(X, ph, pw, val=border) if ph * pw != 0 else X
    shape = (c, conv_out_size(nh, kh, ph, sh), conv_out_size(nw, kw, pw, sw))

    def window(ch: Any, h: Any, w: Any) -> Any:
        return PaddedX[ch, h * sh + rkh, w * sw + rkw]

    if pool_type == "max":
        Y = te.compute(
            shape,
            lambda ch, h, w: te.max(window(ch, h, w), axis=[rkh, rkw]),
            name="PoolMax",
            tag="pool_max",
        )
        return X, Y, PaddedX
    total = te.compute(
        shape,
        lambda ch, h, w: te.sum(window(ch, h, w), axis=[rkh, rkw]),
        name="PoolSum",
        tag="pool_sum",
    )
    Y = te.compute(
        shape, lambda ch, h, w: total[ch, h, w] / (kh * kw), name="PoolAvg", tag="pool_avg"
    )
    return X, Y, PaddedX


def batch_norm(c: int, n: int, eps: float = 1e-5) -> Tensors:
    """Return X (c, n, n), Mean, Var, Gamma, Beta (c, 1, 1), and the normalized X."""
    X = te.placeholder((c, n, n), name="X")
    Mean, Var, Gamma, Beta = (
        te.placeholder((c, 1, 1), name=name) for name in ("Mean", "Var", "Gamma", "Beta")
    )
    spread = te.compute((c, 1, 1), lambda *i: te.sqrt(Var[i] + eps), name="T_sqrt")
    Y = (X - Mean) / spread * Gamma + Beta
    return X, Mean, Var, Gamma, Beta, Y


def split_axis(factors: Sequence[int], sch: Schedule, op: Any, axis: Axis) -> list[Axis]:
    """Split an axis several times.

    Parameters
    ----------
    factors : sequence of int
        Extents of the parts, from the first but one to the last.
    sch : Schedule
        The schedule.
    op : Operation or Tensor
        Whose axis it is.
    axis : Axis
        The axis.

    Returns
    -------
    list of Axis
        One more than there are factors, outermost first.
    """
    parts: list[Axis] = []
    for position, _ in enumerate(factors):
        inner = 1
        for factor in factors[position:]:
            inner *= int(factor)
        outer, axis = sch[op].split(axis, factor=inner)
        parts.append(outer)
    return [*parts, axis]
