"""CUDA devices. There is no GPU here: the driver is one that records calls (`tests/fake_cuda.py`).

NVRTC is real where it is installed.
"""

import ctypes
import gc
import os

import numpy as np
import pytest

import dlcompiler as dlc
from dlcompiler import te
from dlcompiler.errors import CallError, DeviceFault, DeviceUnavailable, OutOfMemory, TargetError
from dlcompiler.runtime import cuda, dlpack
from tests.codegen.gpu.test_shared_memory import data, reversed_rows
from tests.fake_cuda import FakeDriver, FakeNVRTC, array_at, fake_bindings
from tests.thread_programs import tiled_matmul


def scaled(n=100, symbolic=False):
    """Return a program that multiplies by a number that the call gives."""
    size = te.var("n") if symbolic else n
    f = te.var("f", dtype="float32")
    A = te.placeholder((size,), name="A")
    C = te.compute((size,), lambda i: A[i] * f, name="C")
    s = te.create_schedule(C.op)
    block, thread = s[C].split(C.op.axis[0], 32)
    s[C].bind(block, te.thread_axis("blockIdx.x"))
    s[C].bind(thread, te.thread_axis("threadIdx.x"))
    return s, [A, f, C]


def doubled(n=100):
    A = te.placeholder((n,), name="A")
    C = te.compute((n,), lambda i: A[i] * 2.0, name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))
    return dlc.build(s, [A, C], target="cuda")


def double(a, c):
    array_at(c, (100,), "float32")[...] = 2 * array_at(a, (100,), "float32")


# -- what is missing -----------------------------------------------------------------------------


def test_without_the_bindings_the_package_is_named(use, monkeypatch):
    def missing():
        raise ImportError("No module named 'cuda'")

    monkeypatch.setattr(cuda, "bindings", missing)
    cuda.connect.cache_clear()
    with pytest.raises(DeviceUnavailable) as caught:
        doubled()
    cuda.connect.cache_clear()
    assert str(caught.value) == (
        "build for cuda: the device of cuda is not here\n"
        "  because   cuda-bindings is not installed (No module named 'cuda'):"
        " pip install dlcompiler-lab[cuda]\n"
        "  hint      target='gpu' simulates one"
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (100, "the driver finds no NVIDIA GPU (CUDA_ERROR_NO_DEVICE from cuInit: in words)"),
        (803, "parts of the NVIDIA driver do not fit each other"),
        (999, "the NVIDIA driver does not start (CUDA_ERROR_999 from cuInit: in words)"),
    ],
)
def test_why_a_driver_does_not_start(error, words, use):
    use(fake_bindings()).errors["cuInit"] = error
    assert words in cuda.find_device()[1]


def test_a_missing_permission_is_named(use, monkeypatch, tmp_path):
    control = tmp_path / "nvidiactl"
    control.touch()
    monkeypatch.setattr(cuda, "_CONTROL", str(control))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    use(fake_bindings()).errors["cuInit"] = 100
    assert cuda.find_device()[1].startswith(f"no permission to use the GPU: {control} cannot")


def test_a_driver_without_its_library(use):
    class Missing(FakeDriver):
        def __getattr__(self, name):
            raise RuntimeError("libcuda.so.1 not found")

    use(fake_bindings(Missing()))
    assert cuda.find_device()[1] == "no NVIDIA driver is installed here (libcuda.so.1 not found)"


def test_a_driver_that_is_older_than_the_compiler(use):
    use(fake_bindings(FakeDriver(version=12040), FakeNVRTC(version=(13, 1))))
    assert cuda.find_device()[1] == (
        "the driver is of CUDA 12.4, older than NVRTC 13.1: update the driver, or install an "
        "NVRTC 12.x"
    )


# -- a call --------------------------------------------------------------------------------------


@pytest.mark.parametrize("symbolic", [False, True])
def test_a_launch_packs_pointers_and_numbers(fake, symbolic):
    def scale(a, c, *numbers):
        (factor,) = [n for n in numbers if isinstance(n, np.float32)]
        array_at(c, (100,), "float32")[...] = factor * array_at(a, (100,), "float32")

    fake.kernels["main_kernel0"] = scale
    kernel = dlc.build(*scaled(symbolic=symbolic), target="cuda")
    a, c = np.arange(100, dtype="float32"), np.zeros(100, "float32")
    kernel(a, 2.5, c)
    np.testing.assert_array_equal(c, 2.5 * a)
    name, blocks, threads, values = fake.launches[-1]
    assert (name, blocks, threads) == ("main_kernel0", (4, 1, 1), (32, 1, 1))
    sizes = [value for value in values if isinstance(value, np.int64)]
    assert sizes == ([100] if symbolic else [])
    assert fake.count("cuLaunchKernel") == 1
    assert fake.image == b"code"
    assert fake.nvrtc.options == (b"--gpu-architecture=sm_90", b"--std=c++17")


