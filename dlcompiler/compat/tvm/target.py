"""Classic TVM's ``tvm.target``."""

from dlcompiler.compat.missing import reporter
from dlcompiler.compat.targets import Target, create, cuda, opencl, rocm, vulkan

__getattr__ = reporter(__name__)
__all__ = ["Target", "create", "cuda", "opencl", "rocm", "vulkan"]
