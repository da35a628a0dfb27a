"""Inputs that are used as indices are drawn so that they name elements."""

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.arith import Interval
from dlcompiler.errors import ProgramError
from dlcompiler.measurement.indices import index_ranges
from dlcompiler.measurement.inputs import drawn_indices


def gather(index, n=10, m=7, dtype="int32", size=30):
    A = te.placeholder((n, m), name="A")
    ids = te.placeholder((size,), dtype, name="I")
    C = te.compute((size, 2), lambda i, j: A[index(ids, i, j)], name="C")
    return A, ids, C


def ranges(*outputs):
    found = index_ranges(outputs, guarded=False)
    return {t.name: (s.low, s.high) for t, s in found.spans.items()}, found.unknown


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("index", "low", "high"),
    [
        (lambda ids, i, j: (ids[i], j), 0, 9),
        (lambda ids, i, j: (ids[i] + 1, j), -1, 8),
        (lambda ids, i, j: (1 - ids[i], j), -8, 1),
        (lambda ids, i, j: (ids[i] // 2, j), 0, 19),
        (lambda ids, i, j: (ids[i] * 3 + 2, j), 0, 2),
        (lambda ids, i, j: (ids[i] - 1000, j), 1000, 1009),
        (lambda ids, i, j: ((ids[i] - 1000) // 4, j), 1000, 1039),
        (lambda ids, i, j: (te.abs(ids[i]), j), 0, 9),
        (lambda ids, i, j: (te.assume_bounds(ids[i]), j), 0, 9),
        (lambda ids, i, j: (te.assume_bounds(ids[i] - 1), te.assume_bounds(j)), 1, 10),
        (lambda ids, i, j: (ids[i], ids[i]), 0, 6),
        (lambda ids, i, j: (ids[i] + 3 * j, 0), 0, 6),
        (lambda ids, i, j: (ids[i], ids[29 - i] + j), 0, 5),
    ],
)
@pytest.mark.parametrize("dtype", ["int16", "int64"])
def test_the_range_of_an_index(index, low, high, dtype):
    A, ids, C = gather(index, dtype=dtype)
    assert ranges(C) == ({"I": (low, high)}, ())
    verified = dlc.verify(te.create_schedule(C.op), [A, ids, C])
    assert verified.indices == (f"I from {low} to {high}",)
    assert f"no error, indices I from {low} to {high})" in repr(verified)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("dtype", "index", "low", "high"),
    [
        ("uint8", lambda x: x + 100, 156, 165),
        ("uint8", lambda x: x + 200, 56, 65),
        ("uint8", lambda x: x * 3 + 250, 2, 5),
        ("uint8", lambda x: x << 1, 0, 4),
        ("uint8", lambda x: (x + 100) >> 1, 156, 175),
        ("uint8", lambda x: (x + 100).astype("int8"), 156, 165),
        ("int8", lambda x: x - 100 - 100, -56, -47),
        ("int16", lambda x: x + 32767, -32767, -32758),
        ("int16", lambda x: x + 30000 + 30000, 5536, 5545),
        ("int32", lambda x: (x + 300).astype("uint8") + 100, -400, -391),
        ("uint32", lambda x: x + 2**31, 2**31, 2**31 + 9),
        ("int64", lambda x: x + (2**63 - 1), 1 - 2**63, 10 - 2**63),
        ("uint64", lambda x: x + (2**64 - 5), 5, 14),
    ],
)
def test_an_index_that_wraps_is_drawn_where_it_is_inside(dtype, index, low, high):
    A, ids, C = gather(lambda ids, i, j: (index(ids[i]), j), dtype=dtype)
    (found,), unknown = [*ranges(C)[0].values()], ranges(C)[1]
    assert (found, unknown) == ((low, high), ())
    assert dlc.verify(te.create_schedule(C.op), [A, ids, C])


def test_a_condition_does_not_wrap():
    _A, _ids, C = gather(lambda ids, i, j: ((ids[i] + 254).astype("bool").astype("int32") * 9, j))
    assert ranges(C) == ({}, ())


@pytest.mark.parametrize(
    "index",
    [
        lambda ids, i, j: (te.minimum(te.maximum(ids[i], 0), 9), j),
        lambda ids, i, j: (ids[i] % 10, j),
        lambda ids, i, j: ((ids[i] > 3).astype("int32"), j),
    ],
)
def test_an_index_that_is_always_valid_asks_for_nothing(index):
    A, ids, C = gather(index)
    assert ranges(C) == ({}, ())
    assert dlc.verify(te.create_schedule(C.op), [A, ids, C]).indices == ()


def test_several_index_tensors_share_the_room():
    A = te.placeholder((100,), name="A")
    ids, J = (te.placeholder((20,), "int32", name=name) for name in "IJ")
    C = te.compute((20,), lambda i: A[ids[i] + J[i]], name="C")
    (found, unknown) = ranges(C)
    assert not unknown
    assert all(high - low > 20 for low, high in found.values())
    assert len(dlc.verify(te.create_schedule(C.op), [A, ids, J, C]).indices) == 2


def test_indices_of_indices_and_of_computed_stages():
    A, ids = te.placeholder((9,), name="A"), te.placeholder((6,), "int32", name="I")
    J = te.placeholder((20,), "uint8", name="J")
    C = te.compute((20,), lambda i: A[ids[J[i]]], name="C")
    assert ranges(C) == ({"I": (0, 8), "J": (0, 5)}, ())
    K = te.compute((20,), lambda i: J[i] * 2, name="K")
    D = te.compute((20,), lambda i: A[K[i].astype("int32") + 1], name="D")
    assert ranges(D) == ({"J": (0, 3)}, ())
    s = te.create_schedule(D.op)
    s[K].compute_inline()
    assert dlc.verify(s, [A, J, D]).indices == ("J from 0 to 3",)


def test_a_guard_is_tried_on_both_sides():
    A, ids = te.placeholder((9,), name="A"), te.placeholder((50,), "int32", name="I")
    C = te.compute(
        (50,),
        lambda i: te.if_then_else(te.all(ids[i] >= 0, ids[i] < 9), A[ids[i]], -1.0),
        name="C",
    )
    assert ranges(C) == ({}, ())
    assert dlc.verify(te.create_schedule(C.op), [A, ids, C]).indices == ()
    D = te.compute((50,), lambda i: te.if_then_else(i < 25, A[ids[i]], -1.0), name="D")
    verified = dlc.verify(te.create_schedule(D.op), [A, ids, D])
    assert verified.indices == ("I from 0 to 8",)


def test_a_range_that_is_not_found_is_told():
    A, ids = te.placeholder((64 * 64,), name="A"), te.placeholder((5,), "int8", name="I")
    C = te.compute((5,), lambda i: A[ids[i] * ids[i]], name="C")
    s = te.create_schedule(C.op)
    (found, unknown) = ranges(C)
    assert (found, unknown) == ({"I": (0, 11)}, ())
    F = te.placeholder((5,), name="F")
    D = te.compute((5,), lambda i: A[te.floor(F[i] * F[i]).astype("int32")], name="D")
    verified = dlc.verify(te.create_schedule(D.op), [A, F, D])
    assert verified.indices == ("F at random, since its valid values are not known",)
    E = te.compute((5,), lambda i: A[te.floor(F[i] - 7.0).astype("int32")], name="E")
    with pytest.raises(ProgramError, match="is out of bounds"):
        dlc.verify(te.create_schedule(E.op), [A, F, E])
    assert dlc.verify(s, [A, ids, C])


@te.hybrid.script
def scattered(a, ix):
    b = output_tensor(a.shape, a.dtype)  # noqa: F821
    for i in range(a.shape[0]):
        b[ix[i]] = a[i]
    return b


@te.hybrid.script
def counted(ix):
    b = output_tensor((8,), "int32")  # noqa: F821
    for i in range(8):
        b[i] = 0
    for i in range(ix.shape[0]):
        b[ix[i] - 1] += 1
    return b


def test_stores_at_indices_that_are_data():
    A, X = te.placeholder((12,), name="A"), te.placeholder((12,), "int32", name="X")
    B = scattered(A, X)
    verified = dlc.verify(te.create_schedule(B.op), [A, X, B])
    assert verified.indices == ("X from 0 to 11",)
    Y = te.placeholder((50,), "int32", name="Y")
    H = counted(Y)
    assert dlc.verify(te.create_schedule(H.op), [Y, H]).indices == ("Y from 1 to 8",)


def test_what_a_script_does_not_write_is_0():
    A, X = te.placeholder((12,), name="A"), te.placeholder((12,), "int32", name="X")

    @te.hybrid.script
    def doubled(a, ix):
        b = output_tensor((24,), "float32")  # noqa: F821
        for i in range(12):
            b[ix[i]] = a[i]
        return b

    B = doubled(A, X)
    assert dlc.verify(te.create_schedule(B.op), [A, X, B]).indices


@pytest.mark.parametrize("size", [0, 1, 2, 9, 50])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_what_is_drawn_covers_the_range(size, dtype):
    ids = te.placeholder((size,), dtype, name="I")
    for low, high in ((0, 9), (3, 3), (5, 120)):
        values = drawn_indices(ids, Interval(low, high), 0)
        assert values.dtype == dtype
        assert np.isin(values, np.arange(low, high + 1)).all()
        assert len(set(values.tolist())) >= min(size, high - low + 1, 2)
        if size > high - low:
            assert set(values.tolist()) == set(range(low, high + 1))


def test_a_symbolic_gather():
    n = te.var("n")
    A, ids = te.placeholder((n,), name="A"), te.placeholder((20,), "int32", name="I")
    C = te.compute((20,), lambda i: A[ids[i]], name="C")
    s = te.create_schedule(C.op)
    assert dlc.verify(s, [A, ids, C]).indices == ("I from 0 to 12",)
