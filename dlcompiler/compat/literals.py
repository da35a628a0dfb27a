"""Numbers that take the dtype of what they meet, as in classic TVM's operators."""

from __future__ import annotations

import math
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ir import Expr, cast, const


def converted(value: Any, dtype: Any) -> Expr:
    """Return a number or an expression in a dtype: classic operators cut a fraction off.

    Examples
    --------
    >>> converted(2.7, "int32"), converted(-2.7, "int8"), converted(2, "float32")
    (Const(2), Const(-2), Const(2.0))
    """
    kind = dtypes.as_dtype(dtype)
    if isinstance(value, Expr):
        return cast(value, kind)
    if isinstance(value, float) and math.isfinite(value) and dtypes.is_int(kind):
        value = int(value)
    return const(value, kind)
