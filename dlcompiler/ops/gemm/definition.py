"""Define products of matrices: as one reduction, and with the stages that the schedules need.

``matmul``, ``dense`` and ``batch_matmul`` define a product of tensors by one reduction. A kernel is
built from more stages (`define`), each of which a schedule may compute or inline:

==========  ====================================================================================
``.left``   A, not transposed, in the sums' dtype; reaches beyond the matrix by repeating its
            last row
``.right``  B, not transposed, in the sums' dtype; beyond the matrix it is 0
``.sums``   the product of both
``C``       the epilogue of the sums that are in the matrix
==========  ====================================================================================

All tiles therefore have full size, and only the copy into C is guarded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Axis, TensorLoad, free_vars, walk
from dlcompiler.ops.gemm.product import Product
from dlcompiler.ops.helpers import BROADCAST, over, tensor
from dlcompiler.ops.widening import centred, converted
from dlcompiler.space import Workload
from dlcompiler.te import Tensor
from dlcompiler.te.broadcast import broadcast_shape, element_indices

EXTRA_ROWS = 7
"""Additional rows for the highest tile: eight, less one."""
EXTRA_COLUMNS = 63
"""Additional columns for the widest tile: four vectors of 16 lanes, less one."""


def matmul(
    a: Tensor,
    b: Tensor,
    transpose_a: bool = False,
    transpose_b: bool = False,
    out_dtype: str | None = None,
    name: str = "T_matmul",
) -> Tensor:
    """Define the product of two matrices, or of stacks of them, which broadcast as in NumPy.

    Parameters
    ----------
    a : Tensor
        Of shape ``(…, m, k)``; ``(…, k, m)`` if `transpose_a`.
    b : Tensor
        Of shape ``(…, k, n)``; ``(…, n, k)`` if `transpose_b`.
    transpose_a, transpose_b : bool
        Whether a matrix is stored transposed.
    out_dtype : str, optional
        Dtype to which factors are converted before the multiplication.
    name : str
        Of the result.

    Returns
    -------
    Tensor
        Of shape ``(…, m, n)``.

    Examples
    --------
    >>> A, B = te.placeholder((6, 4), name="A"), te.placeholder((8, 4), name="B")
    >>> matmul(A, B, transpose_b=True)
    Tensor(T_matmul: float32[6, 8])
    """
    return _product(a, b, (transpose_a, transpose_b), out_dtype, name, "matmul")


def dense(
    data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None
) -> Tensor:
    """Multiply rows ``(m, k)`` by transposed weights ``(n, k)``, and add a bias ``(n,)``.

    Parameters
    ----------
    data : Tensor
        Of shape ``(m, k)``.
    weight : Tensor
        Of shape ``(n, k)``.
    bias : Tensor, optional
        Of shape ``(n,)``.
    out_dtype : str, optional
        Dtype to which factors and bias are converted first.

    Returns
    -------
    Tensor
        Of shape ``(m, n)``.

    Examples
    --------
    >>> x, w = te.placeholder((6, 4), name="x"), te.placeholder((8, 4), name="w")
    >>> dense(x, w)
    Tensor(T_dense: float32[6, 8])
    """
    product = _product(data, weight, (False, True), out_dtype, "T_dense", "dense")
    if bias is None:
        return product
    total = lambda *i: product[i] + _as(bias[i[-1]], out_dtype)  # noqa: E731 - names the axes
    return tensor(product.shape, total, name="T_add", tag=BROADCAST)


def batch_matmul(
    x: Tensor,
    y: Tensor,
    transpose_x: bool = False,
    transpose_y: bool = True,
    out_dtype: str | None = None,
) -> Tensor:
    """Define the products of stacked matrices ``(b, m, k)`` and, transposed, ``(b, n, k)``.

    Parameters
    ----------
    x : Tensor
        Of shape ``(b, m, k)``; ``(b, k, m)`` if `transpose_x`.
    y : Tensor
        Of shape ``(b, n, k)``; ``(b, k, n)`` if not `transpose_y`.
    transpose_x, transpose_y : bool
        Whether the matrices are stored transposed.
    out_dtype : str, optional
        Dtype to which factors are converted before the multiplication.

    Returns
    -------
    Tensor
        Of shape ``(b, m, n)``.

    Examples
    --------
    >>> x, y = te.placeholder((3, 6, 4), name="x"), te.placeholder((3, 8, 4), name="y")
    >>> batch_matmul(x, y)
    Tensor(T_batch_matmul: float32[3, 6, 8])
    """
    transposed = (transpose_x, transpose_y)
    return _product(x, y, transposed, out_dtype, "T_batch_matmul", "batch_matmul")


def _product(
    a: Tensor, b: Tensor, transposed: tuple[bool, bool], dtype: str | None, name: str, tag: str
) -> Tensor:
    *batch, rows, inner = swapped(a.shape, transposed[0])
    *others, depth, columns = swapped(b.shape, transposed[1])
    lead = tuple(batch)
    if isinstance(inner, int) and isinstance(depth, int) and inner != depth:
        raise ExpressionError(tag, "the shapes differ", got=f"{a.shape} and {b.shape}")
    if all(isinstance(extent, int) for extent in (*batch, *others)):
        lead = broadcast_shape([tuple(batch), tuple(others)], tag)
    k = over(inner, name="k")

    def element(*indices: Any) -> Any:
        *places, i, j = indices
        left = a[(*_of_stack(batch, lead, places), *swapped((i, k), transposed[0]))]
        right = b[(*_of_stack(others, lead, places), *swapped((k, j), transposed[1]))]
        return te.sum(_as(left, dtype) * _as(right, dtype), axis=k)

    named = of_i_j(element, len(lead)) if len(lead) < 2 else element
    return tensor((*lead, rows, columns), named, name=name, tag=tag)


def _of_stack(own: Sequence[Any], lead: Sequence[Any], places: Sequence[Any]) -> Sequence[Any]:
    """Return which matrix of an operand is multiplied: one may stand for several."""
    return places if tuple(own) == tuple(lead) else element_indices(tuple(own), places)


def of_i_j(element: Callable[..., Any], batches: int) -> Callable[..., Any]:
    """Wrap `element` so that its parameters name the axes of the result: b, i, j or i, j."""
    return (lambda b, i, j: element(b, i, j)) if batches else (lambda i, j: element(i, j))


def swapped(items: Sequence[Any], is_swapped: bool) -> tuple[Any, ...]:
    """Exchange the last two items if `is_swapped`."""
    return (*items[:-2], items[-1], items[-2]) if is_swapped else tuple(items)


def _as(value: Any, dtype: str | None) -> Any:
    return value if dtype is None else value.astype(dtype)


# -- the stages of a kernel -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages between the operands of a product and its result."""

    left: Tensor
    right: Tensor
    sums: Tensor
    is_left_swapped: bool = False
    """Whether `left` is stored as ``(k, m)``."""
    is_right_swapped: bool = False
    """Whether `right` is stored as ``(n, k)``."""

    @staticmethod
    def of(result: Tensor) -> Stages:
        """Return the stages that a result of `define` is computed from."""
        sums = next(t for t in result.op.input_tensors if t.name.endswith(".sums"))
        left, right = sums.op.input_tensors
        return Stages(left, right, sums)


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return A, B, the operands of the epilogue, and C."""
    product = Product.of(workload)
    A, B = operands_of(product)
    left, right = _left(product, A, workload.op), _right(product, B, workload.op)
    sums = _product(left, right, (False, False), None, f"{workload.op}.sums", workload.op)
    operands = product.epilogue.placeholders(product.shapes["C"], product.sums_dtype)

    def element(*indices: Any) -> Any:
        value = product.epilogue.element(sums[indices], indices, operands)
        return converted(value, product.result_dtype)

    named = of_i_j(element, len(product.batch))
    return A, B, *operands.values(), tensor(product.shapes["C"], named, name="C")


def operands_of(product: Product) -> tuple[Tensor, Tensor]:
    """Return A and B as the kernel receives them."""
    A = te.placeholder(product.shapes["A"], product.dtype, "A")
    return A, te.placeholder(product.shapes["B"], product.weight_dtype, "B")


def _left(product: Product, A: Tensor, op: str) -> Tensor:
    rows = product.m + EXTRA_ROWS if product.m else 0

    def element(*indices: Any) -> Any:
        *lead, i, k = indices
        place = (te.minimum(i, max(product.m - 1, 0)), k)
        read = A[(*lead, *swapped(place, product.layout[0] == "T"))]
        return centred(read, product.sums_dtype, product.zero_point)

    named = (lambda b, i, k: element(b, i, k)) if product.batch else (lambda i, k: element(i, k))
    return tensor((*product.batch, rows, product.k), named, name=f"{op}.left")


def _right(product: Product, B: Tensor, op: str) -> Tensor:
    if product.packed:
        width = product.packed
        return tensor(
            (product.k, product.panels * width),
            lambda k, j: converted(B[_in_panels(product, k, j)], product.sums_dtype),
            name=f"{op}.right",
        )

    def element(*indices: Any) -> Any:
        *lead, k, j = indices
        value = converted(
            B[(*lead, *swapped((k, j), product.layout[1] == "T"))], product.sums_dtype
        )
        return te.if_then_else(j < product.n, value, te.const(0, product.sums_dtype))

    named = (lambda b, k, j: element(b, k, j)) if product.batch else (lambda k, j: element(k, j))
    shape = (*product.batch, product.k, product.n + EXTRA_COLUMNS)
    return tensor(shape, named, name=f"{op}.right")


def _in_panels(product: Product, k: Any, j: Any) -> tuple[Any, ...]:
    """Return the indices of an element of a packed B."""
    width = product.packed
    if product.goes_by_fours:
        return j // width, k // 4, j % width, k % 4
    return j // width, k, j % width


def runs_along(stage: Tensor, axis: Axis) -> bool:
    """Tell whether an axis of a stage is contiguous in the tensor that the stage reads."""
    assert isinstance(stage.op, te.ComputeOp)
    load = next(node for node in walk(stage.op.bodies[0]) if isinstance(node, TensorLoad))
    return axis.var in free_vars(load.indices[-1])
