"""What threads of a warp exchange is in registers, in CUDA C and PTX: values of the simulator."""

import re

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import dtypes, te
from dlcompiler.codegen.gpu import emit_ptx
from dlcompiler.pipeline import build_program
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from tests.codegen.gpu import cuda_on_cpu, emulated
from tests.passes.reading import read
from tests.schedule.test_warp_memory import reversed_rows
from tests.thread_programs import softmax

TX, TY = te.thread_axis("threadIdx.x"), te.thread_axis("threadIdx.y")
BX = te.thread_axis("blockIdx.x")


def row_sums(rows=4, columns=96, threads=32, together=1, dtype="float32"):
    """Return sums of rows, each by the threads along x; a block has `together` rows along y."""
    A = te.placeholder((rows, columns), dtype, "A")
    k = te.reduce_axis((0, columns), name="k")
    S = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="S")
    s = create_schedule(S.op)
    block, row = s[S].split(S.op.axis[0], together)
    s[S].bind(block, BX)
    s[S].bind(row, TY)
    s[S].bind(s[S].split(k, threads)[1], TX)
    return s, [A, S]


def largest(rows=3, columns=64):
    """Return the place and the value of the largest element of each row."""
    A = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    place, value = te.compute((rows,), lambda i: te.argmax(A[i, k], axis=k), name="T")
    s = create_schedule(place.op)
    s[place].bind(place.op.axis[0], BX)
    s[place].bind(s[place].split(k, 32)[1], TX)
    return s, [A, place, value]


def several_rows(rows=6, columns=32):
    """Return rows minus their sum, where a block computes three rows in turn."""
    A = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    S = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="S")
    B = te.compute((rows, columns), lambda i, j: A[i, j] - S[i], name="B")
    s = create_schedule(B.op)
    i, j = B.op.axis
    block, turn = s[B].split(i, 3)
    s[B].bind(block, BX)
    s[B].bind(j, TX)
    s[S].compute_at(s[B], turn)
    s[S].bind(k, TX)
    return s, [A, B]


def two_axes(rows=2, columns=64):
    """Return sums of rows, each by threads along x and y together."""
    A = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, columns), name="k")
    S = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="S")
    s = create_schedule(S.op)
    s[S].bind(S.op.axis[0], BX)
    outer, x = s[S].split(k, 8)
    _, y = s[S].split(outer, 4)
    s[S].bind(x, TX)
    s[S].bind(y, TY)
    return s, [A, S]


SHUFFLED = {
    "softmax": softmax,
    "a warp for each row": lambda: row_sums(together=2),
    "several rows for each warp": lambda: row_sums(8, 40, 8, 4),
    "less than a warp": lambda: row_sums(4, 40, 4, 3),
    "float16": lambda: row_sums(dtype="float16"),
    "int8": lambda: row_sums(threads=16, dtype="int8"),
    "float64": lambda: row_sums(dtype="float64"),
    "two results": largest,
    "several rows in turn": several_rows,
    "memory of a warp": lambda: reversed_rows(5, 16, 8, 4)[:2],
}
IN_MEMORY = {
    "more than a warp": lambda: row_sums(threads=64),
    "no power of two": lambda: row_sums(threads=24),
    "a part of a warp is missing": lambda: row_sums(6, 48, 16, 3),
    "threads along two axes": two_axes,
}


def arrays_of(args):
    rng = np.random.default_rng(5)
    return [rng.integers(-3, 4, t.static_shape).astype(dtypes.to_numpy(t.dtype)) for t in args]


def same_everywhere(program, tmp_path, folder):
    s, args = program()
    kernel = dlc.build(s, args, target="gpu")
    expected = arrays_of(args)
    given = [each.copy() for each in expected]
    kernel(*expected)
    for run in (
        lambda arrays: cuda_on_cpu.run(kernel.source("cuda"), arrays, tmp_path),
        lambda arrays: emulated.run(kernel.program, arrays, folder),
        lambda arrays: emulated.run(kernel.program, arrays, folder, is_reversed=True),
    ):
        arrays = [each.copy() for each in given]
        run(arrays)
        for array, right in zip(arrays, expected, strict=True):
            np.testing.assert_allclose(array, right, rtol=1e-5)
    return kernel


