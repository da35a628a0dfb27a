"""Copies to shared memory that go on while threads compute."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.codegen.gpu import emit_ptx
from dlcompiler.pipeline import build_program
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from tests.codegen.gpu import cuda_on_cpu, emulated
from tests.passes.reading import read

TX, BX = te.thread_axis("threadIdx.x"), te.thread_axis("blockIdx.x")


def sums(dtype="float32", lanes=1, double=True, pragma=True, change=None):
    """Return sums of columns whose rows threads load together, one step ahead."""
    n, m, step = 64, 32, 8
    A = te.placeholder((n, m), dtype, "A")
    k = te.reduce_axis((0, n), name="k")
    value = (lambda i: A[k, m - 1 - i]) if change is None else change(A, k)
    S = te.compute((m,), lambda i: te.sum(value(i).astype("float32"), axis=k), name="S")
    s = create_schedule(S.op)
    total = s.cache_write(S, "local")
    s[S].bind(S.op.axis[0], TX)
    s[total].compute_at(s[S], S.op.axis[0])
    outer, _ = s[total].split(s[total].op.reduce_axis[0], step)
    shared = s.cache_read(A, "shared", [total])
    s[shared].compute_at(s[total], outer)
    loop = s[shared].fuse(*s[shared].op.axis)
    if lanes > 1:
        loop, lane = s[shared].split(loop, lanes)
        s[shared].vectorize(lane)
    loop, x = s[shared].split(loop, m)
    s[shared].bind(x, TX)
    if double:
        s[shared].double_buffer()
    if pragma:
        s[shared].pragma(loop, "async_copy")
    return s, [A, S]


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("dtype", "lanes", "double"),
    [("float32", 1, True), ("float32", 4, True), ("float16", 4, True), ("float32", 2, False)],
)
def test_values(dtype, lanes, double, tmp_path, folder, nvrtc, ptxas):
    kernel = dlc.build(*sums(dtype, lanes, double), target="a100")
    text = kernel.source("cuda")
    size = lanes * (2 if dtype == "float16" else 4)
    assert f"dlc_copy_async_{size}(A_shared + " in text
    a = np.random.default_rng(0).integers(-4, 5, (64, 32)).astype(dtype)
    result = np.zeros(32, "float32")
    cuda_on_cpu.run(text, [a, result], tmp_path)
    np.testing.assert_array_equal(result, a.astype("float32").sum(0)[::-1])
    said, ptx = nvrtc(text, "compute_80")
    assert "cp.async.wait_all" in ptx, said
    by_llvm = np.full_like(result, -1)
    emulated.run(kernel.program, [a, by_llvm], folder, target=kernel.target)
    np.testing.assert_array_equal(by_llvm, result)
    written = kernel.source("ptx")
    assert f"cp.async.{'cg' if size == 16 else 'ca'}.shared.global" in written
    assert "cp.async.wait_all" in written
    assert not ptxas(written, "sm_80")
    assert "cp.async" not in emit_ptx(kernel.program, resolve("v100")).text


def source(target="a100", **options):
    return dlc.build(*sums(**options), target=target).source("cuda")


def test_only_where_the_schedule_asks_and_the_processor_can():
    assert "dlc_copy_async" in source()
    assert "async" not in source(pragma=False)
    for target in ("v100", "opencl"):
        text = source(target)
        assert "dlc_copy_async" not in text
        assert "cp.async" not in text


def test_two_bytes_are_copied_at_once():
    assert "dlc_copy_async" not in source(dtype="float16")


def source_of(*lines):
    inner = "\n".join(f"            {line}" for line in lines)
    text = f"""\
def main(A: float32[64], C: float32[64]):
    allocate S: float32[32] in shared
    for x in threadIdx.x(32):
        for n in range(2):  # async_copy = 1
            barrier
{inner}
"""
    return build_program(read(text, ("A", "C")), "a100").source("cuda")


COPY, BARRIER = "S[x] = A[n*32 + x]", "barrier"
NOT_ASYNC = {
    "the thread reads it before a barrier": (COPY, "C[n*32 + x] = S[x]"),
    "the thread writes it again before a barrier": (COPY, "S[x] = 2.0", BARRIER),
    "another element is computed": ("S[x] = A[n*32 + x] + 1.0", BARRIER),
    "the source is written": (COPY, BARRIER, "C[n*32 + x] = S[31 - x]", "A[n*32 + x] = 1.0"),
}


@pytest.mark.parametrize("case", NOT_ASYNC)
def test_what_is_not_proved_is_copied_at_once(case):
    assert "dlc_copy_async" in source_of(COPY, BARRIER, "C[n*32 + x] = S[-x + 31]")
    lines = [line.replace("31 - x", "-x + 31") for line in NOT_ASYNC[case]]
    assert "dlc_copy_async" not in source_of(*lines)
