"""Arrays of constants as JSON: dtype, shape, and the bytes in base64."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.graph.ir import Constant, TensorType


def constant_row(constant: Constant) -> dict[str, Any]:
    """Return a constant as values that ``json`` can write."""
    return {
        "dtype": constant.type.dtype,
        "shape": list(constant.value.shape),
        "data": base64.b64encode(constant.value.tobytes()).decode("ascii"),
    }


def constant_of(row: Mapping[str, Any]) -> Constant:
    """Return the constant that `constant_row` wrote.

    Raises
    ------
    KeyError, TypeError, ValueError, DLCompilerError
        If the row is none.
    """
    kind = TensorType(tuple(row["shape"]), row["dtype"])
    data = base64.b64decode(row["data"], validate=True)
    shape = [extent for extent in kind.shape if isinstance(extent, int)]
    array = np.frombuffer(data, dtypes.to_numpy(kind.dtype))
    if dtypes.is_bool(kind.dtype):
        array = np.frombuffer(data, "uint8") != 0
    return Constant(array.reshape(shape))
