"""The NVIDIA GPU of this machine, by means of NVIDIA's Python bindings of the CUDA driver.

The bindings (``cuda-bindings``) and the compiler NVRTC are optional. Each function of the bindings
returns a tuple: the error code, then its results.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import CallError, DeviceUnavailable, DLCompilerError
from dlcompiler.runtime import dlpack
from dlcompiler.runtime.driver import (
    Failure,
    check_process,
    device_fault,
    out_of_memory,
    refused_source,
    too_large,
)

Array = npt.NDArray[Any]

ALIGNMENT = 16
"""Alignment of arrays: kernels load up to 16 bytes at once [byte]."""
#: Codes of errors. **Source:** CUDA Driver API 12.9, ``CUresult``.
_OUT_OF_MEMORY, _NO_DEVICE, _OPERATING_SYSTEM = 2, 100, 304
_NO_BINARY, _INVALID_PTX, _UNSUPPORTED_PTX, _TOO_MANY_RESOURCES = 209, 218, 222, 701
_MISMATCHES = (803, 804)  # the kernel module and libcuda, or libcuda and the device, do not fit
#: Attributes of devices. **Source:** CUDA Driver API 12.9, ``CUdevice_attribute``.
_MAX_THREADS, _MAJOR, _MINOR, _MAX_SHARED = 1, 75, 76, 97
#: Attributes of kernels. **Source:** CUDA Driver API 12.9, ``CUfunction_attribute``.
_KERNEL_THREADS, _ADDED_SHARED = 0, 8
_UNASKED_SHARED_BYTES = 48 * 1024
"""Shared memory that a launch may add without asking for it before [byte]."""
_CONTROL = "/dev/nvidiactl"
"""The file by which a process reaches the driver on Linux."""
_STREAM = 0
"""The legacy default stream, which waits for the streams of other libraries."""


@dataclass(frozen=True, slots=True)
class Bindings:
    """The modules of NVIDIA's Python bindings."""

    driver: Any
    """``cuda.bindings.driver``."""
    nvrtc: Any
    """``cuda.bindings.nvrtc``."""


def bindings() -> Bindings:
    """Import the bindings.

    Raises
    ------
    ImportError
        They are not installed.
    """
    return Bindings(import_module("cuda.bindings.driver"), import_module("cuda.bindings.nvrtc"))


class _CUDAError(Exception):
    """A function of the driver or of NVRTC returned an error."""

    def __init__(self, code: int, failure: Failure) -> None:
        super().__init__(str(failure))
        self.code = code
        self.failure = failure


class _NotInstalledError(Exception):
    """A library that the bindings load is not there."""


_CONNECTING = threading.Lock()


def find_device(number: int = 0) -> tuple[CUDA | None, str | None]:
    """Return the driver of a device, the same in all threads; or None, and the reason."""
    with _CONNECTING:
        return connect(number)


def device_names() -> tuple[list[str], str | None]:
    """Return the names of the devices by number; or none, and the reason."""
    first, reason = find_device()
    if first is None:
        return [], reason
    others = (find_device(number)[0] for number in range(1, first.count))
    return [first.device_name, *(other.device_name for other in others if other)], None


@functools.cache
def connect(number: int) -> tuple[CUDA | None, str | None]:
    """Search for a device, once: see `find_device`."""
    try:
        found = bindings()
    except ImportError as error:
        return None, f"cuda-bindings is not installed ({error}): pip install dlcompiler-lab[cuda]"
    try:
        return CUDA(found, number), None
    except _CUDAError as error:
        return None, _why_not(error)
    except DLCompilerError as error:
        return None, error.because or error.problem
    except _NotInstalledError as error:
        return None, str(error)


def _why_not(error: _CUDAError) -> str:
    if os.path.exists(_CONTROL) and not os.access(_CONTROL, os.R_OK | os.W_OK):
        return f"no permission to use the GPU: {_CONTROL} cannot be opened ({error})"
    if error.code == _NO_DEVICE:
        return f"the driver finds no NVIDIA GPU ({error}); CUDA_VISIBLE_DEVICES may hide it"
    if error.code in _MISMATCHES:
        return f"parts of the NVIDIA driver do not fit each other ({error}): restart, or update it"
    return f"the NVIDIA driver does not start ({error})"


def driver(number: int = 0) -> CUDA:
    """Return the driver of a device, connected once in this process.

    Raises
    ------
    DeviceUnavailable
        There is none; with the reason.
    """
    found, reason = find_device(number)
    if found is None:
        raise DeviceUnavailable(
            "use CUDA", "no device", because=reason, hint="target='gpu' simulates one"
        )
    return found


