"""Batch normalisation at inference: each channel is scaled and shifted by fixed numbers.

``scale`` and ``shift`` are folded from the statistics ahead (`epilogues.folded_batch_norm`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlcompiler import dtypes, te
from dlcompiler.ops.base import Operator, Reference
from dlcompiler.ops.helpers import BROADCAST, tensor
from dlcompiler.ops.injective import injective_schedules
from dlcompiler.ops.rounding import SMALLEST, unit
from dlcompiler.ops.shapes import FLOATS, checked_dimension, checked_dtype, shape_of, shape_text
from dlcompiler.space import Workload
from dlcompiler.te import Tensor


def batch_norm(data: Tensor, scale: Tensor, shift: Tensor, axis: int = 1) -> Tensor:
    """Define ``data * scale[c] + shift[c]``, where c is the index along a dimension.

    Notes
    -----
    **Source:** S. Ioffe, C. Szegedy, "Batch normalization", ICML 2015, algorithm 2.
    """
    n = axis % len(data.shape)
    return tensor(
        data.shape, lambda *i: data[i] * scale[i[n]] + shift[i[n]], "batch_norm", BROADCAST
    )


def workload(*, shape: Sequence[int] | str, axis: int = 1, dtype: str = "float32") -> Workload:
    """Return the workload of a batch normalisation; `axis` is the dimension of the channels."""
    text = shape_text(shape, "batch_norm")
    n = checked_dimension(axis, len(shape_of(text)), "batch_norm")
    kind = checked_dtype(dtype, FLOATS, "batch_norm")
    return Workload.of("batch_norm", shape=text, axis=n, dtype=kind)


def define(workload: Workload) -> tuple[Tensor, ...]:
    """Return ``data``, ``scale``, ``shift`` and the result."""
    shape, axis, dtype = shape_of(workload["shape"]), workload["axis"], workload["dtype"]
    data = te.placeholder(shape, dtype, "data")
    scale, shift = (te.placeholder((shape[axis],), dtype, name) for name in ("scale", "shift"))
    return data, scale, shift, batch_norm(data, scale, shift, axis)


def reference(workload: Workload, seed: int) -> Reference:
    """Return inputs in [-2, 2), the result, and its bound: the product and the sum round once."""
    shape, axis, dtype = shape_of(workload["shape"]), workload["axis"], workload["dtype"]
    generator, kind = np.random.default_rng(seed), dtypes.to_numpy(dtype)
    sizes = {"data": shape, "scale": (shape[axis],), "shift": (shape[axis],)}
    inputs = {name: generator.uniform(-2, 2, size).astype(kind) for name, size in sizes.items()}
    along = tuple(-1 if n == axis else 1 for n in range(len(shape)))
    data = inputs["data"].astype(np.float64)
    scale, shift = (inputs[name].astype(np.float64).reshape(along) for name in ("scale", "shift"))
    product = data * scale
    expected = product + shift
    own = 2 * unit(dtype)
    bound = own * (np.abs(product) * (1 + own) + np.abs(expected) + SMALLEST[dtype])
    return Reference(inputs, {"batch_norm": expected}, {"batch_norm": bound})


BATCH_NORM = Operator(
    "batch_norm",
    workload,
    define,
    reference,
    injective_schedules(define),
)
