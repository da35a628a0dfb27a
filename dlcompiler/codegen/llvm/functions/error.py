"""The error function of float32."""

from __future__ import annotations

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

_BOUND = 0.925
"""Below it the first form is used, above it the second."""
_LIMIT = 3.95
"""Above it the result is rounded to 1."""


def erf(x: Value) -> Value:
    """Write the error function.

    Near 0 it is ``x + x * P(x**2)``; further out ``1 - exp(x * Q(x))`` of the size of x, with its
    sign.
    """
    near = fma(x, polynomial(x * x, table.ERF), x)
    size = at_most(abs(x), _LIMIT)
    far = 1.0 - normal_exp(size * polynomial(size, table.ERFC))
    return choose(size > _BOUND, with_sign_of(far, x), near)
