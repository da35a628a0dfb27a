"""Weights in blocks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dlcompiler.ops.base import Array
from dlcompiler.ops.packed.extents import BATCH_MATMUL, DENSE, DEPTHWISE, TRANSPOSE, extents_of
from dlcompiler.space import Workload


def prepack(workload: Workload, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the inputs with ``weight`` and ``bias`` in blocks; the others are as they were.

    Parameters
    ----------
    workload : Workload
        Of an operator on blocks.
    arrays : mapping
        ``weight`` as `outputs_first` takes it, and ``bias`` of shape ``(outputs,)``.
    """
    packed = dict(arrays)
    if "weight" in arrays:
        packed["weight"] = _weight(workload, arrays["weight"])
    if "bias" in arrays:
        b = extents_of(workload).blocks
        rows = arrays["bias"].reshape(-1, 1, b.outputs)
        packed["bias"] = np.ascontiguousarray(np.repeat(rows, b.batch, axis=1))
    return packed


def outputs_first(workload: Workload, weight: Array) -> Array:
    """Return weights as OIHW: ``(outputs, inputs of a group, rows, columns)``.

    Parameters
    ----------
    workload : Workload
        Decides the layout of the weights.
    weight : array
        OIHW; ``(channels, multiplier, rows, columns)`` of a depthwise convolution, IOHW of a
        transposed one, ``(n, k)`` of a dense layer, ``(batch, n, k)`` of a product of batches.
    """
    if workload.op == DENSE:
        return weight[:, :, None, None]
    if workload.op == BATCH_MATMUL:
        return weight.reshape(-1, weight.shape[-1], 1, 1)
    if workload.op == DEPTHWISE:
        return weight.reshape(-1, 1, *weight.shape[2:])
    return weight.swapaxes(0, 1) if workload.op == TRANSPOSE else weight


def _weight(workload: Workload, given: Array) -> Array:
    """Return weights in blocks; they are zeros for channels of other groups."""
    e, weight = extents_of(workload), outputs_first(workload, given)
    o, i = e.blocks.outputs, e.blocks.inputs
    filters, inputs, rows, columns = weight.shape
    whole = np.zeros((filters, e.depth * i, *e.weights), weight.dtype)
    for place in range(filters):
        group = place // (filters // e.groups)
        first = group * inputs - e.start(place // o) * i
        whole[place, first : first + inputs, :rows, :columns] = weight[place]
    split = whole.reshape(filters // o, o, e.depth, i, *e.weights)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 5, 1, 3))
