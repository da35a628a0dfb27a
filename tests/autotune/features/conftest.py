"""Workloads whose templates go every way."""

import pytest

WORKLOADS = {
    "matmul": ("matmul", {"m": 96, "n": 80, "k": 64}),
    "narrow matmul": ("matmul", {"m": 128, "n": 20, "k": 64}),
    "flat matmul": ("matmul", {"m": 3, "n": 300, "k": 64, "layout": "NN"}),
    "transposed matmul": ("matmul", {"m": 37, "n": 53, "k": 28, "layout": "NT"}),
    "dense": ("dense", {"m": 16, "n": 40, "k": 32, "packed": 16, "epilogue": "bias+relu"}),
    "batch matmul": ("batch_matmul", {"batch": 3, "m": 33, "n": 40, "k": 16}),
    "conv2d": ("conv2d_direct", {"c": 16, "h": 14, "w": 14, "o": 24, "kernel": 3, "padding": 1}),
    "pointwise": (
        "conv2d_direct",
        {"n": 2, "c": 24, "h": 13, "w": 17, "o": 40, "kernel": 1, "layout": "NHWC"},
    ),
    "conv2d by gemm": (
        "conv2d_gemm",
        {"c": 8, "h": 10, "w": 10, "o": 16, "kernel": 3, "padding": 1},
    ),
    "winograd": (
        "conv2d_winograd",
        {"c": 8, "h": 12, "w": 12, "o": 16, "kernel": 3, "padding": 1},
    ),
    "depthwise": ("depthwise_conv2d", {"c": 8, "h": 14, "w": 14, "kernel": 3, "padding": 1}),
    "depthwise NHWC": (
        "depthwise_conv2d",
        {"c": 32, "h": 9, "w": 7, "kernel": 3, "stride": 2, "padding": 1, "layout": "NHWC"},
    ),
    "pooling": ("pool2d", {"kind": "max", "c": 4, "h": 15, "w": 21, "kernel": 3, "stride": 2}),
    "softmax": ("softmax", {"shape": "8x20"}),
    "softmax of columns": ("softmax", {"shape": "6x11x40", "axis": 1}),
    "layer norm": ("layer_norm", {"shape": "6x20"}),
    "reduction": ("reduction", {"function": "sum", "shape": "12x100", "axes": "1"}),
    "elementwise": ("elementwise", {"function": "add", "shapes": "100x40,100x40"}),
    "transpose": ("transpose", {"shape": "64x100"}),
}


@pytest.fixture(params=WORKLOADS)
def named(request):
    """An operator's name and the parameters of a workload."""
    return WORKLOADS[request.param]
