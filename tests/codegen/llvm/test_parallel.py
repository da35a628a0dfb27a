"""Parallel loops: functions of their own, with all they use from around them."""

import re

import numpy as np
import pytest

from dlcompiler.ir import (
    Allocate,
    Buffer,
    Cast,
    For,
    If,
    Load,
    PrimFunc,
    Ramp,
    Store,
    Var,
    const,
    index_const,
    seq,
)

I, J, K = Var("i"), Var("j"), Var("k")  # noqa: E741


def test_variables_and_buffers_from_around_the_loop(build):
    """Y[i, j] = X[j] * scratch[i] + i * 100, parallel over j inside a serial loop over i."""
    x, y = Buffer("X", (50,), "float32"), Buffer("Y", (4, 50), "float32")
    scratch = Buffer("scratch", (4,), "float32", scope="local")
    value = Load(x, (J,)) * Load(scratch, (I,)) + Cast(I * 100, "float32")
    body = seq(
        [
            Store(scratch, (I,), Cast(I + 2, "float32")),
            For(J, index_const(50), "parallel", Store(y, (I, J), value)),
        ]
    )
    func = PrimFunc("f", (x, y), (y,), For(I, index_const(4), "serial", Allocate(scratch, body)))
    kernel = build(func)
    assert kernel.source.uses_threads
    source, result = np.arange(50, dtype="float32"), np.zeros((4, 50), "float32")
    kernel(source, result)
    i = np.arange(4, dtype="float32")[:, None]
    np.testing.assert_array_equal(result, source * (i + 2) + i * 100)


@pytest.mark.parametrize("size", [8, 10_000])
def test_allocations_inside_belong_to_one_thread(build, size):
    """Each iteration fills its scratch buffer and sums it up."""
    y = Buffer("Y", (64,), "int64")
    scratch = Buffer("scratch", (size,), "int64", scope="local")
    fill = For(J, index_const(size), "serial", Store(scratch, (J,), Cast(I * J, "int64")))
    total = For(K, index_const(size), "serial",
                Store(y, (I,), Load(y, (I,)) + Load(scratch, (K,))))  # fmt: skip
    clear = Store(y, (I,), const(0, "int64"))
    body = For(I, index_const(64), "parallel", Allocate(scratch, seq([clear, fill, total])))
    kernel = build(PrimFunc("f", (y,), (y,), body))
    for _ in range(20):
        result = np.zeros(64, "int64")
        kernel(result)
        np.testing.assert_array_equal(result, np.arange(64) * (size * (size - 1) // 2))


def test_a_parallel_loop_in_another_runs_serially(build):
    y = Buffer("Y", (8, 8), "int32")
    inner = For(J, index_const(8), "parallel", Store(y, (I, J), Cast(I * 8 + J, "int32")))
    kernel = build(PrimFunc("f", (y,), (y,), For(I, index_const(8), "parallel", inner)))
    assert kernel.source.text.count("call void @dlc_parallel_for") == 1
    result = np.zeros((8, 8), "int32")
    kernel(result)
    np.testing.assert_array_equal(result.ravel(), np.arange(64))


def test_several_parallel_loops(build):
    y, n = Buffer("Y", (100,), "int32"), index_const(100)
    loops = [
        For(I, n, "parallel", Store(y, (I,), Cast(I, "int32"))),
        For(J, n, "parallel", Store(y, (J,), Load(y, (J,)) * 3)),
        For(K, n, "parallel", If(K < 50, Store(y, (K,), Load(y, (K,)) + 1))),
    ]
    kernel = build(PrimFunc("f", (y,), (y,), seq(loops)))
    names = re.findall(r"define internal void @(\S+?)\(", kernel.source.text)
    assert names == [f"f.parallel.{n}{part}" for n in range(3) for part in (".body", "")]
    result = np.zeros(100, "int32")
    kernel(result)
    np.testing.assert_array_equal(result, np.arange(100) * 3 + (np.arange(100) < 50))


@pytest.mark.parametrize("extent", [0, 1])
def test_a_loop_that_is_too_short_uses_no_thread(build, extent):
    y = Buffer("Y", (1,), "int32")
    loop = For(I, index_const(extent), "parallel", Store(y, (I,), const(5, "int32")))
    kernel = build(PrimFunc("f", (y,), (y,), loop))
    assert not kernel.source.uses_threads
    result = np.zeros(1, "int32")
    kernel(result)
    assert result[0] == 5 * extent


def test_an_extent_from_around(build):
    y = Buffer("Y", (5, 5), "int32")
    inner = For(J, I, "parallel", Store(y, (I, J), const(1, "int32")))
    result = np.zeros((5, 5), "int32")
    build(PrimFunc("f", (y,), (y,), For(I, index_const(5), "serial", inner)))(result)
    np.testing.assert_array_equal(result, np.tri(5, k=-1))


def test_a_loop_of_one_iteration_around(build):
    """Its variable is the constant 0 inside."""
    y = Buffer("Y", (1, 4), "int32")
    inner = For(J, index_const(4), "parallel", Store(y, (I, J), Cast(I + J, "int32")))
    result = np.zeros((1, 4), "int32")
    build(PrimFunc("f", (y,), (y,), For(I, index_const(1), "serial", inner)))(result)
    assert result.tolist() == [[0, 1, 2, 3]]


def _scaled_rows(kind):
    """Y[i, :] = X[i, :] * 2 + Y[i, :], in vectors."""
    x, y = Buffer("X", (64, 64), "float32"), Buffer("Y", (64, 64), "float32")
    lanes = Ramp(J * 8, index_const(1), 8)
    value = Load(x, (I, lanes)) + Load(x, (I, lanes)) + Load(y, (I, lanes))
    inner = For(J, index_const(8), "serial", Store(y, (I, lanes), value))
    return PrimFunc("f", (x, y), (y,), For(I, index_const(64), kind, inner))


def test_vector_code_is_as_good_as_in_a_serial_loop(target, assembly):
    from dlcompiler.codegen import emit

    def inner_loop(kind):
        lines = assembly(emit(_scaled_rows(kind), target)).splitlines()
        body = [line.split()[0] for line in lines if line.startswith("\t") and "ymm" in line]
        return sorted(body)

    assert inner_loop("parallel") == inner_loop("serial")
