"""Input arrays of a case: small integers or extreme values, and valid indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dlcompiler import dtypes
from dlcompiler.arith import Interval
from dlcompiler.measurement.indices import index_ranges
from dlcompiler.te import Tensor
from tests.fuzz import guards, mixed, reducers

SPECIALS = (float("inf"), float("-inf"), float("nan"), -0.0)
ROUNDING = frozenset({"own_float_sum"})
"""Own templates whose floats must stay small whole numbers, and finite: their order may change."""
WITHOUT_NAN = frozenset({"own_argmax"})
"""The result of an argmax by hand depends on the schedule where a value is NaN."""
WITH_EDGES = frozenset({*guards.TEMPLATES, *mixed.TEMPLATES, *reducers.TEMPLATES}) - ROUNDING
WITH_INDICES = frozenset({"embedding", "embedding_bag", "chained_gather"})
Array = np.ndarray[Any, Any]


def index_spans(
    template: str, outputs: Sequence[Tensor], rng: np.random.Generator
) -> Mapping[Tensor, Interval]:
    """Return the ranges of inputs that are used as indices; guarded ones may have any value."""
    if template not in WITH_INDICES:
        return {}
    return index_ranges(outputs, guarded=bool(rng.random() < 0.5)).spans


def array_of(
    template: str, tensor: Tensor, shape: tuple[int, ...], rng: np.random.Generator, special: bool
) -> Array:
    """Return the elements of an input that is no index.

    Parameters
    ----------
    special
        Whether some floats are infinite, NaN or -0.
    """
    if template in WITH_EDGES and rng.random() < 0.8:
        return edge_values(tensor.dtype, shape, rng, with_nan=template not in WITHOUT_NAN)
    low, high = (0, 9) if tensor.dtype.startswith("u") else (-4, 5)
    kind = dtypes.to_numpy(tensor.dtype)
    array = rng.integers(low, high, shape).astype(kind)
    if special and dtypes.is_float(tensor.dtype) and template not in WITHOUT_NAN | ROUNDING:
        chosen = rng.random(shape) < 0.2
        array[chosen] = rng.choice(SPECIALS, int(chosen.sum())).astype(array.dtype)
    return array


def edge_values(
    dtype: str, shape: tuple[int, ...], rng: np.random.Generator, *, with_nan: bool = True
) -> Array:
    """Return the least and greatest numbers of a dtype, those beside them and around 0, and any."""
    kind = dtypes.to_numpy(dtype)
    if dtypes.is_bool(dtype):
        return rng.random(shape) < 0.5
    if dtypes.is_float(dtype):
        return _edge_floats(dtype, shape, rng, with_nan)
    low, high = int(dtypes.min_value(dtype)), int(dtypes.max_value(dtype))
    near = [n for n in (low, low + 1, high - 1, high, 0, 1, 2, -1, -2, high // 2 + 1) if n >= low]
    anything = rng.integers(low, high, shape, dtype=kind, endpoint=True)
    chosen = rng.choice(np.array(near, kind), shape)
    return np.where(rng.random(shape) < 0.6, chosen, anything)


def _edge_floats(
    dtype: str, shape: tuple[int, ...], rng: np.random.Generator, with_nan: bool
) -> Array:
    kind = dtypes.to_numpy(dtype)
    unsigned = f"u{kind.itemsize}"
    one, top = np.array([1.0, np.inf], kind).view(unsigned)
    # Of 0, the least and greatest subnormal, the least normal number, 1, the greatest, infinity.
    step = int(one & (~one + one.dtype.type(1)))  # the lowest bit of the exponent
    bits = [0, 1, step - 1, step, int(one), int(one) + 1, int(top) - 1, int(top)]
    if with_nan:
        bits.append(int(top) | step >> 1)
    numbers = np.array(bits, unsigned).view(kind)
    chosen = rng.choice(np.concatenate([numbers, -numbers]), shape)
    small = rng.integers(-9, 10, shape).astype(kind)
    return np.where(rng.random(shape) < 0.5, chosen, small)
