"""A CUDA driver without a device: it records calls, keeps memory, and returns error codes.

Device memory is memory of this process, so that launches can be decoded: the parameters of a kernel
are read as the driver would read them. `kernels` says what a kernel computes.
"""

import ctypes
import re

import numpy as np

from dlcompiler.runtime.cuda import Bindings

NAMES = {
    2: "CUDA_ERROR_OUT_OF_MEMORY", 100: "CUDA_ERROR_NO_DEVICE",
    222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", 304: "CUDA_ERROR_OPERATING_SYSTEM",
    700: "CUDA_ERROR_ILLEGAL_ADDRESS", 701: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
}  # fmt: skip
TYPES = {
    "int": np.int32, "long long": np.int64, "float": np.float32, "double": np.float64,
    "unsigned int": np.uint32,
}  # fmt: skip


class FakeDriver:
    """Stands for the module ``cuda.bindings.driver``."""

    def __init__(self, version=12090, compute=(9, 0)):
        self.calls = []
        self.errors = {}
        """Name of a function -> the error that it returns."""
        self.kernels = {}
        """Name of a kernel -> function of its decoded parameters."""
        self.launches = []
        """(name, blocks, threads, parameters) of each launch."""
        self.shared = []
        """The shared memory that each launch adds; [byte]."""
        self.most_threads = 1024
        """Threads of a block that the registers of each kernel allow."""
        self.allowed = {}
        """Name of a kernel -> the shared memory that its launches may add; [byte]."""
        self.total = 1 << 30
        self.devices = 1
        self.version, self.compute = version, compute
        self.memory = {}
        self.image = b""

    def CUdevice_attribute(self, number):
        return number

    CUfunction_attribute = CUdevice_attribute

    def __getattr__(self, name):
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments):
            self.calls.append((name, *arguments))
            if name in self.errors:
                return (self.errors[name],) + (None,) * 2
            return 0, *getattr(self, f"do_{name}", lambda *_: ())(*arguments)

        return call

    def count(self, name):
        return sum(call[0] == name for call in self.calls)

    def cuGetErrorName(self, code):
        return 0, NAMES.get(code, f"CUDA_ERROR_{code}").encode()

    def cuGetErrorString(self, code):
        return 0, b"in words\0"

    def do_cuDriverGetVersion(self):
        return (self.version,)

    def do_cuDeviceGetCount(self):
        return (self.devices,)

    def do_cuDeviceGet(self, number):
        return (number,)

    def do_cuDeviceGetName(self, size, device):
        return (b"Fake GPU".ljust(size, b"\0"),)

    def do_cuDeviceGetAttribute(self, attribute, device):
        found = {1: 1024, 75: self.compute[0], 76: self.compute[1], 97: 227 * 1024}
        return (found[attribute],)

    def do_cuDevicePrimaryCtxRetain(self, device):
        return ("context",)

    def do_cuMemGetInfo(self):
        return self.total - sum(map(len, self.memory.values())), self.total

    def cuMemAlloc(self, size):
        self.calls.append(("cuMemAlloc", size))
        if size > self.do_cuMemGetInfo()[0]:
            return 2, None
        buffer = np.full(size + 256, 0xCD, np.uint8)
        place = -buffer.ctypes.data % 256
        address = buffer.ctypes.data + place
        self.memory[address] = buffer
        return 0, address

    def do_cuMemFree(self, address):
        del self.memory[address]
        return ()

    def do_cuMemcpyHtoD(self, device, host, size):
        ctypes.memmove(device, host, size)
        return ()

    do_cuMemcpyDtoH = do_cuMemcpyDtoD = do_cuMemcpyHtoD

    def do_cuMemsetD8(self, address, byte, size):
        ctypes.memset(address, byte, size)
        return ()

    def do_cuModuleLoadData(self, address):
        self.image = ctypes.string_at(address)
        return ("module",)

    def do_cuModuleGetFunction(self, module, name):
        return (name.decode(),)

    def do_cuFuncGetAttribute(self, attribute, function):
        return ({0: self.most_threads}[attribute],)

    def do_cuFuncSetAttribute(self, function, attribute, value):
        assert attribute == 8
        self.allowed[function] = value
        return ()

    def do_cuEventCreate(self, flags):
        return (object(),)

    def do_cuEventElapsedTime(self, begin, end):
        return (0.25,)

    def do_cuLaunchKernel(self, function, *rest):
        blocks, threads, (shared, stream, pointers, extra) = rest[:3], rest[3:6], rest[6:]
        assert (stream, extra) == (0, 0)
        assert shared <= self.allowed.get(function, 48 * 1024)
        self.shared.append(shared)
        types = self.nvrtc.parameters(function)
        addresses = (ctypes.c_void_p * len(types)).from_address(pointers)
        values = [
            np.ctypeslib.as_array(
                (ctypes.c_ubyte * np.dtype(type_).itemsize).from_address(place)
            ).view(type_)[0]
            for type_, place in zip(types, addresses, strict=True)
        ]
        self.launches.append((function, blocks, threads, values))
        self.kernels.get(function, lambda *_: None)(*values)
        return ()


class FakeNVRTC:
    """Stands for the module ``cuda.bindings.nvrtc``."""

    def __init__(self, archs=(80, 90), version=(12, 9), log=None):
        self.archs, self.version, self.log = archs, version, log
        self.text, self.options = "", ()

    def parameters(self, kernel):
        """Return the NumPy dtypes of a kernel's parameters, from its text."""
        (found,) = re.findall(rf"\b{kernel}\((.*)\)\n", self.text)
        return [
            np.uint64 if "*" in each else TYPES[each.strip().rpartition(" ")[0]]
            for each in found.split(",")
        ]

    def nvrtcGetErrorString(self, code):
        return 0, b"NVRTC_ERROR"

    def nvrtcVersion(self):
        return 0, *self.version

    def nvrtcGetSupportedArchs(self):
        return 0, list(self.archs)

    def nvrtcCreateProgram(self, text, name, count, headers, names):
        self.text = text.decode()
        return 0, "program"

    def nvrtcCompileProgram(self, program, count, options):
        assert count == len(options)
        self.options = tuple(options)
        return (6 if self.log else 0,)

    def nvrtcDestroyProgram(self, program):
        return (0,)

    def _size(self, program):
        return 0, len(self.log or "code")

    def _output(self, program, memory):
        ctypes.memmove(memory, (self.log or "code").encode(), len(memory))
        return (0,)

    nvrtcGetCUBINSize = nvrtcGetPTXSize = nvrtcGetProgramLogSize = _size
    nvrtcGetCUBIN = nvrtcGetPTX = nvrtcGetProgramLog = _output


def fake_bindings(driver=None, nvrtc=None):
    """Return bindings whose launches are decoded by the text that was compiled last."""
    driver, nvrtc = driver or FakeDriver(), nvrtc or FakeNVRTC()
    driver.nvrtc = nvrtc
    return Bindings(driver, nvrtc)


def array_at(address, shape, dtype):
    """Return the array at an address of the fake device."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(int(address)), dtype).reshape(shape)
