"""Dense layers, products, softmax, normalisation and reductions."""

from __future__ import annotations

import math

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.frontends.mxnet.node import MOST_NUMBERS, Converter, MxnetNode
from dlcompiler.graph.ir import Expr


def _fully_connected(node: MxnetNode) -> Expr:
    """Multiply rows by the transposed weights; `flatten` makes one row of all but the batch."""
    x, units = node.input(0), node.integer("num_hidden")
    if node.flag("flatten", True) and node.rank(x) != 2:
        x = node.call("nn.batch_flatten", x)
    made = node.call("nn.dense", x, node.input(1), units=units)
    return made if node.flag("no_bias") else node.call("add", made, node.input(2))


def _dot(node: MxnetNode) -> Expr:
    """Sum over the last dimension of the first operand and the first one of the second."""
    a, b = node.input(0), node.input(1)
    turned = [node.flag("transpose_a"), node.flag("transpose_b")]
    node.text("forward_stype")
    left, right = node.shape(a), node.shape(b)
    if any(turned) and max(len(left), len(right)) > 2:
        node.fail("tensors with more than two dimensions are not transposed here")
    a = node.reshape(a, (math.prod(left[:-1]), left[-1])) if len(left) != 2 else a
    b = node.reshape(b, (right[0], math.prod(right[1:]))) if len(right) != 2 else b
    is_turned = [t and len(shape) == 2 for t, shape in zip(turned, (left, right), strict=True)]
    made = node.call("nn.matmul", a, b, transpose_a=is_turned[0], transpose_b=is_turned[1])
    rows = left[1:] if is_turned[0] else left[:-1]
    columns = right[:-1] if is_turned[1] else right[1:]
    return node.reshape(made, (*rows, *columns) or (1,))


def _batch_dot(node: MxnetNode) -> Expr:
    node.text("forward_stype")
    return node.call("nn.matmul", node.input(0), node.input(1),
                     transpose_a=node.flag("transpose_a"),
                     transpose_b=node.flag("transpose_b"))  # fmt: skip


def _gemm2(node: MxnetNode) -> Expr:
    if node.integer("axis", -2) != -2:
        node.fail("its matrices are not in the last dimensions")
    made, alpha = _batch_dot(node), node.number("alpha", 1.0)
    return made if alpha == 1 else node.call("multiply", made, node.scalar(alpha, made))


def _softmax(name: str, sign: int = 1) -> Converter:
    def convert(node: MxnetNode) -> Expr:
        x = node.input(0)
        axis, heat = node.axis(node.rank(x), -1), node.number("temperature", 1.0)
        dtype = node.dtype_attr(node.dtype(x))
        if not dtypes.is_float(dtype):
            node.fail("its result is no float", got=dtype)
        if dtypes.bits(dtype) > dtypes.bits(node.dtype(x)):
            x = node.cast(x, dtype)
        is_inside = _inside(node, axis) if node.flag("use_length") else None
        if is_inside is not None:
            x = node.call("where", is_inside, x, node.scalar(-sign * math.inf, x))
        if sign / heat != 1:
            x = node.call("multiply", x, node.scalar(sign / heat, x))
        made = node.call(name, x, axis=axis)
        if is_inside is not None:  # a row of length 0 has no probabilities
            made = node.call("where", is_inside, made, node.scalar(0, x))
        return node.cast(made, dtype)

    return convert


def _inside(node: MxnetNode, axis: int) -> Expr:
    """Return which elements along an axis are before the lengths of the second operand."""
    shape, length = node.shape(node.input(0)), node.input(1)
    (extent,) = node.limited((shape[axis],), MOST_NUMBERS)
    places = np.arange(extent).reshape([-1 if n == axis else 1 for n in range(len(shape))])
    ends = node.reshape(length, [1 if n == axis else size for n, size in enumerate(shape)])
    return node.call("less", node.numbers(places, node.dtype(length)), ends)


def _softmax_output(node: MxnetNode) -> Expr:
    """Return probabilities along the channels or the last dimension.

    With neither flag, MXNet 1.9.1 takes the last dimension or all but the batch, which depends on
    the library that computes it.
    """
    x = node.input(0)
    is_of_channels, keeps_shape = node.flag("multi_output"), node.flag("preserve_shape")
    if not (is_of_channels or keeps_shape) and node.rank(x) > 2:
        node.fail("MXNet does not define its axis for so many dimensions", got=str(node.type(x)),
                  hint="set multi_output or preserve_shape")  # fmt: skip
    return node.call("nn.softmax", x, axis=1 if is_of_channels else -1)


