"""Inputs of products with expected results and error bounds; packing of weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dlcompiler.ops.base import Reference, given_weight
from dlcompiler.ops.gemm.product import Product
from dlcompiler.ops.rounding import Array, rounded, sum_bound
from dlcompiler.ops.widening import drawn
from dlcompiler.space import Workload


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs in [-1, 1), the result, and its bound ``c·K·u·Σ|a||b|`` (`sum_bound`).

    Integers are drawn from -8 … 7, and their results are exact.
    """
    product = Product.of(workload)
    generator = np.random.default_rng(seed)
    shapes = _plain_shapes(product)
    kinds = {"A": product.dtype, "B": product.weight_dtype}
    plain = {name: drawn(shapes[name], kinds[name], generator) for name in "AB"}
    operands = product.epilogue.inputs(shapes["C"], product.sums_dtype, generator)
    a, b = (
        np.swapaxes(plain[name], -1, -2) if product.layout[n] == "T" else plain[name]
        for n, name in enumerate("AB")
    )
    wide_a, wide_b = a.astype(np.float64) - product.zero_point, b.astype(np.float64)
    bound = sum_bound(np.abs(wide_a) @ np.abs(wide_b), product.k, product.sums_dtype)
    expected, bound = product.epilogue.reference(
        wide_a @ wide_b, bound, operands, product.sums_dtype
    )
    if product.result_dtype != product.sums_dtype:
        bound = rounded(expected, bound, product.result_dtype)
    inputs = {**prepack(workload, plain), **operands}
    return Reference(
        inputs, {"C": expected}, {"C": bound}, {"B": plain["B"]} if product.packed else {}
    )


def _plain_shapes(product: Product) -> dict[str, tuple[int, ...]]:
    """Return the shapes of A, B and C before packing."""
    n, k = product.n, product.k
    b = (n, k) if product.layout[1] == "T" else (k, n)
    return {**product.shapes, "B": (*product.batch, *b)}


def prepack(workload: Workload, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the kernel's inputs: B in panels of columns, if the workload says so.

    Parameters
    ----------
    workload : Workload
        With ``packed``, the columns of a panel.
    arrays : mapping of str to array
        The caller's, ``B`` of shape ``(k, n)``, or ``(n, k)`` if it is stored transposed.

    Returns
    -------
    mapping of str to array
        ``B`` of shape ``(ceil(n / packed), k, packed)``, of int8
        ``(ceil(n / packed), ceil(k / 4), packed, 4)``, filled up with 0.
    """
    product = Product.of(workload)
    if not product.packed or "B" not in arrays:
        return arrays
    is_turned = product.layout[1] == "T"
    shape = (product.n, product.k) if is_turned else (product.k, product.n)
    given = given_weight(workload, arrays, shape, "B")
    b = given.T if is_turned else given
    together = 4 if product.goes_by_fours else 1
    padded = np.zeros((product.steps * together, product.panels * product.packed), b.dtype)
    padded[: product.k, : product.n] = b
    panels = padded.reshape(product.steps, together, product.panels, product.packed)
    packed = panels.transpose(2, 0, 3, 1).reshape(product.shapes["B"])
    return {**arrays, "B": np.ascontiguousarray(packed)}
