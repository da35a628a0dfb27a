"""Compute the error function."""

from __future__ import annotations

from dlcompiler import dtypes
from dlcompiler.codegen.llvm.functions import coefficients as table
from dlcompiler.codegen.llvm.functions.exponential import normal_exp
from dlcompiler.codegen.llvm.functions.values import (
    Value,
    at_most,
    choose,
    fma,
    polynomial,
    with_sign_of,
)


def erf(x: Value) -> Value:
    """Write the error function.

    Near 0 it is ``x + x * P(x**2)``. Further out it is ``1 - exp(s * Q(s))`` with ``s = abs(x)``,
    and gets the sign of x.
    """
    bound, limit, near_tail, far_tail = _CONSTANTS[dtypes.element(x.dtype)]
    near = fma(x, polynomial(x * x, near_tail), x)
    size = at_most(abs(x), limit)
    far = 1.0 - normal_exp(size * polynomial(size, far_tail))
    return choose(size > bound, with_sign_of(far, x), near)


_CONSTANTS = {
    "float32": (0.925, 3.95, table.ERF, table.ERFC),
    "float64": (1.0, 5.95, table.ERF_64, table.ERFC_64),
}
"""Where "further out" begins, where the result is 1, and coefficients."""
