"""Every operator by its default schedule in C: pairs of workload and dtype, against NumPy."""

import pytest

from dlcompiler import ops
from dlcompiler.runtime.c_source import c_compiler
from tests.ops.products import check
from tests.ops.test_spaces import WORKLOADS

pytestmark = pytest.mark.campaign
FLOATS = ("float32", "float64")
NARROW = ("float16", "bfloat16", "int8")
DTYPES = {
    **dict.fromkeys(("matmul", "dense", "conv2d_direct"), (*FLOATS, *NARROW)),
    "pool2d": (*FLOATS, "int8", "uint8", "int32"),
    "transpose": ("float32", "int8", "int64"),
    "concatenate": ("float32", "uint8", "float64"),
}
PRODUCTS = [
    ("matmul", {"m": 7, "n": 18, "k": 13}),
    ("matmul", {"m": 33, "n": 40, "k": 21, "layout": "TT"}),
    ("dense", {"m": 5, "n": 19, "k": 24}),
    ("batch_matmul", {"batch": 3, "m": 6, "n": 17, "k": 9}),
    ("conv2d_direct", {"c": 4, "o": 10, "h": 9, "w": 13, "kernel": 3, "padding": 1}),
    ("conv2d_gemm", {"c": 3, "o": 8, "h": 7, "w": 11, "kernel": (2, 5), "stride": 2}),
    ("conv2d_winograd", {"c": 4, "o": 8, "h": 9, "w": 10, "kernel": 3, "padding": 1}),
]
OF_BITS = ("bitserial_dense", "bitserial_conv2d")
"""Operators without a dtype: `tests.ops.test_bitserial` tries them in C."""
CASES = [
    (name, fields | {"dtype": dtype})
    for name, fields in (*PRODUCTS, *WORKLOADS)
    if name not in OF_BITS
    for dtype in DTYPES.get(name, FLOATS)
    if fields.get("dtype", dtype) == dtype and not (fields.get("kind") == "avg" and "int" in dtype)
]


@pytest.mark.skipif(c_compiler() is None, reason="no C compiler on this machine")
@pytest.mark.parametrize(("name", "fields"), CASES, ids=lambda value: str(value))
def test_operators(name, fields):
    operator = ops.operator(name)
    check(operator, operator.workload(**fields), target="c")
