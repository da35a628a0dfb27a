"""Functions of numbers as code of our own, on scalars and vectors of any number of lanes.

- `values`: expressions that write instructions;
- `exponential`, `logarithm`, `trigonometric`, `error`, `power`: the mathematics;
- `coefficients`: the polynomials' numbers, which ``python -m tests.minimax`` finds;
- `table`: which functions there are, and how exact each is.

A lane of a vector and a scalar give the same bits. Only operations that every machine has are used.
"""

from __future__ import annotations

from dlcompiler.codegen.llvm.functions.table import MAX_ULPS, call, is_own

__all__ = ["MAX_ULPS", "call", "is_own"]
