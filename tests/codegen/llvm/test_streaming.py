"""Stores past the caches: where they are made, and that results do not depend on it."""

import re

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.measurement import verify
from dlcompiler.pipeline import build, cross_compile
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from dlcompiler.target.detect import host

needs_x86 = pytest.mark.skipif(not host().triple.startswith("x86_64"), reason="names of x86-64")
ROWS, COLUMNS = 4, 64


def copy(columns=COLUMNS, *, parallel=False, pragma=True, dtype="float32"):
    """``B = A + 1``, its rows in vectors of eight, under the pragma."""
    A = te.placeholder((ROWS, columns), dtype, "A")
    B = te.compute((ROWS, columns), lambda i, j: A[i, j] + te.const(1, dtype), name="B")
    s = create_schedule(B.op)
    i, j = B.op.axis
    s[B].vectorize(s[B].split(j, 8)[1])
    if parallel:
        s[B].parallel(i)
    if pragma:
        s[B].pragma(i, "nontemporal")
    return s, [A, B]


@needs_x86
@pytest.mark.parametrize("parallel", [False, True])
def test_vectors_pass_the_caches_and_a_fence_follows(parallel):
    kernel = build(*copy(parallel=parallel))
    assert re.search(r"movntps", kernel.assembly)
    assert kernel.assembly.index("movntps") < kernel.assembly.index("sfence")
    plain = build(*copy(parallel=parallel, pragma=False)).assembly
    assert "movnt" not in plain
    assert "sfence" not in plain


def at(offset, shape, dtype):
    """Return an array that begins `offset` bytes behind a multiple of 64."""
    memory = np.zeros(int(np.prod(shape)) * np.dtype(dtype).itemsize + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    return memory[start : start + memory.size - 128].view(dtype).reshape(shape)


@pytest.mark.parametrize("columns", [COLUMNS, 60, 61])
@pytest.mark.parametrize("dtype", ["float32", "int16", "float64"])
def test_results_do_not_depend_on_where_arrays_begin(columns, dtype):
    kernel = build(*copy(columns, dtype=dtype))
    a = np.arange(ROWS * columns).reshape(ROWS, columns).astype(dtype)
    for offset in (0, 8, 16, 32, 40):
        b = at(offset, a.shape, dtype)
        kernel(a, b)
        np.testing.assert_array_equal(b, a + 1)


def test_rows_that_do_not_begin_aligned_are_stored_as_ever():
    assert "!nontemporal" not in build(*copy(61)).source()
    assert "!nontemporal" in build(*copy(60)).source()


def test_what_is_read_again_stays_in_the_caches():
    A = te.placeholder((8, 16), name="A")
    k = te.reduce_axis((0, 8), name="k")
    B = te.compute((16,), lambda j: te.sum(A[k, j], axis=k), name="B")
    s = create_schedule(B.op)
    outer, inner = s[B].split(B.op.axis[0], 8)
    s[B].reorder(outer, k, inner)
    s[B].vectorize(inner)
    s[B].pragma(outer, "nontemporal")
    assert "!nontemporal" not in build(s, [A, B]).source()
    verify(s, [A, B])


@pytest.mark.parametrize(
    ("name", "instruction"), [("aarch64", r"\bstnp\b"), ("x86-64-avx512", r"\bv?movntps\b")]
)
def test_other_machines(name, instruction):
    assert re.search(instruction, cross_compile(*copy(), resolve(name)).assembly)


@pytest.mark.parametrize(
    ("name", "instruction"),
    [("x86-64-sse2", r"\bprefetcht0\b"), ("aarch64", r"\bprfm\s+pldl1keep")],
)
def test_a_prefetch_is_an_instruction(name, instruction):
    s, (A, B) = copy(pragma=False)
    s[B].prefetch(A, B.op.axis[0], 1)
    assert re.search(instruction, cross_compile(s, [A, B], name).assembly)
