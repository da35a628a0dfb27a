"""Declarations of what the threads of a warp compute together on tensor cores.

The tiles A, B and C of ``mma`` are fragments: memory of scope ``local`` that only these intrinsics
touch. `dlcompiler.target.fragments` tells which thread holds which element.
"""

from __future__ import annotations

from collections.abc import Callable

from dlcompiler.te.language import compute, placeholder, reduce_axis
from dlcompiler.te.reducers.reductions import sum
from dlcompiler.te.tensor import Tensor

KINDS = {"f16": "float16", "bf16": "bfloat16", "s8": "int8"}
"""Short name of the operands' dtype -> the dtype."""
SUMS = {"f16": "float32", "bf16": "float32", "s8": "int32"}
"""Short name of the operands' dtype -> the dtype of the sums."""


def product(kind: str, *, transposed: bool) -> Callable[[int, int, int], Tensor]:
    """Return the declaration of a product: ``C[i, j] += A[i, k] * B[k, j]``, or ``B[j, k]``."""

    def declare(m: int, n: int, k: int) -> Tensor:
        a = placeholder((m, k), KINDS[kind], "A")
        b = placeholder((n, k) if transposed else (k, n), KINDS[kind], "B")
        r, dtype = reduce_axis((0, k), name="k"), SUMS[kind]

        def element(i: object, j: object) -> object:
            factor = b[j, r] if transposed else b[r, j]
            return sum(a[i, r].astype(dtype) * factor.astype(dtype), axis=r)

        c: Tensor = compute((m, n), element, name="C")
        return c

    return declare


def copy(dtype: str) -> Callable[[int, int], Tensor]:
    """Return the declaration of a copy of a tile, between memory and a fragment."""

    def declare(rows: int, columns: int) -> Tensor:
        source = placeholder((rows, columns), dtype, "S")
        tile: Tensor = compute((rows, columns), lambda i, j: source[i, j], name="F")
        return tile

    return declare
