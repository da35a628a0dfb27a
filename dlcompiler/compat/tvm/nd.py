"""Classic TVM's ``tvm.nd``: arrays."""

from dlcompiler.compat.arrays import NDArray, array, empty, from_dlpack
from dlcompiler.compat.devices import Device, cpu, device
from dlcompiler.compat.missing import reporter

context = device

__getattr__ = reporter(__name__)
__all__ = ["Device", "NDArray", "array", "context", "cpu", "device", "empty", "from_dlpack"]
