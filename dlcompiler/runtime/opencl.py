"""The OpenCL device of this machine, by means of pyopencl.

pyopencl and a driver are optional: PoCL is a driver for CPUs.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import DeviceUnavailable
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

EXACT = "-cl-fp32-correctly-rounded-divide-sqrt"
"""Option for division and square roots of float32 that are rounded once."""
_EXACT = 1 << 7  # CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT

_POCL, UNOPTIMISED = "Portable Computing Language", "-cl-opt-disable"
"""PoCL makes loops of the threads between two barriers. On optimised code of version 3.1 some of
these loops compute wrong values, and others never end."""

_NO_MEMORY = (-4, -6, -61)
"""CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY and CL_INVALID_BUFFER_SIZE."""
_TOO_LARGE = (-5, -54)
"""CL_OUT_OF_RESOURCES and CL_INVALID_WORK_GROUP_SIZE, of a launch."""
_INSTALL = "apt-get install pocl-opencl-icd, or the driver of your GPU's vendor"


@functools.cache
def find_devices() -> tuple[list[Any], str | None]:
    """Return the OpenCL devices of this machine, GPUs first; or none, and the reason."""
    try:
        pyopencl = import_module("pyopencl")
    except ImportError as error:
        return [], f"pyopencl is not installed ({error}): pip install dlcompiler-lab[opencl]"
    try:
        devices = [device for each in pyopencl.get_platforms() for device in _devices(each)]
    except pyopencl.Error as error:
        return [], f"no OpenCL driver answers ({error}): {_INSTALL}"
    if not devices:
        return [], f"the OpenCL drivers have no device: {_INSTALL}"
    return sorted(devices, key=lambda each: not each.type & pyopencl.device_type.GPU), None


def device_names() -> tuple[list[str], str | None]:
    """Return the names of the devices by number; or none, and the reason."""
    devices, reason = find_devices()
    return [name_of(device) for device in devices], reason


def find_device(number: int = 0) -> tuple[Any, str | None]:
    """Return the device of a number; or None, and the reason."""
    devices, reason = find_devices()
    if reason is not None or number >= len(devices):
        return None, reason or f"there is no OpenCL device {number}"
    return devices[number], None


def _devices(platform: Any) -> list[Any]:
    """Return the devices of a platform; none if its driver is broken, so that others are used."""
    try:
        return list(platform.get_devices())
    except import_module("pyopencl").Error:
        return []


def name_of(device: Any) -> str:
    """Return the name of a device: ``pthread-AMD EPYC (Portable Computing Language)``."""
    return f"{device.name.strip()} ({device.platform.name.strip()})"


_CONNECTING = threading.Lock()


def driver(number: int = 0) -> OpenCL:
    """Return the driver of a device, the same in all threads of this process.

    Raises
    ------
    DeviceUnavailable
        There is none; with the reason.
    """
    device, reason = find_device(number)
    if device is None:
        raise DeviceUnavailable(
            "use OpenCL", "no device", because=reason, hint="target='gpu' simulates one"
        )
    with _CONNECTING:
        return _connected(number)


@functools.cache
def _connected(number: int) -> OpenCL:
    return OpenCL(find_device(number)[0], number)


class OpenCL:
    """The driver of an OpenCL device: see `dlcompiler.runtime.driver.Driver`."""

    language = "opencl"

    def __init__(self, device: Any, number: int = 0) -> None:
        self._cl = import_module("pyopencl")
        self._device = device
        self._lock, self._process = threading.RLock(), os.getpid()
        self._events: list[Any] | None = None
        self._built: tuple[str, Any] | None = None
        """The text compiled last, and its program, which `load` takes."""
        self.device_name = name_of(device)
        self.max_threads = int(device.max_work_group_size)
        self.max_shared_bytes = int(device.local_mem_size)
        self.dlpack_device = dlpack.OPENCL, number
        self._options = [EXACT] if device.single_fp_config & _EXACT else []
        if device.platform.name.strip() == _POCL:
            self._options.append(UNOPTIMISED)
        with self.errors("use OpenCL"):
            self._context = self._cl.Context([device])
            profiled = self._cl.command_queue_properties.PROFILING_ENABLE
            self._queue = self._cl.CommandQueue(self._context, properties=profiled)

    def why_unfit(self, architecture: str) -> None:
        """Return None: the driver compiles for its device, whatever that is."""
        del architecture

    @contextmanager
    def errors(self, operation: str) -> Iterator[None]:
        """Convert the driver's errors, and admit one thread at a time."""
        check_process(operation, self._process, self.device_name)
        with self._lock:
            try:
                yield
            except self._cl.Error as error:
                self._refuse(operation, error)

    def _refuse(self, operation: str, error: Any) -> NoReturn:
        found, code = str(error), getattr(error, "code", None)
        failure = Failure(getattr(error, "routine", "") or "OpenCL", found)
        if code in _NO_MEMORY:
            room = f"{self._device.global_mem_size >> 20} MiB, of which one array may have "
            room += f"{self._device.max_mem_alloc_size >> 20} MiB"
            raise out_of_memory(operation, failure, self.device_name, room) from error
        if code in _TOO_LARGE and "NDRange" in failure.call:
            raise too_large(operation, failure, self.device_name) from error
        raise device_fault(operation, failure, self.device_name) from error

    def compile(self, text: str, operation: str) -> bytes:
        """Compile OpenCL C; the image is the text, since drivers cache what they compile."""
        program = self._cl.Program(self._context, text)
        try:
            self._built = text, program.build(options=self._options)
        except self._cl.RuntimeError as error:
            log = program.get_build_info(self._device, self._cl.program_build_info.LOG)
            compiler = f"the OpenCL compiler of {self.device_name}"
            raise refused_source(operation, compiler, text, log or str(error)) from None
        return text.encode()

    def load(self, image: bytes, operation: str) -> Any:
        """Return the kernels of a compiled text by name."""
        text = image.decode()
        if self._built is None or self._built[0] != text:
            self.compile(text, operation)
        assert self._built is not None
        program, self._built = self._built[1], None
        return {kernel.function_name: kernel for kernel in program.all_kernels()}

    def allocate(self, size: int) -> Any:
        """Return a buffer; one without bytes is not allowed, so it has at least one."""
        flags = self._cl.mem_flags.READ_WRITE
        return self._cl.Buffer(self._context, flags, size=max(size, 1))

    @property
    def alignment(self) -> int:
        """Where a sub-buffer may begin: at multiples of this [byte]."""
        return max(64, int(self._queue.device.mem_base_addr_align) // 8)

    def part(self, memory: Any, offset: int, size: int) -> Any:
        """Return a sub-buffer; one without bytes is not allowed, so it has at least one."""
        return memory.get_sub_region(offset, max(size, 1))

    def write(self, memory: Any, host: Array) -> None:
        """Copy an array of the host to the device."""
        self._note(self._cl.enqueue_copy(self._queue, memory, _bytes_of(host)))

    def read(self, host: Array, memory: Any) -> None:
        """Copy memory of the device to an array of the host."""
        self._note(self._cl.enqueue_copy(self._queue, _bytes_of(host), memory))

    def copy(self, source: Any, destination: Any, size: int) -> None:
        """Copy a number of bytes within the device."""
        self._note(self._cl.enqueue_copy(self._queue, destination, source, byte_count=max(size, 1)))

    def fill(self, memory: Any, byte: int, size: int) -> None:
        """Set all bytes of a memory."""
        self._note(self._cl.enqueue_fill_buffer(self._queue, memory, np.uint8(byte), 0, size))

    def launch(
        self,
        module: Any,
        symbol: str,
        blocks: Sequence[int],
        threads: Sequence[int],
        operands: Sequence[Any],
        shared_bytes: int = 0,
    ) -> None:
        """Start a kernel on buffers and NumPy numbers, and shared memory as the last argument."""
        total = tuple(a * b for a, b in zip(blocks, threads, strict=True))
        added = [self._cl.LocalMemory(shared_bytes)] if shared_bytes else []
        self._note(module[symbol](self._queue, total, tuple(threads), *operands, *added))

    def most_threads(self, module: Any, symbol: str) -> int:
        """Return the most threads of a block of a kernel, which its registers allow; [1]."""
        size = self._cl.kernel_work_group_info.WORK_GROUP_SIZE
        return int(module[symbol].get_work_group_info(size, self._device))

    def synchronise(self) -> None:
        """Wait until everything that was started has ended."""
        self._queue.finish()

    def seconds(self, run: Callable[[], object]) -> float:
        """Return the sum of the times of all commands that a function starts [s]."""
        self._queue.finish()
        events: list[Any] = []
        self._events = events
        try:
            run()
        finally:
            self._events = None
        self._queue.finish()
        return float(sum(each.profile.end - each.profile.start for each in events)) * 1e-9

    def _note(self, event: Any) -> None:
        if self._events is not None:
            self._events.append(event)

    def imported(self, tensor: Any, operation: str) -> None:
        """Return None: no library shares the memory of OpenCL devices by DLPack."""
        del tensor, operation

    def exported(self, array: Any) -> NoReturn:
        """Refuse to share an array: no library takes the memory of OpenCL devices by DLPack."""
        raise BufferError(f"{array!r} is in memory of OpenCL: x.to_numpy() copies it")

    def stand_in(self, memory: Any, shape: Sequence[int], dtype: Any) -> Array:
        """Return an array that is never touched, so that it takes addresses but no memory."""
        del memory
        return np.empty(tuple(shape), dtype)


def _bytes_of(array: Array) -> Array:
    """Return the bytes of an array in C order, which OpenCL copies whatever their dtype is."""
    return array.reshape(-1).view(np.uint8)
