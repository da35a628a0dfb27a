"""Arrays that stay in the memory of an OpenCL device, and calls from several threads."""

import copy
import multiprocessing
import pickle
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import CallError, DeviceUnavailable, OutOfMemory, TargetError
from dlcompiler.pipeline import device_of
from dlcompiler.runtime import opencl as opencl_driver
from dlcompiler.runtime.device_array import DeviceArray
from dlcompiler.runtime.opencl import OpenCL, driver, find_device, find_devices
from dlcompiler.target import resolve

DEVICE = device_of(resolve("opencl"))


def doubled(n):
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: A[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    block, thread = s[C].split(C.op.axis[0], 16)
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(thread, te.thread_axis("threadIdx.x"))
    return dlc.build(s, [A, C], target="opencl")


@pytest.fixture
def copies(opencl, monkeypatch):
    """Count the copies between host and device."""
    found = []
    for name in ("write", "read"):
        original = getattr(OpenCL, name)

        def counted(self, *arguments, name=name, original=original):
            found.append(name)
            original(self, *arguments)

        monkeypatch.setattr(OpenCL, name, counted)
    return found


@pytest.mark.parametrize("size", [40, "n"])
def test_a_call_copies_nothing_that_is_on_the_device(size, copies):
    kernel = doubled(te.var("n") if size == "n" else size)
    values = np.arange(40, dtype="float32")
    a, b, c = (dlc.to_device(each, "opencl") for each in (values, 0 * values, 0 * values))
    copies.clear()
    kernel(a, b)
    kernel(b, c)
    assert copies == []
    np.testing.assert_array_equal(c.to_numpy(), 4 * values)
    host = np.zeros(40, "float32")
    copies.clear()
    kernel(a, host)
    assert copies == ["write", "read"]
    np.testing.assert_array_equal(host, 2 * values)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_what_is_copied_there_comes_back(dtype, shape, opencl):
    values = np.ones(shape, dlc.dtypes.to_numpy(dtype))
    array = dlc.to_device(values, "opencl")
    assert (array.shape, array.dtype, array.nbytes) == (shape, values.dtype, values.nbytes)
    again = DEVICE.allocate(shape, dtype)
    DEVICE.copy(array, again)
    np.testing.assert_array_equal(again.to_numpy(), values)
    host = np.zeros_like(values)
    DEVICE.copy(again, host)
    np.testing.assert_array_equal(np.asarray(again), host)


def test_arrays_in_another_order_are_copied_by_their_elements(opencl):
    values = np.arange(12, dtype="float32").reshape(3, 4)
    for each in (values.T, values[:, ::2], values[::-1]):
        np.testing.assert_array_equal(dlc.to_device(each, "opencl").to_numpy(), each)


def test_an_array_of_the_device_that_does_not_fit_is_refused(opencl):
    kernel, a = doubled(40), dlc.to_device(np.zeros(40, "float32"), "opencl")
    with pytest.raises(CallError, match="the output overlaps argument 1"):
        kernel(a, a)
    for wrong, words in ((np.zeros(41, "float32"), "wrong shape"), (np.zeros(40), "wrong dtype")):
        with pytest.raises(CallError, match=words):
            kernel(dlc.to_device(wrong, "opencl"), a)
    with pytest.raises(CallError) as caught:
        a.assign(np.zeros(40))
    assert str(caught.value) == (
        "copy to an array of a device: shape or dtype differ\n"
        "  got       float64[40]\n"
        "  expected  float32[40]"
    )


def test_an_array_of_another_driver_is_refused(opencl):
    other = OpenCL(find_device()[0])
    array = DeviceArray(other, (40,), "float32")
    with pytest.raises(CallError) as caught:
        doubled(40)(array, np.zeros(40, "float32"))
    name = driver().device_name
    assert str(caught.value) == (
        "call main: argument 1: the array is in the memory of another device\n"
        f"  got       {name} (opencl)\n"
        f"  expected  {name} (opencl)\n"
        "  hint      pass x.to_numpy(): it is copied to the device of the kernel"
    )


def test_a_kernel_of_the_cpu_does_not_take_one(opencl):
    A = te.placeholder((40,), name="A")
    C = te.compute((40,), lambda i: A[i] * 2.0, name="C")
    kernel = dlc.build(te.create_schedule(C.op), [A, C])
    array = dlc.to_device(np.zeros(40, "float32"), "opencl")
    with pytest.raises(CallError, match=r"is in memory of OpenCL: x\.to_numpy\(\) copies it"):
        kernel(array, np.zeros(40, "float32"))


def test_a_target_without_a_memory_of_its_own_has_no_such_arrays():
    with pytest.raises(TargetError) as caught:
        dlc.to_device(np.zeros(4), "v100")
    assert str(caught.value) == (
        "copy an array to a device: v100 has no memory of its own\n"
        "  hint      its kernels take NumPy arrays without a copy"
    )


def test_a_masked_array_is_not_copied_there(opencl):
    with pytest.raises(CallError, match="copy an array to a device: a masked array"):
        dlc.to_device(np.ma.masked_array([1.0, 2.0], [True, False]), "opencl")


@pytest.mark.parametrize(
    ("platforms", "words"),
    [
        (None, "pyopencl is not installed (no module): pip install dlcompiler-lab[opencl]"),
        ([], "the OpenCL drivers have no device: apt-get install pocl-opencl-icd"),
    ],
)
def test_why_there_is_no_opencl_device(platforms, words, monkeypatch):
    def imported(name):
        if platforms is None:
            raise ImportError("no module")
        return SimpleNamespace(get_platforms=lambda: platforms, Error=RuntimeError)

    monkeypatch.setattr(opencl_driver, "import_module", imported)
    assert find_devices.__wrapped__()[1].startswith(words)


def test_threads_share_a_kernel(opencl):
    kernel, wrong = doubled(1000), []

    def run(seed):
        for step in range(20):
            a = np.full(1000, 100 * seed + step, "float32")
            c = np.zeros(1000, "float32")
            kernel(a, c)
            if not np.array_equal(c, 2 * a):
                wrong.append((seed, step))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("shape", "dtype", "error", "words"),
    [
        ((-1,), "float32", CallError, "not a shape"),
        ((2.5,), "float32", CallError, "not a shape"),
        (3, "float32", CallError, "not a shape"),
        ((3,), "float32x4", CallError, "a dtype of vectors"),
        ((1 << 62, 1 << 62), "int8", OutOfMemory, "no memory is as large"),
        ((0, 1 << 62), "int64", OutOfMemory, "no memory is as large"),
    ],
)
def test_a_shape_that_no_array_has_is_refused(shape, dtype, error, words, opencl):
    with pytest.raises(error, match=f"allocate an array {dtype}.*: {words}"):
        DEVICE.allocate(shape, dtype)


