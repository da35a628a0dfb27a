"""The converters of layers: name of a section -> what makes an expression of it."""

from collections.abc import Mapping

from dlcompiler.graph.frontends.darknet.node import Converter
from dlcompiler.graph.frontends.darknet.operators import boxes, images, layers

OPERATORS: Mapping[str, Converter] = {**boxes.TABLE, **images.TABLE, **layers.TABLE}
"""Converters of the layers that are known."""

ALIASES: Mapping[str, str] = {
    "conv": "convolutional", "conn": "connected", "max": "maxpool", "avg": "avgpool",
    "soft": "softmax", "local_avg": "local_avgpool",
}  # fmt: skip
"""Short name of a section -> its name."""

REFUSED: Mapping[str, str] = dict.fromkeys(
    ("rnn", "gru", "lstm", "crnn", "conv_lstm"),
    "its state stays in the network from one call to the next, which a module has no place for",
)
"""Layers that are left out on purpose, with the reason."""
