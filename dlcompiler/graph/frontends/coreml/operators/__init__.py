"""The converters of operations: name of an operation of MIL -> what makes expressions of it."""

from collections.abc import Mapping

from dlcompiler.graph.frontends.coreml.node import OperationConverter
from dlcompiler.graph.frontends.coreml.operators import (
    compressed,
    elementwise,
    images,
    indexing,
    products,
    recurrent,
    reductions,
    shapes,
)

OPERATORS: Mapping[str, OperationConverter] = {
    **compressed.TABLE,
    **elementwise.TABLE,
    **images.TABLE,
    **indexing.TABLE,
    **products.TABLE,
    **recurrent.TABLE,
    **reductions.TABLE,
    **shapes.TABLE,
}
"""Converters of the operations that are known; constants are read by the importer."""
