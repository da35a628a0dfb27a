"""The driver of a device as this runtime uses it: memory, copies, launches and a clock."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dlcompiler.errors import DeviceFault, DeviceUnavailable, OutOfMemory, TargetError

Array = npt.NDArray[Any]


class Driver(Protocol):
    """The driver of one device, OpenCL or CUDA.

    Memory and modules are objects of the driver. All operations run in the order in which they
    are started. Each is called inside `errors`.
    """

    @property
    def language(self) -> str:
        """The language that it compiles: ``"opencl"`` or ``"cuda"``."""

    @property
    def device_name(self) -> str:
        """Name of the device and its driver."""

    @property
    def max_threads(self) -> int:
        """Most threads of a block; [1]."""

    @property
    def max_shared_bytes(self) -> int:
        """Most memory that the threads of a block may share [byte]."""

    def most_threads(self, module: Any, symbol: str) -> int:
        """Return the most threads of a block of a kernel, which its registers allow; [1]."""

    def why_unfit(self, architecture: str) -> str | None:
        """Return why the device cannot run code for an architecture, such as ``sm_80``."""

    def errors(self, operation: str) -> AbstractContextManager[None]:
        """Return a context that converts the driver's errors, and admits one thread at a time."""

    def compile(self, text: str, operation: str) -> bytes:
        """Compile a source, and return what `load` takes.

        Raises
        ------
        TargetError
            The compiler refuses the source.
        """

    def load(self, image: bytes, operation: str) -> Any:
        """Load what `compile` returned, and return a module."""

    def allocate(self, size: int) -> Any:
        """Return memory of a number of bytes, which is released with the object."""

    @property
    def alignment(self) -> int:
        """Where a part of memory may begin: at multiples of this [byte]."""

    def part(self, memory: Any, offset: int, size: int) -> Any:
        """Return a part of memory, `offset` bytes from its begin; it keeps the whole alive."""

    def write(self, memory: Any, host: Array) -> None:
        """Copy an array of the host to the device."""

    def read(self, host: Array, memory: Any) -> None:
        """Copy memory of the device to an array of the host."""

    def copy(self, source: Any, destination: Any, size: int) -> None:
        """Copy a number of bytes within the device."""

    def fill(self, memory: Any, byte: int, size: int) -> None:
        """Set all bytes of a memory."""

    def launch(
        self,
        module: Any,
        symbol: str,
        blocks: Sequence[int],
        threads: Sequence[int],
        operands: Sequence[Any],
        shared_bytes: int = 0,
    ) -> None:
        """Start a kernel on memory and NumPy numbers; it may still run when this returns.

        The threads of each block share `shared_bytes` in addition to what the kernel declares.
        """

    def synchronise(self) -> None:
        """Wait until everything that was started has ended."""

    def seconds(self, run: Callable[[], object]) -> float:
        """Return how long the device works on what a function starts, by its events [s]."""

    def imported(self, tensor: Any, operation: str) -> tuple[Any, Any] | None:
        """Return the memory of a tensor of another library on this device, and its stand-in.

        None if it is not in this device's memory. A stand-in is described in `DeviceArray`.
        """

    def exported(self, array: Any) -> object:
        """Return a DLPack capsule of a `DeviceArray`.

        Raises
        ------
        BufferError
            No other library can use its memory.
        """

    @property
    def dlpack_device(self) -> tuple[int, int]:
        """The kind of device in DLPack, and its number."""

    def stand_in(self, memory: Any, shape: Sequence[int], dtype: Any) -> Array:
        """Return a NumPy array that stands for memory in checks: see `DeviceArray`."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of a driver, as data."""

    call: str
    """The function of the driver that failed."""
    name: str
    """The driver's name of the error: ``"CUDA_ERROR_ILLEGAL_ADDRESS"``."""
    about: str = ""
    """The driver's words."""

    def __str__(self) -> str:
        return f"{self.name} from {self.call}" + (f": {self.about}" if self.about else "")


def out_of_memory(operation: str, failure: Failure, device: str, room: str = "") -> OutOfMemory:
    """Return the error of an allocation that the device has no memory for."""
    return OutOfMemory(
        operation, "not enough memory on the device", got=str(failure),
        because=f"the device is {device}" + (f" with {room}" if room else ""),
        hint="arrays of a device are released when the last reference to them ends",
    )  # fmt: skip


