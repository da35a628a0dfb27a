"""Layers with weights, and those that compute element by element."""

from __future__ import annotations

from dlcompiler.graph.frontends.darknet.node import Converter, DarknetNode
from dlcompiler.graph.ir import Expr


def _convolutional(node: DarknetNode) -> Expr:
    """Convolve images; the padding is that of the option, or half the size if ``pad`` is set."""
    x = node.image()
    channels = node.shape(x)[1]
    filters, groups, size, stride = (
        node.integer(key, 1) for key in ("filters", "groups", "size", "stride")
    )
    padding = node.integer("padding", 0, low=0)
    padding = size // 2 if node.flag("pad") else padding
    dilation = node.integer("dilation", 1)
    dilation = dilation if size > 1 else 1
    node.without("binary", "xnor", "antialiasing", "sway", "rotate", "stretch", "stretch_sway",
                 "coordconv")  # fmt: skip
    if channels % groups or filters % groups:
        node.fail("its channels cannot be divided into groups", expected=f"multiples of {groups}",
                  got=f"{channels} channels, {filters} filters")  # fmt: skip
    if dilation > 1 and 2 * padding != size - 1:
        # Darknet counts results as if there were no dilation, which fits only these pads.
        node.fail("its padding does not fit its dilation", got=str(padding),
                  expected=f"{(size - 1) / 2:g}")  # fmt: skip
    bias, moments = node.weight("biases", (filters,)), node.moments(filters)
    weights = node.weight("weights", (filters, channels // groups, size, size),
                          is_turned=node.flag("flipped"))  # fmt: skip
    made = node.call(
        "nn.conv2d", x, weights, groups=groups, padding=(padding * dilation,) * 4,
        strides=(node.integer("stride_y", stride), node.integer("stride_x", stride)),
        dilation=(dilation, dilation),
    )  # fmt: skip
    return node.activated(node.normalized(made, bias, moments), "logistic")


def _connected(node: DarknetNode) -> Expr:
    x = node.vector()
    size, output = node.shape(x)[1], node.integer("output", 1)
    bias = node.weight("biases", (output,))
    is_turned = node.weights is not None and node.weights.is_transposed
    weights = node.weight("weights", (output, size), is_turned=is_turned)
    moments = node.moments(output)
    made = node.call("nn.dense", x, weights, units=output)
    return node.activated(node.normalized(made, bias, moments), "logistic")


def _activation(node: DarknetNode) -> Expr:
    return node.activated(node.source, "linear")


def _softmax(node: DarknetNode) -> Expr:
    """Return the softmax of each group of elements of a vector."""
    x, groups = node.vector(), node.integer("groups", 1)
    temperature = node.number("temperature", 1)
    node.without("spatial", "tree")
    size = node.shape(x)[1]
    if size % groups:
        node.fail("its elements cannot be divided into groups", got=f"{size} elements",
                  expected=f"a multiple of {groups}")  # fmt: skip
    if not temperature:
        node.fail("its temperature is 0")
    if temperature != 1:
        x = node.call("divide", x, node.scalar(temperature, x))
    parts = x if groups == 1 else node.reshape(x, (-1, groups, size // groups))
    return node.reshape(node.call("nn.softmax", parts, axis=-1), node.shape(x))


def _as_it_is(node: DarknetNode) -> Expr:
    """Return the result before: dropouts and costs compute something only in training."""
    return node.source


TABLE: dict[str, Converter] = {
    "convolutional": _convolutional, "connected": _connected, "activation": _activation,
    "softmax": _softmax, "dropout": _as_it_is, "cost": _as_it_is,
}  # fmt: skip
"""The converters of this module."""