@pytest.mark.campaign
@pytest.mark.parametrize("program", SHUFFLED)
def test_registers(program, tmp_path, folder, nvrtc, ptxas):
    kernel = same_everywhere(SHUFFLED[program], tmp_path, folder)
    text = kernel.source("cuda")
    assert "__shfl" in text
    assert "parts[" not in text.replace("parts[0]", "").replace("parts[1];", "")
    said, ptx = nvrtc(text, "compute_70")
    assert "shfl.sync" in ptx, said
    for gpu in ("gtx-titan-x", "h100"):
        ptx = emit_ptx(kernel.program, resolve(gpu)).text
        assert "shfl.sync.idx.b32" in ptx
        assert not ptxas(ptx, resolve(gpu).cpu)


@pytest.mark.campaign
@pytest.mark.parametrize("program", IN_MEMORY)
def test_memory_of_the_block_where_a_warp_is_not_enough(program, tmp_path, folder):
    kernel = same_everywhere(IN_MEMORY[program], tmp_path, folder)
    text = kernel.source("cuda")
    assert "shfl" not in text + kernel.source("ptx")
    assert "__shared__" in text


def source_of(*lines, memory=32, scope="warp"):
    """Return the code of what each of 32 threads does between a store to P and a load from it."""
    inner = "\n".join(f"        {line}" for line in lines)
    text = f"""\
def main(A: float32[32], C: float32[32]):
    allocate T: float32[64] in shared
    allocate P: float32[{memory}] in {scope}
    for x in threadIdx.x(32):
        T[x] = A[x]
        T[x + 32] = A[x]
        P[x] = A[x]
        barrier
{inner}
"""
    return build_program(read(text), "gpu").source("cuda")


def test_a_barrier_is_left_out_only_where_no_other_memory_needs_it():
    exchange, use = "P[x] = P[x] + P[-x + 31]", "C[x] = P[x]"
    assert source_of(exchange, "barrier", use).count("__syncthreads") == 0
    text = source_of(exchange, "barrier", "C[x] = P[x] + T[-x + 63]")
    assert text.count("__shfl") == text.count("__syncthreads") == 1


ROUGH = {
    "a loop that threads leave at different times": ("for n in range(x):", "    C[x] = P[n]"),
    "a branch with a write before the read": (
        "if x < 16:",
        "    P[x] = 1.0",
        "    C[x] = P[x + 16]",
    ),
    "another thread's element is written": ("C[x] = P[x]", "barrier", "P[-x + 31] = 2.0"),
    "a place that memory decides": ("C[x] = P[int32(T[x])]",),
}


@pytest.mark.parametrize("case", ROUGH)
def test_what_a_shuffle_cannot_do_stays_in_memory(case):
    text = source_of(*ROUGH[case])
    assert "__shared__ float P[32]" in text
    assert "__shfl" not in text


def test_a_read_before_a_condition_stays_inside_the_array():
    text = """\
def main(A: float32[3, 32], C: float32[8, 32]):
    allocate P: float32[3, 32] in warp
    for x in threadIdx.x(32):
        for j in range(3):
            P[j, x] = A[j, x]
        barrier
        for k in range(8):
            if x < 16 and k < 3:
                C[k, x] = P[k, x + 16]
        for k in range(3):
            if x < 16:
                C[k + 5, x] = P[k, x + 16]
"""
    places = re.findall(
        r"__shfl_down_sync\(\w+, P\[(.*)\],\s", build_program(read(text), "gpu").source("cuda")
    )
    assert places == ["dlc_max_i32(0, dlc_min_i32(k, 2))", "k"]


def test_memory_that_the_schedule_shares_stays_shared():
    assert "__shfl" not in source_of("C[x] = P[-x + 31]", scope="shared")


def test_more_elements_than_threads_stay_in_memory():
    assert "__shared__ float P[33]" in source_of("C[x] = P[-x + 31]", memory=33)


def test_a_thread_whose_check_fails_takes_no_part_in_shuffles():
    text = source_of("assert A[x] < 5.0, 'large'", "C[x] = P[-x + 31]")
    assert "__shfl" not in text
