"""Operators on integers that stand for numbers: ``x = (q - zero point) * scale``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.onnx.operators.neural import _conv, _mat_mul
from dlcompiler.graph.frontends.onnx.reading import dtype_of
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.ir import Constant, Expr
from dlcompiler.graph.operators.quantized import NARROW, SUMS


def _along(node: Node, value: Expr, x: Expr, axis: int) -> Expr:
    """Return scales of the slices along an axis so that they broadcast; one stays as it is."""
    rank, own = node.rank(x), node.rank(value)
    if size := int(node.attr("block_size", 0)):
        return _of_blocks(node, value, x, axis, size)
    if own == 0 or node.shape(value) == (1,):
        return node.reshape(value, ())
    if own > 1:
        node.fail("its scales have several dimensions, but no size of blocks",
                  got=str(node.type(value)))  # fmt: skip
    shape = [1] * rank
    shape[axis] = node.shape(value)[0]
    return node.reshape(value, shape)


def _of_blocks(node: Node, value: Expr, x: Expr, axis: int, size: int) -> Expr:
    """Return scales of blocks along an axis, repeated for each element."""
    shape = list(node.shape(x))
    extent, shape[axis] = shape[axis], -(-shape[axis] // max(size, 1))
    if size < 1 or node.shape(value) != tuple(shape):
        node.fail("its scales do not fit blocks of this size", got=f"{node.type(value)}, {size}",
                  expected=str(tuple(shape)))  # fmt: skip
    made = node.call("repeat", value, repeats=min(size, extent), axis=axis)
    if node.shape(made)[axis] == extent:
        return made
    return node.call("strided_slice", made, begin=(0,), end=(extent,), axes=(axis,))


def _axis(node: Node, x: Expr, scale: Expr) -> int:
    """Return the dimension of scales; one scale has none, whatever the attribute says."""
    is_one = node.rank(scale) == 0 or node.shape(scale) == (1,)
    return 0 if is_one and not node.attr("block_size", 0) else node.axis(1, node.rank(x))


def _numbers(node: Node, scale: Expr, zero: Expr | None, dtype: str) -> tuple[Expr, Expr] | None:
    """Return scales and zero points as operators on graphs take them; None for those of blocks."""
    if node.attr("block_size", 0) or node.rank(scale) > 1:
        return None
    if zero is None:
        zero = constant_of(np.zeros(node.shape(scale), "int64"), dtype)
    if _is_one(node, scale) and _is_one(node, zero) and node.dtype(zero) == dtype:
        return _scalar(node, scale), _scalar(node, zero)
    if node.shape(scale) != node.shape(zero) or node.dtype(zero) != dtype:
        return None
    return scale, zero


def _is_one(node: Node, value: Expr) -> bool:
    return node.shape(value) in ((), (1,))


def one_scale(node: Node, scale: Expr, zero: Expr | None, dtype: str) -> tuple[Expr, Expr]:
    """Return the scale and the zero point of all elements of a tensor.

    Raises
    ------
    GraphError
        There are several, or the zero point has another dtype than the tensor.
    """
    found = _numbers(node, scale, zero, dtype)
    if found is None or node.rank(found[0]):
        node.fail("it has no single scale and zero point", got=str(node.type(scale)))
    return found


def _scalar(node: Node, value: Expr) -> Expr:
    if isinstance(value, Constant):
        return constant_of(value.value.reshape(()))
    return node.reshape(value, ())


def _quantize_linear(node: Node) -> Expr:
    x, scale, zero = node.input(0), node.input(1), node.optional(2)
    axis = _axis(node, x, scale)
    dtype = node.dtype(zero) if zero is not None else "uint8"
    if node.attr("output_dtype", 0) and zero is None:
        dtype = dtype_of(int(node.attr("output_dtype")))
    wide = node.dtype(scale)
    if node.attr("precision", 0):
        wide = dtype_of(int(node.attr("precision")))
        scale = node.cast(scale, wide)
    if (numbers := _numbers(node, scale, zero, dtype)) is not None and dtype in NARROW:
        return node.call("qnn.quantize", node.cast(x, wide), *numbers, axis=axis, out_dtype=dtype)
    scaled = node.call("divide", node.cast(x, wide), _along(node, scale, x, axis))
    return rounded(node, scaled, None if zero is None else _along(node, zero, x, axis), dtype)


def rounded(node: Node, x: Expr, zero: Expr | None, dtype: str) -> Expr:
    """Return numbers as the nearest integers of a dtype, with a zero point."""
    if not dtypes.is_int(dtype) or dtypes.bits(dtype) > 16:
        node.fail("no integers of 8 or 16 bits", got=dtype)
    made: Expr = node.call("round", x)
    if zero is not None:
        made = node.call("add", made, node.cast(zero, node.dtype(x)))
    made = node.call("clip", made, a_min=float(dtypes.min_value(dtype)),
                     a_max=float(dtypes.max_value(dtype)))  # fmt: skip
    return node.cast(made, dtype)


def _dequantize_linear(node: Node) -> Expr:
    x, scale, zero = node.input(0), node.input(1), node.optional(2)
    _check_integers(node, x, zero)
    made = _dequantized(node, x, scale, zero)
    kind = node.attr("output_dtype", 0)
    return node.cast(made, dtype_of(int(kind))) if kind else made


def _dequantized(node: Node, x: Expr, scale: Expr, zero: Expr | None) -> Expr:
    axis = _axis(node, x, scale)
    dtype = node.dtype(x)
    numbers = _numbers(node, scale, zero, dtype)
    if numbers is not None and dtype in (*NARROW, SUMS):
        return node.call("qnn.dequantize", x, *numbers, axis=axis)
    wide: Expr = node.cast(x, "int32")
    if zero is not None:
        wide = node.call("subtract", wide, node.cast(_along(node, zero, x, axis), "int32"))
    return node.call("multiply", node.cast(wide, node.dtype(scale)), _along(node, scale, x, axis))


def _check_integers(node: Node, x: Expr, zero: Expr | None) -> None:
    """Refuse an operand that has no integers, or a zero point of another dtype."""
    dtype = node.dtype(x)
    if not dtypes.is_int(dtype):
        node.fail("takes integers", got=dtype)
    if zero is not None and node.dtype(zero) != dtype:
        node.fail("a zero point has another dtype than its numbers", got=node.dtype(zero),
                  expected=dtype)  # fmt: skip


def _centred(node: Node, x: Expr, zero: Expr | None) -> Expr:
    """Return an operand less its zero point, as integers of 32 bits."""
    _check_integers(node, x, zero)
    wide = node.cast(x, "int32")
    if zero is None:
        return wide
    made = node.call("subtract", wide, node.cast(zero, "int32"))
    if node.type(made).shape != node.type(x).shape:
        node.fail("zero points do not fit their numbers", got=str(node.type(zero)),
                  expected=f"one for all, or for each slice of {node.type(x)}")  # fmt: skip
    return made


def _rows_and_columns(node: Node, zero: Expr | None, x: Expr, *, is_left: bool) -> Expr | None:
    """Return the zero points of a matrix's rows, or of its columns."""
    if zero is None or node.rank(zero) != 1 or node.shape(zero) == (1,):
        return zero
    count = node.shape(zero)[0]
    return node.reshape(zero, (count, 1) if is_left else (1, count))


