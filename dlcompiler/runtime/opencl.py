"""Compile OpenCL C with the OpenCL driver of this machine, and run it there.

pyopencl and a driver are optional: PoCL is a driver for CPUs.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from dlcompiler import dtypes
from dlcompiler.errors import MAX_VALUES, DeviceUnavailable, UserError
from dlcompiler.runtime.formulas import compiled
from dlcompiler.runtime.launches import KernelCall
from dlcompiler.runtime.options import Options
from dlcompiler.runtime.source import Source, chosen

EXACT = "-cl-fp32-correctly-rounded-divide-sqrt"
"""Option for division and square roots of float32 that are rounded once."""
_EXACT = 1 << 7  # CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT


@functools.cache
def find_device() -> tuple[Any, str | None]:
    """Return the first OpenCL device of this machine, GPUs first; or None, and the reason."""
    try:
        pyopencl = import_module("pyopencl")
    except ImportError as error:
        return None, f"pyopencl is not installed ({error}): pip install pyopencl"
    try:
        devices = [device for each in pyopencl.get_platforms() for device in each.get_devices()]
    except pyopencl.Error as error:
        return None, f"no OpenCL driver answers ({error}): apt-get install pocl-opencl-icd"
    if not devices:
        return None, "the OpenCL drivers have no device: apt-get install pocl-opencl-icd"
    return min(devices, key=lambda each: not each.type & pyopencl.device_type.GPU), None


class OpenCLCode:
    """OpenCL C, compiled when it is first called.

    Parameters
    ----------
    source : Source
        Kernels, and how the host launches them.

    Notes
    -----
    A call copies the arrays to the device and those that are written back.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.imports: frozenset[str] = frozenset()
        self._loaded: _Loaded | None = None

    @property
    def text(self) -> str:
        """The generated OpenCL C."""
        return self._source.text

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the texts that `source` returns, the generated one first."""
        return tuple(self._source.texts)

    def source(self, name: str | None = None) -> str:
        """Return one of its texts; without a name, the generated one."""
        return chosen(self._source.texts, name, self._source.symbol).text

    @property
    def options(self) -> Options:
        """Options of LLVM: refused, since a driver compiles OpenCL C."""
        return self._refuse("options of LLVM")

    @property
    def optimized_ir(self) -> str:
        """LLVM IR: refused, since there is none."""
        return self._refuse("LLVM IR")

    @property
    def assembly(self) -> str:
        """Assembly: refused, since a driver keeps it."""
        return self._refuse("assembly")

    def address(self, symbol: str) -> int:
        """Return the address of a function: refused, since kernels have none here."""
        return self._refuse(f"the address of {symbol}")

    def _refuse(self, what: str) -> NoReturn:
        raise UserError(
            f"read {self._source.symbol}", f"a program in OpenCL C has no {what}",
            hint="source() returns its code",
        )  # fmt: skip

    def entry(self, symbol: str, types: Sequence[Any]) -> Callable[..., None]:
        """Return a function of addresses of arrays, numbers, and the address of the status."""
        return self._call

    def _call(self, *operands: Any) -> None:
        if self._loaded is None:
            self._loaded = _Loaded(self._source)
        self._loaded(operands)


class _Loaded:
    """Compiled kernels."""

    def __init__(self, source: Source) -> None:
        device, reason = find_device()
        if device is None:
            raise DeviceUnavailable(f"run {source.symbol} on OpenCL", "no device", because=reason)
        assert source.launches is not None
        self.cl = pyopencl = import_module("pyopencl")
        self.called = source.interface
        self.launches = source.launches
        context = pyopencl.Context([device])
        self.context, self.queue = context, pyopencl.CommandQueue(context)
        options = [EXACT] if device.single_fp_config & _EXACT else []
        self.program = pyopencl.Program(context, source.text).build(options=options)
        self.kernels: dict[str, Any] = {}

    def __call__(self, operands: Sequence[Any]) -> None:
        arrays = [param for param in self.called.params if not param.is_number]
        addresses, numbers = operands[: len(arrays)], operands[len(arrays) :]
        names = [variable.name for variable in self.called.variables]
        values = dict(zip(names, numbers, strict=False))
        hosts = [
            _array_at(address, [compiled(extent)(values) for extent in param.shape], param.dtype)
            for param, address in zip(arrays, addresses, strict=True)
        ]
        memory = [self._copied(array) for array in hosts]
        for each in self.launches.temporaries:
            count = compiled(each.elements)(values)
            memory.append(self._memory(count * dtypes.bytes_of(each.dtype)))
        status = np.zeros(1 + MAX_VALUES, np.int64)
        device_status = self._copied(status)

        def launch(call: KernelCall, blocks: tuple[int, ...], known: Mapping[str, Any]) -> None:
            kernel = self.kernels.setdefault(call.symbol, self.cl.Kernel(self.program, call.symbol))
            given = [memory[place] for place in call.arrays]
            given += [dtypes.to_numpy(dtype).type(known[name]) for name, dtype in call.numbers]
            given += [device_status] if call.reports else []
            total = tuple(a * b for a, b in zip(blocks, call.threads, strict=True))
            kernel(self.queue, total, call.threads, *given)

        self.launches.run(values, launch)
        for place, (param, host) in enumerate(zip(arrays, hosts, strict=True)):
            if param.is_output and host.nbytes:
                self.cl.enqueue_copy(self.queue, host, memory[place])
        if self.called.messages:
            self.cl.enqueue_copy(self.queue, status, device_status)
            ctypes.memmove(operands[-1], status.ctypes.data, status.nbytes)

    def _memory(self, size: int) -> Any:
        return self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, size=max(size, 1))

    def _copied(self, array: Any) -> Any:
        """Return a copy of an array in the device's memory."""
        memory = self._memory(array.nbytes)
        if array.nbytes:
            self.cl.enqueue_copy(self.queue, memory, array)
        return memory


def _array_at(address: int, shape: Sequence[int], dtype: str) -> Any:
    """Return the array of this process at an address."""
    numpy_dtype = dtypes.to_numpy(dtype)
    count = math.prod(shape)
    if not count:
        return np.empty(0, numpy_dtype)
    memory = (ctypes.c_char * (count * numpy_dtype.itemsize)).from_address(address)
    return np.frombuffer(memoryview(memory), numpy_dtype)
