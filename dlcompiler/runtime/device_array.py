"""Arrays in the memory of a device, which kernels use without copies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.errors import CallError
from dlcompiler.runtime.driver import Driver

Array = npt.NDArray[Any]


class DeviceArray:
    """An array in the memory of a device, in C order; its elements are undefined at first.

    A kernel of the same device takes it as an argument without a copy. `to_numpy` copies it to the
    host. Other libraries take one in CUDA memory by ``__dlpack__``.

    Parameters
    ----------
    driver : Driver
        The driver of the device.
    shape : sequence of int
        Its shape.
    dtype : str
        Its scalar dtype.

    Attributes
    ----------
    memory : object
        Its memory, as an object of the driver.
    stand_in : ndarray
        A NumPy array of this shape and dtype that stands for it where arguments are checked. Its
        elements are never read or written.
    """

    def __init__(self, driver: Driver, shape: Sequence[int], dtype: str) -> None:
        self._driver = driver
        self.shape = tuple(int(extent) for extent in shape)
        self.dtype = dtypes.to_numpy(dtype)
        with driver.errors(f"allocate an array {dtype}{list(self.shape)}"):
            self.memory = driver.allocate(self.nbytes)
        self.stand_in = driver.stand_in(self.memory, self.shape, self.dtype)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of its elements [byte]."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def device(self) -> str:
        """Name of the device."""
        return self._driver.device_name

    def on(self, driver: Driver, operation: str) -> tuple[Any, Array]:
        """Return its memory and its stand-in for a kernel of a device.

        Raises
        ------
        CallError
            It is in the memory of another device.
        """
        if driver is not self._driver:
            raise CallError(
                operation, "the array is in the memory of another device",
                got=f"{self.device} ({self._driver.language})",
                expected=f"{driver.device_name} ({driver.language})",
                hint="pass x.to_numpy(): it is copied to the device of the kernel",
            )  # fmt: skip
        return self.memory, self.stand_in

    def to_numpy(self) -> Array:
        """Return a copy in the memory of the host."""
        host = np.empty(self.shape, self.dtype)
        with self._driver.errors("copy an array to the host"):
            self._driver.synchronise()
            if host.nbytes:
                self._driver.read(host, self.memory)
        return host

    def assign(self, source: Array | DeviceArray) -> None:
        """Copy the elements of an array of the same shape and dtype.

        Raises
        ------
        CallError
            Shape or dtype differ, or the source is on another device.
        """
        operation = "copy to an array of a device"
        if source.shape != self.shape or source.dtype != self.dtype:
            raise CallError(
                operation, "shape or dtype differ", got=f"{source.dtype}{list(source.shape)}",
                expected=f"{self.dtype}{list(self.shape)}",
            )  # fmt: skip
        memory = source.on(self._driver, operation)[0] if isinstance(source, DeviceArray) else None
        with self._driver.errors(operation):
            if memory is not None:
                self._driver.copy(memory, self.memory, self.nbytes)
            elif self.nbytes:
                self._driver.write(self.memory, np.ascontiguousarray(source))
            self._driver.synchronise()

    def __dlpack__(self, stream: int | None = None, **_: object) -> object:
        """Return it for another library, without a copy: only from the memory of a CUDA device.

        Raises
        ------
        BufferError
            The device is not one of CUDA.
        """
        del stream  # each call of a kernel has ended when it returns
        return self._driver.exported(self)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the kind of device, and its number, as DLPack defines them."""
        return self._driver.dlpack_device

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return a copy for NumPy."""
        if copy is False:
            raise ValueError("an array of a device cannot be read without a copy")
        return self.to_numpy() if dtype is None else self.to_numpy().astype(dtype)

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype}{list(self.shape)} on {self.device})"
