"""Kernels of devices that are here: CUDA and OpenCL."""

from __future__ import annotations

from dlcompiler.pipeline.executables import Kernel
from dlcompiler.runtime.device_code import DeviceFunction


class DeviceKernel(DeviceFunction, Kernel):
    """A built program for a device of this machine: call it with arrays, outputs last.

    NumPy arrays are copied to the device and back in each call. Arrays that are in its memory,
    such as those of `to_device`, are used where they are.
    """

    def __repr__(self) -> str:
        params = ", ".join(str(param) for param in self.params)
        return f"DeviceKernel({self.name}({params}) for {self.target.name})"
