"""The memory of a device, as models use it: arrays of bytes, and typed parts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import OutOfMemory
from dlcompiler.graph.memory import ALIGNMENT
from dlcompiler.graph.operators.base import Array
from dlcompiler.measurement.aligned import aligned
from dlcompiler.pipeline.devices import DriverDevice, device_of
from dlcompiler.runtime.device_array import DeviceArray
from dlcompiler.target import Target


class Space(Protocol):
    """The memory of a device."""

    is_host: bool
    """Whether it is the memory of this process, so that nothing is copied to it."""
    alignment: int
    """Where a value may begin; [byte]."""

    def bytes_of(self, array: Array) -> Any:
        """Return the bytes of an array of this process in this memory, copied if they must be."""

    def allocate(self, size: int) -> Any:
        """Return an array of bytes; they are undefined."""

    def part(self, whole: Any, offset: int, shape: Sequence[int], dtype: str) -> Any:
        """Return an array that lies in an array of bytes."""

    def to_host(self, array: Any) -> Array:
        """Return an array of this memory as one of this process."""

    def write(self, array: Any, source: Array) -> None:
        """Copy an array of this process to one of the same shape and dtype."""


class HostSpace:
    """The memory of this process: of CPUs and of simulated devices."""

    is_host = True
    alignment = ALIGNMENT

    def bytes_of(self, array: Array) -> Array:
        """Return the bytes of an array without a copy."""
        return array.reshape(-1).view(np.uint8) if array.size else np.empty(0, np.uint8)

    def allocate(self, size: int) -> Array:
        """Return an array of bytes; they are undefined."""
        try:
            return aligned((size,), np.uint8)
        except MemoryError:
            raise OutOfMemory(
                "call the model", OutOfMemory.PROBLEM, got=f"an arena of {size} bytes"
            ) from None

    def part(self, whole: Array, offset: int, shape: Sequence[int], dtype: str) -> Array:
        """Return an array that lies in an array of bytes."""
        kind = dtypes.to_numpy(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        return whole[offset : offset + count * kind.itemsize].view(kind).reshape(tuple(shape))

    def to_host(self, array: Array) -> Array:
        """Return the array itself."""
        return array

    def write(self, array: Array, source: Array) -> None:
        """Copy an array to one of the same shape and dtype."""
        np.copyto(array, source)


class DriverSpace:
    """The memory of a device of this machine.

    Parameters
    ----------
    device : DriverDevice
        The device.
    """

    is_host = False

    def __init__(self, device: DriverDevice) -> None:
        self._device = device
        self.alignment = device.alignment
        """Where a value may begin; [byte]."""

    def bytes_of(self, array: Array) -> DeviceArray:
        """Return the bytes of an array, copied to the device."""
        made = self._device.allocate((array.nbytes,), "uint8")
        made.assign(HostSpace().bytes_of(np.ascontiguousarray(array)))
        return made

    def allocate(self, size: int) -> DeviceArray:
        """Return an array of bytes; they are undefined."""
        return self._device.allocate((size,), "uint8")

    def part(
        self, whole: DeviceArray, offset: int, shape: Sequence[int], dtype: str
    ) -> DeviceArray:
        """Return an array that lies in an array of bytes."""
        return whole.part(offset, shape, dtype)

    def to_host(self, array: DeviceArray) -> Array:
        """Return a copy of an array."""
        return array.to_numpy()

    def write(self, array: DeviceArray, source: Array) -> None:
        """Copy an array of this process to one of the same shape and dtype."""
        array.assign(source)


def space_of(target: Target) -> Space:
    """Return the memory of the device of a target.

    Raises
    ------
    DeviceUnavailable
        The device is not here.
    """
    device: object = device_of(target)
    return DriverSpace(device) if isinstance(device, DriverDevice) else HostSpace()
