"""Compiled models: kernels of a graph, their memory, and one entry that calls them."""

from dlcompiler.graph.execution.build import build, load_model
from dlcompiler.graph.execution.c_model import CModel
from dlcompiler.graph.execution.comparison import ModelComparison, ValuePair, compare
from dlcompiler.graph.execution.device_model import DeviceModel, Transfer
from dlcompiler.graph.execution.model import CompiledModel, LoadedModel, RunnableModel
from dlcompiler.graph.execution.profiles import KernelTime, Profile
from dlcompiler.graph.execution.tasks import ModelTask, tasks

__all__ = [
    "CModel",
    "CompiledModel",
    "DeviceModel",
    "KernelTime",
    "LoadedModel",
    "ModelComparison",
    "ModelTask",
    "Profile",
    "RunnableModel",
    "Transfer",
    "ValuePair",
    "build",
    "compare",
    "load_model",
    "tasks",
]
