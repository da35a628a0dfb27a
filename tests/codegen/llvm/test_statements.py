"""Loops and allocations."""

import numpy as np
import pytest

from dlcompiler.codegen import emit
from dlcompiler.ir import (
    Allocate,
    Binary,
    Buffer,
    Cast,
    For,
    Load,
    PrimFunc,
    Store,
    Var,
    const,
    index_const,
    seq,
)

I, J, K = Var("i"), Var("j"), Var("k")  # noqa: E741


def _add(buffer, index, value):
    return Store(buffer, (index,), Load(buffer, (index,)) + value)


@pytest.mark.parametrize("kind", ["serial", "unrolled", "vectorized"])
@pytest.mark.parametrize("extent", [0, 1, 2, 7])
def test_a_loop_of_known_extent(build, kind, extent):
    y = Buffer("Y", (8,), "int32")
    loop = For(I, index_const(extent), kind, Store(y, (I,), Cast(I + 1, "int32")))
    result = np.zeros(8, "int32")
    build(PrimFunc("f", (y,), (y,), loop))(result)
    assert result.tolist() == [*range(1, extent + 1)] + [0] * (8 - extent)


def test_a_loop_whose_extent_depends_on_another(build):
    """A triangle, with rows of no elements and of a negative number of them."""
    y = Buffer("Y", (6,), "int32")
    inner = For(J, I - 2, "serial", _add(y, I, Cast(J + 1, "int32")))
    result = np.zeros(6, "int32")
    build(PrimFunc("f", (y,), (y,), For(I, index_const(6), "serial", inner)))(result)
    assert result.tolist() == [0, 0, 0, 1, 3, 6]


def test_an_extent_from_memory(build):
    n, y = Buffer("N", (3,), "int32"), Buffer("Y", (3,), "int32")
    extent = Cast(Load(n, (I,)), "index")
    loops = For(I, index_const(3), "serial", For(J, extent, "serial", _add(y, I, 1)))
    result = np.zeros(3, "int32")
    build(PrimFunc("f", (n, y), (y,), loops))(np.array([3, -5, 0], "int32"), result)
    assert result.tolist() == [3, 0, 0]


def test_loops_over_variables_of_one_name(build):
    y, first, second = Buffer("Y", (4, 4), "int32"), Var("i"), Var("i")
    store = Store(y, (first, second), Cast(first * 10 + second, "int32"))
    body = For(first, index_const(4), "serial", For(second, index_const(4), "serial", store))
    result = np.zeros((4, 4), "int32")
    build(PrimFunc("f", (y,), (y,), seq([body, body])))(result)
    np.testing.assert_array_equal(result, np.add.outer(np.arange(4) * 10, np.arange(4)))


def _running_sums(scratch):
    """For each i: scratch[j] = i + j for all j, then Y[i] = sum of scratch."""
    y = Buffer("Y", (5,), "int64")
    (size,) = scratch.shape
    fill = For(J, index_const(size), "serial", Store(scratch, (J,), Cast(I + J, "int64")))
    clear = Store(y, (I,), const(0, "int64"))
    total = For(K, index_const(size), "serial", _add(y, I, Load(scratch, (K,))))
    body = Allocate(scratch, seq([clear, fill, total]))
    return PrimFunc("sums", (y,), (y,), For(I, index_const(5), "serial", body))


@pytest.mark.parametrize("size", [3, 2048, 2049, 100_000])
def test_an_allocation_in_a_loop(build, size):
    kernel = build(_running_sums(Buffer("scratch", (size,), "int64", scope="local")))
    on_stack = size * 8 <= 16 * 1024
    assert ("alloca" in kernel.source.text) == on_stack
    assert ("call align 64 ptr @dlc_workspace_alloc" in kernel.source.text) == (not on_stack)
    assert kernel.source.text.count("call void @dlc_workspace_free") == (0 if on_stack else 1)
    result = np.zeros(5, "int64")
    for _ in range(3):
        kernel(result)
    assert result.tolist() == [sum(range(i, i + size)) for i in range(5)]


def test_the_stack_takes_16_kib_in_all(target):
    buffers = [Buffer(f"S{n}", (1024,), "float32") for n in range(6)]
    y = Buffer("Y", (1,), "float32")
    body = Store(y, (index_const(0),), const(0.0, "float32"))
    for buffer in buffers:
        body = Allocate(buffer, body)
    text = emit(PrimFunc("f", (y,), (y,), body), target).text
    assert text.count("alloca [1024 x float], align 64") == 4
    assert text.count("@dlc_workspace_alloc(i64 4096)") == 2
    assert text.count("call void @dlc_workspace_free") == 2


def test_buffers_without_elements_are_allocated(build):
    scratch, y = Buffer("scratch", (0, 4), "float32"), Buffer("Y", (1,), "float32")
    loop = For(
        I, index_const(0), "serial", Store(scratch, (I, index_const(0)), const(1.0, "float32"))
    )
    store = Store(y, (index_const(0),), const(7.0, "float32"))
    result = np.zeros(1, "float32")
    build(PrimFunc("f", (y,), (y,), Allocate(scratch, seq([loop, store]))))(result)
    assert result[0] == 7


def test_an_index_above_32_bits(build):
    """Only one element is touched, at an offset that no int32 holds; its memory is never made."""
    big = Buffer("A", (2**20, 2**20), "int8", strides=(2**20, 1))
    y = Buffer("Y", (2,), "int64")
    i = index_const(2**19)
    stores = [
        Store(y, (index_const(0),), Cast(Binary("mul", i + I, index_const(2**20)), "int64")),
        Store(y, (index_const(1),), Cast(Load(big, (I, I)), "int64")),
    ]
    body = For(I, index_const(2), "serial", seq(stores))
    result, bytes_ = np.zeros(2, "int64"), np.zeros(2**20 + 2, "int8")
    bytes_[2**20 + 1] = 5
    build(PrimFunc("f", (big, y), (y,), body))(bytes_, result)
    assert result.tolist() == [(2**19 + 1) * 2**20, 5]


def test_a_sum_of_thousands_of_terms(build):
    x, y = Buffer("X", (1,), "float64"), Buffer("Y", (1,), "float64")
    zero = (index_const(0),)
    left = right = Load(x, zero)
    for _ in range(3000):
        left, right = left + 1.0, Binary("sub", const(1.0, "float64"), right)
    result = np.zeros(1)
    emitted = PrimFunc("f", (x, y), (y,), seq([Store(y, zero, left), Store(y, zero, left + right)]))
    build(emitted)(np.array([0.5]), result)
    assert result.tolist() == [3000.5 + 0.5]


def test_shared_nodes_are_written_once(target):
    """2**60 paths, 60 nodes."""
    x, y = Buffer("X", (1,), "float32"), Buffer("Y", (1,), "float32")
    value = Load(x, (index_const(0),))
    for _ in range(60):
        value = value + value
    text = emit(PrimFunc("f", (x, y), (y,), Store(y, (index_const(0),), value)), target).text
    assert text.count("fadd") == 60
