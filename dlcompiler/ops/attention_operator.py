"""The operator attention: scaled dot products of heads, with a causal or an additive mask.

``softmax(query · keyᵀ / √depth + mask) · value`` for each head. `dlcompiler.ops.attention` defines
it, `dlcompiler.ops.attention_tiles` schedules it on a CPU.
"""

from __future__ import annotations

import numpy as np

from dlcompiler import dtypes
from dlcompiler.ops.attention import attention, default_scale
from dlcompiler.ops.attention_workload import NAME, described, operands, shapes_of, workload
from dlcompiler.ops.base import Operator, Reference, by_device
from dlcompiler.ops.rounding import SMALLEST, Array, Wide, unit
from dlcompiler.space import Workload
from dlcompiler.te import Tensor


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``query``, ``key``, ``value``, ``mask`` if there is one, and the result."""
    given = operands(workload)
    query, key, value, *masks = given
    mask = masks[0] if masks else None
    return (*given, attention(query, key, value, mask, described(workload)))


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs in [-1, 1), a mask in [-4, 0), the result, and its bound (`exact`)."""
    generator, kind = np.random.default_rng(seed), dtypes.to_numpy(workload["dtype"])
    shapes = shapes_of(workload)
    shapes.pop("out")
    inputs = {
        name: generator.uniform(*((-4, 0) if name == "mask" else (-1, 1)), shape).astype(kind)
        for name, shape in shapes.items()
    }
    expected, bound = exact(inputs, is_causal=bool(workload["causal"]), dtype=workload["dtype"])
    return Reference(inputs, {NAME: expected}, {NAME: bound})


def exact(inputs: dict[str, Array], *, is_causal: bool, dtype: str) -> tuple[Wide, Wide]:
    """Return the result in float64 and its error bound.

    Notes
    -----
    A score of e products is off by ``(e + 3)·u·Σ|q·k|`` and by the rounding of its mask, a power by
    what its score is off, and by ``(|s - m| + 4)·u``. The largest score cancels. A sum of n adds at
    most ``n·u``.
    **Source:** N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 3.1
    """
    query, key, value = (inputs[name].astype(np.float64) for name in ("query", "key", "value"))
    share = query.shape[1] // key.shape[1]
    key, value = (np.repeat(each, share, axis=1) for each in (key, value))
    turned, depth, length = np.swapaxes(key, -1, -2), query.shape[-1], key.shape[-2]
    own = unit(dtype) * (2 if dtype == "float64" else 1)
    scale = default_scale(depth)
    scores = query @ turned * scale
    off = (depth + 3) * own * (np.abs(query) @ np.abs(turned)) * scale
    if "mask" in inputs:
        scores = scores + inputs["mask"].astype(np.float64)
        off = off + own * np.abs(scores)
    if is_causal:
        scores = np.where(np.tri(*scores.shape[-2:]) > 0, scores, -np.inf)
    largest = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    below = scores - np.where(np.isinf(largest), 0, largest)
    powers = np.exp(below)
    total = powers.sum(axis=-1, keepdims=True)
    weights = powers / np.where(total == 0, 1, total)
    finite = np.where(np.isinf(below), 0, np.abs(below))
    of_weight = weights * (off + (finite + 4) * own)
    result = weights @ value
    of_sum = (length + 2) * own
    spread = of_weight.sum(axis=-1, keepdims=True) + of_sum + 3 * own
    bound = of_weight @ np.abs(value) + (weights @ np.abs(value)) * (of_sum + spread)
    return result, 1.2 * (bound + SMALLEST[dtype])


ATTENTION = Operator(
    NAME,
    workload,
    define,
    reference,
    by_device(
        {
            "cpu": "dlcompiler.ops.attention_tiles:TILES",
            "gpu": "dlcompiler.ops.gpu.attention:ATTENTION",
        }
    ),
)
