"""MXNet models as modules: `from_mxnet`."""

from dlcompiler.graph.frontends.mxnet.importer import from_mxnet
from dlcompiler.graph.frontends.mxnet.operators import OPERATORS

__all__ = ["OPERATORS", "from_mxnet"]
