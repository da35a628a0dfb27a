"""Convolutions, products, normalisations and losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dlcompiler.graph.frontends.onnx.node import Node
from dlcompiler.graph.frontends.onnx.operators.windows import (
    kernel_of,
    listed,
    pads_of,
)
from dlcompiler.graph.frontends.origin import constant_of
from dlcompiler.graph.frontends.windows import LAYOUTS, spatial_rank
from dlcompiler.graph.ir import Constant, Expr


def _conv(node: Node) -> Expr:
    x, weight = node.input(0), node.input(1)
    rank = spatial_rank(node, x)
    kernel = kernel_of(node, weight)
    strides, dilation = listed(node, "strides", rank), listed(node, "dilations", rank)
    sizes = node.shape(x)[2:] if str(node.attr("auto_pad", "NOTSET")) != "NOTSET" else ()
    made = node.call(
        f"nn.conv{rank}d", x, weight, strides=strides, dilation=dilation,
        padding=pads_of(node, sizes, kernel, strides, dilation), groups=int(node.attr("group", 1)),
        data_layout=LAYOUTS[rank],
    )  # fmt: skip
    return _biased(node, made, node.optional(2))


def _biased(node: Node, made: Expr, bias: Expr | None) -> Expr:
    return made if bias is None else node.call("nn.bias_add", made, bias, axis=1)


def _conv_transpose(node: Node) -> Expr:
    x, weight = node.input(0), node.input(1)
    rank = spatial_rank(node, x)
    kernel = kernel_of(node, weight)
    strides, dilation = listed(node, "strides", rank), listed(node, "dilations", rank)
    extra = tuple(node.attr("output_padding") or (0,) * rank)
    full = [
        (size - 1) * step + (k - 1) * d + 1 + more
        for size, step, k, d, more in zip(
            node.shape(x)[2:], strides, kernel, dilation, extra, strict=True
        )
    ]
    pads, extra = _cut(node, full, strides, extra)
    made = node.call(
        f"nn.conv{rank}d_transpose", x, weight, strides=strides, dilation=dilation,
        padding=tuple(max(n, 0) for n in pads), groups=int(node.attr("group", 1)),
        output_padding=extra, data_layout=LAYOUTS[rank],
    )  # fmt: skip
    if any(n < 0 for n in pads):  # more results than the images reach
        width = [(max(-pads[n], 0), max(-pads[rank + n], 0)) for n in range(rank)]
        made = node.call("nn.pad", made, pad_width=((0, 0), (0, 0), *width))
    return _biased(node, made, node.optional(2))


def _cut(
    node: Node, full: list[int], strides: tuple[int, ...], extra: tuple[int, ...]
) -> tuple[list[int], tuple[int, ...]]:
    """Return what is cut off before and after the results, and the elements that are added."""
    rank = len(full)
    wanted = node.attr("output_shape")
    rule = str(node.attr("auto_pad", "NOTSET"))
    if not wanted and rule in ("NOTSET", "VALID"):
        pads = list(node.attr("pads") or (0,) * (2 * rank)) if rule == "NOTSET" else [0] * 2 * rank
        return pads, extra
    if not wanted:
        wanted = [size * step for size, step in zip(node.shape(node.input(0))[2:], strides,
                                                    strict=True)]  # fmt: skip
    total = [f - w for f, w in zip(full, list(wanted)[-rank:], strict=True)]
    small = [n // 2 if rule == "SAME_UPPER" else n - n // 2 for n in total]
    return [*small, *(n - s for n, s in zip(total, small, strict=True))], extra


def _mat_mul(node: Node) -> Expr:
    a, b = node.input(0), node.input(1)
    left, right = node.rank(a), node.rank(b)
    if left == 1:
        a = node.call("expand_dims", a, axis=0, num_newaxis=1)
    if right == 1:
        b = node.call("expand_dims", b, axis=1, num_newaxis=1)
    made: Expr = node.call("nn.matmul", a, b)
    gone = [axis for axis, rank in ((-2, left), (-1, right)) if rank == 1]
    return node.call("squeeze", made, axis=tuple(gone)) if gone else made


def _gemm(node: Node) -> Expr:
    a, b = node.input(0), node.input(1)
    alpha, beta = float(node.attr("alpha", 1.0)), float(node.attr("beta", 1.0))
    made: Expr
    if isinstance(b, Constant) and not node.attr("transA", 0):
        weight = b.value if node.attr("transB", 0) else b.value.T
        made = node.call("nn.dense", a, constant_of(np.ascontiguousarray(weight)))
    else:
        made = node.call("nn.matmul", a, b, transpose_a=bool(node.attr("transA", 0)),
                         transpose_b=bool(node.attr("transB", 0)))  # fmt: skip
    if alpha != 1:
        made = node.call("multiply", made, node.scalar(alpha, made))
    c = node.optional(2)
    if c is None:
        return made
    if beta != 1:
        c = node.call("multiply", c, node.scalar(beta, c))
    return node.call("add", made, c)


def _batch_norm(node: Node) -> list[Expr]:
    x = node.input(0)
    dtype, rank = node.dtype(x), node.rank(x)
    axis, epsilon = min(rank - 1, 1), float(node.attr("epsilon", 1e-5))
    if node.attr("training_mode", 0):
        return _batch_norm_in_training(node, axis, epsilon)
    moments = [node.cast(node.input(i), dtype) for i in range(1, 5)]
    found = node.call("nn.batch_norm", x, *moments, axis=axis, epsilon=epsilon)
    return [found[0]]


def _batch_norm_in_training(node: Node, axis: int, epsilon: float) -> list[Expr]:
    """Normalise by the moments of the batch; the running ones are outputs."""
    x = node.input(0)
    dtype, axes = node.dtype(x), tuple(n for n in range(node.rank(x)) if n != axis)
    wide = node.cast(x, "float32") if dtype in ("float16", "bfloat16") else x
    mean = node.call("mean", wide, axis=axes, keepdims=True)
    square = node.call("square", node.call("subtract", wide, mean))
    moments = [node.call("squeeze", mean, axis=axes), node.call("mean", square, axis=axes)]
    given = [node.cast(node.input(i), node.dtype(wide)) for i in (1, 2)]
    made = node.call("nn.batch_norm", wide, *given, *moments, axis=axis, epsilon=epsilon)
    kept, running = float(node.attr("momentum", 0.9)), []
    for i, now in zip((3, 4), moments, strict=True):
        before = node.cast(node.input(i), node.dtype(wide))
        old = node.call("multiply", before, node.scalar(kept, wide))
        new = node.call("multiply", now, node.scalar(1 - kept, wide))
        running.append(node.cast(node.call("add", old, new), node.dtype(node.input(i))))
    return [node.cast(made[0], dtype), *running]


def _instance_norm(node: Node) -> Expr:
    return node.call("nn.instance_norm", node.input(0), node.input(1), node.input(2), axis=1,
                     epsilon=float(node.attr("epsilon", 1e-5)))  # fmt: skip


def _layer_norm(node: Node) -> list[Expr | None]:
    """Normalise over the last dimensions; the mean and the inverse deviation are outputs, too."""
    x, scale, shift = node.input(0), node.input(1), node.optional(2)
    rank, epsilon = node.rank(x), float(node.attr("epsilon", 1e-5))
    axis = node.axis(-1, rank)
    needs_moments = len(node.outputs) > 1
    if axis == rank - 1 and node.rank(scale) == 1 and not needs_moments:
        zero = node.call("zeros_like", scale) if shift is None else shift
        return [node.call("nn.layer_norm", x, scale, zero, axis=-1, epsilon=epsilon)]
    dtype = node.dtype(x)
    wide = node.cast(x, "float32") if dtype in ("float16", "bfloat16") else x
    axes = tuple(range(axis, rank))
    mean = node.call("mean", wide, axis=axes, keepdims=True)
    centred = node.call("subtract", wide, mean)
    variance = node.call("mean", node.call("square", centred), axis=axes, keepdims=True)
    root = node.call("rsqrt", node.call("add", variance, node.scalar(epsilon, variance)))
    normal = node.cast(node.call("multiply", centred, root), dtype)
    made = node.call("multiply", normal, scale)
    if shift is not None:
        made = node.call("add", made, shift)
    return [made, mean, root]


def _rms_norm(node: Node) -> Expr:
    x, scale = node.input(0), node.input(1)
    rank, epsilon = node.rank(x), float(node.attr("epsilon", 1e-5))
    axis = node.axis(-1, rank)
    if axis == rank - 1 and node.rank(scale) == 1 and node.dtype(scale) == node.dtype(x):
        return node.call("nn.rms_norm", x, scale, axis=-1, epsilon=epsilon)
    dtype = node.dtype(x)
    wide = node.cast(x, "float32") if dtype in ("float16", "bfloat16") else x
    square = node.call("mean", node.call("square", wide), axis=tuple(range(axis, rank)),
                       keepdims=True)  # fmt: skip
    root = node.call("rsqrt", node.call("add", square, node.scalar(epsilon, square)))
    normal = node.cast(node.call("multiply", wide, root), node.dtype(scale))
    return node.call("multiply", normal, scale)


def _group_norm(node: Node) -> Expr:
    x, scale, shift = node.input(0), node.input(1), node.input(2)
    groups = int(node.attr("num_groups", 1))
    channels = node.shape(x)[1]
    if node.shape(scale) != (channels,):  # of a group, in older versions
        repeats = channels // max(groups, 1)
        scale, shift = (node.call("repeat", v, repeats=repeats, axis=0) for v in (scale, shift))
    return node.call("nn.group_norm", x, scale, shift, num_groups=groups, axis=1,
                     epsilon=float(node.attr("epsilon", 1e-5)))  # fmt: skip


def _lrn(node: Node) -> Expr:
    return node.call(
        "nn.lrn", node.input(0), size=int(node.attr("size", 1)), axis=1,
        bias=float(node.attr("bias", 1.0)), alpha=float(node.attr("alpha", 1e-4)),
        beta=float(node.attr("beta", 0.75)),
    )  # fmt: skip


def _lp_norm(node: Node) -> Expr:
    x = node.input(0)
    axis = node.axis(-1, node.rank(x))
    size = node.call("norm", x, ord=float(node.attr("p", 2)), axis=(axis,), keepdims=True)
    is_zero = node.call("equal", size, node.scalar(0, size))
    return node.call("divide", x, node.call("where", is_zero, node.scalar(1, size), size))


def _softmax(name: str) -> Callable[[Node], Any]:
    def convert(node: Node) -> Expr:
        x = node.input(0)
        rank = node.rank(x)
        if node.version >= 13:
            return node.call(name, x, axis=node.axis(-1, rank))
        axis = node.axis(1, rank)
        if axis == rank - 1:
            return node.call(name, x, axis=-1)
        shape = node.shape(x)  # all dimensions from the axis on are one
        flat = node.reshape(x, (math.prod(shape[:axis]), math.prod(shape[axis:])))
        return node.reshape(node.call(name, flat, axis=-1), shape)

    return convert


def _hardmax(node: Node) -> Expr:
    x = node.input(0)
    rank, shape = node.rank(x), node.shape(x)
    axis = node.axis(-1 if node.version >= 13 else 1, rank)
    if node.version < 13:
        shape = (math.prod(shape[:axis]), math.prod(shape[axis:]))
        x, axis = node.reshape(x, shape), 1
    place = node.call("argmax", x, axis=(axis,), keepdims=False)
    made = node.call("one_hot", node.cast(place, "int64"), node.scalar(1, x), node.scalar(0, x),
                     depth=shape[axis], axis=axis, dtype=node.dtype(x))  # fmt: skip
    return node.reshape(made, node.shape(node.input(0)))


def _einsum(node: Node) -> Expr:
    values = [node.input(i) for i in range(len(node.inputs))]
    return node.call("einsum", node.tuple(values), equation=str(node.attr("equation", "")))


def _grid_sample(node: Node) -> Expr:
    x, grid = node.input(0), node.input(1)
    rank = spatial_rank(node, x)
    modes = {"linear": "bilinear" if rank == 2 else "trilinear", "cubic": "bicubic"}
    mode = str(node.attr("mode", "linear")).removeprefix("bi")
    order = (0, rank + 1, *range(1, rank + 1))
    return node.call(
        "image.grid_sample", x, node.call("transpose", grid, axes=order),
        method=modes.get(mode, mode), layout=LAYOUTS[rank],
        padding_mode=str(node.attr("padding_mode", "zeros")),
        align_corners=bool(node.attr("align_corners", 0)),
    )  # fmt: skip


TABLE: dict[str, Callable[[Node], Any]] = {
    "Conv": _conv, "ConvTranspose": _conv_transpose, "MatMul": _mat_mul, "Gemm": _gemm,
    "BatchNormalization": _batch_norm, "InstanceNormalization": _instance_norm,
    "LayerNormalization": _layer_norm, "RMSNormalization": _rms_norm,
    "GroupNormalization": _group_norm, "LRN": _lrn, "LpNormalization": _lp_norm,
    "Softmax": _softmax("nn.softmax"), "LogSoftmax": _softmax("nn.log_softmax"),
    "Hardmax": _hardmax, "Einsum": _einsum, "GridSample": _grid_sample,
}  # fmt: skip
"""The converters of this module."""