def too_large(operation: str, failure: Failure, device: str) -> TargetError:
    """Return the error of a kernel whose blocks need more than the device has."""
    return TargetError(
        operation, "a block needs more registers or memory than the device has",
        got=str(failure), because=f"the device is {device}",
        hint="bind fewer threads, or use smaller tiles",
    )  # fmt: skip


def device_fault(operation: str, failure: Failure, device: str) -> DeviceFault:
    """Return the error of a device that stopped, or of a driver that cannot go on."""
    return DeviceFault(
        operation, "the device or its driver has failed", got=str(failure),
        because=f"the device is {device}; this process may be unable to use it again",
        hint="measure and verify run kernels in processes of their own: a fault ends only these",
    )  # fmt: skip


_ERROR_LINE = re.compile(
    r":(?P<clang>\d+):\d+: (?:fatal )?error"
    r"|\((?P<nvrtc>\d+)\): (?:catastrophic )?error"
    r"|error: \S+:(?P<pocl>\d+):\d+: "
)
"""The number of a line in the messages of compilers."""


def refused_source(operation: str, compiler: str, text: str, log: str) -> TargetError:
    """Return the error of a source that a driver's compiler refuses, with the first bad line."""
    lines, found = text.splitlines(), _ERROR_LINE.search(log)
    number = int(found[found.lastgroup or 0]) if found else 0
    excerpt = f"{number}: {lines[number - 1].strip()}" if 1 <= number <= len(lines) else None
    return TargetError(
        operation, f"{compiler} refuses the code", got=log.strip()[:2000] or "no message",
        excerpt=excerpt, hint="kernel.source() is the code",
    )  # fmt: skip


def check_process(operation: str, owner: int, device: str) -> None:
    """Refuse to use a device in a forked copy of the process that opened it: the driver hangs.

    Raises
    ------
    DeviceUnavailable
        This is not the process of the id `owner`.
    """
    if os.getpid() != owner:
        raise DeviceUnavailable(
            operation, "the device was opened by the process that this one was forked from",
            got=device, because="its driver has threads, and a fork copies none of them",
            hint="multiprocessing.get_context('spawn') starts processes that can open it",
        )  # fmt: skip


def check_threads(operation: str, driver: Driver, threads: Sequence[int]) -> None:
    """Refuse a kernel whose blocks have more threads than the device allows.

    Raises
    ------
    TargetError
        With the limit of the device.
    """
    total = int(np.prod(threads))
    if total > driver.max_threads:
        raise TargetError(
            operation, "its blocks have too many threads for this device", got=total,
            expected=f"at most {driver.max_threads}",
            because=f"that is the limit of {driver.device_name}",
            hint="split the thread axes by smaller factors",
        )  # fmt: skip


def check_registers(
    operation: str, driver: Driver, module: Any, symbol: str, threads: Sequence[int]
) -> None:
    """Refuse a loaded kernel whose registers do not suffice for the threads of a block.

    Raises
    ------
    TargetError
        With the limit, which the driver computes from the registers that the kernel uses.
    """
    total, most = int(np.prod(threads)), driver.most_threads(module, symbol)
    if total > most:
        raise TargetError(
            operation, f"the registers of {symbol} do not suffice for the threads of a block",
            got=f"{total} threads", expected=f"at most {most}",
            because=f"that is the driver's limit for this kernel on {driver.device_name}",
            hint="bind fewer threads, or compute less in each thread",
        )  # fmt: skip


def check_shared_bytes(operation: str, driver: Driver, symbol: str, size: int) -> None:
    """Refuse a launch whose blocks share more memory than the device has.

    Raises
    ------
    TargetError
        With the limit of the device.
    """
    if size > driver.max_shared_bytes:
        raise TargetError(
            operation, f"a block of {symbol} needs more shared memory than this device has",
            got=f"{size:,} bytes", expected=f"at most {driver.max_shared_bytes:,} bytes",
            because=f"that is the limit of {driver.device_name}",
            hint="compute smaller parts: split the loops they are computed for further",
        )  # fmt: skip
