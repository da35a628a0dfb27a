"""Classic TVM's ``tvm.contrib.cblas``: products of matrices by NumPy's BLAS."""

from typing import Any

import numpy as np

from dlcompiler import te
from dlcompiler.compat.missing import reporter
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import call_packed
from dlcompiler.runtime.registry import register_func

NAMES = {2: "tvm.contrib.cblas.matmul", 3: "tvm.contrib.cblas.batch_matmul"}


def _matmul(lhs: Any, rhs: Any, out: Any, transa: bool, transb: bool) -> None:
    """Write the matrix product over the last two dimensions to `out`, with optional transposes."""
    a = np.swapaxes(lhs, -1, -2) if transa else lhs
    b = np.swapaxes(rhs, -1, -2) if transb else rhs
    np.matmul(a, b, out=out)


for _name in NAMES.values():
    register_func(_name, _matmul, override=True)


def matmul(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, **options: Any
) -> te.Tensor:
    """Return the tensor of a product of matrices that a library computes.

    Parameters
    ----------
    lhs : Tensor
        Of shape ``(n, k)``, or ``(k, n)`` with `transa`.
    rhs : Tensor
        Of shape ``(k, m)``, or ``(m, k)`` with `transb`.
    transa, transb : bool
        Whether to turn them.
    **options
        `name` of the result.

    Raises
    ------
    ExpressionError
        If the shapes or dtypes do not fit.
    """
    return _product(lhs, rhs, transa, transb, 2, **options)


def batch_matmul(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool = False, transb: bool = False, **options: Any
) -> te.Tensor:
    """Return the tensor of matrix products, one for each index of the first dimension."""
    return _product(lhs, rhs, transa, transb, 3, **options)


def _product(
    lhs: te.Tensor, rhs: te.Tensor, transa: bool, transb: bool, rank: int, name: str = "C"
) -> te.Tensor:
    where = f"{NAMES[rank]} {name}"
    if (lhs.ndim, rhs.ndim) != (rank, rank) or lhs.dtype != rhs.dtype:
        raise ExpressionError(
            where, "it needs two tensors of one dtype, with the right number of dimensions",
            got=f"{lhs!r} and {rhs!r}", expected=f"{rank} dimensions each",
        )  # fmt: skip
    *batch, n, k = (*lhs.shape[:-2], *reversed(lhs.shape[-2:])) if transa else lhs.shape
    *others, inner, m = (*rhs.shape[:-2], *reversed(rhs.shape[-2:])) if transb else rhs.shape
    if inner != k or batch != others:
        raise ExpressionError(
            where, "the shapes do not match", got=f"{lhs.shape} and {rhs.shape}",
            expected="as many columns of the first as rows of the second",
        )  # fmt: skip
    tensor: te.Tensor = te.extern(
        (*batch, n, m), [lhs, rhs],
        lambda ins, outs: call_packed(
            NAMES[rank], *ins, *outs, te.const(transa, "bool"), te.const(transb, "bool")
        ),
        name=name,
    )  # fmt: skip
    return tensor


__getattr__ = reporter(__name__)
__all__ = ["batch_matmul", "matmul"]
