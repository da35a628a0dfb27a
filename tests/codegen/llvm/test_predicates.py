"""Predicated loads and stores: lanes that are off touch no memory, whatever their indices are."""

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.ir import (
    Broadcast,
    Buffer,
    Cast,
    Compare,
    For,
    Let,
    Load,
    PrimFunc,
    Ramp,
    Select,
    Store,
    Var,
    const,
    index_const,
)
from dlcompiler.simulate import interpret
from tests.guard_pages import guarded_array

I = Var("i")  # noqa: E741
FAR = 2**40
DTYPES = ("bool", "int8", "uint16", "float16", "int32", "float32", "float64")


def _copy(indices, inside, a, y, lanes, steps):
    body = Store(y, (indices,), Load(a, (indices,), inside), (), inside)
    return PrimFunc("copy", (a, y), (y,), For(I, index_const(steps), "serial", body))


@pytest.mark.parametrize("lanes", [1, 4, 7, 16])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tail_touches_nothing_beyond_the_end(build, dtype, lanes):
    n = 13
    a, y = Buffer("A", (n,), dtype), Buffer("Y", (n,), dtype)
    index = I if lanes == 1 else Ramp(I * lanes, index_const(1), lanes)
    limit = index_const(n) if lanes == 1 else Broadcast(index_const(n), lanes)
    kernel = build(_copy(index, Compare("lt", index, limit), a, y, lanes, -(-n // lanes)))
    kind = dtypes.to_numpy(dtype)
    source, result = guarded_array(n, kind), guarded_array(n, kind)
    source[:] = np.arange(n).astype(kind)
    kernel(source, result)
    np.testing.assert_array_equal(result, source)


@pytest.mark.parametrize("lanes", [4, 8])
def test_a_start_touches_nothing_before_it(build, lanes):
    """Lanes below 0 are off: A[i - 3] of the first vector begins in the page before."""
    n = 16
    a, y = Buffer("A", (n,), "float32"), Buffer("Y", (n,), "float32")
    index = Ramp(I * lanes - 3, index_const(1), lanes)
    inside = Compare("ge", index, Broadcast(index_const(0), lanes))
    body = Store(y, (Ramp(I * lanes, index_const(1), lanes),), Load(a, (index,), inside))
    kernel = build(PrimFunc("f", (a, y), (y,), For(I, index_const(n // lanes), "serial", body)))
    source, result = guarded_array(n, "float32", at_end=False), np.full(n, 7, "float32")
    source[:] = np.arange(1, n + 1)
    kernel(source, result)
    np.testing.assert_array_equal(result, [0, 0, 0, *range(1, n - 2)])


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "float64"])
@pytest.mark.parametrize("lanes", [4, 8])
def test_gather_and_scatter(build, dtype, lanes):
    """Indices from memory that are far outside where the lane is off."""
    n = 16
    a, y = Buffer("A", (n,), dtype), Buffer("Y", (n,), dtype)
    p = Buffer("P", (n,), "int64")
    own = Ramp(I * lanes, index_const(1), lanes)
    place = Cast(Load(p, (own,)), f"indexx{lanes}")
    on, limit = Var("on", f"boolx{lanes}"), Broadcast(index_const(n), lanes)
    store = Store(y, (place,), Load(a, (place,), on), (), on)
    body = Let(on, Compare("lt", place, limit), store)
    loop = For(I, index_const(n // lanes), "serial", body)
    func = PrimFunc("f", (a, p, y), (y,), loop)
    rng = np.random.default_rng(5)
    source = rng.integers(0, 2, n).astype(dtype)
    places = np.where(rng.random(n) < 0.5, FAR, rng.permutation(n))
    result, expected = np.zeros(n, dtype), np.zeros(n, dtype)
    build(func)(source, places, result)
    interpret(func, [source, places, expected])
    np.testing.assert_array_equal(result, expected)


def test_one_address_for_all_lanes_is_read_if_one_is_on(build):
    a, y = Buffer("A", (1,), "float32"), Buffer("Y", (16,), "float32")
    own = Ramp(I * 4, index_const(1), 4)
    inside = Compare("lt", own, Broadcast(index_const(6), 4))
    first = Select(Compare("lt", I, index_const(2)), index_const(0), index_const(FAR))
    body = Store(y, (own,), Load(a, (Broadcast(first, 4),), inside))
    kernel = build(PrimFunc("f", (a, y), (y,), For(I, index_const(4), "serial", body)))
    result = np.full(16, 7, "float32")
    kernel(np.array([5], "float32"), result)
    assert result.tolist() == [5] * 6 + [0] * 10


@pytest.mark.parametrize("op", ["lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.parametrize("stride", [-3, 1, 2])
def test_comparisons_of_indices_near_and_far(build, op, stride):
    """Limits that 32 bits do not hold decide as the others do."""
    limits = [-(2**62), -(2**31), -9, -1, 0, 1, 6, 7, 8, 21, 2**31, 2**32 + 3, 2**62]
    p, y = Buffer("P", (len(limits),), "int64"), Buffer("Y", (len(limits), 8), "bool")
    limit = Broadcast(Cast(Load(p, (I,)), "index"), 8)
    lanes = Ramp(index_const(0), index_const(stride), 8)
    index = (I, Ramp(index_const(0), index_const(1), 8))
    compared = Store(y, index, Compare(op, lanes, limit))
    flipped = Store(y, index, Compare(op, limit, lanes))
    for body, swap in ((compared, False), (flipped, True)):
        loop = For(I, index_const(len(limits)), "serial", body)
        result = np.zeros((len(limits), 8), bool)
        build(PrimFunc("f", (p, y), (y,), loop))(np.array(limits), result)
        a, b = np.arange(8)[None] * stride, np.array(limits)[:, None]
        compare = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
                   "eq": np.equal, "ne": np.not_equal}[op]  # fmt: skip
        np.testing.assert_array_equal(result, compare(b, a) if swap else compare(a, b))


def test_a_scalar_store_under_a_predicate(build):
    y = Buffer("Y", (8,), "int32")
    body = Store(y, (I,), const(3, "int32"), (), Compare("lt", I, index_const(5)))
    result = np.zeros(8, "int32")
    build(PrimFunc("f", (y,), (y,), For(I, index_const(8), "serial", body)))(result)
    assert result.tolist() == [3] * 5 + [0] * 3
