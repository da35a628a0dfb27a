"""Convolutions and matrix products with classic arguments: products are in the data's dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import is_one
from dlcompiler.ops import gemm
from dlcompiler.ops.conv2d import plain
from dlcompiler.ops.helpers import over, tensor


def _classic(
    convolve: Callable[..., te.Tensor], out_dtype: str | None = None
) -> Callable[..., Any]:
    """Wrap a convolution to take TVM's argument names.

    Without `out_dtype`, data and weights are converted to the data's dtype.
    """
    default = out_dtype

    def classic(
        Input: te.Tensor,
        Filter: te.Tensor,
        stride: Any,
        padding: Any,
        dilation: Any = 1,
        out_dtype: str | None = default,
        *more: Any,
        **named: Any,
    ) -> te.Tensor:
        kind = out_dtype or Input.dtype
        return convolve(Input, Filter, stride, padding, dilation, kind, *more, **named)

    classic.__name__, classic.__doc__ = convolve.__name__, convolve.__doc__
    return classic


conv2d_nchw = _classic(plain.conv2d_nchw)
conv2d_hwcn = _classic(plain.conv2d_hwcn)
conv2d_nhwc = _classic(plain.conv2d_nhwc, "float32")
depthwise_conv2d_nchw = _classic(plain.depthwise_conv2d_nchw)


def dense(
    data: te.Tensor, weight: te.Tensor, bias: te.Tensor | None = None, out_dtype: str | None = None
) -> te.Tensor:
    """Multiply rows (m, k) by transposed weights (n, k), and add a bias (n,)."""
    return gemm.dense(data, weight, bias, out_dtype or data.dtype)


def batch_matmul(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    oshape: Any = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> te.Tensor:
    """Multiply batches of matrices (b, m, k) by transposed (b, n, k); one b may be 1.

    Parameters
    ----------
    tensor_a, tensor_b : Tensor
        The matrices.
    oshape : sequence, optional
        Shape of the result, needed if symbolic extents do not determine it.
    out_dtype : str, optional
        Dtype of products and sums; by default that of `tensor_a`.
    transpose_a, transpose_b : bool
        Whether the matrices are stored transposed.
    """
    kind = out_dtype or tensor_a.dtype
    a, b = tensor_a.shape, tensor_b.shape
    if len(a) != 3 or len(b) != 3:
        raise ExpressionError("topi.nn.batch_matmul", "not stacked matrices", got=f"{a} and {b}")
    rows, inner = reversed(a[1:]) if transpose_a else a[1:]
    depth, columns = reversed(b[1:]) if transpose_b else b[1:]
    if not (_fits(inner, depth) and (_fits(a[0], b[0]) or 1 in (a[0], b[0]))):
        raise ExpressionError("topi.nn.batch_matmul", "the shapes differ", got=f"{a} and {b}")
    batch = b[0] if is_one(a[0]) else a[0]
    k = over(inner, name="k")

    def element(n: Any, i: Any, j: Any) -> Any:
        left, right = ((0 if is_one(shape[0]) else n) for shape in (a, b))
        one = tensor_a[(left, k, i) if transpose_a else (left, i, k)]
        other = tensor_b[(right, j, k) if transpose_b else (right, k, j)]
        return te.sum(one.astype(kind) * other.astype(kind), axis=k)

    shape = (batch, rows, columns) if oshape is None else tuple(oshape)
    return tensor(shape, element, name="T_batch_matmul", tag="batch_matmul")


def _fits(one: Any, other: Any) -> bool:
    """Return whether two extents may be equal; a symbol is assumed to equal any extent."""
    return not (isinstance(one, int) and isinstance(other, int)) or one == other