def test_memory_of_a_call_is_freed(fake):
    doubled()(np.zeros(100, "float32"), np.zeros(100, "float32"))
    assert not fake.memory


def test_a_failed_check_is_reported(fake):
    A, index = te.placeholder((10,), name="A"), te.placeholder((8,), dtype="int32", name="I")
    C = te.compute((8,), lambda i: A[index[i]], name="C")
    s = te.create_schedule(C.op)
    s[C].bind(C.op.axis[0], te.thread_axis("threadIdx.x"))

    def report(a, i, c, status):
        array_at(status, (9,), "int64")[:3] = 1, 77, 5

    fake.kernels["main_kernel0"] = report
    kernel = dlc.build(s, [A, index, C], target="cuda")
    with pytest.raises(dlc.errors.ProgramError, match="77"):
        kernel(np.zeros(10, "float32"), np.zeros(8, "int32"), np.zeros(8, "float32"))


def test_an_unknown_architecture_gets_ptx_of_the_next_lower_one(use):
    fake = use(fake_bindings(FakeDriver(compute=(12, 0)), FakeNVRTC(archs=(80, 90))))
    doubled()(np.zeros(100, "float32"), np.zeros(100, "float32"))
    assert fake.nvrtc.options[0] == b"--gpu-architecture=compute_90"


# -- faults --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "code", "error", "words"),
    [
        ("cuCtxSynchronize", 700, DeviceFault, "CUDA_ERROR_ILLEGAL_ADDRESS from cuCtxSynchronize"),
        ("cuLaunchKernel", 701, TargetError, "a block needs more registers or memory than"),
        ("cuModuleLoadData", 222, DeviceUnavailable, "the driver may be older than NVRTC"),
    ],
)
def test_errors_of_the_driver(fake, function, code, error, words):
    fake.errors[function] = code
    with pytest.raises(error, match=words):
        doubled()(np.zeros(100, "float32"), np.zeros(100, "float32"))


def test_no_memory_on_the_device(fake):
    fake.total = 100
    with pytest.raises(OutOfMemory) as caught:
        doubled()(np.zeros(100, "float32"), np.zeros(100, "float32"))
    assert str(caught.value) == (
        "call main: not enough memory on the device\n"
        "  got       CUDA_ERROR_OUT_OF_MEMORY from cuMemAlloc: in words\n"
        "  because   the device is Fake GPU (sm_90, CUDA 12.9) with 0 MiB, of which 0 MiB are"
        " free\n"
        "  hint      arrays of a device are released when the last reference to them ends"
    )
    fake.total = 1 << 30
    doubled()(np.zeros(100, "float32"), np.zeros(100, "float32"))


def test_a_source_that_the_compiler_refuses(use):
    use(fake_bindings(nvrtc=FakeNVRTC(log="program.cu(1): error: expected a declaration")))
    with pytest.raises(TargetError) as caught:
        doubled()(np.zeros(100, "float32"), np.zeros(100, "float32"))
    assert str(caught.value) == (
        "call main: NVRTC refuses the code\n"
        "  got       program.cu(1): error: expected a declaration\n"
        "  hint      kernel.source() is the code\n"
        "  excerpt   1: /* main, generated by dlcompiler */"
    )


# -- arrays on the device ------------------------------------------------------------------------


def test_arrays_of_the_device_are_not_copied(fake):
    fake.kernels["main_kernel0"] = double
    kernel = doubled()
    a = dlc.to_device(np.arange(100, dtype="float32"), "cuda")
    c = dlc.to_device(np.zeros(100, "float32"), "cuda")
    fake.calls.clear()
    kernel(a, c)
    assert not any(name.startswith("cuMemcpy") for name, *_ in fake.calls)
    np.testing.assert_array_equal(c.to_numpy(), 2 * np.arange(100))


class Tensor:
    """A tensor of another library, which shares memory of a device through DLPack."""

    def __init__(self, array, device=(2, 0), capsule=None):
        self.array, self.device = array, device
        self.streams = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.array.__dlpack__(stream=stream)


