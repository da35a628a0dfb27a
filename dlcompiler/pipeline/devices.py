"""The devices that run programs: this CPU, a C compiler, the GPU simulator, and none at all.

`device_of` is the one place that finds the device of a target.
"""

from __future__ import annotations

from typing import cast

from dlcompiler.errors import DeviceUnavailable, TargetError
from dlcompiler.pipeline.executables import Built, CKernel, Kernel, NullKernel, SimulatedKernel
from dlcompiler.registry import Registry
from dlcompiler.runtime.c_source import COMPILERS, c_compiler
from dlcompiler.runtime.device import Device, HostMemory
from dlcompiler.runtime.llvm import compile_ir
from dlcompiler.runtime.opencl import OpenCLCode, find_device
from dlcompiler.runtime.options import Options
from dlcompiler.runtime.provenance import Provenance
from dlcompiler.runtime.source import Source
from dlcompiler.runtime.timing import measured_here
from dlcompiler.target import Target


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
    """A CPU, this one, in the place of a GPU: it computes what the threads compute, in turn."""

    def load(self, source: Source, target: Target) -> SimulatedKernel:
        """Return a program that the interpreter or machine code of this CPU runs."""
        return SimulatedKernel(source, target)

    def times(self, target: Target) -> Provenance:
        """Return the provenance of times: simulated, for this target."""
        return Provenance("simulated", target.name)


class OpenCLDevice(HostMemory):
    """A device of this machine, through its OpenCL driver; arrays are copied at each call."""

    def why_unavailable(self) -> str | None:
        """Return what is missing: pyopencl, a driver or a device."""
        return find_device()[1]

    def load(self, source: Source, target: Target) -> Kernel:
        """Return OpenCL C, which is compiled at the first call.

        Raises
        ------
        TargetError
            The code is not OpenCL C.
        DeviceUnavailable
            There is no OpenCL device here.
        """
        if source.language != "opencl":
            raise TargetError(
                f"compile for {target.name}", "its code is not OpenCL C",
                got=f"language {source.language!r}", hint="target='opencl' is compiled as OpenCL C",
            )  # fmt: skip
        if reason := self.why_unavailable():
            raise DeviceUnavailable(
                f"build for {target.name}", "no device", because=reason,
                hint="target='gpu' simulates one",
            )  # fmt: skip
        return Kernel(OpenCLCode(source), source, target)

    def times(self, target: Target) -> Provenance:
        """Return the provenance of times: measured, on this machine."""
        return measured_here()


class NullDevice(HostMemory):
    """A device that accepts every program and computes nothing, to test code generators."""

    def load(self, source: Source, target: Target) -> NullKernel:
        """Return a program that only checks its arguments."""
        return NullKernel(source, target)


HOST, C, SIMULATOR, OPENCL, NULL = (
    HostDevice(),
    CDevice(),
    SimulatedDevice(),
    OpenCLDevice(),
    NullDevice(),
)
DEVICES: Registry[Device] = Registry(
    "device",
    {
        "host": "dlcompiler.pipeline.devices:HOST",
        "c compiler": "dlcompiler.pipeline.devices:C",
        "simulator": "dlcompiler.pipeline.devices:SIMULATOR",
        "opencl": "dlcompiler.pipeline.devices:OPENCL",
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
    return DEVICES.find(target.runs_on, f"find the device of {target.name}", error=TargetError)


def load(source: Source, target: Target) -> Built:
    """Load generated code on the device of its target."""
    return cast(Built, device_of(target).load(source, target))
