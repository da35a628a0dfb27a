"""Indices of a fused loop are one index of what lies side by side."""

import math

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.arith.joining import flat_offset, joined
from dlcompiler.ir import Broadcast, Ramp, Var, binary, index_const
from dlcompiler.pipeline import build
from tests.arith.evaluation import value_of

F, G = Var("f", "index"), Var("g", "index")


def _indices(shape, value):
    """Return where element `value` of a shape is, as `fuse` writes it."""
    found, inner = [], 1
    for position in reversed(range(len(shape))):
        index = value if inner == 1 else binary("floordiv", value, inner)
        found.insert(0, binary("floormod", index, shape[position]) if position else index)
        inner *= shape[position]
    return tuple(found)


def _strides(shape):
    return tuple(math.prod(shape[n + 1 :]) for n in range(len(shape)))


@pytest.mark.parametrize("shape", [(4, 7), (3, 5, 7), (2, 3, 5, 4)])
def test_the_element_stays_the_same(shape):
    strides = _strides(shape)
    indices = _indices(shape, F + 3)
    found = joined(indices, strides)
    assert found is not None
    assert [str(index) for index in found[:-1]] == ["0"] * (len(shape) - 1)
    for number in range(math.prod(shape)):
        flat = [
            sum(value_of(i, {F: number}) * s for i, s in zip(each, strides, strict=True))
            for each in (indices, found)
        ]
        assert flat[0] == flat[1]


def test_what_stands_outside_the_loop_stays():
    found = joined((G, *_indices((4, 7), F)), (28, 7, 1))
    assert [str(index) for index in found] == ["g", "0", "f"]


def test_a_loop_may_begin_at_a_row():
    row, column = _indices((4, 7), F)
    found = joined((G * 2 + row, column), (7, 1))
    assert [str(index) for index in found] == ["g*2", "f"]
    assert joined((row, G + row, column), (28, 7, 1)) is not None
    plane, row, column = _indices((3, 4, 7), F)
    assert joined((plane, G + row, column), (28, 7, 1)) is None


@pytest.mark.parametrize(
    ("indices", "strides"),
    [
        ((F, F), (7, 1)),
        (_indices((4, 7), F), (8, 1)),
        (_indices((4, 7), F), (14, 2)),
        ((binary("floordiv", G, 7), binary("floormod", F, 7)), (7, 1)),
        ((binary("floordiv", F, 6), binary("floormod", F, 7)), (7, 1)),
        ((G, binary("floormod", F, 7)), (7, 1)),
    ],
    ids=["no division", "padded", "strided", "two loops", "another divisor", "rest only"],
)
def test_what_is_no_fused_loop(indices, strides):
    assert joined(indices, strides) is None


@pytest.mark.parametrize("shape", [(3, 5, 7), (64, 50, 7), (6, 1, 9)])
def test_a_fused_loop_reads_and_writes_whole_vectors(shape):
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *i: A[i] * 3, name="B")
    s = te.create_schedule(B.op)
    _, lanes = s[B].split(s[B].fuse(*s[B].op.axis), 8)
    s[B].vectorize(lanes)
    kernel = build(s, [A, B], name="triple")
    assert "load <8 x float>" in kernel.llvm_ir
    assert "extractelement" not in kernel.llvm_ir
    a = np.arange(math.prod(shape), dtype="float32").reshape(shape)
    b = np.zeros(shape, "float32")
    kernel(a, b)
    np.testing.assert_array_equal(b, a * 3)


def test_blocks_of_rows_are_whole_vectors():
    A = te.placeholder((12, 28), name="A")
    B = te.compute((12, 28), lambda i, j: A[i, j] * 3, name="B")
    s = te.create_schedule(B.op)
    _, rows = s[B].split(B.op.axis[0], 4)
    _, lanes = s[B].split(s[B].fuse(rows, B.op.axis[1]), 16)
    s[B].vectorize(lanes)
    kernel = build(s, [A, B], name="triple")
    assert "extractelement" not in kernel.llvm_ir
    a = np.arange(12 * 28, dtype="float32").reshape(12, 28)
    b = np.zeros_like(a)
    kernel(a, b)
    np.testing.assert_array_equal(b, a * 3)


@pytest.mark.parametrize("shape", [(3, 4, 6), (1, 5, 8, 3), (2, 7, 2, 12)])
def test_a_vector_that_fills_a_plane_evenly_is_whole(shape):
    A = te.placeholder(shape, name="A")
    B = te.compute(shape, lambda *i: A[i] * 3, name="B")
    s = te.create_schedule(B.op)
    _, lanes = s[B].split(s[B].fuse(*s[B].op.axis), 8)
    s[B].vectorize(lanes)
    kernel = build(s, [A, B], name="triple")
    assert "extractelement" not in kernel.llvm_ir
    a = np.arange(math.prod(shape), dtype="float32").reshape(shape)
    b = np.zeros_like(a)
    kernel(a, b)
    np.testing.assert_array_equal(b, a * 3)


def test_a_vector_that_may_cross_the_end_of_a_plane_is_none():
    lanes = Ramp(F * 4, index_const(1), 8)
    rows = binary("floormod", binary("floordiv", lanes, splat(6)), splat(4))
    indices = G, rows, binary("floormod", lanes, splat(6))
    assert joined(indices, (24, 6, 1)) is None
    lanes = Ramp(F * 8, index_const(1), 8)
    rows = binary("floormod", binary("floordiv", lanes, splat(6)), splat(4))
    found = joined((G, rows, binary("floormod", lanes, splat(6))), (24, 6, 1))
    assert [str(index) for index in found] == ["g", "0", "f*8 % 24 : +8"]


def splat(number):
    return Broadcast(index_const(number), 8)


def test_strides_that_are_formulas_are_no_numbers():
    n = Var("n", is_symbol=True)
    row, column = _indices((4, 7), F)
    assert joined((row, column), (n, 1)) is None
    assert joined((row, column), (7, n)) is None


@pytest.mark.parametrize(
    ("indices", "strides", "expected"),
    [
        ((F // 48, F // 4 % 12, F % 4 * 16), (768, 64, 1), "f*16"),
        ((F // 48, F % 48 * 16 + 3), (768, 1), "f*16 + 3"),
        ((G, F // 4, F % 4 * 5), (100, 20, 1), "g*100 + f*5"),
        ((F // 48, F % 48 * 16), (769, 1), None),
        ((F // 7, F // 5), (8, 1), None),
        ((F // 4, G % 4), (4, 1), None),
        ((F, G), (4, 1), None),
    ],
)
def test_quotients_and_remainders_of_an_offset_cancel(indices, strides, expected):
    found = flat_offset(indices, strides)
    assert (None if found is None else str(found)) == expected
