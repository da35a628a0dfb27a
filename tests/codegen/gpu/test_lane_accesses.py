"""What the counters find for intrinsics of a warp, against what each lane accesses."""

import dataclasses

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler.pipeline.gpu_report import counters_of
from dlcompiler.target.fragments import Fragment
from tests.codegen.gpu.test_dot_products import products
from tests.codegen.gpu.test_tensor_cores import DEPTHS, Product, simple, staged


def counters(program, target="a100"):
    (found,) = counters_of(dlc.build(*program, target=target).program)
    return found


def accesses(found, name):
    return [access.most for access in found.accesses if access.name == name]


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("kind", "name"), [("f16", "float16"), ("bf16", "bfloat16"), ("tf32", "tf32"), ("s8", "int8")]
)
def test_a_product_is_one_instruction_of_a_warp(kind, name):
    found = counters(staged(kind))
    products = (64 // 16) * (32 // 8) * 4
    assert found.instructions[f"{name} mma"][1].requests == products
    if kind == "tf32":
        assert found.instructions["convert"][1].requests == 6 * products
    assert not any("fma" in each for each in found.instructions)
    assert found.active_fraction == 1


def test_its_time_is_that_of_the_tensor_cores():
    kernel = dlc.build(*simple(), target="a100")  # 32 × 16 × 64, by one block
    (time,) = (each.time for each in kernel.report().kernels)
    term = next(each for each in time.terms if each.name == "tensor cores")
    blocks = kernel.report().kernels[0].counters.blocks
    clock = kernel.target.rates["clock"].value
    assert term.seconds == pytest.approx(32 * 16 * 64 / 1024 / blocks / clock)
    rates = {k: r for k, r in kernel.target.rates.items() if not k.startswith("tensor")}
    without = dlc.build(*simple(), target=dataclasses.replace(kernel.target, rates=rates))
    with pytest.raises(dlc.errors.MeasurementError, match="it uses tensor cores, of which a100"):
        dlc.measure(without)


def test_where_it_is_no_instruction_the_loops_are_counted(opencl):
    (kernel,) = dlc.build(*simple(), target="opencl").report().kernels
    found = kernel.counters
    assert "float16 mma" not in found.instructions
    assert found.instructions["float32 fma"][1].lanes == 32 * 16 * 64


def passes_of_rows(row_bytes, matrices):
    """Return the passes of matrices of 8 rows below each other: the busiest bank of each."""
    words = np.arange(8)[:, None] * (row_bytes // 4) + np.arange(4)
    return matrices * np.bincount(words.ravel() % 32).max()


@pytest.mark.parametrize("padding", [0, 8, 16])
def test_conflicts_of_ldmatrix_are_those_of_eight_rows(padding):
    p = Product(16, 8, 64)
    outer, k = p.multiply(p.tiles_of_warps(), 2)
    shared = p.share(p.A, outer)
    if padding:
        p.s[shared].storage_align(shared.op.axis[0], 32 + padding, 0)
    p.load(shared, k)
    p.load(p.B, k)
    (loads,) = accesses(counters((p.s, p.args)), "load A.shared")
    assert loads.requests == 4
    assert loads.wavefronts == 4 * passes_of_rows(2 * (32 + padding), matrices=4)
    p = Product(16, 8, 64, transposed=True)
    outer, k = p.multiply(p.tiles_of_warps(), 2)
    shared = p.share(p.B, outer)
    if padding:
        p.s[shared].storage_align(shared.op.axis[0], 32 + padding, 0)
    p.load(shared, k)
    p.load(p.A, k)
    (loads,) = accesses(counters((p.s, p.args)), "load B.shared")
    assert loads.requests == 4
    assert loads.wavefronts == 4 * passes_of_rows(2 * (32 + padding), matrices=2)


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["f16", "tf32", "s8"])
def test_sectors_are_those_that_the_lanes_touch(kind):
    program = simple(kind)
    (A, _, C), depth = program[1], DEPTHS[kind]
    found = counters(program)
    for array, matrix, name in ((A, "a", "load A"), (C, "c", "store C")):
        fragment = Fragment(matrix, array.dtype)
        size, (_, columns) = np.dtype(array.dtype).itemsize, array.static_shape
        packed = fragment.packed if matrix == "a" else 1
        sectors = 0
        for element in range(0, fragment.elements, packed):
            places = [fragment.place(lane, element) for lane in range(32)]
            sectors += len({(row * columns + column) * size // 32 for row, column in places})
        tiles = (32 // 16) * (16 // 8) * (64 // depth if matrix == "a" else 1)
        assert sum(each.sectors for each in accesses(found, name)) == tiles * sectors


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_a_dot_product_is_one_instruction_that_reads_words(dtype):
    found = counters(products(dtype, shared=True), "gtx-1080")
    dots = 6 * 8 * 3
    assert found.instructions["integer"][1].lanes == dots
    (weights,) = {access.bytes for access in found.accesses if access.name == "load W.shared"}
    assert weights == 4
    assert sum(each.lanes for each in accesses(found, "load W.shared")) == dots
