"""Columns of a block that are read together: as rows, transposed in registers."""

import numpy as np
import pytest

from dlcompiler import dtypes, te
from dlcompiler.codegen import emit
from dlcompiler.ir import (
    Buffer,
    For,
    IfThenElse,
    Load,
    PrimFunc,
    Ramp,
    Store,
    Var,
    const,
    index_const,
    seq,
)
from dlcompiler.pipeline import build
from dlcompiler.schedule import create_schedule

ROW = Var("i")


def _ramp(base, lanes):
    return Ramp(base, index_const(1), lanes)


def _program(dtype, lanes, count, *, extent=40, wrap=lambda load: load, between=()):
    """Copy `count` columns of A to rows of B, from the row and column i of A on."""
    a, b = Buffer("A", (extent, extent), dtype), Buffer("B", (count, lanes), dtype)
    stores = [
        Store(
            b,
            (index_const(n), _ramp(index_const(0), lanes)),
            wrap(Load(a, (_ramp(ROW, lanes), ROW + n))),
        )
        for n in range(count)
    ]
    stores[1:1] = [store(a) for store in between]
    body = For(ROW, index_const(2), "serial", seq(stores))
    return PrimFunc("columns", (a, b), (b, a) if between else (b,), body)


@pytest.mark.campaign
@pytest.mark.parametrize("count", [4, 8, 11, 16, 17])
@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint64", "int8", "float16"])
def test_columns_are_right(build, target, dtype, lanes, count):
    func = _program(dtype, lanes, count)
    a = np.arange(1600).reshape(40, 40).astype(dtypes.to_numpy(dtype))
    b = np.zeros((count, lanes), a.dtype)
    build(func)(a, b)
    np.testing.assert_array_equal(b, a[1 : 1 + lanes, 1 : 1 + count].T)
    has_rows = f"load <{lanes} x " in emit(func, target).text
    assert has_rows == (count >= lanes)


def test_a_block_costs_as_many_loads_as_rows(target, assembly):
    text = emit(_program("float32", 8, 8), target).text
    assert text.count("load <8 x float>") == 8
    assert text.count("shufflevector") == 24
    assert "insertelement" not in text
    if target.has("avx2"):
        shuffles = ("unpck", "vinsertf128", "vperm2f128", "vshufps", "vblend")
        lines = assembly(emit(_program("float32", 8, 8), target)).splitlines()
        assert sum(any(name in line for name in shuffles) for line in lines) == 24


def test_a_store_to_the_same_buffer_ends_a_block(build):
    func = _program(
        "float32", 8, 9,
        between=[lambda a: Store(a, (ROW + 1, ROW + 3), const(-1.0, "float32"))],
    )  # fmt: skip
    a = np.arange(1600, dtype="float32").reshape(40, 40)
    expected = a.copy()
    rows = []
    for i in range(2):
        rows = [expected[i : i + 8, i].copy()]
        expected[i + 1, i + 3] = -1
        rows += [expected[i : i + 8, i + n].copy() for n in range(1, 9)]
    b = np.zeros((9, 8), "float32")
    build(func)(a, b)
    np.testing.assert_array_equal(b, rows)
    np.testing.assert_array_equal(a, expected)


def test_what_is_read_under_a_condition_is_left_alone(build, target):
    func = _program(
        "float32",
        8,
        8,
        wrap=lambda load: IfThenElse(ROW < 1, load, Load(load.buffer, load.indices)),
    )
    assert "load <8 x float>" not in emit(func, target).text
    a = np.arange(1600, dtype="float32").reshape(40, 40)
    b = np.zeros((8, 8), "float32")
    build(func)(a, b)
    np.testing.assert_array_equal(b, a[1:9, 1:9].T)


def test_an_expression_whose_parts_are_used_twice_is_read_once():
    A = te.placeholder((16,), name="A")

    def element(i):
        value = A[i]
        for _ in range(60):
            value = te.maximum(value, value * 0.5)
        return value

    B = te.compute((16,), element, name="B")
    s = create_schedule(B)
    outer, inner = s[B].split(B.op.axis[0], 8)
    s[B].vectorize(inner)
    s[B].unroll(outer)
    a, b = np.linspace(-1, 1, 16, dtype="float32"), np.empty(16, "float32")
    build(s, [A, B])(a, b)
    np.testing.assert_array_equal(b[8:], a[8:])
