"""Epilogues of sums on tensor cores: each thread computes with the elements that it holds."""

import pytest

import dlcompiler as dlc
from dlcompiler import ops
from dlcompiler.target import resolve
from tests.codegen.gpu.test_tensor_cores import simple

A100 = resolve("a100")


def behind_products(epilogue):
    """Return the CUDA C behind the last product."""
    operator = ops.operator("matmul")
    workload = operator.workload(m=33, n=40, k=64, dtype="float16", epilogue=epilogue)
    cfg = operator.default_config(workload, A100)
    assert cfg["form"] == "warps"
    s, args = operator.template(workload, A100, cfg)
    return dlc.build(s, args, A100).source("cuda").rpartition("dlc_mma_f16(")[2]


@pytest.mark.parametrize("epilogue", ["", "bias+relu"])
def test_pairs_of_elements_are_stored_from_registers(epilogue):
    text = behind_products(epilogue)
    assert text.count("const float2 matmul_sums_vector") == 2
    assert text.count("*(ushort2 *)(C + ") == 2
    assert "__syncthreads" not in text


def test_an_intrinsic_that_stores_a_tile_is_left_as_it_is():
    text = dlc.build(*simple(), A100).source("cuda")
    assert text.count("= C_local[") == 4
