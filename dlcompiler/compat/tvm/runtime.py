"""Classic TVM's ``tvm.runtime``."""

from typing import Any

from dlcompiler.compat.accelerator_modules import load_module
from dlcompiler.compat.arrays import NDArray
from dlcompiler.compat.devices import GPUS, Device, cpu, cuda, device, gpu, opencl
from dlcompiler.compat.literals import literal
from dlcompiler.compat.missing import reporter
from dlcompiler.compat.modules import Module
from dlcompiler.compat.tvm import nd

context = device
ndarray = nd
load = load_module
"""The name in version 0.6."""


def convert(value: Any) -> Any:
    """Convert numbers, also in lists and dicts, to literals; return other values unchanged."""
    if isinstance(value, list | tuple):
        return tuple(convert(item) for item in value)
    if isinstance(value, dict):
        return {key: convert(item) for key, item in value.items()}
    return literal(value) if isinstance(value, int | float) else value


const = literal


def enabled(target: str) -> bool:
    """Tell whether code for a kind of target can be built and run; GPUs are simulated."""
    return (target.split() or [""])[0] in ("llvm", "cpu", "c", *GPUS)


__getattr__ = reporter(__name__)
__all__ = [
    "Device",
    "Module",
    "NDArray",
    "const",
    "context",
    "convert",
    "cpu",
    "cuda",
    "device",
    "enabled",
    "gpu",
    "load",
    "load_module",
    "nd",
    "ndarray",
    "opencl",
]