def test_a_tensor_of_another_library_is_used_where_it_is(fake):
    fake.kernels["main_kernel0"] = double
    a = dlc.to_device(np.arange(100, dtype="float32"), "cuda")
    c = dlc.to_device(np.zeros(100, "float32"), "cuda")
    kernel, tensor = doubled(), Tensor(a)
    fake.calls.clear()
    kernel(tensor, Tensor(c))
    assert tensor.streams == [1]
    assert not any(name.startswith(("cuMemcpy", "cuMemAlloc")) for name, *_ in fake.calls)
    np.testing.assert_array_equal(c.to_numpy(), 2 * np.arange(100))
    with pytest.raises(CallError, match="the output overlaps argument 1"):
        kernel(tensor, Tensor(a))


def test_a_shared_array_lives_as_long_as_its_consumer(fake):
    a = dlc.to_device(np.arange(100, dtype="float32"), "cuda")
    capsule = a.__dlpack__()
    assert a.__dlpack_device__() == (2, 0)
    del a
    assert len(fake.memory) == 1
    del capsule
    assert not fake.memory


def test_a_tensor_of_another_device_is_refused(fake):
    kernel, c = doubled(), np.zeros(100, "float32")
    a = dlc.to_device(np.zeros(100, "float32"), "cuda")
    with pytest.raises(CallError) as caught:
        kernel(Tensor(a, device=(2, 1)), c)
    assert str(caught.value) == (
        "call main: argument 1: the array is in the memory of another device\n"
        "  got       CUDA device 1\n"
        "  expected  CUDA device 0"
    )


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3, 4)])
def test_every_dtype_and_shape_goes_through_dlpack(fake, dtype, shape):
    driver = cuda.driver()
    values = np.ones(shape, dlc.dtypes.to_numpy(dtype))
    array = dlc.to_device(values, "cuda")
    memory, stand_in = driver.imported(Tensor(array), "call k")
    assert (stand_in.shape, stand_in.dtype) == (values.shape, values.dtype)
    assert memory.address == array.memory.address
    np.testing.assert_array_equal(array.to_numpy(), values)


def test_a_tensor_that_its_library_does_not_share_is_refused(fake):
    class Closed(Tensor):
        def __dlpack__(self, stream=None):
            raise BufferError("it requires gradients")

    with pytest.raises(CallError) as caught:
        doubled()(Closed(None), np.zeros(100, "float32"))
    assert str(caught.value) == (
        "call main: argument 1: its memory cannot be shared\n"
        "  got       Closed: it requires gradients\n"
        "  expected  a tensor that __dlpack__ exports\n"
        "  hint      of a tensor of PyTorch that records gradients, pass x.detach()"
    )


def changed(array, change):
    """Return a tensor whose DLPack description `change` has changed."""
    capsule = array.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    change(dlpack._Managed.from_address(pointer(capsule, b"dltensor")).tensor)

    class Given(Tensor):
        def __dlpack__(self, **_):
            return capsule

    return Given(array)


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "float64"])
def test_the_layout_of_dlpack_is_that_of_numpy(fake, dtype):
    class OfNumPy(Tensor):
        def __dlpack__(self, stream=None):
            return self.array.__dlpack__()

    values = np.arange(24).reshape(2, 3, 4).astype(dtype)
    found = dlpack.Imported(OfNumPy(values), "call k")
    assert (found.shape, found.dtype) == (values.shape, values.dtype)
    assert found.address == values.ctypes.data
    array = dlc.to_device(values, "cuda")
    given = changed(array, lambda tensor: setattr(tensor, "device_type", 1))  # kDLCPU
    given.device = 1, 0
    taken = np.from_dlpack(given)
    np.testing.assert_array_equal(taken, values)
    assert taken.ctypes.data == array.memory.address
    del array, given, taken, found
    gc.collect()
    assert not fake.memory


COLUMNS = (ctypes.c_int64 * 2)(1, 4)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("strides", ctypes.cast(COLUMNS, ctypes.POINTER(ctypes.c_int64)), "not contiguous in C"),
        ("byte_offset", 4, "elements are not aligned"),
        ("lanes", 2, "a dtype that is not known here"),
        ("code", 5, "a dtype that is not known here"),
    ],
)
def test_tensors_that_kernels_cannot_use_are_refused_and_released(fake, field, value, words):
    array = dlc.to_device(np.zeros((4, 4), "float32"), "cuda")
    given = changed(array, lambda tensor: setattr(tensor, field, value))
    with pytest.raises(CallError, match=words):
        cuda.driver().imported(given, "call k")
    del array, given
    gc.collect()
    assert not fake.memory


def test_times_are_those_of_events(fake):
    kernel = doubled()
    call = np.zeros(100, "float32"), np.zeros(100, "float32")
    assert kernel.use(lambda call: call.clocked().seconds(3), *call) == pytest.approx(0.25e-3)
    assert fake.count("cuLaunchKernel") == 3


