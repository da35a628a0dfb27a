"""The devices that run programs: this CPU, a C compiler, GPUs, their simulator, and none at all.

`device_of` is the one place that finds the device of a target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.errors import CallError, DeviceUnavailable, TargetError
from dlcompiler.pipeline.accelerator_kernel import AcceleratorKernel
from dlcompiler.pipeline.accelerator_kernel import times_on as accelerator_times
from dlcompiler.pipeline.device_kernels import DeviceKernel
from dlcompiler.pipeline.executables import Built, CKernel, Kernel, NullKernel, SimulatedKernel
from dlcompiler.pipeline.gpu_report import times_on
from dlcompiler.registry import Registry
from dlcompiler.runtime import cuda, discovery, opencl
from dlcompiler.runtime.c_source import COMPILERS, c_compiler
from dlcompiler.runtime.device import Device, Executable, HostMemory
from dlcompiler.runtime.device_array import DeviceArray, refuse_mask
from dlcompiler.runtime.device_code import DeviceCode
from dlcompiler.runtime.driver import Driver
from dlcompiler.runtime.llvm import compile_ir
from dlcompiler.runtime.options import Options
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.runtime.source import Source
from dlcompiler.runtime.timing import measured_here
from dlcompiler.target import Target, resolve


class HostDevice(HostMemory):
    """The CPU of this process: LLVM compiles a module into it."""

    def load(self, source: Source, target: Target) -> Kernel:
        """Return the machine code of LLVM IR.

        Raises
        ------
        TargetError
            This CPU cannot run code for the target.
        """
        module = compile_ir(source.text, Options.for_target(target))
        return Kernel(module, source, target)

    def times(self, target: Target) -> Provenance:
        """Return the provenance of times: measured, on this processor."""
        return measured_here()


class CDevice(HostMemory):
    """The CPU of this process, through the C compiler that is installed."""

    def why_unavailable(self) -> str | None:
        """Return the names of the compilers that were searched for, if none is installed."""
        return None if c_compiler() else f"no C compiler: {', '.join(COMPILERS)}"

    def load(self, source: Source, target: Target) -> CKernel:
        """Return C source, which is compiled at the first call.

        Raises
        ------
        TargetError
            The code is not C.
        """
        if source.language != "c":
            raise TargetError(
                f"compile for {target.name}", "its code is not C",
                got=f"language {source.language!r}", hint="target='c' is compiled as C",
            )  # fmt: skip
        return CKernel(source, target)

    def times(self, target: Target) -> Provenance:
        """Return the provenance of times: measured, on this processor."""
        return measured_here()


class SimulatedDevice(HostMemory):
    """A GPU simulated on this CPU: what its threads compute, one after another."""

    def load(self, source: Source, target: Target) -> SimulatedKernel:
        """Return a program that the interpreter or machine code of this CPU runs."""
        return SimulatedKernel(source, target)

    def times(self, target: Target) -> Provenance | None:
        """Return the provenance of times: predicted, for this target; None if it has no rates."""
        return times_on(target) if target.rates else None


class AcceleratorDevice(HostMemory):
    """An accelerator simulated on this CPU: its values, and its cycles."""

    def load(self, source: Source, target: Target) -> AcceleratorKernel:
        """Return a program that the simulators of accelerators run."""
        return AcceleratorKernel(source, target)

    def times(self, target: Target) -> Provenance:
        """Return the provenance of times: simulated, for this accelerator."""
        return accelerator_times(target)


class DriverDevice:
    """A device of this machine, through its driver; kernels are compiled at their first call.

    Parameters
    ----------
    language : str
        The language that its driver compiles.
    title : str
        Name of the language in messages.
    connect : callable
        Returns the driver of the device of a number.
    number : int
        Which of the devices of the language, from 0.
    """

    def __init__(
        self, language: str, title: str, connect: Callable[[int], Driver], number: int = 0
    ) -> None:
        self._language, self._title = language, title
        self._connect, self._number = connect, number

    def numbered(self, number: int) -> DriverDevice:
        """Return another device of the same kind."""
        return DriverDevice(self._language, self._title, self._connect, number)

    def why_unavailable(self) -> str | None:
        """Return what is missing: the Python package, a driver, a device or a permission.

        A process of its own asks the drivers, since a broken one may crash or hang.
        """
        return discovery.devices(self._language).why_not(self._number)

    def _driver(self) -> Driver:
        """Return the driver, in this process.

        Raises
        ------
        DeviceUnavailable
            With the reason.
        """
        if reason := self.why_unavailable():
            raise DeviceUnavailable(
                f"use {self._language}", "no device", because=reason,
                hint="target='gpu' simulates one",
            )  # fmt: skip
        return self._connect(self._number)

    def why_unfit(self, target: Target) -> str | None:
        """Return why this device cannot run code for a target; None if it can."""
        return self._driver().why_unfit(target.cpu)

    @property
    def alignment(self) -> int:
        """Where a part of an array may begin: at multiples of this [byte]."""
        return self._driver().alignment

    def allocate(self, shape: Sequence[int], dtype: str) -> DeviceArray:
        """Return an array in its memory; its elements are undefined."""
        return DeviceArray(self._driver(), shape, dtype)

    def copy(self, source: Any, destination: Any) -> None:
        """Copy an array to another of the same shape and dtype, from or to the host, or within."""
        if isinstance(destination, DeviceArray):
            destination.assign(source)
            return
        if not isinstance(source, DeviceArray):
            raise CallError(
                "copy from a device", "neither array is in its memory",
                got=f"{type(source).__name__} and {type(destination).__name__}",
                expected="an array of dlc.to_device",
            )  # fmt: skip
        known = getattr(destination, "shape", None), getattr(destination, "dtype", None)
        if not isinstance(destination, np.ndarray) or known != (source.shape, source.dtype):
            raise CallError(
                "copy from a device", "shape or dtype differ",
                got=f"{destination.dtype}{list(destination.shape)}"
                if isinstance(destination, np.ndarray) else type(destination).__name__,
                expected=f"{source.dtype}{list(source.shape)}",
            )  # fmt: skip
        np.copyto(destination, source.to_numpy(), casting="no")

    def load(self, source: Source, target: Target) -> DeviceKernel:
        """Return code of its language, which is compiled at the first call.

        Raises
        ------
        TargetError
            The code is in another language.
        DeviceUnavailable
            The device is not here.
        """
        if source.language != self._language:
            raise TargetError(
                f"compile for {target.name}", f"its code is not {self._title}",
                got=f"language {source.language!r}",
                hint=f"target={self._language!r} is compiled as {self._title}",
            )  # fmt: skip
        check_available(target, f"build for {target.name}")
        return DeviceKernel(DeviceCode(source, self._driver), source, target)

    def times(self, target: Target) -> Provenance:
        """Return the provenance of times: measured, on this device, whose name is '' elsewhere."""
        found = discovery.devices(self._language)
        is_here = found.why_not(self._number) is None
        return Provenance("measured", found.names[self._number] if is_here else "")

    def launch(self, executable: Executable, arguments: Sequence[Any]) -> None:
        """Run a program to its end."""
        executable(*arguments)

    def synchronise(self) -> None:
        """Return at once: a call has ended when it returns."""


class NullDevice(HostMemory):
    """A device that accepts every program and computes nothing, to test code generators."""

    def load(self, source: Source, target: Target) -> NullKernel:
        """Return a program that only checks its arguments."""
        return NullKernel(source, target)


HOST, C, SIMULATOR, NULL = HostDevice(), CDevice(), SimulatedDevice(), NullDevice()
ACCELERATOR = AcceleratorDevice()
OPENCL = DriverDevice("opencl", "OpenCL C", lambda number: opencl.driver(number))
CUDA = DriverDevice("cuda", "CUDA C", lambda number: cuda.driver(number))
DEVICES: Registry[Device] = Registry(
    "device",
    {
        "host": "dlcompiler.pipeline.devices:HOST",
        "c compiler": "dlcompiler.pipeline.devices:C",
        "simulator": "dlcompiler.pipeline.devices:SIMULATOR",
        "accelerator": "dlcompiler.pipeline.devices:ACCELERATOR",
        "opencl": "dlcompiler.pipeline.devices:OPENCL",
        "cuda": "dlcompiler.pipeline.devices:CUDA",
        "null": "dlcompiler.pipeline.devices:NULL",
    },
    ("why_unavailable", "allocate", "copy", "load", "launch", "synchronise", "times"),
)
"""Name of a device, as `Target.runs_on` gives it -> what loads and runs programs."""


def device_of(target: Target) -> Device:
    """Return the device that runs programs for a target.

    Raises
    ------
    TargetError
        No device has the name that the target gives.
    """
    name, _, number = target.runs_on.partition(":")
    if target.runs_on in DEVICES or not number.isdecimal():
        name, number = target.runs_on, ""
    found = DEVICES.find(name, f"find the device of {target.name}", error=TargetError)
    return found.numbered(int(number)) if number and isinstance(found, DriverDevice) else found


def check_available(target: Target, operation: str) -> None:
    """Refuse an operation that needs the device of a target, if it is not here.

    Raises
    ------
    DeviceUnavailable
        With the reason, and the target that can take its place.
    """
    device: object = device_of(target)
    reason = device_of(target).why_unavailable()
    if reason is None and isinstance(device, DriverDevice):
        reason = device.why_unfit(target)
    if reason is not None:
        raise DeviceUnavailable(
            operation, f"the device of {target.name} is not here", because=reason,
            hint="target='gpu' simulates one" if target.device == "gpu" else None,
        )  # fmt: skip


def load(source: Source, target: Target) -> Built:
    """Load generated code on the device of its target."""
    return cast(Built, device_of(target).load(source, target))


def to_device(array: npt.NDArray[Any], target: str | Target) -> DeviceArray:
    """Copy a NumPy array to the memory of a device, for kernels that use it without a copy.

    Parameters
    ----------
    array : ndarray
        What to copy.
    target : str or Target
        The target of the kernels: ``"cuda"`` or ``"opencl"``.

    Raises
    ------
    DeviceUnavailable
        The device is not here.
    TargetError
        The target is no device with a memory of its own.
    CallError
        The array is masked.

    Examples
    --------
    >>> x = dlc.to_device(numpy.ones(8, "float32"), "cuda")                    # doctest: +SKIP
    >>> kernel(x, y)                                                           # doctest: +SKIP
    >>> y.to_numpy()                                                           # doctest: +SKIP
    """
    machine = resolve(target)
    device: object = device_of(machine)
    if not isinstance(device, DriverDevice):
        raise TargetError(
            "copy an array to a device", f"{machine.name} has no memory of its own",
            hint="its kernels take NumPy arrays without a copy",
        )  # fmt: skip
    check_available(machine, "copy an array to a device")
    refuse_mask("copy an array to a device", array)
    values = np.asarray(array)
    made = device.allocate(values.shape, dtypes.from_numpy(values.dtype))
    made.assign(values)
    return made
