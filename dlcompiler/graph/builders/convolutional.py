"""Models for images: MLP, LeNet, VGG, DQN, DCGAN's generator, SqueezeNet, an Inception block."""

from __future__ import annotations

from collections.abc import Mapping

from dlcompiler.errors import GraphError
from dlcompiler.graph import op
from dlcompiler.graph.builders.layers import (
    Model,
    batch_norm,
    biased_conv2d,
    conv2d,
    dense,
    model_of,
    relu,
)
from dlcompiler.graph.ir import Expr, TensorType, Var


def mlp(
    batch: int = 1, shape: tuple[int, ...] = (1, 28, 28), classes: int = 10,
    dtype: str = "float32", seed: int = 0,
) -> Model:  # fmt: skip
    """Return a multilayer perceptron with layers of 128, 64 and `classes` units.

    Parameters
    ----------
    batch : int
        Number of images; [1].
    shape : tuple of int
        Shape of an image.
    classes : int
        Number of classes; [1].
    dtype : str
        Of data and weights.
    seed : int
        Decides the values of the weights.
    """
    data = Var("data", TensorType((batch, *shape), dtype))
    x: Expr = op.nn.batch_flatten(data, name="flatten")
    for number, units in enumerate((128, 64), 1):
        x = relu(dense(x, f"fc{number}", units), f"relu{number}")
    x = op.nn.softmax(dense(x, "fc3", classes), name="softmax")
    return model_of(x, (data,), seed)


def lenet(batch: int = 1, classes: int = 10, dtype: str = "float32", seed: int = 0) -> Model:
    """Return LeNet-5 for images of 28 by 28 pixels.

    Parameters
    ----------
    batch, classes, dtype, seed
        As for `mlp`.

    Notes
    -----
    **Source:** Y. LeCun and others, "Gradient-based learning applied to document recognition",
    1998, with tanh and average pools.
    """
    data = Var("data", TensorType((batch, 1, 28, 28), dtype))
    x: Expr = op.tanh(biased_conv2d(data, "conv1", channels=6, kernel_size=5, padding=2))
    x = op.nn.avg_pool2d(x, pool_size=2, strides=2, name="pool1")
    x = op.tanh(biased_conv2d(x, "conv2", channels=16, kernel_size=5))
    x = op.nn.batch_flatten(op.nn.avg_pool2d(x, pool_size=2, strides=2, name="pool2"))
    for number, units in enumerate((120, 84), 1):
        x = op.tanh(dense(x, f"fc{number}", units))
    return model_of(op.nn.softmax(dense(x, "fc3", classes)), (data,), seed)


_VGG = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def vgg(
    layers: int = 16, batch: int = 1, image: int = 224, classes: int = 1000,
    has_batch_norm: bool = False, dtype: str = "float32", seed: int = 0,
) -> Model:  # fmt: skip
    """Return VGG-11, 13, 16 or 19.

    Parameters
    ----------
    layers : int
        11, 13, 16 or 19.
    batch, classes, dtype, seed
        As for `mlp`.
    image : int
        Height and width of an image, a multiple of 32; [1].
    has_batch_norm : bool
        Normalise after each convolution.

    Notes
    -----
    **Source:** K. Simonyan, A. Zisserman, arXiv:1409.1556, table 1.
    """
    counts = chosen("vgg", layers, _VGG)
    data = Var("data", TensorType((batch, 3, image, image), dtype))
    x: Expr = data
    for stage, count in enumerate(counts, 1):
        channels = min(64 << (stage - 1), 512)
        for number in range(1, count + 1):
            name = f"conv{stage}_{number}"
            x = biased_conv2d(x, name, channels=channels, kernel_size=3, padding=1)
            x = batch_norm(x, f"bn{stage}_{number}") if has_batch_norm else x
            x = relu(x, f"relu{stage}_{number}")
        x = op.nn.max_pool2d(x, pool_size=2, strides=2, name=f"pool{stage}")
    x = op.nn.batch_flatten(x, name="flatten")
    for number in (6, 7):
        x = op.nn.dropout(relu(dense(x, f"fc{number}", 4096), f"relu{number}"))[0]
    return model_of(op.nn.softmax(dense(x, "fc8", classes), name="softmax"), (data,), seed)


def dqn(batch: int = 1, actions: int = 18, dtype: str = "float32", seed: int = 0) -> Model:
    """Return the deep Q-network for four frames of 84 by 84 pixels.

    Parameters
    ----------
    batch, dtype, seed
        As for `mlp`.
    actions : int
        Number of actions; [1].

    Notes
    -----
    **Source:** V. Mnih and others, "Human-level control through deep reinforcement learning",
    Nature 518, 2015, methods.
    """
    data = Var("data", TensorType((batch, 4, 84, 84), dtype))
    x: Expr = data
    for number, (channels, kernel, stride) in enumerate(((32, 8, 4), (64, 4, 2), (64, 3, 1)), 1):
        x = biased_conv2d(x, f"conv{number}", channels=channels, kernel_size=kernel, strides=stride)
        x = relu(x, f"relu{number}")
    x = relu(dense(op.nn.batch_flatten(x, name="flatten"), "fc4", 512), "relu4")
    return model_of(dense(x, "fc5", actions), (data,), seed)


