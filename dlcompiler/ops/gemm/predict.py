"""The cycles of a product by each form, as a simple model of the processor predicts them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from dlcompiler import dtypes
from dlcompiler.ops.gemm.product import Product
from dlcompiler.target import Target

FMA_LATENCY_CYCLES = 4
"""**Source:** A. Fog, instruction tables (Zen 3; Intel's since Skylake have the same)."""
# Measured on a Sapphire Rapids with AVX-512 and two busy cores: over 200 products of random shapes
# the form that is chosen takes 1.02 times as long as the best one in geometric mean.
_TILE_CYCLES = 5
"""Begin and end of a tile, beside a cycle for each vector of it."""
_COPY_VECTOR, _COPY_ELEMENT, _TURN_ELEMENT = 4.5, 0.6, 2
"""Copying a vector of B for tiles, an element of a transposed B, and one of a transposed A."""
_DOTS_TURN_ELEMENT = 3
"""Copying an element of a matrix that does not lie along k for dot products."""
_STEP_CYCLES = 6
"""Begin and end of the loop over a row of B."""
_STORE_SUM, _STORE_FAR_SUM = 2, 4
"""Storing a vector of sums: in half of the nearest cache, and beyond."""
_ADD = 0.8
"""A multiply-add of vectors, with loading its factor."""
_END_SUM = 3
"""Beginning a vector of sums, and moving it to C."""
_LOAD, _LOAD_FAR, _LOAD_MATRIX = 0.5, 1.5, 4
"""Loading a vector: from the nearest cache, from the second one, and from beyond."""
_SUM_UP_CYCLES, _DOTS_CYCLES = 3, 12
"""Adding up the lanes of a vector, and begin and end of a tile of dot products."""


def predicted_cycles(product: Product, values: Mapping[str, Any], target: Target) -> float:
    """Predict the time of a config on one core [cycle]; only times of different forms compare.

    Parameters
    ----------
    product : Product
        What is computed.
    values : mapping
        Values of `space.space`'s knobs ``form``, ``tile_m``, ``tile_n``, ``unroll_k``, ``pack`` and
        ``pack_a``.
    target : Target
        A CPU.
    """
    one: Callable[..., float] = {"tiles": _tiles, "rows": _rows, "dots": _dots}[values["form"]]
    return math.prod(product.batch) * one(product, values, target)


def step_cycles(rows: int, vectors: int) -> float:
    """Return the time of a step of the reduction for a tile in registers [cycle].

    Two multiply-adds and two loads begin in a cycle, and the next step of a sum waits for the last.
    """
    if rows == 0 or vectors == 0:
        return 0.0
    return max(rows * vectors / 2, (rows + vectors) / 2, float(FMA_LATENCY_CYCLES))


def _tiles(product: Product, values: Mapping[str, Any], target: Target) -> float:
    m, n, k = product.m, product.n, product.k
    rows, columns = int(values["tile_m"]), int(values["tile_n"])
    vectors = columns // product.tile_lanes(target)
    whole, rest = divmod(m, rows)
    beside, below = -(-n // columns), whole + (rest > 0)
    steps = k * beside * (whole * step_cycles(rows, vectors) + step_cycles(rest, vectors))
    cycles = steps + beside * below * (_TILE_CYCLES + rows * vectors)
    if values["pack"]:
        is_transposed = product.layout[1] == "T"
        cycles += n * k * _COPY_ELEMENT if is_transposed else k * beside * vectors * _COPY_VECTOR
        cycles += k * beside * vectors * (_load(product, target) - _LOAD)
    return cycles + (m * k * _TURN_ELEMENT if values["pack_a"] else 0.0)


def _rows(product: Product, values: Mapping[str, Any], target: Target) -> float:
    n, k, together = product.n, product.k, int(values["unroll_k"])
    columns, height = int(values["tile_n"]), int(values["tile_m"])
    vectors = -(-n // columns) * columns // target.lanes(product.sums_dtype)
    is_kept = height * vectors <= target.vector_registers  # all sums of these rows
    least = _load(product, target)

    def of(rows: int) -> float:
        """Return the cycles of some rows: sums are loaded and stored every few rows of B."""
        if is_kept:
            return vectors * rows * _END_SUM + k * max(
                vectors * max(rows * _ADD, least), float(FMA_LATENCY_CYCLES)
            )
        is_near = _bytes(product, rows * n) <= target.cache_bytes(0) // 2
        stores = rows / together * (_STORE_SUM if is_near else _STORE_FAR_SUM)
        factors = rows * together
        again = 0 if factors <= target.vector_registers // 2 else rows  # they are loaded again
        by_vector = max(rows * _ADD, (1 + rows / together + again) * _LOAD, stores, least)
        steps = factors / 2 + _STEP_CYCLES + vectors * by_vector * together
        return -(-k // together) * steps + vectors * rows * _END_SUM

    whole, rest = divmod(product.m, height)
    return whole * of(height) + (of(rest) if rest else 0.0)


def _dots(product: Product, values: Mapping[str, Any], target: Target) -> float:
    m, n, k = product.m, product.n, product.k
    vectors = -(-k // target.lanes(product.sums_dtype))
    is_far = _bytes(product, min(m, n) * k) > target.cache_bytes(0) // 2
    nearest = _LOAD_FAR if is_far else _LOAD

    def of(rows: int, columns: int) -> float:
        """Return the cycles of a tile; what comes again is loaded from where it lies."""
        if rows == 0 or columns == 0:
            return 0.0
        again, once = (rows, columns) if m <= n else (columns, rows)
        loads = again * nearest + once * _LOAD
        ends = rows * columns * _SUM_UP_CYCLES + _DOTS_CYCLES
        return vectors * max(step_cycles(rows, columns), loads) + ends

    height, width = int(values["tile_m"]), int(values["tile_n"])
    (below, low), (beside, narrow) = divmod(m, height), divmod(n, width)
    cycles = sum(
        count * times * of(rows, columns)
        for rows, count in ((height, below), (low, 1))
        for columns, times in ((width, beside), (narrow, 1))
    )
    copied = n * k * int(values["pack"]) + m * k * int(values["pack_a"])
    return cycles + copied * _DOTS_TURN_ELEMENT


def _load(product: Product, target: Target) -> float:
    """Return what loading a vector of B takes, from where all of B lies."""
    size = _bytes(product, product.n * product.k)
    if size <= target.cache_bytes(0):
        return _LOAD
    return _LOAD_FAR if size <= target.cache_bytes(1) else _LOAD_MATRIX


def _bytes(product: Product, elements: int) -> int:
    return elements * dtypes.bytes_of(product.dtype)
