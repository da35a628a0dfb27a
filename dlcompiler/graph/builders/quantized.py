"""Models of int8: sums in int32, which a shift and a clip make int8 again."""

from __future__ import annotations

import math

import numpy as np

from dlcompiler.graph import op
from dlcompiler.graph.builders.layers import Model, model_of
from dlcompiler.graph.ir import Constant, Expr, TensorType, Var

_COUNTS = (2, 2, 2, 2)
_WEIGHT, _DATA, _WANTED = 12, 50, 40
"""About the sizes of weights and of data, and the size that results are to have; [1]."""
LARGEST = 127


def resnet_int8(batch: int = 1, image: int = 224, classes: int = 1000, seed: int = 0) -> Model:
    """Return ResNet-18 in int8, with batch normalisation in the weights.

    Parameters
    ----------
    batch : int
        Number of images; [1].
    image : int
        Height and width of an image; [1].
    classes : int
        Number of classes; [1].
    seed : int
        Decides the values of the weights.

    Notes
    -----
    Weights are random, and each layer shifts its sums by so many bits that results have about the
    size of its data. The result is the int32 score of each class.

    **Source:** the structure of K. He and others, arXiv:1512.03385, table 1.
    """
    data = Var("data", TensorType((batch, 3, image, image), "int8"))
    x: Expr = _layer(data, "conv0", 3, 64, 7, 2)
    x = op.nn.max_pool2d(x, pool_size=3, strides=2, padding=1, name="pool0")
    width = 64
    for stage, count in enumerate(_COUNTS, 1):
        channels = 64 << (stage - 1)
        for unit in range(1, count + 1):
            name, stride = f"stage{stage}_unit{unit}", 2 if stage > 1 and unit == 1 else 1
            made: Expr = _layer(x, f"{name}_1", width, channels, 3, stride)
            made = _layer(made, f"{name}_2", channels, channels, 3, 1, relu=False)
            short: Expr = x
            if stride > 1:
                short = _layer(x, f"{name}_sc", width, channels, 1, stride, relu=False)
            x = _sum(made, short, name)
            width = channels
    total = op.sum(op.cast(x, dtype="int32"), axis=[2, 3], name="pool1")
    pooled = _int8(total, "pool1", max(round(math.log2((image // 32) ** 2)), 0), relu=True)
    scores = op.nn.dense(pooled, Var("fc_weight", TensorType((classes, width), "int8")),
                         units=classes, out_dtype="int32", name="fc")  # fmt: skip
    return model_of(scores, (data,), seed)


def _layer(
    x: Expr, name: str, channels: int, filters: int, kernel: int, stride: int, *, relu: bool = True
) -> Expr:
    weight = Var(f"{name}_weight", TensorType((filters, channels, kernel, kernel), "int8"))
    sums = op.nn.conv2d(
        x, weight, channels=filters, kernel_size=kernel, strides=stride, padding=kernel // 2,
        out_dtype="int32", name=name,
    )  # fmt: skip
    bias = Var(f"{name}_bias", TensorType((filters,), "int32"))
    size = math.sqrt(channels * kernel * kernel) * _WEIGHT * _DATA
    shift = round(math.log2(size / _WANTED))
    return _int8(op.nn.bias_add(sums, bias, name=f"{name}_add"), name, shift, relu=relu)


def _int8(sums: Expr, name: str, shift: int, *, relu: bool) -> Expr:
    shifted = op.right_shift(sums, Constant(np.array(shift, np.int32)), name=f"{name}_shift")
    low = 0 if relu else -LARGEST
    clipped = op.clip(shifted, a_min=low, a_max=LARGEST, name=f"{name}_clip")
    return op.cast(clipped, dtype="int8", name=f"{name}_int8")


def _sum(a: Expr, b: Expr, name: str) -> Expr:
    wide = [op.cast(each, dtype="int32") for each in (a, b)]
    total = op.clip(op.add(*wide, name=f"{name}_add"), a_min=0, a_max=LARGEST)
    return op.cast(total, dtype="int8", name=f"{name}_int8")
