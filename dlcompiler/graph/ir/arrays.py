"""Numbers and lists as arrays of a dtype, without a silent change of their values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.errors import GraphError, shown_number


def array_of(value: Any, dtype: str | None = None) -> npt.NDArray[Any]:
    """Return a number or a list of numbers as an array.

    Parameters
    ----------
    value : number, list or array
        The elements.
    dtype : str, optional
        The dtype; by default that which NumPy chooses. Floats are rounded to it.

    Raises
    ------
    GraphError
        If the value is no array, or the dtype does not hold an element.
    """
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise GraphError("constant", "not an array", because=str(error)) from None
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise GraphError("constant", "beyond 64 bits", got=shown_number(value))
    dtypes.from_numpy(array.dtype)  # refuses objects and texts
    if dtype is None:
        return array
    with np.errstate(all="ignore"):
        made: npt.NDArray[Any] = array.astype(dtypes.to_numpy(dtype))
    wrong = np.isinf(made) & np.isfinite(array) if dtypes.is_float(dtype) else made != array
    if wrong.any():
        raise GraphError(
            "constant", f"{dtype} does not hold a number", got=str(array[wrong].flat[0]),
            hint="choose a wider dtype",
        )  # fmt: skip
    return made
