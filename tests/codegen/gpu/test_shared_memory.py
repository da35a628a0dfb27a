"""Shared memory whose size each launch decides, in all languages."""

import re
from functools import cache

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import TargetError
from dlcompiler.pipeline import build_program
from dlcompiler.runtime.opencl import driver
from tests.passes.reading import read


def reversed_rows(target="gpu", columns=None, threads=8):
    """Return a program whose blocks keep a row of two arrays in shared memory."""
    n, m = te.var("n"), columns or te.var("m")
    A = te.placeholder((n, m), name="A")
    B = te.placeholder((n, m), name="B", dtype="int8")
    sums = lambda i, j: A[i, m - 1 - j] + B[i, m - 1 - j].astype("float32")  # noqa: E731
    C = te.compute((n, m), sums, name="C")
    s = te.create_schedule(C.op)
    row, column = C.op.axis
    s[C].bind(row, te.thread_axis("blockIdx.x"))
    s[C].bind(s[C].split(column, threads)[1], te.thread_axis("threadIdx.x"))
    for source in (B, A):
        cache = s.cache_read(source, "shared", [C])
        s[cache].compute_at(s[C], row)
        parts = s[cache].split(s[cache].op.axis[1], threads)
        s[cache].bind(parts[1], te.thread_axis("threadIdx.x"))
    return dlc.build(s, [A, B, C], target=target, name="turn")


def data(m, n=3):
    a = np.arange(n * m, dtype="float32").reshape(n, m)
    return a, (a % 100).astype("int8"), np.full((n, m), np.nan, "float32")


built = cache(reversed_rows)


@pytest.mark.parametrize("target", ["opencl", "gpu"])
def test_a_launch_adds_what_its_shapes_need(target, opencl):
    for m in (1, 7, 50, 9):
        a, b, c = data(m)
        built(target)(a, b, c)
        np.testing.assert_array_equal(c, (a + b)[:, ::-1])


def test_each_language_has_its_own_declaration():
    kernel = built()
    line = {
        "cuda": r"    extern __shared__ uint4 (shared)\[\];\n",
        "hip": r"    extern __shared__ uint4 (shared)\[\];\n",
        "opencl": r", __local uint4 \*(shared)\)\n",
        "metal": r", threadgroup uint4 \*(shared) \[\[threadgroup\(0\)\]\],",
        "ptx": r"\.extern \.shared \.align 16 \.b8 (turn_kernel0_shared)\[\];\n",
        "amdgcn": r"\tds_write_b8 ",
    }
    for language, pattern in line.items():
        assert re.search(pattern, kernel.source(language)), language
    assert "float *A_shared = (float *)shared;" in kernel.source("cuda")
    second = "__local char *B_shared = (__local char *)(shared + (m*4 + 15)/16);"
    assert second in kernel.source("opencl")


def test_the_vendors_compilers_accept_it(nvrtc, ptxas):
    kernel = built("a100")
    said, made = nvrtc(kernel.source("cuda"), "compute_80")
    assert ".extern .shared .align 16 .b8 shared[]" in made, said
    assert ptxas(kernel.source("ptx"), "sm_80") == ""


def test_a_launch_that_needs_too_much_is_refused(opencl):
    limit = driver().max_shared_bytes
    m = limit // 5 + 1
    a, b, c = data(m, n=1)
    kernel = built("opencl")
    with pytest.raises(TargetError) as caught:
        kernel(a, b, c)
    size = 16 * (-(-4 * m // 16) + -(-m // 16))
    assert str(caught.value) == (
        "call turn: a block of turn_kernel0 needs more shared memory than this device has\n"
        f"  got       {size:,} bytes\n"
        f"  expected  at most {limit:,} bytes\n"
        f"  because   that is the limit of {driver().device_name}\n"
        "  hint      compute smaller parts: split the loops they are computed for further"
    )
    a, b, c = data(9)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, (a + b)[:, ::-1])


def test_the_simulator_refuses_what_its_gpu_would():
    kernel = built("rtx-a6000")
    a, b, c = data(24_000, n=1)
    with pytest.raises(TargetError) as caught:
        kernel(a, b, c)
    assert str(caught.value) == (
        "run turn_kernel0 on rtx-a6000: no block of it fits\n"
        "  got       120,000 bytes of shared memory\n"
        "  expected  at most 101,376 bytes\n"
        "  because   CUDA C++ Programming Guide 12.9, table 21\n"
        "  hint      bind fewer iterations to threads, or compute smaller tiles"
    )
    assert np.isnan(c).all()
    a, b, c = data(20_000, n=1)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, (a + b)[:, ::-1])


def test_a_report_counts_what_a_launch_adds():
    report = built("rtx-a6000").report(*data(4000))
    assert report.kernels[0].resources.shared_bytes == 20_000
    assert report.kernels[0].occupancy.limits["shared memory"] == 4


def test_more_than_a_kernel_of_cuda_may_declare_is_added_by_its_launch(nvrtc, ptxas):
    kernel = built("a100", columns=20_000)  # 80,000 and 20,000 bytes
    text = kernel.source("cuda")
    assert "signed char *B_shared = (signed char *)(shared + 5000);" in text
    said, made = nvrtc(text, "compute_80")
    assert ".extern .shared .align 16 .b8 shared[]" in made, said
    assert ptxas(kernel.source("ptx"), "sm_80") == ""
    assert "__local char B_shared[20000];" in kernel.source("opencl")
    assert kernel.report(*data(20_000)).kernels[0].resources.shared_bytes == 100_000
    a, b, c = data(20_000)
    kernel(a, b, c)
    np.testing.assert_array_equal(c, (a + b)[:, ::-1])
    with pytest.raises(TargetError, match="a block would need more shared memory than there is"):
        built("v100", columns=20_000)


@pytest.mark.parametrize("sizes", [(49_137, 15), (49_136, 16)])
def test_arrays_that_fill_the_memory_of_a_kernel(sizes, ptxas):
    a, b = sizes
    text = f"""\
def main(X: int8[{a}], Y: int8[{b}], C: int8[1]):
    allocate P: int8[{a}] in shared
    allocate Q: int8[{b}] in shared
    for x in threadIdx.x(2):
        P[x] = X[x]
        Q[x] = Y[x]
        barrier
        if x == 0:
            C[0] = P[1] + Q[1]
"""
    kernel = build_program(read(text), "gtx-1080")
    arrays = [np.ones(n, "int8") for n in (a, b, 1)]
    if a % 16:  # Q begins at a multiple of 16
        with pytest.raises(TargetError, match="got       49,168 bytes of shared memory"):
            kernel(*arrays)
        kernel = build_program(read(text), "a100")
    kernel(*arrays)
    assert arrays[2] == [2]
    assert ptxas(kernel.source("ptx"), kernel.target.cpu) == ""
