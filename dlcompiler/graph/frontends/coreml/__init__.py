"""CoreML models as modules: `from_coreml`."""

from dlcompiler.graph.frontends.coreml.importer import from_coreml
from dlcompiler.graph.frontends.coreml.layers import LAYERS
from dlcompiler.graph.frontends.coreml.operators import OPERATORS

__all__ = ["LAYERS", "OPERATORS", "from_coreml"]
