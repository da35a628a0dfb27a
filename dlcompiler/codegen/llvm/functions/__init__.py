"""Compute functions of numbers by arithmetic, on scalars and vectors of any number of lanes.

- `values`: Python operators that write instructions;
- `exponential`, `logarithm`, `trigonometric`, `error`, `power`: the mathematics;
- `coefficients`: those of the polynomials, found by ``python -m tests.minimax``;
- `table`: the functions and their largest errors.

A lane of a vector and a scalar have the same result, bit by bit. Only operations that every machine
has are used.
"""

from __future__ import annotations

from dlcompiler.codegen.llvm.functions.table import MAX_ULPS, call, is_own

__all__ = ["MAX_ULPS", "call", "is_own"]
