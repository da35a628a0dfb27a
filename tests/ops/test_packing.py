"""Weights packed by a kernel are those that NumPy packs."""

import numpy as np
import pytest

from dlcompiler import ops
from dlcompiler.pipeline import build
from dlcompiler.target import resolve


@pytest.mark.parametrize(
    "sizes",
    [
        {"c": 8, "o": 16, "kernel": 3},
        {"c": 3, "o": 37, "kernel": 1},
        {"c": 6, "o": 40, "kernel": 3, "groups": 2},
        {"c": 2, "o": 3, "kernel": 5},
        {"c": 6, "o": 40, "kernel": 3, "groups": 2, "dtype": "int8"},
        {"c": 5, "o": 40, "kernel": 3, "dtype": "int8", "block": 16},
        {"c": 18, "o": 64, "kernel": (1, 2), "groups": 2, "dtype": "int8"},
    ],
    ids=str,
)
def test_packed_convolution_weights(sizes):
    operator = ops.operator("conv2d_direct")
    workload = operator.workload(h=7, w=7, **sizes)
    target = resolve("cpu")
    schedule, args = operator.schedule_for(target).packing(workload, target)
    kernel = build(schedule, args, name="packing")
    reference = operator.reference(workload, 1)
    weight, expected = reference.plain["weight"], reference.inputs["weight"]
    given, packed = kernel.params
    out = np.full(packed.static_shape, 77, expected.dtype)
    kernel(weight.reshape(given.static_shape), out)
    np.testing.assert_array_equal(out.reshape(expected.shape), expected)
