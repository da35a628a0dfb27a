"""Compiled models: kernels of a graph, their memory, and one entry that calls them."""

from dlcompiler.graph.execution.model import CompiledModel, KernelTime, build

__all__ = ["CompiledModel", "KernelTime", "build"]
