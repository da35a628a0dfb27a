"""IfThenElse, Select and conditions: what is not chosen touches no memory."""

import ctypes
import mmap

import numpy as np
import pytest

from dlcompiler.codegen import emit
from dlcompiler.ir import (
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    For,
    If,
    IfThenElse,
    Load,
    Logical,
    Not,
    PrimFunc,
    Ramp,
    Select,
    Store,
    Var,
    const,
    index_const,
)
from dlcompiler.target import resolve

N = 16
A = Buffer("A", (N,), "float32")
Y = Buffer("Y", (64,), "float32")
I = Var("i")  # noqa: E741
FAR = 2**40
"""Elements from A to where nothing is mapped."""
ZERO = const(0.0, "float32")


def _index(lanes):
    return I if lanes == 1 else Ramp(I * lanes, index_const(1), lanes)


def _spread(value, lanes):
    return value if lanes == 1 else Broadcast(value, lanes)


def _num(value, lanes):
    return _spread(index_const(value), lanes)


@pytest.fixture
def run(build):
    """Return Y after ``Y[i] = make(lanes)`` for all i, with A = 100, 101, …"""

    def run_(make, lanes):
        loop = For(I, index_const(64 // lanes), "serial", Store(Y, (_index(lanes),), make(lanes)))
        a, y = np.arange(100, 100 + N, dtype="float32"), np.zeros(64, "float32")
        build(PrimFunc("choice", (A, Y), (Y,), loop))(a, y)
        return y

    return run_


def _far_outside(lanes, index):
    """Return `index` where it lies in A, else a place far away: reading there would crash."""
    inside = Compare("lt", index, _num(N, lanes))
    return Select(inside, index, _num(FAR, lanes)), inside


LANES = pytest.mark.parametrize("lanes", [1, 4, 8])
PADDED = np.concatenate([np.arange(100, 100 + N), np.zeros(64 - N)])


@LANES
def test_neighbours(run, lanes):
    def make(lanes):
        index = _index(lanes)
        inside = Compare("lt", index, _num(N, lanes))
        return IfThenElse(inside, Load(A, (index,)), _spread(ZERO, lanes))

    np.testing.assert_array_equal(run(make, lanes), PADDED)


@LANES
def test_gather(run, lanes):
    def make(lanes):
        place, inside = _far_outside(lanes, _index(lanes))
        return IfThenElse(inside, Load(A, (place,)), _spread(ZERO, lanes))

    np.testing.assert_array_equal(run(make, lanes), PADDED)


@LANES
def test_the_other_side(run, lanes):
    def make(lanes):
        place, inside = _far_outside(lanes, _index(lanes))
        return IfThenElse(Not(inside), _spread(ZERO, lanes), Load(A, (place,)))

    np.testing.assert_array_equal(run(make, lanes), PADDED)


@LANES
def test_nested(run, lanes):
    def make(lanes):
        index = _index(lanes)
        place, inside = _far_outside(lanes, index)
        odd = Compare("eq", Binary("floormod", index, _num(2, lanes)), _num(1, lanes))
        far = Load(A, (Select(odd, place, _num(FAR, lanes)),))
        inner = IfThenElse(odd, far, Load(A, (place,)))
        return IfThenElse(inside, inner, _spread(const(-1.0, "float32"), lanes))

    expected = np.where(np.arange(64) < N, 100 + np.arange(64), -1)
    np.testing.assert_array_equal(run(make, lanes), expected)


@LANES
def test_a_scalar_load_in_a_choice_by_lanes(run, lanes):
    """A[i.outer * lanes], read only if some lane wants it."""

    def make(lanes):
        first = I * lanes
        place = Select(Compare("lt", first, index_const(N)), first, index_const(FAR))
        inside = Compare("lt", _index(lanes), _num(N - 1, lanes))
        return IfThenElse(inside, _spread(Load(A, (place,)), lanes), _spread(ZERO, lanes))

    i = np.arange(64)
    np.testing.assert_array_equal(
        run(make, lanes), np.where(i < N - 1, 100 + i // lanes * lanes, 0)
    )


@LANES
def test_a_condition_that_is_one_for_all_lanes_is_a_jump(run, target, lanes):
    def make(lanes):
        first = I * lanes
        inside = _spread(Compare("lt", first, index_const(N)), lanes)
        return IfThenElse(inside, Load(A, (_index(lanes),)), _spread(ZERO, lanes))

    np.testing.assert_array_equal(run(make, lanes), PADDED)
    loop = For(I, index_const(64 // lanes), "serial", Store(Y, (_index(lanes),), make(lanes)))
    text = emit(PrimFunc("f", (A, Y), (Y,), loop), target).text
    assert "label %then, label %else" in text
    assert "masked" not in text


@LANES
@pytest.mark.parametrize("op", ["and", "or"])
def test_logical_short_circuit(run, lanes, op):
    """(inside and A[i] > 105) and (outside or A[i] > 105): A is read only inside."""

    def make(lanes):
        place, inside = _far_outside(lanes, _index(lanes))
        large = Compare("gt", Load(A, (place,)), _spread(const(105.0, "float32"), lanes))
        condition = Logical(op, inside if op == "and" else Not(inside), large)
        return Select(condition, _spread(const(1.0, "float32"), lanes), _spread(ZERO, lanes))

    i = np.arange(64)
    inside, large = i < N, i > 5
    expected = (inside & large) if op == "and" else (~inside | large)
    np.testing.assert_array_equal(run(make, lanes), expected)


@LANES
def test_uniform_logical_short_circuit(run, lanes):
    def make(lanes):
        first = I * lanes
        inside = _spread(Compare("lt", first, index_const(N)), lanes)
        place = Select(inside, _index(lanes), _num(FAR, lanes))
        large = Compare("gt", Load(A, (place,)), _spread(const(105.0, "float32"), lanes))
        condition = Logical("or", Logical("and", inside, large), Not(inside))
        return Select(condition, _spread(const(1.0, "float32"), lanes), _spread(ZERO, lanes))

    i = np.arange(64)
    np.testing.assert_array_equal(run(make, lanes), (i >= N) | (i > 5))


@LANES
def test_values_of_one_side_are_not_used_on_the_other(run, lanes):
    """The same node on both sides and after them is computed where it is needed."""

    def make(lanes):
        index = _index(lanes)
        place, inside = _far_outside(lanes, index)
        value = Load(A, (place,))
        shared = value * value
        chosen = IfThenElse(inside, shared, _spread(ZERO, lanes))
        again = IfThenElse(inside, shared + value, _spread(ZERO, lanes))
        return chosen + again

    a = PADDED.astype("float32")
    np.testing.assert_array_equal(run(make, lanes), a * a * 2 + a)


@LANES
def test_select_by_one_condition_for_all_lanes(run, lanes):
    """A scalar condition with vector sides."""

    def make(lanes):
        value = _spread(const(2.0, "float32"), lanes)
        return Select(Compare("lt", I, index_const(2)), value, value + value)

    expected = np.where(np.arange(64) // lanes < 2, 2, 4)
    np.testing.assert_array_equal(run(make, lanes), expected)


@LANES
def test_calls_are_made_where_chosen(run, lanes):
    def make(lanes):
        x = Cast(_index(lanes), _spread(ZERO, lanes).dtype)
        root = Call("exp", (x,), x.dtype)
        return IfThenElse(Compare("lt", _index(lanes), _num(3, lanes)), root, x)

    i = np.arange(64)
    np.testing.assert_allclose(run(make, lanes), np.where(i < 3, np.exp(np.minimum(i, 3)), i), 1e-6)


@pytest.mark.parametrize("lanes", [1, 4])
def test_a_long_chain_of_choices(run, lanes):
    """As deep as tensor expressions may be."""

    def make(lanes):
        value = _spread(ZERO, lanes)
        for n in range(120):
            place = Load(A, (Binary("floormod", _index(lanes), _num(N, lanes)),))
            value = IfThenElse(Compare("eq", _index(lanes), _num(n, lanes)), place, value)
        return value

    np.testing.assert_array_equal(run(make, lanes), 100 + np.arange(64) % N)


def test_a_masked_load_reads_nothing_beyond_the_end(build):
    """Vectors over the end of an array that ends where a page ends, and nothing comes after."""
    page = mmap.PAGESIZE
    region = mmap.mmap(-1, 2 * page)
    view = np.frombuffer(region, "float32")
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(view.ctypes.data + page), page, 0) == 0
    array = view[page // 4 - 13 : page // 4]
    array[:] = np.arange(13)

    a, y = Buffer("A", (13,), "float32"), Buffer("Y", (16,), "float32")
    index = Ramp(I * 8, index_const(1), 8)
    inside = Compare("lt", index, Broadcast(index_const(13), 8))
    value = IfThenElse(inside, Load(a, (index,)), Broadcast(const(-1.0, "float32"), 8))
    kernel = build(
        PrimFunc("f", (a, y), (y,), For(I, index_const(2), "serial", Store(y, (index,), value)))
    )
    assert "llvm.masked.load.v8f32" in kernel.source.text
    result = np.zeros(16, "float32")
    kernel(array, result)
    assert result.tolist() == [*range(13), -1, -1, -1]


def test_if_statements(build):
    y = Buffer("Y", (9,), "int32")
    small = Store(y, (I,), const(1, "int32"))
    large = If(
        Compare("lt", I, index_const(6)),
        Store(y, (I,), const(2, "int32")),
        If(Compare("lt", I, index_const(8)), Store(y, (I,), const(3, "int32"))),
    )
    body = For(I, index_const(9), "serial", If(Compare("lt", I, index_const(3)), small, large))
    result = np.zeros(9, "int32")
    build(PrimFunc("f", (y,), (y,), body))(result)
    assert result.tolist() == [1, 1, 1, 2, 2, 2, 3, 3, 0]


def test_a_select_of_scalars_is_no_branch():
    def text_of(lanes):
        a, y = Load(A, (_index(lanes),)), _index(lanes)
        choice = Select(Compare("lt", a, _spread(ZERO, lanes)), _spread(ZERO, lanes), a)
        loop = For(I, index_const(N // lanes), "serial", Store(Y, (y,), choice))
        return emit(PrimFunc("f", (A, Y), (Y,), loop), resolve("cpu")).text

    assert "!unpredictable" in text_of(1)
    assert "!unpredictable" not in text_of(4)
