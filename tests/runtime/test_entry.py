"""Entries in machine code: what they take, what they leave to Python, and what they hold."""

import gc
import sys
import weakref

import numpy as np
import pytest

from dlcompiler import dtypes
from dlcompiler.errors import CallError, ProgramError
from dlcompiler.runtime import entry as entry_module
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.entry import MOST_ARRAYS, declining
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.llvm import compile_ir

SHAPE = (4, 8)
FAIL = """
define void @f(ptr %a, ptr %status) {
  %value = load i64, ptr %a
  %second = getelementptr i64, ptr %status, i64 1
  store i64 %value, ptr %second
  %is_bad = icmp slt i64 %value, 0
  %code = select i1 %is_bad, i64 2, i64 0
  store i64 %code, ptr %status
  ret void
}
"""


@pytest.fixture
def arrays():
    a, b = (np.random.default_rng(seed).random(SHAPE, np.float32) for seed in (1, 2))
    return a, b, np.zeros(SHAPE, np.float32)


def of_arrays(options, params):
    operands = ", ".join(f"ptr %p{n}" for n in range(len(params)))
    return Function(
        compile_ir(f"define void @f({operands}) {{\n  ret void\n}}", options), "f", params
    )


def test_a_usual_call_is_taken(add, arrays):
    a, b, c = arrays
    assert add._entry(a, b, c) is None
    np.testing.assert_array_equal(c, a + b)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint64", "float16", "float64"]
)
def test_each_dtype_is_taken_and_no_other_one(options, dtype):
    f = of_arrays(options, [Param("A", (3,), dtype, is_output=True)])
    taken = np.zeros(3, dtype)
    assert f._entry(taken) is None
    for other in (taken.astype("float64" if dtype != "float64" else "int64"), taken.view("V1")):
        assert f._entry(other) is NotImplemented
    if taken.itemsize > 1:
        assert f._entry(taken.astype(taken.dtype.newbyteorder(">"))) is NotImplemented
        bytes_ = np.zeros(taken.nbytes + 1, np.int8)
        assert f._entry(bytes_[1:].view(dtype)) is NotImplemented, "not aligned"


def test_a_dtype_without_a_name_in_the_protocol_is_left_to_python(options):
    f = of_arrays(options, [Param("A", (3,), "bfloat16", is_output=True)])
    f(np.zeros(3, dtypes.to_numpy("bfloat16")))


def test_an_extent_that_no_array_has(options):
    f = of_arrays(options, [Param("A", (1 << 70,), "int8"), Param("B", (2,), "int8", True)])
    assert f._entry is declining
    with pytest.raises(CallError, match="wrong shape"):
        f(np.zeros(4, np.int8), np.zeros(2, np.int8))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda a: a[:2],
        lambda a: a.reshape(8, 4),
        lambda a: a.reshape(32),
        lambda a: a[None],
        lambda a: np.asfortranarray(a),
        lambda a: a[::-1],
        lambda a: np.ma.masked_array(a),
        lambda a: memoryview(a),
        lambda a: a.tolist(),
        lambda a: None,
        lambda a: bytearray(a.nbytes),
        lambda a: a.view([("x", "float32")]),
    ],
)
def test_what_is_not_exactly_that_is_declined_and_given_back(add, arrays, wrong):
    for place in range(3):
        given = list(arrays)
        given[place] = wrong(given[place])
        assert add._entry(*given) is NotImplemented
        del given
    for array in arrays:
        array.resize((8, 8), refcheck=False)  # refused while a buffer is held


def test_numbers_of_arguments(add, arrays):
    for given in ((), arrays[:2], (*arrays, arrays[0])):
        assert add._entry(*given) is NotImplemented
    with pytest.raises(TypeError, match="keyword"):
        add._entry(*arrays[:2], C=arrays[2])


def test_overlaps_and_read_only_outputs_are_declined(add, arrays):
    a, b, c = arrays
    whole = np.zeros(64, np.float32)
    first, shifted = whole[:32].reshape(SHAPE), whole[31:63].reshape(SHAPE)
    assert add._entry(first, b, shifted) is NotImplemented
    assert add._entry(shifted, b, first) is NotImplemented
    assert add._entry(first, b, whole[32:].reshape(SHAPE)) is None
    assert add._entry(a, a, c) is None
    c.flags.writeable = False
    assert add._entry(a, b, c) is NotImplemented
    a.flags.writeable = False
    assert add._entry(a, b, np.zeros(SHAPE, np.float32)) is None


@pytest.mark.parametrize("count", [1, 8, 9, MOST_ARRAYS, MOST_ARRAYS + 1])
def test_every_array_reaches_the_kernel(options, count):
    operands = ", ".join(f"ptr %p{n}" for n in range(count))
    stores = "\n".join(f"  store i64 {n + 7}, ptr %p{n}" for n in range(count))
    code = compile_ir(f"define void @f({operands}) {{\n{stores}\n  ret void\n}}", options)
    f = Function(code, "f", [Param(f"p{n}", (1,), "int64", is_output=True) for n in range(count)])
    arrays = [np.zeros(1, np.int64) for _ in range(count)]
    f(*arrays)
    assert [int(array[0]) for array in arrays] == list(range(7, 7 + count))
    assert (f._entry is declining) is (count > MOST_ARRAYS)


def test_errors_that_a_kernel_reports(options):
    messages = ("the first", "{0} is negative")
    f = Function(compile_ir(FAIL, options), "f", [Param("A", (1,), "int64")], messages=messages)
    f(np.array([5]))
    for _ in range(2):
        with pytest.raises(ProgramError, match="-3 is negative"):
            f(np.array([-3]))
    f(np.array([0]))


def test_nothing_is_kept_after_a_call(add, arrays):
    a, b, c = arrays
    held = [sys.getrefcount(array) for array in arrays]
    none, declined = sys.getrefcount(None), sys.getrefcount(NotImplemented)
    for _ in range(1000):
        add._entry(a, b, c)
        add._entry(a, b, b)
    assert [sys.getrefcount(array) for array in arrays] == held
    assert abs(sys.getrefcount(None) - none) < 500
    assert abs(sys.getrefcount(NotImplemented) - declined) < 500


def test_an_exception_that_is_being_handled_stays(add, arrays):
    a, b, c = arrays

    def kind_after_a_call():
        try:
            raise ZeroDivisionError
        except ZeroDivisionError:
            add._entry(a.T, b, c)
            return sys.exc_info()[0]

    assert kind_after_a_call() is ZeroDivisionError


def test_a_function_with_an_entry_is_freed_without_the_collector(make_add, arrays):
    add = make_add(SHAPE)
    add(*arrays)
    module = weakref.ref(add.module)
    gc.disable()
    try:
        del add
        assert module() is None
    finally:
        gc.enable()


def test_where_headers_are_unusual_every_call_is_left_to_python(options, add, arrays, monkeypatch):
    monkeypatch.setattr(entry_module, "_has_type_last", lambda: False)
    slow = Function(add.module, "add", add.params)
    assert slow._entry is declining
    a, b, c = arrays
    slow(a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_headers_are_usual_here():
    assert entry_module._has_type_last(), "calls are slower on this Python"
