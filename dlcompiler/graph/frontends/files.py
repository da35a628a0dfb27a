"""Read a file of a model, which somebody else wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dlcompiler.errors import GraphError
from dlcompiler.input_files import read_regular

MOST_BYTES = 2**31 - 1
"""Largest file, as the formats themselves allow; [byte]."""


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
