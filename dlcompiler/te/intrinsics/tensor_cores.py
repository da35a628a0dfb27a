"""Declarations of what the threads of a warp compute together on tensor cores.

The tiles A, B and C of ``mma`` are fragments: memory of scope ``local`` that only these intrinsics
touch. `dlcompiler.target.fragments` tells which thread holds which element.

Examples
--------
A product whose blocks are one warp each. No loop is bound to ``threadIdx.x``: all 32 threads of the
warp carry out the calls together.

>>> import dlcompiler as dlc
>>> from dlcompiler import te
>>> A = te.placeholder((64, 32), "float16", "A")
>>> B = te.placeholder((32, 16), "float16", "B")
>>> k = te.reduce_axis((0, 32), name="k")
>>> C = te.compute(
...     (64, 16),
...     lambda i, j: te.sum(A[i, k].astype("float32") * B[k, j].astype("float32"), axis=k),
...     name="C",
... )
>>> s = te.create_schedule(C.op)
>>> sums = s.cache_write(C, "local")
>>> i, j, ii, jj = s[C].tile(C.op.axis[0], C.op.axis[1], 16, 8)
>>> s[C].bind(i, te.thread_axis("blockIdx.y"))
>>> s[C].bind(j, te.thread_axis("blockIdx.x"))
>>> s[C].tensorize(ii, "mma_store_f32_16x8")
>>> s[sums].compute_at(s[C], j)
>>> step, kk = s[sums].split(s[sums].op.reduce_axis[0], 16)
>>> s[sums].reorder(step, *s[sums].op.axis, kk)
>>> s[sums].tensorize(s[sums].op.axis[0], "mma_f16_16x8x16")
>>> for tensor, load in ((A, "mma_load_a_f16_16x16"), (B, "mma_load_b_f16_16x8")):
...     tile = s.cache_read(tensor, "local", [sums])
...     s[tile].compute_at(s[sums], step)
...     s[tile].tensorize(s[tile].op.axis[0], load)
>>> kernel = dlc.build(s, [A, B, C], target="a100")
>>> "mma.sync.aligned.m16n8k16" in kernel.source("cuda")
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dlcompiler.te.language import compute, placeholder, reduce_axis
from dlcompiler.te.math import tf32
from dlcompiler.te.reducers.reductions import sum
from dlcompiler.te.tensor import Tensor

KINDS = {"f16": "float16", "bf16": "bfloat16", "tf32": "float32", "s8": "int8"}
"""Short name of the operands' dtype -> the dtype."""
SUMS = {"f16": "float32", "bf16": "float32", "tf32": "float32", "s8": "int32"}
"""Short name of the operands' dtype -> the dtype of the sums."""


def product(kind: str, *, transposed: bool) -> Callable[[int, int, int], Tensor]:
    """Return the declaration of a product: ``C[i, j] += A[i, k] * B[k, j]``, or ``B[j, k]``.

    The elements are converted to the dtype of the sums; of TF32, they are rounded by `te.tf32`.
    """

    def declare(m: int, n: int, k: int) -> Tensor:
        a = placeholder((m, k), KINDS[kind], "A")
        b = placeholder((n, k) if transposed else (k, n), KINDS[kind], "B")
        r = reduce_axis((0, k), name="k")

        def converted(value: Any) -> Any:
            return tf32(value) if kind == "tf32" else value.astype(SUMS[kind])

        def element(i: object, j: object) -> object:
            factor = b[j, r] if transposed else b[r, j]
            return sum(converted(a[i, r]) * converted(factor), axis=r)

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