class CUDA:
    """The driver of a CUDA device: see `dlcompiler.runtime.driver.Driver`.

    Parameters
    ----------
    found : Bindings
        The modules that call the driver and the compiler.
    number : int
        Number of the device.
    """

    language = "cuda"

    def __init__(self, found: Bindings, number: int = 0) -> None:
        self._cu, self._nvrtc = found.driver, found.nvrtc
        self._lock, self._process = threading.RLock(), os.getpid()
        self._is_failed = False
        with _needs("NVIDIA driver"):
            self._call("cuInit", 0)
        version = self._call("cuDriverGetVersion")
        with _needs("NVRTC"):
            compiler_version = self._compile("nvrtcVersion")
        self._check_versions(version, compiler_version)
        self.count = int(self._call("cuDeviceGetCount"))
        """Number of CUDA devices."""
        self._check_number(number)
        device = self._call("cuDeviceGet", number)
        name = self._call("cuDeviceGetName", 256, device)
        major, minor = (self._attribute(each, device) for each in (_MAJOR, _MINOR))
        self.compute = major, minor
        """Compute capability of the device."""
        shown = bytes(name).partition(b"\0")[0].decode(errors="replace")
        self.device_name = f"{shown} (sm_{major}{minor}, CUDA {_version(version)})"
        self.max_threads = self._attribute(_MAX_THREADS, device)
        self.max_shared_bytes = self._attribute(_MAX_SHARED, device)
        self.dlpack_device = dlpack.CUDA, number
        # The context that other libraries of this process use, too: their arrays are valid in it.
        self._context = self._call("cuDevicePrimaryCtxRetain", device)

    def _attribute(self, attribute: int, device: Any) -> int:
        kinds = self._cu.CUdevice_attribute
        return int(self._call("cuDeviceGetAttribute", kinds(attribute), device))

    def _check_number(self, number: int) -> None:
        if number >= self.count:
            raise DeviceUnavailable(
                "use CUDA", "no such device",
                because=f"there is no CUDA device {number}: there are {self.count}",
            )  # fmt: skip

    @staticmethod
    def _check_versions(driver_version: int, compiler_version: Sequence[int]) -> None:
        """Refuse an NVRTC of a newer CUDA than the driver: it could not load the code.

        Versions of the same major number fit each other.
        """
        newest, major = driver_version // 1000, compiler_version[0]
        if major > newest:
            raise DeviceUnavailable(
                "use CUDA", "the driver is too old",
                because=f"the driver is of CUDA {_version(driver_version)}, older than NVRTC "
                f"{major}.{compiler_version[1]}: update the driver, or install an NVRTC {newest}.x",
            )  # fmt: skip

    def why_unfit(self, architecture: str) -> str | None:
        """Return why the device cannot run code for an architecture: it is older."""
        own = 10 * self.compute[0] + self.compute[1]
        wanted = re.match(r"sm_(\d+)", architecture)
        if wanted is None or own >= int(wanted[1]):
            return None
        return (
            f"{self.device_name} is older than {architecture}: target='cuda -arch=sm_{own}' is "
            "code for it"
        )

    # -- calls and their errors -------------------------------------------------------------------

    def _call(self, function: str, *arguments: Any) -> Any:
        """Call a function of the driver; return its result, or several as a tuple."""
        code, *results = getattr(self._cu, function)(*arguments)
        if int(code):
            name, about = self._cu.cuGetErrorName(code)[1], self._cu.cuGetErrorString(code)[1]
            raise _CUDAError(int(code), Failure(function, _text(name), _text(about)))
        return results[0] if len(results) == 1 else tuple(results)

    def _compile(self, function: str, *arguments: Any) -> Any:
        """Call a function of NVRTC, like `_call`."""
        code, *results = getattr(self._nvrtc, function)(*arguments)
        if int(code):
            name = _text(self._nvrtc.nvrtcGetErrorString(code)[1])
            raise _CUDAError(-1, Failure(function, name))
        return results[0] if len(results) == 1 else tuple(results)

    @contextmanager
    def errors(self, operation: str) -> Iterator[None]:
        """Convert the driver's errors, and admit one thread at a time, in the device's context."""
        check_process(operation, self._process, self.device_name)
        with self._lock:
            try:
                self._call("cuCtxSetCurrent", self._context)
                yield
            except _CUDAError as error:
                self._refuse(operation, error)

    def _refuse(self, operation: str, error: _CUDAError) -> NoReturn:
        if error.code == _OUT_OF_MEMORY:
            raise out_of_memory(operation, error.failure, self.device_name, self._room()) from None
        if error.code in (_UNSUPPORTED_PTX, _INVALID_PTX, _NO_BINARY):
            raise DeviceUnavailable(
                operation, "the driver cannot load the code", got=str(error.failure),
                because=f"the device is {self.device_name}; the driver may be older than NVRTC",
                hint="update the driver, or install an older nvidia-cuda-nvrtc",
            ) from None  # fmt: skip
        if error.code == _TOO_MANY_RESOURCES:
            raise too_large(operation, error.failure, self.device_name) from None
        self._is_failed = True
        raise device_fault(operation, error.failure, self.device_name) from None

    def _room(self) -> str:
        try:
            free, total = self._call("cuMemGetInfo")
        except _CUDAError:
            return ""
        return f"{total >> 20} MiB, of which {free >> 20} MiB are free"

    # -- code -------------------------------------------------------------------------------------

    def compile(self, text: str, operation: str) -> bytes:
        """Compile CUDA C by NVRTC: to machine code if NVRTC knows the device, else to PTX."""
        own = 10 * self.compute[0] + self.compute[1]
        known = [int(each) for each in self._compile("nvrtcGetSupportedArchs")]
        is_known = own in known
        newest = own if is_known else max((each for each in known if each < own), default=own)
        kind = "sm" if is_known else "compute"
        program = self._compile("nvrtcCreateProgram", text.encode(), b"program.cu", 0, [], [])
        try:
            options = [f"--gpu-architecture={kind}_{newest}".encode(), b"--std=c++17"]
            (code,) = self._nvrtc.nvrtcCompileProgram(program, len(options), options)
            if int(code):
                log = self._output(program, "nvrtcGetProgramLog")
                raise refused_source(operation, "NVRTC", text, _text(log))
            return self._output(program, "nvrtcGetCUBIN" if is_known else "nvrtcGetPTX")
        finally:
            self._nvrtc.nvrtcDestroyProgram(program)

    def _output(self, program: Any, function: str) -> bytes:
        """Return an output of NVRTC; the bindings write it into the memory of a bytes object."""
        memory = b" " * int(self._compile(f"{function}Size", program))
        self._compile(function, program, memory)
        return memory

    def load(self, image: bytes, operation: str) -> Any:
        """Load machine code or PTX, and return a module."""
        del operation
        memory = np.frombuffer(image + b"\0", np.uint8)  # PTX is a text that ends with a zero
        return _Module(self, self._call("cuModuleLoadData", memory.ctypes.data))

    # -- memory -----------------------------------------------------------------------------------

    def allocate(self, size: int) -> _Memory:
        """Return memory that is released with the object."""
        return _Memory(self, int(self._call("cuMemAlloc", max(size, 1))))

    @property
    def alignment(self) -> int:
        """Where a part of memory may begin: at multiples of the longest vector load [byte]."""
        return 64

    def part(self, memory: _Memory, offset: int, size: int) -> _Memory:
        """Return a part of memory, which keeps the whole alive."""
        del size
        return _Memory(self, memory.address + offset, owner=memory)

    def write(self, memory: _Memory, host: Array) -> None:
        """Copy an array of the host to the device."""
        self._call("cuMemcpyHtoD", memory.address, host.ctypes.data, host.nbytes)

    def read(self, host: Array, memory: _Memory) -> None:
        """Copy memory of the device to an array of the host."""
        self._call("cuMemcpyDtoH", host.ctypes.data, memory.address, host.nbytes)

    def copy(self, source: _Memory, destination: _Memory, size: int) -> None:
        """Copy a number of bytes within the device."""
        if size:
            self._call("cuMemcpyDtoD", destination.address, source.address, size)

    def fill(self, memory: _Memory, byte: int, size: int) -> None:
        """Set all bytes of a memory."""
        self._call("cuMemsetD8", memory.address, byte, size)

    def release(self, function: str, handle: Any) -> None:
        """Release memory or a module; errors are ignored, as after a fault nothing can be."""
        if os.getpid() != self._process:
            return  # a forked copy: what the driver holds is the other process's
        with self._lock:
            if not self._is_failed:
                self._cu.cuCtxSetCurrent(self._context)
                getattr(self._cu, function)(handle)

    # -- launches ---------------------------------------------------------------------------------

    def launch(
        self,
        module: _Module,
        symbol: str,
        blocks: Sequence[int],
        threads: Sequence[int],
        operands: Sequence[Any],
        shared_bytes: int = 0,
    ) -> None:
        """Start a kernel on memory and NumPy numbers.

        The driver takes an array of pointers, each to the value of one parameter, and copies the
        values before it returns.
        """
        values = [
            np.array(each.address, np.uint64) if isinstance(each, _Memory) else np.array(each)
            for each in operands
        ]
        pointers = (ctypes.c_void_p * len(values))(*(each.ctypes.data for each in values))
        extra = 0
        self._call(
            "cuLaunchKernel", module.function(symbol, shared_bytes), *blocks, *threads,
            shared_bytes, _STREAM, ctypes.addressof(pointers), extra,
        )  # fmt: skip

    def most_threads(self, module: _Module, symbol: str) -> int:
        """Return the most threads of a block of a kernel, which its registers allow; [1]."""
        kinds = self._cu.CUfunction_attribute
        kernel = module.function(symbol)
        return int(self._call("cuFuncGetAttribute", kinds(_KERNEL_THREADS), kernel))

    def synchronise(self) -> None:
        """Wait until everything that was started has ended."""
        self._call("cuCtxSynchronize")

    def seconds(self, run: Callable[[], object]) -> float:
        """Return the time between two events around what a function starts [s]."""
        begin, end = self._call("cuEventCreate", 0), self._call("cuEventCreate", 0)
        try:
            self._call("cuEventRecord", begin, _STREAM)
            run()
            self._call("cuEventRecord", end, _STREAM)
            self._call("cuEventSynchronize", end)
            return float(self._call("cuEventElapsedTime", begin, end)) * 1e-3
        finally:
            for event in (begin, end):
                self._cu.cuEventDestroy(event)

    # -- arrays of other libraries ----------------------------------------------------------------

    def imported(self, tensor: Any, operation: str) -> tuple[_Memory, Array] | None:
        """Return the memory of a tensor on this device, and its stand-in; None: it is elsewhere."""
        kind, number = tensor.__dlpack_device__()
        if kind not in (dlpack.CUDA, dlpack.CUDA_MANAGED):
            return None
        if number != self.dlpack_device[1]:
            raise CallError(
                operation, "the array is in the memory of another device",
                got=f"CUDA device {number}", expected=f"CUDA device {self.dlpack_device[1]}",
            )  # fmt: skip
        found = dlpack.Imported(tensor, operation)
        if found.address % ALIGNMENT:
            raise CallError(
                operation, "elements are not aligned", got=f"the address {found.address:#x}",
                expected=f"a multiple of {ALIGNMENT}", hint="x.clone() makes a copy",
            )  # fmt: skip
        memory = _Memory(self, found.address, owner=found)
        return memory, self.stand_in(memory, found.shape, found.dtype)

    def exported(self, array: Any) -> object:
        """Return a DLPack capsule of an array."""
        number = self.dlpack_device[1]
        return dlpack.exported(array, array.memory.address, array.shape, array.dtype, number)

    def stand_in(self, memory: _Memory, shape: Sequence[int], dtype: Any) -> Array:
        """Return an array at the device's address, by which overlapping arrays are found.

        The host cannot read this memory: only shape, dtype and address may be asked for.
        """
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if not size:
            return np.empty(tuple(shape), dtype)
        region = (ctypes.c_char * size).from_address(memory.address)
        return np.frombuffer(memoryview(region), dtype).reshape(tuple(shape))


