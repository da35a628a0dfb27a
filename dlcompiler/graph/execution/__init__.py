"""Compiled models: kernels of a graph, their memory, and one entry that calls them."""

from dlcompiler.graph.execution.build import build
from dlcompiler.graph.execution.model import CompiledModel, KernelTime
from dlcompiler.graph.execution.tasks import ModelTask, tasks

__all__ = ["CompiledModel", "KernelTime", "ModelTask", "build", "tasks"]
