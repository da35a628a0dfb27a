"""Weights packed by a kernel are those that NumPy packs."""

import numpy as np
import pytest

from dlcompiler import ops
from dlcompiler.errors import TuningError
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


IMAGES = {"c": 4, "h": 5, "w": 5, "o": 8, "kernel": 3}


@pytest.mark.parametrize(
    ("name", "given", "key"),
    [
        ("dense", {"m": 2, "n": 16, "k": 8, "packed": 8}, "B"),
        ("conv2d_direct", {**IMAGES, "block": 8}, "weight"),
        ("conv2d_gemm", {**IMAGES, "block": 4}, "weight"),
        ("conv2d_winograd", {**IMAGES, "tile": 2}, "weight"),
        ("depthwise_conv2d", {"c": 8, "h": 5, "w": 5, "kernel": 3, "layout": "NHWC"}, "weight"),
        ("bitserial_dense", {"m": 2, "n": 16, "k": 8}, "weight"),
        ("bitserial_conv2d", IMAGES, "weight"),
    ],
)
def test_weights_of_another_shape_are_refused(name, given, key):
    operator = ops.operator(name)
    workload = operator.workload(**given)
    plain = operator.reference(workload, 1).plain
    for wrong in (plain[key].T, plain[key].ravel(), plain[key].tolist(), None):
        with pytest.raises(TuningError, match=f"{key} is not as the workload says"):
            operator.prepack(workload, {**plain, key: wrong})
