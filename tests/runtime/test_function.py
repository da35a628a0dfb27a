"""Calling a kernel: what is accepted, and one refusal for each mistake."""

import gc
import re
import time
import timeit
import weakref

import numpy as np
import pytest

from dlcompiler.errors import CallError
from dlcompiler.runtime import function as function_module
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.llvm import compile_ir

SHAPE = (4, 8)


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    a, b = (rng.random(SHAPE, dtype=np.float32) for _ in "ab")
    return a, b, np.full(SHAPE, np.nan, np.float32)


def refused(add, *arguments):
    """Return the text of the refusal; the output must be as it was."""
    with pytest.raises(CallError) as caught:
        add(*arguments)
    return str(caught.value)


def test_a_call_computes(add, arrays):
    a, b, c = arrays
    assert add(a, b, c) is None
    np.testing.assert_array_equal(c, a + b)


def test_what_a_function_shows(add):
    assert repr(add) == "Function(add(A: float32[4, 8], B: float32[4, 8], C: float32[4, 8]))"
    assert "define void @add" in add.source()
    assert "define" in add.llvm_ir
    assert "add:" in add.assembly
    assert not add.uses_threads
    assert [param.is_output for param in add.params] == [False, False, True]
    assert add.params[0].nbytes == 128


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.0, np.float32(1e-45)])
def test_unusual_values_pass_through(add, arrays, value):
    a, b, c = arrays
    a[:] = value
    add(a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_two_inputs_may_be_the_same_array(add, arrays):
    a, _, c = arrays
    add(a, a, c)
    np.testing.assert_array_equal(c, a + a)


def test_an_input_may_be_read_only(add, arrays):
    a, b, c = arrays
    a.flags.writeable = False
    add(a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_parts_of_one_array_may_be_arguments_if_they_do_not_overlap(add):
    whole = np.arange(96, dtype=np.float32)
    parts = [whole[start : start + 32].reshape(SHAPE) for start in (0, 32, 64)]
    expected = parts[0] + parts[1]
    add(*parts)
    np.testing.assert_array_equal(parts[2], expected)


def test_a_subclass_of_ndarray_is_taken(add, arrays, tmp_path):
    a, b, _ = arrays
    c = np.memmap(tmp_path / "c", np.float32, "w+", shape=SHAPE)
    add(a.view(np.matrix), b, c)
    np.testing.assert_array_equal(np.asarray(c), a + b)


def test_an_array_by_dlpack_is_taken(add, arrays):
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **how):
            return self.array.__dlpack__(**how)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    a, b, c = arrays
    add(Foreign(a), b, Foreign(c))
    np.testing.assert_array_equal(c, a + b)


def test_an_array_of_another_device_is_refused(add, arrays):
    class OnGPU:
        def __dlpack__(self, **how):
            raise BufferError("cannot export from a GPU")

        def __dlpack_device__(self):
            return (2, 0)

    _, b, c = arrays
    text = refused(add, OnGPU(), b, c)
    assert text.startswith("call add: argument 1 (A): NumPy cannot use its memory\n")
    assert "expected  an array in the memory of the CPU" in text


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), ()])
def test_shapes_without_extents_or_elements(make_add, shape):
    add = make_add(shape)
    a, b, c = (np.full(shape, value, np.float32) for value in (1, 2, 0))
    add(a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_an_empty_output_may_lie_inside_an_input(options):
    module = compile_ir("define void @f(ptr %a, ptr %c) {\n  ret void\n}", options)
    f = Function(module, "f", [Param("A", (4,), "int8"), Param("C", (0,), "int8", True)])
    a = np.zeros(4, np.int8)
    f(a, a[2:2])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "uint64", "float16", "index"])
def test_dtypes_of_arrays(options, dtype):
    module = compile_ir("define void @f(ptr %a) {\n  ret void\n}", options)
    f = Function(module, "f", [Param("A", (4,), dtype)])
    f(np.zeros(4, "int64" if dtype == "index" else dtype))
    with pytest.raises(CallError, match="wrong dtype"):
        f(np.zeros(4, "float64"))


def test_too_few_arguments(add, arrays):
    assert refused(add, *arrays[:2]) == (
        "call add: wrong number of arguments\n"
        "  got       2\n"
        "  expected  3: A, B, C\n"
        "  hint      the caller makes the outputs and passes them last:"
        " C = numpy.empty((4, 8), 'float32')"
    )


def test_too_many_arguments(add, arrays):
    text = refused(add, *arrays, arrays[0])
    assert text == "call add: wrong number of arguments\n  got       4\n  expected  3: A, B, C"


@pytest.mark.parametrize("wrong", [[[1.0]], 3.5, None, "abc"])
def test_what_is_not_an_array(add, arrays, wrong):
    text = refused(add, arrays[0], wrong, arrays[2])
    assert text == (
        "call add: argument 2 (B): not an array\n"
        f"  got       {type(wrong).__name__}\n"
        "  expected  a NumPy array float32[4, 8]\n"
        "  hint      numpy.asarray(x, dtype='float32')"
    )


def test_a_masked_array(add, arrays):
    text = refused(add, np.ma.masked_array(arrays[0], mask=True), *arrays[1:])
    assert text == (
        "call add: argument 1 (A): a masked array\n"
        "  because   machine code does not see the mask\n"
        "  hint      fill it: x.filled(0)"
    )


