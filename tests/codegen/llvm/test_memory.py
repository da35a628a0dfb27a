"""Loads and stores: neighbours, strides, gathers, broadcasts, bools, 0 dimensions."""

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.codegen import emit
from dlcompiler.ir import (
    Allocate,
    Binary,
    Broadcast,
    Buffer,
    Cast,
    For,
    Load,
    Not,
    PrimFunc,
    Ramp,
    Store,
    Var,
    const,
    index_const,
    seq,
)

A = Buffer("A", (6, 40), "float32")
Y = Buffer("Y", (8,), "float32")
J = Buffer("J", (8,), "int64")
ALL = Ramp(index_const(0), index_const(1), 8)
GATHER = Cast(Load(J, (ALL,)), "indexx8")
ONE = index_const(1)


def _vector(value):
    return Broadcast(index_const(value), 8)


def _ramp(base, stride=1):
    return Ramp(index_const(base), index_const(stride), 8)


def _half(base, added):
    return Binary("floordiv", _ramp(base), _vector(2)) + _vector(added)


_INT8 = Cast(Cast(_ramp(124), "int8x8"), "indexx8")
# The indices of a load of A, and what NumPy reads there.
PATTERNS = {
    "neighbours": ((ONE, _ramp(3)), lambda a, j: a[1, 3:11]),
    "sum of ramp and scalar": (
        (ONE, Binary("add", _ramp(3), _vector(20))),
        lambda a, j: a[1, 23:31],
    ),
    "difference": ((ONE, Binary("sub", _ramp(30), _vector(4))), lambda a, j: a[1, 26:34]),
    "difference of ramps": (
        (ONE, Binary("sub", _ramp(30), _ramp(0, 2))),
        lambda a, j: a[1, 30:22:-1],
    ),
    "backward": ((ONE, _ramp(39, -1)), lambda a, j: a[1, 39:31:-1]),
    "stride": ((ONE, _ramp(3, 3)), lambda a, j: a[1, 3:27:3]),
    "every second, to the last": ((index_const(5), _ramp(25, 2)), lambda a, j: a[5, 25::2]),
    "every fourth, from the first": ((index_const(0), _ramp(0, 4)), lambda a, j: a[0, 0:29:4]),
    "every third, backward": ((index_const(5), _ramp(39, -3)), lambda a, j: a[5, 39:17:-3]),
    "far apart": ((ONE, _ramp(2, 5)), lambda a, j: a[1, 2:38:5]),
    "scaled ramp": ((ONE, Binary("mul", _ramp(1), _vector(4))), lambda a, j: a[1, 4:33:4]),
    "scaled from the left": ((ONE, Binary("mul", _vector(4), _ramp(1))), lambda a, j: a[1, 4:33:4]),
    "all equal": ((_vector(2), _vector(5)), lambda a, j: np.full(8, a[2, 5])),
    "equal by stride 0": ((ONE, _ramp(5, 0)), lambda a, j: np.full(8, a[1, 5])),
    "diagonal": (
        (Binary("floordiv", _ramp(0), _vector(2)), _ramp(3)),
        lambda a, j: a[np.arange(8) // 2, np.arange(3, 11)],
    ),
    "indices from memory": ((ONE, GATHER), lambda a, j: a[1, j]),
    "both from memory": ((GATHER % _vector(6), GATHER), lambda a, j: a[j % 6, j]),
    "pairs": ((ONE, _half(0, 7)), lambda a, j: a[1, np.arange(8) // 2 + 7]),
    "pairs, to the last": (
        (index_const(5), _half(1, 35)),
        lambda a, j: a[5, (1 + np.arange(8)) // 2 + 35],
    ),
    "all but the first equal": (
        (index_const(5), Binary("min", _ramp(38), _vector(39))),
        lambda a, j: a[5, np.minimum(38 + np.arange(8), 39)],
    ),
    "equal remainders": (
        (index_const(5), Binary("floormod", _ramp(6), _vector(5)) + _vector(35)),
        lambda a, j: a[5, (6 + np.arange(8)) % 5 + 35],
    ),
    "pairs in two rows": (
        (Binary("sub", _vector(5), Binary("floordiv", _ramp(0), _vector(4))), _half(0, 36)),
        lambda a, j: a[5 - np.arange(8) // 4, np.arange(8) // 2 + 36],
    ),
    "equal quotients": (
        (ONE, Binary("floordiv", _ramp(0), _vector(9)) + _vector(5)),
        lambda a, j: np.full(8, a[1, 5]),
    ),
    "equal quotients of numbers that wrap": (
        (ONE, Binary("floordiv", _INT8, _vector(8)) + _vector(16)),
        lambda a, j: a[1, np.arange(124, 132).astype("int8") // 8 + 16],
    ),
    "interleaved rows": (
        (Binary("floormod", _ramp(0), _vector(2)) * _vector(4) + _vector(1), _half(0, 36)),
        lambda a, j: a[np.arange(8) % 2 * 4 + 1, np.arange(8) // 2 + 36],
    ),
    "by a square": ((ONE, Binary("floormod", Binary("mul", _ramp(0), _ramp(0)), _vector(39))),
                    lambda a, j: a[1, np.arange(8) ** 2 % 39]),
}  # fmt: skip


@pytest.fixture
def arrays():
    a = np.arange(240, dtype="float32").reshape(6, 40)
    return a, np.array([3, 0, 39, 7, 7, 21, 1, 8])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_vector_load(build, arrays, pattern):
    indices, expected = PATTERNS[pattern]
    y = np.zeros(8, "float32")
    body = Store(Y, (ALL,), Load(A, indices))
    build(PrimFunc("load", (A, J, Y), (Y,), body))(*arrays, y)
    np.testing.assert_array_equal(y, expected(*arrays))


@pytest.mark.parametrize(
    "pattern", [name for name in PATTERNS if "equal" not in name and "pair" not in name]
)
def test_vector_store(build, arrays, pattern):
    if "memory" in pattern:
        arrays[1][3] = 9  # all different, since the last of two stores wins
    indices, expected = PATTERNS[pattern]
    y = np.arange(1000, 1008, dtype="float32")
    body = Store(A, indices, Load(Y, (ALL,)))
    build(PrimFunc("store", (A, J, Y), (A,), body))(*arrays, y)
    np.testing.assert_array_equal(expected(*arrays), y)


def test_store_of_one_value_to_many_places(build):
    a = np.zeros((6, 40), "float32")
    body = Store(A, (index_const(2), _ramp(0, 5)), Broadcast(const(3.0, "float32"), 8))
    build(PrimFunc("store", (A,), (A,), body))(a)
    assert np.flatnonzero(a).tolist() == [80 + 5 * n for n in range(8)]


def test_neighbours_are_one_access_and_claim_only_the_alignment_of_elements(target):
    body = Store(Y, (ALL,), Load(A, (ONE, _ramp(3))))
    text = emit(PrimFunc("copy", (A, Y), (Y,), body), target).text
    assert "load <8 x float>, ptr %0, align 4" in text
    assert "store <8 x float> %1, ptr %Y, align 4" in text
    assert "insertelement" not in text


def test_a_broadcast_load_is_one_instruction(target, assembly):
    body = Store(Y, (ALL,), Broadcast(Load(A, (ONE, ONE)), 8))
    if target.has("avx"):
        text = assembly(emit(PrimFunc("spread", (A, Y), (Y,), body), target))
        assert "vbroadcastss" in text


def test_neighbours_but_one_are_read_by_vectors_and_shuffled(target):
    body = Store(Y, (ALL,), Load(A, (ONE, _ramp(3, 2))))
    text = emit(PrimFunc("evens", (A, Y), (Y,), body), target).text
    assert text.count("load <8 x float>") == 2
    assert "insertelement" not in text


def test_repeated_neighbours_are_read_by_vectors_and_shuffled(target):
    body = Store(Y, (ALL,), Load(A, (ONE, _half(0, 7))))
    text = emit(PrimFunc("pairs", (A, Y), (Y,), body), target).text
    assert text.count("load <4 x float>") == 1
    assert "<8 x i32> <i32 0, i32 0, i32 1, i32 1, i32 2, i32 2, i32 3, i32 3>" in text
    assert "insertelement" not in text


def test_bools_are_bytes_in_memory(build):
    a, b = Buffer("A", (16,), "bool"), Buffer("B", (16,), "bool")
    i = Var("i")
    index = Ramp(i * 8, ONE, 8)
    body = For(i, index_const(2), "serial", Store(b, (index,), Not(Load(a, (index,)))))
    values = np.random.default_rng(3).integers(0, 2, 16).astype(bool)
    result = np.zeros(16, bool)
    build(PrimFunc("invert", (a, b), (b,), body))(values, result)
    np.testing.assert_array_equal(result.view("uint8"), (~values).view("uint8"))


@pytest.mark.parametrize("dtype", [name for name in dtypes.SCALARS if name != "index"])
def test_every_dtype_is_copied_unchanged(build, dtype):
    a, b, i = Buffer("A", (32,), dtype), Buffer("B", (32,), dtype), Var("i")
    index = Ramp(i * 4, ONE, 4)
    body = seq(
        [
            Store(b, (index_const(0),), Load(a, (index_const(0),))),
            For(i, index_const(8), "serial", Store(b, (index,), Load(a, (index,)))),
        ]
    )
    numpy_dtype = dtypes.to_numpy(dtype)
    bits = np.random.default_rng(4).integers(
        0, 2 if dtype == "bool" else 256, 32 * numpy_dtype.itemsize
    )
    values, result = bits.astype("uint8").view(numpy_dtype), np.zeros(32, numpy_dtype)
    build(PrimFunc("copy", (a, b), (b,), body))(values, result)
    assert result.tobytes() == values.tobytes()


def test_buffers_of_no_dimensions(build):
    a, b = Buffer("A", (), "float64"), Buffer("B", (), "float64", scope="local")
    body = Allocate(b, seq([Store(b, (), Load(a, ()) + 1), Store(a, (), Load(b, ()) * 2)]))
    value = np.array(20.0)
    build(PrimFunc("f", (a,), (a,), body))(value)
    assert value == 42


def test_strides_of_the_buffer_decide(build):
    a = Buffer("A", (3, 4), "int32", strides=(1, 5))
    i, j = Var("i"), Var("j")
    store = Store(a, (i, j), Cast(i * 10 + j, "int32"))
    loops = For(i, index_const(3), "serial", For(j, index_const(4), "serial", store))
    memory = np.full(20, -1, "int32")
    build(PrimFunc("f", (a,), (a,), loops))(memory)
    expected = np.full((4, 5), -1, "int32")
    expected[:, :3] = np.add.outer(np.arange(4), np.arange(3) * 10)
    np.testing.assert_array_equal(memory.reshape(4, 5), expected)