def dcgan(batch: int = 1, noise: int = 100, dtype: str = "float32", seed: int = 0) -> Model:
    """Return the generator of DCGAN for images of 64 by 64 pixels.

    Parameters
    ----------
    batch, dtype, seed
        As for `mlp`.
    noise : int
        Length of the random vector; [1].

    Notes
    -----
    **Source:** A. Radford and others, arXiv:1511.06434, figure 1.
    """
    data = Var("data", TensorType((batch, noise), dtype))
    x: Expr = relu(dense(data, "project", 1024 * 4 * 4), "relu0")
    x = op.reshape(x, newshape=(batch, 1024, 4, 4), name="reshape")
    for number, channels in enumerate((512, 256, 128, 3), 1):
        x = op.nn.conv2d_transpose(
            x, Var(f"deconv{number}_weight"), channels=channels, kernel_size=4, strides=2,
            padding=1, name=f"deconv{number}",
        )  # fmt: skip
        if number < 4:
            x = relu(batch_norm(x, f"bn{number}"), f"relu{number}")
    return model_of(op.tanh(x, name="tanh"), (data,), seed)


def squeezenet(
    batch: int = 1, image: int = 224, classes: int = 1000, dtype: str = "float32", seed: int = 0
) -> Model:
    """Return SqueezeNet 1.1.

    Parameters
    ----------
    batch, classes, dtype, seed
        As for `mlp`.
    image : int
        Height and width of an image; [1].

    Notes
    -----
    **Source:** F. Iandola and others, arXiv:1602.07360; version 1.1 of its authors.
    """
    data = Var("data", TensorType((batch, 3, image, image), dtype))
    x = relu(biased_conv2d(data, "conv1", channels=64, kernel_size=3, strides=2), "relu1")
    x = _pool3(x, "pool1")
    number = 2
    for squeeze, count in ((16, 2), (32, 2), (48, 2), (64, 2)):
        for _ in range(count):
            x = _fire(x, f"fire{number}", squeeze, squeeze * 4)
            number += 1
        x = _pool3(x, f"pool{number - 1}") if squeeze < 48 else x
    x = op.nn.dropout(x)[0]
    x = relu(biased_conv2d(x, "conv10", channels=classes, kernel_size=1), "relu10")
    x = op.nn.batch_flatten(op.nn.global_avg_pool2d(x, name="pool10"), name="flatten")
    return model_of(op.nn.softmax(x, name="softmax"), (data,), seed)


def _pool3(x: Expr, name: str) -> Expr:
    return op.nn.max_pool2d(x, pool_size=3, strides=2, ceil_mode=True, name=name)


def _fire(x: Expr, name: str, squeeze: int, expand: int) -> Expr:
    squeezed = biased_conv2d(x, f"{name}_squeeze", channels=squeeze, kernel_size=1)
    squeezed = relu(squeezed, f"{name}_squeeze_relu")
    branches = [
        relu(
            biased_conv2d(
                squeezed, f"{name}_{kernel}x{kernel}", channels=expand, kernel_size=kernel,
                padding=kernel // 2,
            ),
            f"{name}_{kernel}x{kernel}_relu",
        )
        for kernel in (1, 3)
    ]  # fmt: skip
    return op.concatenate(branches, axis=1, name=f"{name}_concat")


def inception(
    batch: int = 1, channels: int = 192, image: int = 28, dtype: str = "float32", seed: int = 0
) -> Model:
    """Return the first Inception block of GoogLeNet, 3a.

    Parameters
    ----------
    batch, dtype, seed
        As for `mlp`.
    channels : int
        Channels of the input; [1].
    image : int
        Height and width of the input; [1].

    Notes
    -----
    **Source:** C. Szegedy and others, arXiv:1409.4842, table 1.
    """
    data = Var("data", TensorType((batch, channels, image, image), dtype))

    def unit(x: Expr, name: str, width: int, kernel: int) -> Expr:
        made = conv2d(x, name, channels=width, kernel_size=kernel, padding=kernel // 2)
        return relu(batch_norm(made, f"{name}_bn"), f"{name}_relu")

    pooled = op.nn.max_pool2d(data, pool_size=3, strides=1, padding=1, name="pool")
    branches = [
        unit(data, "1x1", 64, 1),
        unit(unit(data, "3x3_reduce", 96, 1), "3x3", 128, 3),
        unit(unit(data, "5x5_reduce", 16, 1), "5x5", 32, 5),
        unit(pooled, "pool_proj", 32, 1),
    ]
    return model_of(op.concatenate(branches, axis=1, name="concat"), (data,), seed)


def chosen(model: str, layers: int, table: Mapping[int, tuple[int, ...]]) -> tuple[int, ...]:
    """Return what a table has for a depth or a version; refuse another one."""
    if layers not in table:
        raise GraphError(
            f"build {model}", "there is no such depth", got=layers,
            expected=", ".join(map(str, table)),
        )  # fmt: skip
    return table[layers]
