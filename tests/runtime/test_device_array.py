"""Arrays that stay in the memory of an OpenCL device, and calls from several threads."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import CallError, TargetError
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
