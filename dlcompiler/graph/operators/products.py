"""Products of matrices: dense layers, matrix products and batches of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dlcompiler import ops, te
from dlcompiler.graph.ir.types import ANY, Dimension, TensorType
from dlcompiler.graph.operators.attributes import (
    Attribute,
    boolean,
    dtype_or_same,
    optional,
    positive,
)
from dlcompiler.graph.operators.base import (
    Array,
    CallTypes,
    GraphOperator,
    NotKnown,
    Pattern,
    Result,
)
from dlcompiler.graph.operators.relations import (
    broadcast,
    known_extent,
    of_numbers,
    same_extent,
)
from dlcompiler.graph.operators.values import converted, rounded, wide
from dlcompiler.ops import transforms

UNITS = Attribute("units", optional(positive), None, "columns of the result; None: of the weight")
OUT_DTYPE = Attribute("out_dtype", dtype_or_same, "", "dtype of products, sums and result")


# -- types ----------------------------------------------------------------------------------------


def _matrices(call: CallTypes, first: bool, second: bool) -> tuple[Dimension, Dimension]:
    """Check stacks of matrices that may be transposed; return the rows and columns of products."""
    a, b = call.tensor(0), call.tensor(1)
    for i, kind in enumerate((a, b)):
        if kind.rank < 2:
            call.fail(f"argument {call.name(i)} is not a matrix")
    rows, inner = reversed(a.shape[-2:]) if first else a.shape[-2:]
    depth, columns = reversed(b.shape[-2:]) if second else b.shape[-2:]
    _check_sums(call, inner, depth)
    return rows, columns


def _check_sums(call: CallTypes, inner: Dimension, depth: Dimension) -> None:
    if call.tensor(0).dtype != call.tensor(1).dtype and not call.attrs["out_dtype"]:
        call.fail("the dtypes differ", hint="give an out_dtype, or cast one of them")
    if not same_extent(inner, depth):
        call.fail(
            f"{call.name(0)} has {inner} elements in a sum, {call.name(1)} has {depth}",
            expected="equal numbers",
        )


def _result_dtype(call: CallTypes) -> str:
    dtype = call.attrs["out_dtype"] or call.tensor(0).dtype
    if dtype == "bool":
        call.fail("out_dtype is bool", expected="a dtype of numbers")
    return str(dtype)


def _dense(call: CallTypes) -> TensorType:
    """Return the type of rows times a transposed weight, which is inferred from the units."""
    data, units = of_numbers(call), call.attrs["units"]
    if not data.rank:
        call.fail("argument data has no dimensions")
    _infer_weight(call, (units, data.shape[-1]))
    weight = call.tensor(1)
    if weight.rank != 2:
        call.fail("argument weight is not a matrix")
    _check_sums(call, data.shape[-1], weight.shape[1])
    _check_units(call, weight.shape[0])
    return TensorType((*data.shape[:-1], known_extent(weight.shape[0], units or ANY)),
                      _result_dtype(call))  # fmt: skip


def _matmul(call: CallTypes) -> TensorType:
    """Return the type of a product of stacks of matrices; a weight is inferred from the units."""
    a, units = of_numbers(call), call.attrs["units"]
    turned = call.attrs["transpose_a"], call.attrs["transpose_b"]
    if a.rank < 2:
        call.fail("argument tensor_a is not a matrix")
    inner = a.shape[-2] if turned[0] else a.shape[-1]
    _infer_weight(call, (units, inner) if turned[1] else (inner, units))
    rows, columns = _matrices(call, *turned)
    _check_units(call, columns)
    lead = broadcast(call, [call.tensor(i).shape[:-2] for i in (0, 1)])
    return TensorType((*lead, rows, known_extent(columns, units or ANY)), _result_dtype(call))


def _infer_weight(call: CallTypes, shape: tuple[Any, ...]) -> None:
    if call.args[1] is None:
        if call.attrs["units"] is None:
            raise NotKnown
        call.assign(1, TensorType(shape, call.tensor(0).dtype))


def _check_units(call: CallTypes, columns: Dimension) -> None:
    units = call.attrs["units"]
    if units is not None and not same_extent(units, columns):
        call.fail(f"units is {units}, argument {call.name(1)} has {columns}")


def _batch_matmul(call: CallTypes) -> TensorType:
    of_numbers(call)
    for i in (0, 1):
        if call.tensor(i).rank != 3:
            call.fail(
                f"argument {call.name(i)} is not a stack of matrices", expected="3 dimensions"
            )
    rows, columns = _matrices(call, call.attrs["transpose_a"], call.attrs["transpose_b"])
    batch = broadcast(call, [call.tensor(i).shape[:1] for i in (0, 1)])
    return TensorType((*batch, rows, columns), _result_dtype(call))


# -- values ---------------------------------------------------------------------------------------


def _turned(x: Array, is_turned: bool) -> Array:
    return np.swapaxes(x, -1, -2) if is_turned else x


def _evaluate(call: Result, a: Array, b: Array) -> Array:
    dtype, attrs = call.tensor.dtype, call.attrs
    left = _turned(wide(converted(a, dtype)), attrs.get("transpose_a", False))
    right = _turned(wide(converted(b, dtype)), attrs.get("transpose_b", True))
    return rounded(left @ right, call.tensor)


# -- definitions ----------------------------------------------------------------------------------


def _dtype(call: Result) -> str | None:
    kinds = [kind for kind in call.inputs if isinstance(kind, TensorType)]
    dtype = call.tensor.dtype
    return None if all(kind.dtype == dtype for kind in kinds) else dtype


def _define_dense(call: Result, data: te.Tensor, weight: te.Tensor) -> te.Tensor:
    if len(data.shape) > 1:
        return ops.dense(data, weight, out_dtype=_dtype(call))
    row = transforms.expand_dims(data, 0)
    return transforms.squeeze(ops.dense(row, weight, out_dtype=_dtype(call)), 0)


def _define_matmul(call: Result, a: te.Tensor, b: te.Tensor) -> te.Tensor:
    attrs = call.attrs
    return ops.matmul(a, b, attrs["transpose_a"], attrs["transpose_b"], _dtype(call))


def _define_batch(call: Result, a: te.Tensor, b: te.Tensor) -> te.Tensor:
    attrs = call.attrs
    return ops.batch_matmul(a, b, attrs["transpose_a"], attrs["transpose_b"], _dtype(call))


# -- the table ------------------------------------------------------------------------------------


def transposes(first: bool, second: bool) -> tuple[Attribute, ...]:
    """Return the attributes that say which matrices are stored transposed."""
    return (
        Attribute("transpose_a", boolean, first, "the first matrix is stored transposed"),
        Attribute("transpose_b", boolean, second, "the second matrix is stored transposed"),
    )


TABLE = (
    GraphOperator(
        "nn.dense", ("data", "weight"), _dense, _evaluate, Pattern.ANCHOR, _define_dense,
        (UNITS, OUT_DTYPE), "Multiply rows (…, k) by weights (units, k), transposed.",
        kernel="dense",
    ),
    GraphOperator(
        "nn.matmul", ("tensor_a", "tensor_b"), _matmul, _evaluate, Pattern.ANCHOR, _define_matmul,
        (UNITS, OUT_DTYPE, *transposes(False, False)),
        "The product of two matrices, or of stacks of them, which broadcast as in NumPy.",
        kernel="matmul",
    ),
    GraphOperator(
        "nn.batch_matmul", ("tensor_a", "tensor_b"), _batch_matmul, _evaluate, Pattern.ANCHOR,
        _define_batch, (OUT_DTYPE, *transposes(False, True)),
        "Products of stacked matrices (b, m, k) and (b, n, k); one b may be 1.",
        kernel="batch_matmul",
    ),
)  # fmt: skip
"""The operators of this module."""
