"""Compute functions of numbers by arithmetic, on scalars and vectors of any number of lanes.

- `values`: Python operators that write instructions;
- `exponential`, `logarithm`, `trigonometric`, `error`, `power`: the mathematics;
- `wide_angles`, `wide_exponential`, `wide_logarithm`, `exact`: functions of a float64, where there
  is no C library; `pairs`: sums of two float64, with about 106 bits;
- `coefficients`: those of the polynomials, found by ``python -m tests.minimax``;
- `table`: the functions and their largest errors.

A lane of a vector and a scalar have the same result, bit by bit. Only operations that every machine
has are used; `pairs` need an FMA instruction.
"""

from __future__ import annotations

from dlcompiler.codegen.llvm.functions.table import (
    MAX_ULPS,
    MAX_ULPS_ALONE,
    call,
    call_alone,
    is_alone,
    is_own,
)

__all__ = ["MAX_ULPS", "MAX_ULPS_ALONE", "call", "call_alone", "is_alone", "is_own"]
