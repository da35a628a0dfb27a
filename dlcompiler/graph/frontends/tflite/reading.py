"""Read TFLite models, which are FlatBuffers, from files that somebody else wrote.

The package `tflite` finds fields by offsets in the file and does not check them: `damaged` turns
what it raises for a wrong offset into an error of ours, and all counts are limited.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.files import MOST_RANK, bytes_of, checked_shape

OPERATION = "import a TFLite model"
MOST_PARTS = 100_000
"""Most tensors, operators and buffers of a model; [1]."""

_DTYPES = {
    "FLOAT32": "float32", "FLOAT16": "float16", "FLOAT64": "float64", "INT8": "int8",
    "INT16": "int16", "INT32": "int32", "INT64": "int64", "UINT8": "uint8", "UINT16": "uint16",
    "UINT32": "uint32", "UINT64": "uint64", "BOOL": "bool", "BFLOAT16": "bfloat16",
}  # fmt: skip


def tflite_package() -> Any:
    """Return the module `tflite`, which knows the format.

    Raises
    ------
    GraphError
        It is not installed.
    """
    try:
        return importlib.import_module("tflite")
    except ImportError as error:
        raise GraphError(
            OPERATION, "the package tflite cannot be imported", got=str(error),
            hint="pip install tflite",
        ) from None  # fmt: skip


@contextmanager
def damaged() -> Iterator[None]:
    """Turn the errors of wrong offsets, lengths and numbers into one that says so.

    Raises
    ------
    GraphError
        The file is damaged.
    """
    try:
        yield
    except (
        struct.error, IndexError, KeyError, TypeError, ValueError, OverflowError, AttributeError,
    ) as error:  # fmt: skip
        raise GraphError(
            OPERATION, "the file is damaged", got=f"{type(error).__name__}: {error}"[:200]
        ) from None


def read_model(source: Any) -> Any:
    """Return the root of a model.

    Raises
    ------
    GraphError
        It cannot be read, or is no model.
    """
    tflite = tflite_package()
    data = bytes_of(source, OPERATION)
    if data[4:8] != b"TFL3":
        raise GraphError(OPERATION, "not a TFLite file", got=repr(data[:8]),
                         expected="TFL3 in bytes 4 to 7")  # fmt: skip
    with damaged():
        model = tflite.Model.GetRootAsModel(data, 0)
        limited(model.SubgraphsLength())
        limited(model.OperatorCodesLength())
        limited(model.BuffersLength())
        return model


def limited(count: int) -> int:
    """Return a count that no damage explains.

    Raises
    ------
    GraphError
        It is too large.
    """
    if count > MOST_PARTS:
        raise GraphError(OPERATION, "the model is too large", got=f"{count:,} parts",
                         expected=f"at most {MOST_PARTS:,}")  # fmt: skip
    return count


def dtype_of(number: int, what: str) -> str:
    """Return the dtype with a number of ``TensorType``.

    Raises
    ------
    GraphError
        There is none here: of strings, complex numbers, or 4 bits.
    """
    names = {
        value: name for name, value in vars(tflite_package().TensorType).items()
        if isinstance(value, int)
    }  # fmt: skip
    name = names.get(number, f"type {number}")
    if name not in _DTYPES:
        raise GraphError(OPERATION, f"{what} has an unknown dtype", got=name.lower(),
                         expected=", ".join(_DTYPES.values()))  # fmt: skip
    return _DTYPES[name]


def shape_of(tensor: Any, what: str) -> tuple[int, ...]:
    """Return the shape of a tensor.

    Raises
    ------
    GraphError
        No tensor has such a shape, or the model leaves an extent open.
    """
    if tensor.ShapeLength() > MOST_RANK:
        raise GraphError(OPERATION, f"{what} has too many dimensions",
                         got=str(tensor.ShapeLength()))  # fmt: skip
    shape = tuple(int(tensor.Shape(n)) for n in range(tensor.ShapeLength()))
    return checked_shape(shape, OPERATION, what)
