"""The functions of hybrid script as ordinary Python functions on NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.ir.function_values import call_function
from dlcompiler.ir.functions import FUNCTIONS


def output_tensor(shape: Any, dtype: Any = "float32") -> np.ndarray[Any, Any]:
    """Return an array of zeros, which the script returns."""
    return np.zeros(shape, dtypes.to_numpy(dtypes.as_dtype(dtype)))


def allocate(shape: Any, dtype: Any = "float32", scope: str = "global") -> np.ndarray[Any, Any]:
    """Return a temporary array of zeros; NumPy has no memory scopes."""
    del scope
    return output_tensor(shape, dtype)


def bind(tag: str, extent: int) -> range:
    """Return the values of a loop that is bound to threads; in Python, one after the other."""
    del tag
    return range(extent)


def ceil_div(a: int, b: int) -> int:
    """Return the quotient, rounded up."""
    return -(-a // b)


def likely(condition: Any) -> Any:
    """Return a condition unchanged."""
    return condition


def assume_bounds(index: Any) -> Any:
    """Return an index unchanged."""
    return index


def _function(name: str) -> Any:
    def apply(*args: Any) -> Any:
        first = np.asarray(args[0])
        kind = dtypes.from_numpy(first.dtype)
        if FUNCTIONS[name].domain == "float" and not dtypes.is_float(kind):
            kind = "float32"
        return call_function(name, kind)(*(dtypes.to_numpy(kind).type(arg) for arg in args))

    return apply


_OTHER_NAMES = ("likely", "assume_bounds", "round", "abs", "pow")
FUNCTION_NAMES = tuple(name for name in FUNCTIONS if name not in _OTHER_NAMES)
"""Mathematical functions that a script may call, besides Python's own."""
CASTS = tuple(name for name in dtypes.SCALARS if name not in ("index", "bool"))
LOOPS = ("range", "serial", "parallel", "vectorize", "unroll", "const_range")

NAMES: dict[str, Any] = {
    **{name: _function(name) for name in FUNCTION_NAMES},
    **{name: dtypes.to_numpy(name).type for name in CASTS},
    **dict.fromkeys(LOOPS, range),
    "allocate": allocate,
    "assume_bounds": assume_bounds,
    "bind": bind,
    "ceil_div": ceil_div,
    "likely": likely,
    "output_tensor": output_tensor,
    "power": pow,
}
"""Name in a script -> its value when the script runs as Python."""
