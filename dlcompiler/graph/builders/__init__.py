"""Models that are built layer by layer, with weights by seed, in the manner of relay.testing."""

from dlcompiler.graph.builders.convolutional import (
    dcgan,
    dqn,
    inception,
    lenet,
    mlp,
    squeezenet,
    vgg,
)
from dlcompiler.graph.builders.layers import Model, model_of
from dlcompiler.graph.builders.quantized import resnet_int8
from dlcompiler.graph.builders.residual import mobilenet, resnet
from dlcompiler.graph.builders.sequences import lstm, transformer, vit
from dlcompiler.graph.passes.bind import bind

__all__ = [
    "Model",
    "bind",
    "dcgan",
    "dqn",
    "inception",
    "lenet",
    "lstm",
    "mlp",
    "mobilenet",
    "model_of",
    "resnet",
    "resnet_int8",
    "squeezenet",
    "transformer",
    "vgg",
    "vit",
]
