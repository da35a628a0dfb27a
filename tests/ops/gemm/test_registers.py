"""ops.gemm: the sums of a tile stay in registers, and an inner loop does nothing but multiply."""

from dataclasses import replace

import pytest

from dlcompiler.codegen import emit
from dlcompiler.ops.gemm import DENSE, MATMUL
from dlcompiler.pipeline import lower
from dlcompiler.runtime import llvm
from dlcompiler.target import resolve
from tests.inner_loops import inner_loops

AVX2 = resolve("x86-64-avx2")
CASES = {
    "square": (MATMUL, {"m": 1024, "n": 1024, "k": 1024}),
    "tails": (MATMUL, {"m": 333, "n": 777, "k": 999}),
    "transposed": (MATMUL, {"m": 512, "n": 512, "k": 512, "layout": "TT"}),
    "float64": (MATMUL, {"m": 96, "n": 96, "k": 96, "dtype": "float64"}),
    "packed": (DENSE, {"m": 96, "n": 96, "k": 96, "packed": 16, "epilogue": "bias+gelu"}),
    "dots": (DENSE, {"m": 4, "n": 512, "k": 512}),
}


@pytest.mark.parametrize("case", CASES)
def test_inner_loops_are_multiply_adds_on_registers(case):
    operator, params = CASES[case]
    workload = operator.workload(**params)
    cfg = operator.default_config(workload, AVX2)
    schedule, args = operator.template(workload, AVX2, cfg)
    func = lower(schedule, args)
    text = llvm.assembly(emit(func, AVX2).text, llvm.Options.for_target(AVX2))
    sums = f"{workload.op}.sums" + (".rf" if cfg.form == "dots" else "")
    loops = inner_loops(func, text, sums)
    assert [loop.stack_accesses for loop in loops] == [()] * len(loops)
    largest = max(loops, key=lambda loop: loop.count("vfmadd"))
    if cfg.form == "dots":
        assert largest.count("vfmadd") == cfg.tile_m * cfg.tile_n
        return
    vectors, steps = cfg.tile_n // AVX2.lanes(args[0].dtype), cfg.unroll_k
    assert largest.count("vfmadd") == cfg.tile_m * vectors * steps
    assert largest.count("vbroadcasts") == cfg.tile_m * steps, "a factor of A is one load"
    assert largest.count("vmov") == vectors * steps, "a vector of B is one load, none is stored"
    assert len(largest.instructions) <= (cfg.tile_m * vectors + cfg.tile_m + vectors + 4) * steps


@pytest.mark.parametrize(("target", "instruction"), [
    ("x86-64-avx2", "vpmaddwd"),
    ("x86-64-avx512", "vpdpbusd"),
])  # fmt: skip
def test_inner_loops_of_int8_add_four_products_at_a_time(target, instruction):
    target = resolve(target)
    if instruction == "vpdpbusd":
        target = replace(target, features=(*target.features, "+avx512vnni"))
    workload = MATMUL.workload(m=96, n=192, k=200, dtype="int8")
    cfg = MATMUL.default_config(workload, target)
    schedule, args = MATMUL.template(workload, target, cfg)
    func = lower(schedule, args)
    text = llvm.emit_assembly(emit(func, target).text, llvm.Options.for_target(target))
    loops = inner_loops(func, text, "matmul.sums")
    largest = max(loops, key=lambda loop: loop.count(instruction))
    assert largest.stack_accesses == ()
    vectors = cfg.tile_n // target.lanes("int32")
    halves = 1 if instruction == "vpdpbusd" else 2
    assert largest.count(instruction) == halves * cfg.tile_m * vectors