class _Memory:
    """Memory of the device, which is freed with the object unless it belongs to another one."""

    def __init__(self, cuda: CUDA, address: int, owner: object = None) -> None:
        self.address = address
        self._owner = owner
        if owner is None:
            weakref.finalize(self, cuda.release, "cuMemFree", address).atexit = False


class _Module:
    """Loaded code."""

    def __init__(self, cuda: CUDA, handle: Any) -> None:
        self._cuda, self._handle = cuda, handle
        self._functions: dict[str, Any] = {}
        self._asked: dict[str, int] = {}
        """Name of a kernel -> the shared memory that its launches may add [byte]."""
        weakref.finalize(self, cuda.release, "cuModuleUnload", handle).atexit = False

    def function(self, symbol: str, shared_bytes: int = 0) -> Any:
        """Return a kernel by its name, whose launch may add some shared memory."""
        if symbol not in self._functions:
            found = self._cuda._call("cuModuleGetFunction", self._handle, symbol.encode())
            self._functions[symbol] = found
        if shared_bytes > self._asked.get(symbol, _UNASKED_SHARED_BYTES):
            kind = self._cuda._cu.CUfunction_attribute(_ADDED_SHARED)
            self._cuda._call("cuFuncSetAttribute", self._functions[symbol], kind, shared_bytes)
            self._asked[symbol] = shared_bytes
        return self._functions[symbol]


@contextmanager
def _needs(library: str) -> Iterator[None]:
    """Convert what the bindings raise at the first call, if a library is missing."""
    try:
        yield
    except _CUDAError:
        raise
    except Exception as error:
        raise _NotInstalledError(f"no {library} is installed here ({error})") from error


def _text(words: Any) -> str:
    """Return what a function of the bindings gives as bytes, without the final zero."""
    return bytes(words or b"").partition(b"\0")[0].decode(errors="replace").strip()


def _version(number: int) -> str:
    """Return a version of CUDA: 12090 is 12.9."""
    return f"{number // 1000}.{number % 1000 // 10}"