def _product(node: Node, places: tuple[int, int, int | None, int | None]) -> Expr:
    """Return the product of two matrices of integers, less their zero points."""
    sides = []
    for place, zero, is_left in ((places[0], places[2], True), (places[1], places[3], False)):
        value = node.input(place)
        point = None if zero is None else node.optional(zero)
        point = _rows_and_columns(node, point, value, is_left=is_left)
        sides.append(_centred(node, value, point))
    return _mat_mul(replace(node, inputs=sides))


def _mat_mul_integer(node: Node) -> Expr:
    return _product(node, (0, 1, 2, 3))


def _q_linear_mat_mul(node: Node) -> Expr:
    total = _product(node, (0, 3, 2, 5))
    both = node.call("multiply", _side(node, 1, is_left=True), _side(node, 4, is_left=False))
    scale = node.call("divide", both, node.input(6))
    scaled: Expr = node.call("multiply", node.cast(total, node.dtype(scale)), scale)
    if node.rank(scaled) != node.rank(total):
        scaled = node.reshape(scaled, node.shape(total))
    zero = node.input(7)
    return rounded(node, scaled, node.reshape(zero, ()), node.dtype(zero))


def _side(node: Node, i: int, *, is_left: bool) -> Expr:
    found = _rows_and_columns(node, node.input(i), node.input(i), is_left=is_left)
    assert found is not None
    return found


def _sums_of_windows(
    node: Node, images: Expr, weights: Expr, zero: Expr | None, zeros: Expr | None
) -> Expr:
    """Return the convolution of integers, less their zero points."""
    if zero is not None:
        zero = node.reshape(zero, ())
    if zeros is not None:
        zeros = _along(node, zeros, weights, 0)
    centred = [_centred(node, images, zero), _centred(node, weights, zeros)]
    return _conv(replace(node, inputs=centred))


def _conv_integer(node: Node) -> Expr:
    return _sums_of_windows(node, node.input(0), node.input(1), node.optional(2), node.optional(3))


def _q_linear_conv(node: Node) -> Expr:
    total = _sums_of_windows(node, node.input(0), node.input(3), node.input(2), node.input(5))
    rank = node.rank(total)
    if node.optional(8) is not None:
        total = node.call("nn.bias_add", total, node.input(8), axis=1)
    scale = node.call("divide", node.call("multiply", node.reshape(node.input(1), ()),
                                          _channels(node, node.input(4), rank)),
                      node.reshape(node.input(6), ()))  # fmt: skip
    scaled = node.call("multiply", node.cast(total, node.dtype(scale)), scale)
    zero = node.input(7)
    return rounded(node, scaled, node.reshape(zero, ()), node.dtype(zero))


def _channels(node: Node, value: Expr, rank: int) -> Expr:
    if node.rank(value) == 0 or node.shape(value) == (1,):
        return node.reshape(value, ())
    return node.reshape(value, (1, node.shape(value)[0], *(1,) * (rank - 2)))


TABLE: dict[str, Callable[[Node], Any]] = {
    "QuantizeLinear": _quantize_linear, "DequantizeLinear": _dequantize_linear,
    "MatMulInteger": _mat_mul_integer, "QLinearMatMul": _q_linear_mat_mul,
    "ConvInteger": _conv_integer, "QLinearConv": _q_linear_conv,
}  # fmt: skip
"""The converters of this module."""
