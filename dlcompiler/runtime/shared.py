"""Share arrays between two processes: files in a private folder, in memory if there is room."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.errors import MeasurementError
from dlcompiler.runtime import private_folders

Array = npt.NDArray[Any]


class SharedArrays:
    """Copies of arrays in files that a worker maps; ``with`` removes them at the end.

    Parameters
    ----------
    arrays : mapping of str to array
        What to share.
    """

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = dict(arrays)
        self._folder: Path | None = None
        self._folders = contextlib.ExitStack()

    def __enter__(self) -> SharedArrays:
        if not self._arrays:
            return self
        total = sum(array.nbytes for array in self._arrays.values())
        try:
            folder = private_folders.private_folder(_base_folder(total))
            self._folder = self._folders.enter_context(folder)
            for number, array in enumerate(self._arrays.values()):
                # Not `ndarray.tofile`, which drops an exception of a signal's handler.
                with open(self._folder / str(number), "wb") as file:
                    file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        except OSError as error:
            self._folders.close()
            raise MeasurementError(
                "share arrays with a worker", "no room for them", got=f"{total} bytes: {error}"
            ) from error
        except BaseException:
            self._folders.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._folders.close()

    def describe(self) -> dict[str, Any]:
        """Return the description that `map_arrays` reads, as JSON values."""
        specs = [
            {"name": name, "dtype": dtypes.from_numpy(array.dtype), "shape": list(array.shape)}
            for name, array in self._arrays.items()
        ]
        return {"folder": str(self._folder), "arrays": specs}

    def read(self, name: str) -> Array:
        """Return a copy of an array with the changes of the worker."""
        assert self._folder is not None
        array = self._arrays[name]
        number = list(self._arrays).index(name)
        stored = np.fromfile(self._folder / str(number), dtype=array.dtype)
        return stored.reshape(array.shape)


def map_arrays(description: Mapping[str, Any]) -> dict[str, Array]:
    """Map the arrays that `SharedArrays.describe` describes, in the shared memory.

    Raises
    ------
    MeasurementError
        A file does not have the size that the description says.
    """
    folder = Path(description["folder"])
    return {
        spec["name"]: _map(folder / str(number), spec["dtype"], spec["shape"])
        for number, spec in enumerate(description["arrays"])
    }


def _map(path: Path, dtype: str, shape: Sequence[int]) -> Array:
    numpy_dtype = dtypes.to_numpy(dtype)
    size = math.prod(shape) * numpy_dtype.itemsize
    # Reading past the end of a mapped file would end the process.
    if path.stat().st_size != size:
        raise MeasurementError("map shared arrays", "wrong size of a file", got=str(path))
    if size == 0:
        return np.empty(shape, numpy_dtype)
    mapped = np.memmap(path, dtype=numpy_dtype, mode="r+")
    return mapped.view(np.ndarray).reshape(shape)


def _base_folder(nbytes: int) -> str | None:
    """Return the folder in memory if it has room to spare, else ``None``: the default on disk."""
    with contextlib.suppress(OSError):
        room = shutil.disk_usage(private_folders.MEMORY_FOLDER).free
        if os.access(private_folders.MEMORY_FOLDER, os.W_OK) and room > 2 * nbytes + (1 << 20):
            return str(private_folders.MEMORY_FOLDER)
    return None
