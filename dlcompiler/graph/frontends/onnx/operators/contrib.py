"""Quantized operators of ONNX Runtime, in the domain ``com.microsoft``.

Their tools write them beside `QLinearConv` of the standard. Most are operators on floats between
`qnn.dequantize` and `qnn.quantize`; products are sums of integers, scaled once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from dlcompiler.graph.frontends.onnx.node import Converter, Node
from dlcompiler.graph.frontends.onnx.operators import (
    elementwise,
    neural,
    pooling,
    quantized,
    shapes,
)
from dlcompiler.graph.frontends.onnx.operators.quantized import one_scale, rounded
from dlcompiler.graph.ir import Expr

DOMAIN = "com.microsoft"
_STANDARD = {**elementwise.TABLE, **neural.TABLE, **pooling.TABLE, **shapes.TABLE}
_NEW = 18
"""A version of the standard whose operators have their attributes as those here."""


def _real(node: Node, i: int) -> Expr:
    """Return what an operand stands for; its scale and zero point come after it."""
    x = node.input(i)
    numbers = one_scale(node, node.input(i + 1), node.optional(i + 2), node.dtype(x))
    return node.call("qnn.dequantize", x, *numbers)


def _integers(node: Node, x: Expr, i: int, dtype: str) -> Expr:
    """Return numbers as integers with a scale, which is an operand, and a zero point after it."""
    numbers = one_scale(node, node.input(i), node.optional(i + 1), dtype)
    return node.call("qnn.quantize", x, *numbers, out_dtype=dtype)


def _standard(node: Node, name: str, inputs: Sequence[Expr], version: int = _NEW) -> Any:
    """Return an operator of the standard with the attributes of this node."""
    made = _STANDARD[name](replace(node, op_type=name, inputs=inputs, version=version))
    return made[0] if isinstance(made, list | tuple) else made


def _unary(name: str) -> Converter:
    return lambda node: _integers(
        node, _standard(node, name, [_real(node, 0)]), 3, node.dtype(node.input(0))
    )


def _softmax(node: Node) -> Expr:
    """Return a softmax as the version of the standard computes it that an attribute names."""
    made = _standard(node, "Softmax", [_real(node, 0)], int(node.attr("opset", _NEW)))
    return _integers(node, made, 3, node.dtype(node.input(0)))


def _binary(name: str) -> Converter:
    def convert(node: Node) -> Expr:
        made = node.call(name, _real(node, 0), _real(node, 3))
        return _integers(node, made, 6, node.dtype(node.input(0)))

    return convert


def _pool(name: str) -> Converter:
    def convert(node: Node) -> Expr:
        x, rank = _real(node, 0), node.rank(node.input(0))
        is_last = bool(node.attr("channels_last", 0)) and rank > 2
        if is_last:
            x = node.transposed(x, (0, rank - 1, *range(1, rank - 1)))
        made = _standard(node, name, [x])
        if is_last:
            made = node.transposed(made, (0, *range(2, rank), 1))
        return _integers(node, made, 3, node.dtype(node.input(0)))

    return convert


def _concat(node: Node) -> Expr:
    if len(node.inputs) < 5 or len(node.inputs) % 3 != 2:
        node.fail("its operands are no triples of data, scale and zero point",
                  got=f"{len(node.inputs)} operands")  # fmt: skip
    parts = [_real(node, i) for i in range(2, len(node.inputs), 3)]
    return _integers(node, _standard(node, "Concat", parts), 0, node.dtype(node.input(2)))


# -- products --------------------------------------------------------------------------------------


def _sums(node: Node, a: Expr, b: Expr, a_zero: Expr | None, b_zero: Expr | None) -> Expr:
    """Return the product of two matrices of integers less their zero points, as int32."""
    inside = replace(node, op_type="MatMulInteger", inputs=[a, b, a_zero, b_zero])
    made = quantized.TABLE["MatMulInteger"](inside)
    assert isinstance(made, Expr)
    return made


def _columns(node: Node, value: Expr) -> Expr:
    """Return the scales of columns so that they broadcast; one scale as a number."""
    return node.reshape(value, ()) if node.shape(value) == (1,) else value


def _floats(node: Node, sums: Expr, scale: Expr, bias: int) -> Expr:
    """Return scaled sums, with a bias of floats that may be left out."""
    made = node.call("multiply", node.cast(sums, node.dtype(scale)), scale)
    return made if node.optional(bias) is None else node.call("add", made, node.input(bias))


def _gemm(node: Node) -> Expr:
    """Multiply matrices of integers, and add a bias of int32 to the sums."""
    a, b = node.input(0), node.input(3)
    a_zero, b_zero = node.optional(2), node.optional(5)
    if node.attr("transA", 0):
        a = node.transposed(a, (1, 0))
    if node.attr("transB", 0):
        b = node.transposed(b, (1, 0))
    total = _sums(node, a, b, a_zero, b_zero)
    if node.optional(6) is not None:
        total = node.call("add", total, node.input(6))
    scale: Expr = node.call(
        "multiply", _columns(node, node.input(1)), _columns(node, node.input(4))
    )
    alpha = float(node.attr("alpha", 1.0))
    if alpha != 1:
        scale = node.call("multiply", scale, node.scalar(alpha, scale))
    if node.optional(7) is None:
        return node.call("multiply", node.cast(total, node.dtype(scale)), scale)
    scale = node.call("divide", scale, _columns(node, node.input(7)))
    scaled = node.call("multiply", node.cast(total, node.dtype(scale)), scale)
    zero = node.optional(8)
    if zero is None:
        return rounded(node, scaled, None, node.dtype(node.input(0)))
    return rounded(node, scaled, node.reshape(zero, ()), node.dtype(zero))


def _integer_matmul(node: Node) -> Expr:
    """Multiply matrices of integers; the result is floats."""
    total = _sums(node, node.input(0), node.input(1), node.optional(4), node.optional(5))
    scale = node.call("multiply", _columns(node, node.input(2)), _columns(node, node.input(3)))
    return _floats(node, total, scale, 6)


def _dynamic_matmul(node: Node) -> Expr:
    """Quantize a matrix to uint8 by its own range, and multiply it by one of integers."""
    x = node.input(0)
    nothing = node.scalar(0, x)
    least = node.call("minimum", node.call("min", x), nothing)
    most = node.call("maximum", node.call("max", x), nothing)
    width = node.call("divide", node.call("subtract", most, least), node.scalar(255, x))
    is_empty = node.call("equal", width, nothing)
    scale = node.call("where", is_empty, node.scalar(1, x), width)
    zero = rounded(node, node.call("divide", node.call("negative", least), scale), None, "uint8")
    q = node.call("qnn.quantize", x, scale, zero, out_dtype="uint8")
    total = _sums(node, q, node.input(1), zero, node.optional(3))
    both = node.call("multiply", scale, _columns(node, node.input(2)))
    return _floats(node, total, both, 4)


TABLE: dict[str, Callable[[Node], Any]] = {
    "QuantizeLinear": quantized.TABLE["QuantizeLinear"],
    "DequantizeLinear": quantized.TABLE["DequantizeLinear"],
    "QLinearAdd": _binary("add"), "QLinearMul": _binary("multiply"),
    "QLinearAveragePool": _pool("AveragePool"),
    "QLinearGlobalAveragePool": _pool("GlobalAveragePool"), "QLinearConcat": _concat,
    "QLinearSigmoid": _unary("Sigmoid"), "QLinearLeakyRelu": _unary("LeakyRelu"),
    "QLinearSoftmax": _softmax, "QGemm": _gemm, "MatMulIntegerToFloat": _integer_matmul,
    "DynamicQuantizeMatMul": _dynamic_matmul,
}  # fmt: skip
"""The converters of this module."""
