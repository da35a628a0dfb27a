"""ops.conv2d: the sums of a tile stay in registers; an inner loop does nothing but multiply."""

import pytest

from dlcompiler import ops
from dlcompiler.codegen import emit
from dlcompiler.pipeline import lower
from dlcompiler.runtime import llvm
from dlcompiler.target import resolve
from tests.inner_loops import inner_loops

AVX2 = resolve("x86-64-avx2")
STRIDED = {"c": 64, "h": 56, "w": 56, "o": 128, "kernel": 3, "stride": 2, "padding": 1}
NARROW = {"c": 64, "h": 14, "w": 14, "o": 96, "kernel": 3, "stride": 2, "padding": 1}
POINT = {"c": 64, "h": 28, "w": 28, "o": 64, "kernel": 1}
CASES = {
    "strided": ("conv2d_direct", STRIDED),
    "first layer": ("conv2d_direct", STRIDED | {"c": 3, "h": 224, "w": 224, "kernel": 7}),
    "24 channels": ("conv2d_direct", NARROW | {"block": 24}),
    "NHWC": ("conv2d_direct", STRIDED | {"layout": "NHWC", "epilogue": "bias+relu"}),
    "1x1": ("conv2d_gemm", POINT),
    "columns": ("conv2d_gemm", POINT | {"kernel": 3, "block": 6}),
}


@pytest.mark.parametrize("case", CASES)
def test_inner_loops_are_multiply_adds_on_registers(case):
    name, params = CASES[case]
    operator = ops.operator(name)
    work = operator.workload(**params)
    cfg = operator.default_config(work, AVX2)
    func = lower(*operator.template(work, AVX2, cfg))
    text = llvm.assembly(emit(func, AVX2).text, llvm.Options.for_target(AVX2))
    loops = inner_loops(func, text, "conv2d.sums.local")
    assert [loop.stack_accesses for loop in loops] == [()] * len(loops)
    largest = max(loops, key=lambda loop: loop.count("vfmadd"))
    steps = cfg["unroll_c"]
    if name == "conv2d_direct":
        single, vectors = cfg["tile_rows"] * cfg["tile_columns"], work["block"] // 8
    else:
        single, vectors = work["block"], cfg["tile_pixels"] // 8
    assert largest.count("vfmadd") == single * vectors * steps
    assert largest.count("vbroadcasts") == single * steps, "a single element is one load"
    assert largest.count("vmov") <= vectors * steps, "nothing is stored"
