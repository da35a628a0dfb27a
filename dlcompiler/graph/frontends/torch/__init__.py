"""PyTorch models as modules, and dlcompiler as a backend of ``torch.compile``."""

from dlcompiler.graph.frontends.torch.backend import backend
from dlcompiler.graph.frontends.torch.importer import from_torch
from dlcompiler.graph.frontends.torch.operators import OPERATORS

__all__ = ["OPERATORS", "backend", "from_torch"]
