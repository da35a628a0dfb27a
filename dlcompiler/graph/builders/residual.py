"""Models for images with residual connections or separable convolutions."""

from __future__ import annotations

from dlcompiler.graph import op
from dlcompiler.graph.builders.convolutional import chosen
from dlcompiler.graph.builders.layers import Model, batch_norm, conv2d, dense, model_of, relu
from dlcompiler.graph.ir import Expr, TensorType, Var

_RESNETS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}
_BOTTLENECK = 50


def resnet(
    layers: int = 18, batch: int = 1, image: int = 224, classes: int = 1000,
    dtype: str = "float32", seed: int = 0,
) -> Model:  # fmt: skip
    """Return ResNet-18, 34 or 50.

    Parameters
    ----------
    layers : int
        18, 34 or 50.
    batch : int
        Number of images; [1].
    image : int
        Height and width of an image; [1].
    classes : int
        Number of classes; [1].
    dtype : str
        Of data and weights.
    seed : int
        Decides the values of the weights.

    Notes
    -----
    **Source:** K. He and others, arXiv:1512.03385, table 1; the stride is in the 3 by 3
    convolution of a bottleneck, as in torchvision.
    """
    counts = chosen("resnet", layers, _RESNETS)
    data = Var("data", TensorType((batch, 3, image, image), dtype))
    x = conv2d(data, "conv0", channels=64, kernel_size=7, strides=2, padding=3)
    x = relu(batch_norm(x, "bn0"), "relu0")
    x = op.nn.max_pool2d(x, pool_size=3, strides=2, padding=1, name="pool0")
    width = 64
    for stage, count in enumerate(counts, 1):
        channels = 64 << (stage - 1)
        out = channels * (4 if layers >= _BOTTLENECK else 1)
        for unit in range(1, count + 1):
            stride = 2 if stage > 1 and unit == 1 else 1
            block = _bottleneck if layers >= _BOTTLENECK else _basic
            x = block(x, f"stage{stage}_unit{unit}", channels, stride, width != out)
            width = out
    x = op.nn.batch_flatten(op.nn.global_avg_pool2d(x, name="pool1"), name="flatten")
    return model_of(op.nn.softmax(dense(x, "fc", classes), name="softmax"), (data,), seed)


def _unit(x: Expr, name: str, channels: int, kernel: int, stride: int = 1) -> Expr:
    """Convolve and normalise."""
    made = conv2d(
        x, f"{name}_conv", channels=channels, kernel_size=kernel, strides=stride,
        padding=kernel // 2,
    )  # fmt: skip
    return batch_norm(made, f"{name}_bn")


def _basic(x: Expr, name: str, channels: int, stride: int, is_projected: bool) -> Expr:
    made = relu(_unit(x, f"{name}_1", channels, 3, stride), f"{name}_relu1")
    made = _unit(made, f"{name}_2", channels, 3)
    short = _unit(x, f"{name}_sc", channels, 1, stride) if is_projected or stride > 1 else x
    return relu(op.add(made, short, name=f"{name}_add"), f"{name}_relu")


def _bottleneck(x: Expr, name: str, channels: int, stride: int, is_projected: bool) -> Expr:
    made = relu(_unit(x, f"{name}_1", channels, 1), f"{name}_relu1")
    made = relu(_unit(made, f"{name}_2", channels, 3, stride), f"{name}_relu2")
    made = _unit(made, f"{name}_3", 4 * channels, 1)
    short = _unit(x, f"{name}_sc", 4 * channels, 1, stride) if is_projected else x
    return relu(op.add(made, short, name=f"{name}_add"), f"{name}_relu")


def mobilenet(
    version: int = 2, batch: int = 1, image: int = 224, classes: int = 1000,
    dtype: str = "float32", seed: int = 0,
) -> Model:  # fmt: skip
    """Return MobileNet, version 1 or 2.

    Parameters
    ----------
    version : int
        1 or 2.
    batch, image, classes, dtype, seed
        As for `resnet`.

    Notes
    -----
    **Source:** A. Howard and others, arXiv:1704.04861, table 1; M. Sandler and others,
    arXiv:1801.04381, table 2.
    """
    chosen("mobilenet", version, {1: (), 2: ()})
    data = Var("data", TensorType((batch, 3, image, image), dtype))
    x = _separable(data) if version == 1 else _inverted(data)
    x = op.nn.batch_flatten(op.nn.global_avg_pool2d(x, name="pool"), name="flatten")
    return model_of(op.nn.softmax(dense(x, "fc", classes), name="softmax"), (data,), seed)


_SEPARABLE = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5,
              (1024, 2), (1024, 1))  # fmt: skip
_INVERTED = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
             (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip
"""Expansion, channels, number of blocks, and stride of the first one."""


def _separable(x: Expr) -> Expr:
    x = relu(_unit(x, "conv0", 32, 3, 2), "conv0_relu")
    width = 32
    for number, (channels, stride) in enumerate(_SEPARABLE, 1):
        x = relu(_depthwise(x, f"dw{number}", width, stride), f"dw{number}_relu")
        x = relu(_unit(x, f"pw{number}", channels, 1), f"pw{number}_relu")
        width = channels
    return x


def _depthwise(x: Expr, name: str, channels: int, stride: int) -> Expr:
    made = conv2d(
        x, f"{name}_conv", channels=channels, kernel_size=3, strides=stride, padding=1,
        groups=channels,
    )  # fmt: skip
    return batch_norm(made, f"{name}_bn")


def _relu6(x: Expr, name: str) -> Expr:
    return op.clip(x, a_min=0, a_max=6, name=name)


def _inverted(x: Expr) -> Expr:
    x = _relu6(_unit(x, "conv0", 32, 3, 2), "conv0_relu")
    width = 32
    for stage, (expansion, channels, count, first_stride) in enumerate(_INVERTED, 1):
        for unit in range(1, count + 1):
            name, stride = f"stage{stage}_unit{unit}", first_stride if unit == 1 else 1
            made, wide = x, width * expansion
            if expansion > 1:
                made = _relu6(_unit(made, f"{name}_expand", wide, 1), f"{name}_expand_relu")
            made = _relu6(_depthwise(made, f"{name}_dw", wide, stride), f"{name}_dw_relu")
            made = _unit(made, f"{name}_project", channels, 1)
            is_residual = stride == 1 and width == channels
            x = op.add(made, x, name=f"{name}_add") if is_residual else made
            width = channels
    return _relu6(_unit(x, "conv1", 1280, 1), "conv1_relu")
