"""`NDArray`: TVM's array class, a wrapper of a NumPy array that it owns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.compat.devices import Device, checked_device
from dlcompiler.compat.missing import Named
from dlcompiler.errors import CallError

Array = npt.NDArray[Any]

ALIGNMENT = 64
"""Alignment of the first element [byte]: a cache line, which is also the widest vector."""


class NDArray(Named):
    """An array in the CPU's memory, also for a simulated GPU.

    It owns its memory; NumPy arrays are copied in and out, as classic code expects. Built functions
    take it directly. Other libraries can read it in place by DLPack or NumPy's array interface.
    """

    classic = "tvm.nd.NDArray"
    __array_priority__ = 0

    def __init__(self, data: Array, device: Device | None = None) -> None:
        self.data = data
        """The NumPy array that it owns."""
        self._device = device or Device(0)

    @property
    def device(self) -> Device:
        """The device that classic code chose for the array."""
        return self._device

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent of each dimension [1]."""
        return self.data.shape

    @property
    def dtype(self) -> str:
        """Name of the elements' type."""
        return dtypes.from_numpy(self.data.dtype)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.data.ndim

    @property
    def ctx(self) -> Device:
        """The device: TVM's older name of `device`."""
        return self.device

    def numpy(self) -> Array:
        """Return a copy as a NumPy array."""
        return self.data.copy()

    def asnumpy(self) -> Array:
        """Return a copy as a NumPy array: TVM's older name of `numpy`."""
        return self.numpy()

    def copyfrom(self, source: Any) -> NDArray:
        """Copy values of the same shape into this array, converted to its dtype."""
        values = source.data if isinstance(source, NDArray) else np.asarray(source)
        if values.shape != self.shape:
            raise CallError(
                "copy into an array", "wrong shape", got=values.shape, expected=self.shape
            )
        np.copyto(self.data, values.astype(self.data.dtype))
        return self

    def copyto(self, target: NDArray | Device, mem_scope: str | None = None) -> NDArray:
        """Copy this array into another one, or into a new one on a device."""
        del mem_scope
        if isinstance(target, NDArray):
            return target.copyfrom(self)
        return array(self, checked_device(target, None, "copyto"))

    def same_as(self, other: object) -> bool:
        """Tell whether the other object is this array itself."""
        return other is self

    def __getitem__(self, key: Any) -> Array:
        """Return a copy of a part of the array, as a NumPy array."""
        return np.array(self.data[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[key] = value.data if isinstance(value, NDArray) else value

    def __len__(self) -> int:
        return len(self.data)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.data, dtype=dtype, copy=True if copy is None else copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # the CPU

    def __str__(self) -> str:
        return str(self.data)

    def __repr__(self) -> str:
        return f"<tvm.nd.NDArray shape={self.shape}, {self.device}>\n{self.data!r}"


def array(
    arr: Any, ctx: Device | None = None, mem_scope: str | None = None, *, device: Any = None
) -> NDArray:
    """Return a new array with the values of another array or of nested lists.

    Parameters
    ----------
    arr : array or sequence
        Copied. Lists of Python numbers become float64 or int64, as in NumPy.
    ctx, device : Device, optional
        Where to put it; two names of one argument.
    """
    del mem_scope
    place = checked_device(ctx, device, "nd.array")
    values = arr.data if isinstance(arr, NDArray) else np.asarray(arr)
    result = _aligned(values.shape, dtypes.from_numpy(values.dtype))
    result[...] = values
    return NDArray(result, place)


def empty(
    shape: Any,
    dtype: Any = "float32",
    ctx: Device | None = None,
    mem_scope: str | None = None,
    *,
    device: Any = None,
) -> NDArray:
    """Return an array whose values are not set.

    Parameters
    ----------
    shape : int or tuple of int
        Extent of each dimension.
    dtype : str or NumPy dtype
        Type of the elements.
    ctx, device : Device, optional
        Where to put it; two names of one argument.
    """
    del mem_scope
    place = checked_device(ctx, device, "nd.empty")
    extents = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    memory = _aligned(tuple(int(extent) for extent in extents), dtypes.as_dtype(dtype))
    return NDArray(memory, place)


def from_dlpack(source: Any) -> NDArray:
    """Copy an array of another library to a new array."""
    return array(np.from_dlpack(source))


def _aligned(shape: tuple[int, ...], dtype: str) -> Array:
    """Return an uninitialised array whose address is a multiple of `ALIGNMENT`."""
    numpy_dtype = dtypes.to_numpy(dtype)
    count = int(np.prod(shape, dtype=np.int64)) * numpy_dtype.itemsize
    memory = np.empty(count + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + count].view(numpy_dtype).reshape(shape)


def unwrapped(value: Any) -> Any:
    """Convert an argument of classic code to one that a built function takes."""
    return value.data if isinstance(value, NDArray) else value
