"""Networks of Darknet as modules: `from_darknet`."""

from dlcompiler.graph.frontends.darknet.importer import from_darknet
from dlcompiler.graph.frontends.darknet.operators import OPERATORS

__all__ = ["OPERATORS", "from_darknet"]
