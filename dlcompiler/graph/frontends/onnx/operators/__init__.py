"""The converters of operators: name of an ONNX operator -> what makes expressions of its nodes."""

from collections.abc import Mapping

from dlcompiler.graph.frontends.onnx.node import Converter
from dlcompiler.graph.frontends.onnx.operators import (
    columns,
    contrib,
    elementwise,
    grams,
    indexing,
    neural,
    pooling,
    quantized,
    recurrent,
    reductions,
    regions,
    resizing,
    sequences,
    shapes,
    transforms,
)

OPERATORS: Mapping[str, Converter] = {
    **columns.TABLE,
    **elementwise.TABLE,
    **grams.TABLE,
    **indexing.TABLE,
    **neural.TABLE,
    **pooling.TABLE,
    **quantized.TABLE,
    **recurrent.TABLE,
    **reductions.TABLE,
    **regions.TABLE,
    **resizing.TABLE,
    **sequences.TABLE,
    **shapes.TABLE,
    **transforms.TABLE,
}
"""Converters of the standard operators; versions are told apart inside."""
DOMAINS: Mapping[str, Mapping[str, Converter]] = {"": OPERATORS, contrib.DOMAIN: contrib.TABLE}
"""Converters of each domain; "" is the standard."""
