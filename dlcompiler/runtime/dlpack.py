"""Exchange arrays in the memory of CUDA devices with other libraries, by the DLPack protocol.

**Source:** DLPack 0.8, ``dlpack.h``: the structures below have its layout.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import CallError

CUDA, OPENCL, CUDA_MANAGED = 2, 4, 13
"""Kinds of devices: kDLCUDA, kDLOpenCL and kDLCUDAManaged."""
LEGACY_STREAM = 1
"""The stream that kernels run on, as ``__dlpack__`` of CUDA takes it: the legacy default stream."""
_NAME, _USED = b"dltensor", b"used_dltensor"
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}


class _Tensor(ctypes.Structure):
    """``DLTensor``, with its device and dtype written out."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class _Managed(ctypes.Structure):
    """``DLManagedTensor``."""


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))

_python = ctypes.pythonapi
_new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", _python))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", _python)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _python)
)
_raw_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python)
)

_exported: dict[int, tuple[object, ...]] = {}
"""Address of each exported structure -> what must live until its consumer deletes it."""


def exported(owner: object, address: int, shape: Sequence[int], dtype: Any, device: int) -> object:
    """Return a capsule of memory of a CUDA device.

    Parameters
    ----------
    owner : object
        Lives until the consumer has released the capsule's tensor.
    address : int
        Where the elements are on the device, in C order.
    shape : sequence of int
        The shape.
    dtype : dtype
        The dtype of NumPy.
    device : int
        Number of the device.
    """
    kind, bits = _kind_and_bits(dtypes.from_numpy(dtype))
    extents = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    managed = _Managed()
    managed.tensor = _Tensor(
        address, CUDA, device, len(shape), _CODES[kind], bits, 1,
        ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64)), None, 0,
    )  # fmt: skip
    managed.deleter = _DELETE
    place = ctypes.addressof(managed)
    _exported[place] = (owner, managed, extents)
    capsule: object = _new_capsule(place, _NAME, ctypes.cast(_DELETE_CAPSULE, ctypes.c_void_p))
    return capsule


def _delete(managed: Any) -> None:
    _exported.pop(ctypes.addressof(managed.contents), None)


def _delete_capsule(capsule: int) -> None:
    """Release a tensor whose capsule nobody has taken."""
    if _is_valid(capsule, _NAME):
        _exported.pop(_raw_pointer_of(capsule, _NAME), None)


_DELETE = _Deleter(_delete)
_DELETE_CAPSULE = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_delete_capsule)


class Imported:
    """A tensor of another library in the memory of a CUDA device.

    Parameters
    ----------
    tensor : object
        Has ``__dlpack__``.
    operation : str
        Begins the message of an error.

    Raises
    ------
    CallError
        Its library does not share it, it is not in C order, or its dtype is not one of this
        package.
    """

    def __init__(self, tensor: Any, operation: str) -> None:
        try:
            self._capsule = tensor.__dlpack__(stream=LEGACY_STREAM)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise CallError(
                operation, "its memory cannot be shared", got=f"{type(tensor).__name__}: {error}",
                expected="a tensor that __dlpack__ exports",
                hint="of a tensor of PyTorch that records gradients, pass x.detach()",
            ) from error  # fmt: skip
        self._managed = _Managed.from_address(_pointer_of(self._capsule, _NAME))
        _rename(self._capsule, _USED)  # from here on, this object deletes the tensor
        found = self._managed.tensor
        self.shape = tuple(found.shape[n] for n in range(found.ndim))
        """Its shape."""
        self.dtype = _dtype_of(found, operation)
        """Its dtype, of NumPy."""
        self.address = (found.data or 0) + found.byte_offset
        """Where its elements are on the device."""
        strides = [found.strides[n] for n in range(found.ndim)] if found.strides else None
        if strides is not None and not _is_in_c_order(self.shape, strides):
            raise CallError(
                operation, "not contiguous in C order", got=f"strides of {strides} elements",
                expected="rows one after the other", hint="x.contiguous() makes a copy",
            )  # fmt: skip

    def __del__(self) -> None:
        managed = getattr(self, "_managed", None)
        if managed is not None and managed.deleter:
            managed.deleter(ctypes.byref(managed))


def _is_in_c_order(shape: Sequence[int], strides: Sequence[int]) -> bool:
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1 and stride != step:
            return 0 in shape
        step *= extent
    return True


def _kind_and_bits(dtype: str) -> tuple[str, int]:
    """Return the kind of a dtype in DLPack, and its size [bit]: ``bfloat`` and 16.

    >>> _kind_and_bits("uint8"), _kind_and_bits("bool")
    (('uint', 8), ('bool', 8))
    """
    name = dtype.rstrip("0123456789")
    return name, int(dtype[len(name) :] or 8)


def _dtype_of(tensor: Any, operation: str) -> np.dtype[Any]:
    for name in dtypes.SCALARS:
        kind, bits = _kind_and_bits(name)
        if (_CODES.get(kind), bits, 1) == (tensor.code, tensor.bits, tensor.lanes):
            return dtypes.to_numpy(name)
    raise CallError(
        operation, "a dtype that is not known here",
        got=f"code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes in DLPack",
        expected=", ".join(dtypes.SCALARS),
    )  # fmt: skip
