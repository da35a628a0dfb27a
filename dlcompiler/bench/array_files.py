"""Read arrays from files of NumPy (``.npy``) that somebody else wrote."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import UserError
from dlcompiler.input_files import read_regular

SUFFIX = ".npy"
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_array(path: str | Path) -> npt.NDArray[Any]:
    """Return the array in a file of `numpy.save`.

    Parameters
    ----------
    path : path
        The file. It holds numbers, not Python objects.

    Raises
    ------
    UserError
        The file cannot be read, is damaged, or holds something else.
    """
    try:
        data = read_regular(path)
    except OSError as error:
        raise _refused(path, "the file cannot be read", str(error)) from None
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        if version not in _HEADERS:
            raise _refused(path, "a file of an unknown version", repr(version))
        shape, is_fortran, dtype = _HEADERS[version](stream)
    except UserError:
        raise
    except Exception as error:  # the parser of the header raises what Python's parser raises
        raise _refused(path, "not a file of numpy.save", str(error)[:200]) from None
    body = memoryview(data)[stream.tell() :]
    if dtype.hasobject or dtype.kind not in "biuf" or any(type(n) is not int for n in shape):
        raise _refused(path, "its elements are no numbers", f"{dtype}, shape {shape}")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(body):
        raise _refused(path, "its size does not fit its shape", f"{dtype}, shape {shape}")
    if not dtype.isnative:
        raise _refused(path, "its bytes are in the order of another machine", str(dtype))
    array = np.frombuffer(body, dtype).reshape(shape, order="F" if is_fortran else "C")
    return np.ascontiguousarray(array).reshape(shape)


def _refused(path: str | Path, problem: str, got: str) -> UserError:
    return UserError(f"read {path}", problem, got=got, expected="a file that numpy.save wrote")