def test_only_arrays_are_copied(opencl):
    x, host = dlc.to_device(np.zeros((2, 3), "float32"), "opencl"), np.zeros((3, 2), "float32")
    for source in ([[1, 2, 3], [4, 5, 6]], 3, None):
        with pytest.raises(CallError, match="copy to an array of a device: not an array"):
            x.assign(source)
    with pytest.raises(CallError, match="copy to an array of a device: a masked array"):
        x.assign(np.ma.masked_array(host.T, mask=True))
    for destination in (host, host.T.astype("float64"), [1]):
        with pytest.raises(CallError, match="copy from a device: shape or dtype differ"):
            DEVICE.copy(x, destination)
    with pytest.raises(CallError, match="copy from a device: neither array is in its memory"):
        DEVICE.copy(host, host)


def test_a_copy_has_memory_of_its_own_and_is_not_pickled(opencl):
    x = dlc.to_device(np.arange(3, dtype="float32"), "opencl")
    for again in (copy.copy(x), copy.deepcopy(x)):
        again.assign(np.zeros(3, "float32"))
    np.testing.assert_array_equal(x.to_numpy(), [0, 1, 2])
    with pytest.raises(CallError) as caught:
        pickle.dumps(x)
    assert str(caught.value) == (
        "pickle an array of a device: its memory belongs to this process\n"
        f"  got       DeviceArray(float32[3] on {driver().device_name})\n"
        "  hint      x.to_numpy() is a copy that can be pickled; dlc.to_device(…) copies it back"
    )


def test_a_forked_process_does_not_use_the_device(opencl):
    kernel, a = doubled(40), np.zeros(40, "float32")
    kernel(a, a + 1)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=call_and_say, args=(kernel, a, there))
    process.start()
    assert here.poll(60)
    assert here.recv().startswith(
        "call main: the device was opened by the process that this one was forked from\n"
        f"  got       {driver().device_name}\n"
    )
    process.join()
    kernel(a, a + 1)


def call_and_say(kernel, a, pipe):
    try:
        kernel(a, a + 1)
    except DeviceUnavailable as error:
        pipe.send(str(error))


def reversed_at(A, n, i):
    return A[n - 1 - i]


def test_every_dtype_goes_through_a_kernel(opencl):
    n, names = te.var("n"), [name for name in dlc.dtypes.SCALARS if name != "index"]
    inputs = [te.placeholder((n,), name=f"A_{dtype}", dtype=dtype) for dtype in names]
    outputs = [te.compute((n,), partial(reversed_at, A, n), name=f"C_{A.dtype}") for A in inputs]
    s = te.create_schedule([C.op for C in outputs])
    for C in outputs:
        block, thread = s[C].split(C.op.axis[0], 4)
        s[C].bind(block, te.thread_axis("blockIdx.x"))
        s[C].bind(thread, te.thread_axis("threadIdx.x"))
    kernel = dlc.build(s, [*inputs, *outputs], target="opencl")
    kinds = [dlc.dtypes.to_numpy(dtype) for dtype in names]
    for size in (0, 1, 5):
        given = [(np.arange(size * kind.itemsize, dtype="uint8") % 2).view(kind) for kind in kinds]
        host = [np.zeros_like(a) for a in given]
        kernel(*given, *host)
        there = [dlc.to_device(np.zeros_like(a), "opencl") for a in given]
        kernel(*(dlc.to_device(a, "opencl") for a in given), *there)
        for a, *results in zip(given, host, (c.to_numpy() for c in there), strict=True):
            for result in results:
                np.testing.assert_array_equal(result.view("uint8"), a[::-1].copy().view("uint8"))