def _softmax_activation(node: MxnetNode) -> Expr:
    is_of_channels = node.choice("mode", "instance", "channel") == "channel"
    return node.call("nn.softmax", node.input(0), axis=1 if is_of_channels else -1)


def _layer_norm(node: MxnetNode) -> list[Expr]:
    x = node.input(0)
    node.flag("output_mean_var")
    axis, epsilon = node.axis(node.rank(x), -1), node.number("eps", 1e-5)
    return [node.call("nn.layer_norm", x, *node.inputs[1:3], axis=axis, epsilon=epsilon)]


def _l2_norm(node: MxnetNode) -> list[Expr]:
    """Divide by the root of the sum of squares: of a sample, of channels, or of an image."""
    x = node.input(0)
    first, last = {"instance": (1, node.rank(x)), "channel": (1, 2), "spatial": (2, node.rank(x))}[
        node.choice("mode", "instance", "channel", "spatial")
    ]
    square = node.call("sum", node.call("square", x), axis=tuple(range(first, last)), keepdims=True)
    root = node.call("sqrt", node.call("add", square, node.scalar(node.number("eps", 1e-10), x)))
    return [node.call("divide", x, root)]


def _dropout(node: MxnetNode) -> list[Expr]:
    node.number("p", 0.5)
    node.integers("axes")
    node.choice("mode", "training")  # "always" drops elements in inference, too
    return [node.input(0)]


# -- reductions ------------------------------------------------------------------------------------


def _axes(node: MxnetNode, rank: int) -> tuple[int, ...]:
    """Return the attribute ``axis``, or with ``exclude`` the other axes; by default all."""
    found = node.integers("axis")
    if any(not -rank <= axis < rank for axis in found):
        node.fail("there is no such axis", got=f"axes {found} of {rank} dimensions")
    axes = {axis % rank for axis in found}
    if node.flag("exclude") and found:
        axes = set(range(rank)) - axes
    return tuple(sorted(axes)) if found else tuple(range(rank))


def _reduction(name: str) -> Converter:
    def convert(node: MxnetNode) -> Expr:
        x = node.input(0)
        axes, keeps = _axes(node, node.rank(x)), node.flag("keepdims")
        if not axes:
            return x
        made = node.call(name, x, axis=axes, keepdims=keeps)
        return made if node.rank(made) else node.reshape(made, (1,))

    return convert


def _norm(node: MxnetNode) -> Expr:
    x, order = node.input(0), node.integer("ord", 2)
    axes, keeps = _axes(node, node.rank(x)), node.flag("keepdims")
    node.choice("out_dtype", node.dtype(x))
    made = node.call("norm", x, ord=float(order), axis=axes, keepdims=keeps)
    return made if node.rank(made) else node.reshape(made, (1,))


def _position(name: str) -> Converter:
    """Return the converter of a position, which has the dtype of the data in MXNet."""

    def convert(node: MxnetNode) -> Expr:
        x = node.input(0)
        axes, keeps = _axes(node, node.rank(x)), node.flag("keepdims")
        made = node.cast(node.call(name, x, axis=axes, keepdims=keeps), node.dtype(x))
        return made if node.rank(made) else node.reshape(made, (1,))

    return convert


def _argmax_channel(node: MxnetNode) -> Expr:
    x = node.input(0)
    return node.cast(node.call("argmax", x, axis=(1,)), node.dtype(x))


TABLE: dict[str, Converter] = {
    "FullyConnected": _fully_connected, "dot": _dot, "batch_dot": _batch_dot,
    "_linalg_gemm2": _gemm2, "linalg_gemm2": _gemm2, "softmax": _softmax("nn.softmax"),
    "softmin": _softmax("nn.softmax", -1), "log_softmax": _softmax("nn.log_softmax"),
    "SoftmaxOutput": _softmax_output, "Softmax": _softmax_output,
    "SoftmaxActivation": _softmax_activation, "LayerNorm": _layer_norm,
    "L2Normalization": _l2_norm, "Dropout": _dropout, "mean": _reduction("mean"),
    "sum": _reduction("sum"), "sum_axis": _reduction("sum"), "max": _reduction("max"),
    "max_axis": _reduction("max"), "min": _reduction("min"), "min_axis": _reduction("min"),
    "prod": _reduction("prod"), "norm": _norm, "argmax": _position("argmax"),
    "argmin": _position("argmin"), "argmax_channel": _argmax_channel,
}  # fmt: skip
"""The converters of this module."""
