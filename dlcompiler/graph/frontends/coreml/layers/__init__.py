"""The converters of layers: name of a layer of a network -> what makes expressions of it."""

from collections.abc import Mapping

from dlcompiler.graph.frontends.coreml.layers import elementwise, images, products, shapes
from dlcompiler.graph.frontends.coreml.node import LayerConverter

LAYERS: Mapping[str, LayerConverter] = {
    **elementwise.TABLE,
    **images.TABLE,
    **products.TABLE,
    **shapes.TABLE,
}
"""Converters of the layers that are known."""
