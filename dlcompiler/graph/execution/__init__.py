"""Compiled models: kernels of a graph, their memory, and one entry that calls them."""

from dlcompiler.graph.execution.build import build
from dlcompiler.graph.execution.model import CompiledModel, KernelTime

__all__ = ["CompiledModel", "KernelTime", "build"]
