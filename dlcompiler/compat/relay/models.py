"""The models of `relay.testing`, made by the builders of `dlcompiler.graph`.

The layers are those of the papers, so names of weights and their values differ from Relay's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dlcompiler import graph
from dlcompiler.compat.arrays import NDArray, array
from dlcompiler.compat.relay.modules import IRModule, module_of
from dlcompiler.errors import GraphError
from dlcompiler.graph import builders
from dlcompiler.graph.builders import Model

Workload = tuple[IRModule, dict[str, NDArray]]


def workload(model: Model) -> Workload:
    """Return a model as a module, and its weights."""
    return IRModule.of(model.module), {name: array(v) for name, v in model.params.items()}


def net(made: Workload) -> graph.Function:
    """Return the function of a model."""
    function: graph.Function = made[0]["main"]
    return function


def _side(model: str, shape: tuple[int, ...], channels: int = 3) -> int:
    """Return the side of square images with some channels; refuse others."""
    if len(shape) != 3 or shape[0] != channels or shape[1] != shape[2]:
        raise GraphError(
            f"relay.testing.{model}", "images of this shape are not built", got=shape,
            expected=f"({channels}, n, n)",
        )  # fmt: skip
    return int(shape[1])


def _only(model: str, name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise GraphError(f"relay.testing.{model}", f"{name} is not built", got=value,
                         expected=" or ".join(map(str, allowed)))  # fmt: skip


def mlp(
    batch_size: int, num_classes: int = 10, image_shape: tuple[int, ...] = (1, 28, 28),
    dtype: str = "float32",
) -> Workload:  # fmt: skip
    """Return a multilayer perceptron."""
    return workload(builders.mlp(batch_size, tuple(image_shape), num_classes, dtype))


def resnet(
    batch_size: int = 1, num_classes: int = 1000, num_layers: int = 18,
    image_shape: tuple[int, ...] = (3, 224, 224), layout: str = "NCHW", dtype: str = "float32",
) -> Workload:  # fmt: skip
    """Return ResNet-18, 34 or 50."""
    _only("resnet", "layout", layout, ("NCHW",))
    return workload(
        builders.resnet(num_layers, batch_size, _side("resnet", image_shape), num_classes, dtype)
    )


def mobilenet(
    batch_size: int = 1, num_classes: int = 1000, image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32", layout: str = "NCHW",
) -> Workload:  # fmt: skip
    """Return MobileNet, version 1."""
    _only("mobilenet", "layout", layout, ("NCHW",))
    return workload(
        builders.mobilenet(1, batch_size, _side("mobilenet", image_shape), num_classes, dtype)
    )


def squeezenet(
    batch_size: int = 1, num_classes: int = 1000, version: str = "1.1",
    image_shape: tuple[int, ...] = (3, 224, 224), dtype: str = "float32",
) -> Workload:  # fmt: skip
    """Return SqueezeNet 1.1."""
    _only("squeezenet", "version", version, ("1.1",))
    return workload(
        builders.squeezenet(batch_size, _side("squeezenet", image_shape), num_classes, dtype)
    )


def vgg(
    batch_size: int, num_classes: int = 1000, image_shape: tuple[int, ...] = (3, 224, 224),
    dtype: str = "float32", num_layers: int = 11, batch_norm: bool = False,
) -> Workload:  # fmt: skip
    """Return VGG-11, 13, 16 or 19."""
    side = _side("vgg", image_shape)
    return workload(builders.vgg(num_layers, batch_size, side, num_classes, batch_norm, dtype))


def dcgan(
    batch_size: int, oshape: tuple[int, ...] = (3, 64, 64), ngf: int = 128, random_len: int = 100,
    layout: str = "NCHW", dtype: str = "float32",
) -> Workload:  # fmt: skip
    """Return the generator of DCGAN, for images of 64 by 64 pixels."""
    _only("dcgan", "layout", layout, ("NCHW",))
    _only("dcgan", "ngf", ngf, (128,))
    _only("dcgan", "oshape", tuple(oshape), ((3, 64, 64),))
    return workload(builders.dcgan(batch_size, random_len, dtype))


def dqn(
    batch_size: int, num_actions: int = 18, image_shape: tuple[int, ...] = (4, 84, 84),
    dtype: str = "float32", layout: str = "NCHW",
) -> Workload:  # fmt: skip
    """Return the deep Q-network."""
    _only("dqn", "layout", layout, ("NCHW",))
    _only("dqn", "image_shape", tuple(image_shape), ((4, 84, 84),))
    return workload(builders.dqn(batch_size, num_actions, dtype))


def lstm(iterations: int, num_hidden: int, batch_size: int = 1, dtype: str = "float32") -> Workload:
    """Return a language model of two LSTM layers, unrolled: Relay's has one and no embedding."""
    return workload(builders.lstm(iterations, batch_size, 1000, num_hidden, 2, dtype))


MODELS: dict[str, Callable[..., Workload]] = {
    "mlp": mlp, "resnet": resnet, "mobilenet": mobilenet, "squeezenet": squeezenet, "vgg": vgg,
    "dcgan": dcgan, "dqn": dqn, "lstm": lstm,
}  # fmt: skip
"""Name of a module of `relay.testing` -> what its ``get_workload`` returns."""


def create_workload(
    net: Any, initializer: Callable[[str, Any], None] | None = None, seed: int = 0
) -> Workload:
    """Return a module, and weights for all its parameters but ``data``.

    Parameters
    ----------
    net : Function
        The model.
    initializer : callable, optional
        ``initializer(name, array)`` fills an array; by default, values suit the names and shapes.
    seed : int
        Decides the values.
    """
    module = graph.infer_types(module_of(net, "create_workload"))
    inputs = tuple(param for param in module.main.params if param.name == "data")
    made = builders.model_of(module.main.body, inputs, seed)
    params = {name: np.array(value) for name, value in made.params.items()}
    if initializer is not None:
        for name, value in params.items():
            initializer(name, value)
    return IRModule.of(made.module), {name: array(value) for name, value in params.items()}


def run_infer_type(expr: Any) -> Any:
    """Return an expression in which each variable and function has its type."""
    function = graph.infer_types(module_of(expr, "run_infer_type")).main
    return function if isinstance(expr, graph.Function) else function.body


def run_opt_pass(expr: Any, opt_pass: Any, import_prelude: bool = False) -> Any:
    """Return what a pass makes of an expression."""
    del import_prelude
    function = opt_pass(IRModule.of(module_of(expr, "run_opt_pass")))["main"]
    return function if isinstance(expr, graph.Function) else function.body
