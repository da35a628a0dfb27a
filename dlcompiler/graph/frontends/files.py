"""Read a file of a model, which somebody else wrote, and the arrays in it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import GraphError
from dlcompiler.graph.operators.base import Array
from dlcompiler.input_files import read_regular

MOST_BYTES = 2**31 - 1
"""Largest file, as the formats themselves allow; [byte]."""
MOST_ELEMENTS = 2**31
"""Most elements of a tensor; [1]."""
MOST_RANK = 32


def bytes_of(
    source: Any, operation: str, largest: int = MOST_BYTES, *, what: str = "a model",
    expected: str = "a path, or bytes",
) -> bytes:  # fmt: skip
    """Return what a file holds, or bytes as they are.

    Parameters
    ----------
    source : path or bytes
        The file.
    operation : str
        What is done with it, for errors.
    largest : int
        Most bytes that it may have.
    what, expected : str
        What it should be, for errors.

    Raises
    ------
    GraphError
        It cannot be read, or is too large.
    """
    if isinstance(source, str | Path):
        try:
            return read_regular(source, largest)
        except (OSError, ValueError) as error:
            raise GraphError(operation, "the file cannot be read", got=str(error)) from None
    if not isinstance(source, bytes | bytearray | memoryview):
        raise GraphError(operation, f"not {what}", got=repr(source)[:200], expected=expected)
    data = bytes(source)
    if len(data) > largest:
        raise GraphError(operation, "the file is too large", got=f"{len(data):,} bytes",
                         expected=f"at most {largest:,}")  # fmt: skip
    return data


def checked_shape(shape: tuple[int, ...], operation: str, what: str) -> tuple[int, ...]:
    """Return the shape of a tensor in a file.

    Raises
    ------
    GraphError
        No tensor has it.
    """
    if len(shape) > MOST_RANK or any(n < 0 for n in shape) or math.prod(shape) > MOST_ELEMENTS:
        raise GraphError(operation, f"{what} has a shape that no tensor has",
                         got=repr(shape)[:200])  # fmt: skip
    return shape


def array_of(data: bytes, shape: tuple[int, ...], dtype: str, operation: str, what: str) -> Array:
    """Return the elements of a constant in a file.

    Raises
    ------
    GraphError
        There are too few, or too many.
    """
    own = dtypes.to_numpy(dtype)
    size = math.prod(checked_shape(shape, operation, what)) * own.itemsize
    if len(data) != size:
        raise GraphError(operation, f"{what} has another number of elements",
                         got=f"{len(data)} bytes", expected=str(size))  # fmt: skip
    return np.frombuffer(data, own).reshape(shape).copy()