def test_a_wrong_dtype(add, arrays):
    a, b, c = arrays
    assert refused(add, a, b.astype("float64"), c) == (
        "call add: argument 2 (B): wrong dtype\n"
        "  got       float64\n"
        "  expected  float32\n"
        "  hint      x.astype('float32')"
    )
    assert "hint" not in refused(add, a, b, np.zeros(SHAPE, "int32")), (
        "a copy would not be the output"
    )


def test_a_foreign_byte_order(add, arrays):
    a, b, c = arrays
    assert refused(add, a.astype(">f4"), b, c) == (
        "call add: argument 1 (A): foreign byte order\n"
        "  got       float32 as '>f4'\n"
        "  expected  float32 as '<f4'\n"
        "  hint      x.astype('float32') makes a copy in this machine's order"
    )


def test_a_wrong_shape(add, arrays):
    a, b, c = arrays
    assert refused(add, a, b.reshape(8, 4), c) == (
        "call add: argument 2 (B): wrong shape\n"
        "  got       (8, 4)\n"
        "  expected  (4, 8)\n"
        "  hint      a built function has fixed shapes: build it again for other ones"
    )


@pytest.mark.parametrize("shape", [(32,), (4, 8, 1), (1, 4, 8)])
def test_a_wrong_number_of_dimensions(add, arrays, shape):
    a, b, c = arrays
    text = refused(add, a.reshape(shape), b, c)
    assert text.startswith("call add: argument 1 (A): wrong number of dimensions\n")
    assert f"  got       {shape}\n" in text


@pytest.mark.parametrize(
    "view",
    [
        lambda x: np.asfortranarray(x),
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x[::-1],
        lambda x: x[:, ::-1],
        lambda x: np.broadcast_to(x[0], SHAPE),
    ],
    ids=["Fortran", "step", "reversed rows", "reversed columns", "broadcast"],
)
def test_other_strides(add, arrays, view):
    a, b, c = arrays
    strided = view(b)
    assert refused(add, a, strided, c) == (
        "call add: argument 2 (B): not contiguous in C order\n"
        f"  got       strides of {strided.strides} bytes\n"
        "  expected  strides of (32, 4) bytes\n"
        "  hint      numpy.ascontiguousarray(x)"
    )
    if strided.flags.writeable:
        assert "hint      write into numpy.empty" in refused(add, a, b, view(c))


def test_elements_that_are_not_aligned(add, arrays):
    _, b, c = arrays
    crooked = np.zeros(129, np.uint8)[1:].view(np.float32).reshape(SHAPE)
    text = refused(add, crooked, b, c)
    assert re.fullmatch(
        r"call add: argument 1 \(A\): elements are not aligned\n"
        r"  got       the address 0x[0-9a-f]+\n"
        r"  expected  a multiple of 4\n"
        r"  hint      x.copy\(\)",
        text,
    )


def test_a_read_only_output(add, arrays):
    a, b, c = arrays
    c.flags.writeable = False
    assert refused(add, a, b, c) == (
        "call add: argument 3 (C): the output is read-only\n"
        "  got       an array with flags.writeable False\n"
        "  expected  an array that may be written\n"
        "  hint      pass numpy.empty((4, 8), 'float32')"
    )


def test_an_output_that_is_an_input(add, arrays):
    a, b, _ = arrays
    before = a.copy()
    assert refused(add, a, b, a) == (
        "call add: argument 3 (C): the output overlaps argument 1 (A)\n"
        "  because   the kernel writes C before it has done with A\n"
        "  hint      pass an array of its own for each output, for example numpy.empty_like(x)"
    )
    np.testing.assert_array_equal(a, before)


@pytest.mark.parametrize("shift", [-31, -1, 1, 31])
def test_an_output_that_overlaps_an_input_by_some_elements(add, arrays, shift):
    whole = np.zeros(96, np.float32)
    inside, shifted = (whole[start : start + 32].reshape(SHAPE) for start in (32, 32 + shift))
    assert "overlaps argument 2 (B)" in refused(add, arrays[0], inside, shifted)
    memory_mapped = shifted.view(np.matrix)  # goes the slow way
    assert "overlaps argument 2 (B)" in refused(add, arrays[0], inside, memory_mapped)


def test_two_outputs_that_overlap(options):
    module = compile_ir("define void @f(ptr %a, ptr %b) {\n  ret void\n}", options)
    f = Function(module, "f", [Param(name, (4,), "int8", True) for name in "AB"])
    a = np.zeros(4, np.int8)
    assert "argument 2 (B): the output overlaps argument 1 (A)" in refused(f, a, a)


def test_a_function_keeps_its_code(options, arrays, make_add):
    add = make_add(SHAPE)
    module = weakref.ref(add.module)
    gc.collect()
    add(*arrays)
    del add
    gc.collect()
    assert module() is None


def test_the_data_pointer_is_read_here():
    assert function_module._reads_data_pointer(), "calls with symbols are slower on this Python"


def test_a_call_of_three_arrays_costs_at_most_four_additions_of_numpy(options, arrays):
    module = compile_ir("define void @f(ptr %a, ptr %b, ptr %c) {\n  ret void\n}", options)
    f = Function(module, "f", [Param(name, SHAPE, "float32", name == "C") for name in "ABC"])
    a, b, c = arrays

    def shortest_s(call):
        """Of many short runs, one is not interrupted; a thread's time does not count the others."""
        return min(timeit.repeat(call, time.thread_time, number=200, repeat=100)) / 200

    ratio = shortest_s(lambda: f(a, b, c)) / shortest_s(lambda: np.add(a, b, out=c))
    print(f"a call takes {ratio:.1f} times as long as an addition of NumPy", end="")
    assert ratio < 4
