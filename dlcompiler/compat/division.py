"""Division that rounds toward minus infinity, for integers and floats, as in TVM."""

from __future__ import annotations

from typing import Any

from dlcompiler import dtypes, te
from dlcompiler.ir import Expr
from dlcompiler.ir.expr import promoted
from dlcompiler.ir.operators import apply


def floordiv(a: Any, b: Any) -> Any:
    """Divide, rounding toward minus infinity; for floats, this is ``floor(a / b)``.

    Tensors are divided element by element. A quotient of floats is rounded before the floor, so
    ``floordiv(1.0, 0.1)`` is 10; Python's ``1.0 // 0.1``, which is exact, is 9.
    """
    return apply("floordiv", _floordiv, a, b)


def floormod(a: Any, b: Any) -> Any:
    """Return the remainder of `floordiv`; for floats, this is ``a - floordiv(a, b) * b``."""
    return apply("floormod", _floormod, a, b)


def _floordiv(a: Any, b: Any) -> Expr:
    x, y = promoted(a, b)
    quotient: Expr = te.floor(x / y) if dtypes.is_float(x.dtype) else te.floordiv(x, y)
    return quotient


def _floormod(a: Any, b: Any) -> Expr:
    x, y = promoted(a, b)
    rest: Expr = x - _floordiv(x, y) * y if dtypes.is_float(x.dtype) else te.floormod(x, y)
    return rest
