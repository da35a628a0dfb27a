"""A register tile: what the classic matmul schedule becomes."""

import numpy as np
import pytest

from dlcompiler.codegen import emit
from dlcompiler.ir import (
    Allocate,
    Broadcast,
    Buffer,
    For,
    Load,
    PrimFunc,
    Ramp,
    Store,
    Var,
    const,
    index_const,
    seq,
)
from dlcompiler.runtime import llvm
from tests.inner_loops import inner_loops

ROWS, COLUMNS, LANES, N = 4, 16, 8, 64


def _matmul(kind="serial"):
    """C = A @ B by tiles of 4 × 16, kept in a local buffer over the loop k; unrolled by hand."""
    A, B, C = (Buffer(name, (N, N), "float32") for name in "ABC")
    tile = Buffer("C.local", (ROWS, COLUMNS), "float32", scope="local")
    i, j, k = Var("i.outer"), Var("j.outer"), Var("k")
    clear, update, write = [], [], []
    for row in range(ROWS):
        for column in range(0, COLUMNS, LANES):
            here = (index_const(row), Ramp(index_const(column), index_const(1), LANES))
            lanes = Ramp(j * COLUMNS + column, index_const(1), LANES)
            product = Broadcast(Load(A, (i * ROWS + row, k)), LANES) * Load(B, (k, lanes))
            clear.append(Store(tile, here, Broadcast(const(0.0, "float32"), LANES)))
            update.append(Store(tile, here, Load(tile, here) + product))
            write.append(Store(C, (i * ROWS + row, lanes), Load(tile, here)))
    body = seq([*clear, For(k, index_const(N), "serial", seq(update)), *write])
    nest = For(j, index_const(N // COLUMNS), "serial", Allocate(tile, body))
    return PrimFunc("matmul", (A, B, C), (C,), For(i, index_const(N // ROWS), kind, nest))


@pytest.fixture(scope="module")
def operands():
    return np.random.default_rng(5).integers(-8, 8, (2, N, N)).astype("float32")


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_result(build, operands, kind):
    result = np.zeros((N, N), "float32")
    build(_matmul(kind))(*operands, result)
    np.testing.assert_array_equal(result, operands[0] @ operands[1])


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_the_tile_stays_in_registers(kind):
    from dlcompiler.target.presets import X86_64_AVX2

    func = _matmul(kind)
    text = llvm.assembly(emit(func, X86_64_AVX2).text, llvm.Options.for_target(X86_64_AVX2))
    (loop,) = inner_loops(func, text, "C.local")
    assert loop.count("vfmadd231ps") == ROWS * COLUMNS // LANES
    assert loop.count("vbroadcastss") == ROWS
    assert loop.count("vmovups") == COLUMNS // LANES, "loads of B, and no load or store of C.local"
    assert not loop.stack_accesses


def test_two_hundred_statements_are_written_in_no_time(target):
    """A bound that only a mistake of complexity breaks; the usual time is a hundredth."""
    import time

    func = _matmul()
    emit(func, target)
    start = time.process_time()
    for _ in range(10):
        emit(func, target)
    assert (time.process_time() - start) / 10 < 0.5