# -- the target ----------------------------------------------------------------------------------


def test_the_architecture_of_a_target():
    target = dlc.target.resolve("cuda -arch=sm_90")
    assert (target.name, target.cpu, target.runs_on) == ("cuda -arch=sm_90", "sm_90", "cuda")


def test_a_device_that_is_older_than_the_code_is_refused(use):
    use(fake_bindings(FakeDriver(compute=(7, 5)), FakeNVRTC(archs=(75, 80))))
    with pytest.raises(DeviceUnavailable) as caught:
        doubled()
    assert str(caught.value) == (
        "build for cuda: the device of cuda is not here\n"
        "  because   Fake GPU (sm_75, CUDA 12.9) is older than sm_80:"
        " target='cuda -arch=sm_75' is code for it\n"
        "  hint      target='gpu' simulates one"
    )
    dlc.build(*scaled(), target="cuda -arch=sm_75")


@pytest.mark.parametrize(
    "text",
    [
        "cuda -arch=90",
        "cuda -arch=sm_90a",
        "cuda -mcpu=sm_80",
        "cpu -arch=sm_80",
        "cuda -arch=sm_80 -x=1",
    ],
)
def test_other_options_are_refused(text):
    with pytest.raises(TargetError) as caught:
        dlc.target.resolve(text)
    assert str(caught.value) == (
        "resolve a target: not an option of a target\n"
        f"  got       {text!r}\n"
        "  expected  'cuda -arch=sm_80', or a name without options"
    )


def test_the_real_compiler_makes_machine_code(use):
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    from cuda.bindings import nvrtc

    _, major, minor = nvrtc.nvrtcVersion()
    fake = use(fake_bindings(FakeDriver(version=1000 * major + 10 * minor)))
    made = cuda.CUDA(cuda.Bindings(fake, nvrtc))
    schedule, args = tiled_matmul()
    text = dlc.build(schedule, args, target="cuda").source()
    assert made.compile(text, "call main").startswith(b"\x7fELF")
    made.compute = (13, 7)
    assert b".visible .entry main_kernel0" in made.compile(text, "call main")
    with pytest.raises(TargetError) as caught:
        made.compile(text.replace("__syncthreads();", "wait();"), "call main")
    assert caught.value.excerpt.endswith(": wait();")


def test_the_real_bindings_take_the_arguments_of_each_call(fake):
    """Replay the recorded calls: without a driver, each fails only because that is missing."""
    real = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    try:
        real.cuInit(0)
    except RuntimeError as error:
        missing = str(error)
    else:
        pytest.skip("a driver is here: it would use addresses that are not its own")
    kernel = doubled()
    a, c = np.zeros(100, "float32"), dlc.to_device(np.zeros(100, "float32"), "cuda")
    c.assign(c)
    kernel.call_poisoned(1, a, c.to_numpy())
    kernel.use(lambda call: call.clocked().seconds(1), a, c)
    reversed_rows("cuda")(*data(12_000))
    fake.total = 0
    with pytest.raises(OutOfMemory):
        kernel(a, c)
    del kernel, c
    gc.collect()
    event, context, module = real.CUevent(), real.CUcontext(), real.CUmodule()
    handles = {
        "cuCtxSetCurrent": {0: context}, "cuModuleGetFunction": {0: module},
        "cuModuleUnload": {0: module}, "cuLaunchKernel": {0: real.CUfunction()},
        "cuEventRecord": {0: event}, "cuEventSynchronize": {0: event},
        "cuEventElapsedTime": {0: event, 1: event}, "cuEventDestroy": {0: event},
        "cuFuncGetAttribute": {0: real.CUfunction_attribute(0), 1: real.CUfunction()},
        "cuFuncSetAttribute": {0: real.CUfunction(), 1: real.CUfunction_attribute(8)},
    }  # fmt: skip
    seen = {}
    for name, *arguments in fake.calls:
        seen.setdefault(name, arguments)
    assert len(seen) == 27
    with pytest.raises((TypeError, ValueError)):  # arguments are converted before the call
        real.cuMemFree("no address")
    for name, given in seen.items():
        if name == "cuDeviceGetAttribute":
            given[0] = real.CUdevice_attribute(given[0])
        arguments = [handles.get(name, {}).get(n, each) for n, each in enumerate(given)]
        with pytest.raises(RuntimeError) as caught:
            getattr(real, name)(*arguments)
        assert str(caught.value) == missing, name
