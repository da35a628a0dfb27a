"""Arrays in the memory of a device, which kernels use without copies."""

from __future__ import annotations

import copy
import math
import operator
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.errors import CallError, OutOfMemory
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
        operation = f"allocate an array {dtype}"
        self.shape = _checked_shape(operation, shape)
        if dtypes.lanes(dtype) > 1:
            raise CallError(
                operation, "a dtype of vectors", got=repr(dtype), expected="a scalar dtype",
                hint="add a dimension for the lanes",
            )  # fmt: skip
        self.dtype = dtypes.to_numpy(dtype)
        with driver.errors(f"{operation}{list(self.shape)}"):
            _check_size(f"{operation}{list(self.shape)}", self.shape, self.dtype.itemsize)
            self.memory = driver.allocate(self.nbytes)
        self.stand_in = driver.stand_in(self.memory, self.shape, self.dtype)

    def part(self, offset: int, shape: Sequence[int], dtype: str) -> DeviceArray:
        """Return an array that lies in this one, whose elements are bytes.

        Parameters
        ----------
        offset : int
            Where it begins: a multiple of the driver's `alignment` [byte].
        shape : sequence of int
            Its shape.
        dtype : str
            Its scalar dtype.
        """
        made = copy.copy(self)
        made.shape, made.dtype = tuple(shape), dtypes.to_numpy(dtype)
        made.memory = self._driver.part(self.memory, offset, made.nbytes)
        made.stand_in = self._driver.stand_in(made.memory, made.shape, made.dtype)
        return made

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
            The source is no array, or masked; shape or dtype differ; it is on another device.
        """
        operation = "copy to an array of a device"
        if not isinstance(source, np.ndarray | DeviceArray):
            raise CallError(
                operation, "not an array", got=type(source).__name__,
                expected=f"an array {self.dtype}{list(self.shape)}",
                hint=f"numpy.asarray(x, dtype={str(self.dtype)!r})",
            )  # fmt: skip
        refuse_mask(operation, source)
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

    def __copy__(self) -> DeviceArray:
        """Return a copy in the memory of the same device."""
        made = DeviceArray(self._driver, self.shape, dtypes.from_numpy(self.dtype))
        made.assign(self)
        return made

    def __deepcopy__(self, memo: object) -> DeviceArray:
        """Return a copy in the memory of the same device."""
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        """Refuse to pickle it: another process has no access to its memory.

        Raises
        ------
        CallError
            Always.
        """
        raise CallError(
            "pickle an array of a device", "its memory belongs to this process", got=repr(self),
            hint="x.to_numpy() is a copy that can be pickled; dlc.to_device(…) copies it back",
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype}{list(self.shape)} on {self.device})"


def refuse_mask(operation: str, array: object) -> None:
    """Refuse a masked array.

    Raises
    ------
    CallError
        Always, for one.
    """
    if isinstance(array, np.ma.MaskedArray):
        raise CallError(
            operation, "a masked array",
            because="a kernel does not see the mask", hint="fill it: x.filled(0)",
        )  # fmt: skip


def _checked_shape(operation: str, shape: Sequence[int]) -> tuple[int, ...]:
    try:
        extents = tuple(operator.index(extent) for extent in shape)
    except TypeError:
        extents = (-1,)
    if any(extent < 0 for extent in extents):
        raise CallError(
            operation, "not a shape", got=repr(shape), expected="a tuple of extents, such as (2, 3)"
        )
    return extents


def _check_size(operation: str, shape: tuple[int, ...], itemsize: int) -> None:
    """Refuse a shape that no array can have, even if one of its extents is 0."""
    size = math.prod(extent for extent in shape if extent) * itemsize
    if size > sys.maxsize:
        raise OutOfMemory(operation, "no memory is as large", got=f"{size:,} bytes")
