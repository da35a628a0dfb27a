"""Kernels of a device: compile them, keep their arrays there, launch them, and read the results.

What differs between CUDA and OpenCL is behind `dlcompiler.runtime.driver.Driver`.
"""

from __future__ import annotations

import copy
import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.errors import MAX_VALUES, ProgramError, UserError
from dlcompiler.runtime.device_array import DeviceArray
from dlcompiler.runtime.driver import (
    Driver,
    check_registers,
    check_shared_bytes,
    check_threads,
)
from dlcompiler.runtime.formulas import compiled
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.launches import KernelCall
from dlcompiler.runtime.options import Options
from dlcompiler.runtime.source import Source, chosen
from dlcompiler.runtime.timing import Clocked

Array = npt.NDArray[Any]
T = TypeVar("T")

LEAST_ADDED_BYTES = 16
"""Shared memory that a launch adds at least, where its size depends on symbols [byte]."""
GUARD_BYTES = 4096
"""Memory behind each array that is checked in a poisoned call [byte]."""


class DeviceCode:
    """Code of a device, compiled and loaded when it is first called.

    Parameters
    ----------
    source : Source
        Kernels, and how the host launches them.
    driver_of : callable
        Returns the driver of the device, or raises `DeviceUnavailable`.
    image : bytes, optional
        What the driver's `compile` made of the source, if that was done before.
    """

    is_machine_code = False
    """Whether its functions run on this CPU, called by their addresses."""

    def __init__(
        self, source: Source, driver_of: Callable[[], Driver], image: bytes | None = None
    ) -> None:
        assert source.launches is not None
        self.launches = source.launches
        """How the host runs the kernels."""
        self.interface = source.interface
        """How the program is called."""
        self.imports: frozenset[str] = frozenset()
        """Functions of this runtime that it calls: none."""
        self._source = source
        self._driver_of = driver_of
        self._image = image
        self._module: Any = None

    @property
    def text(self) -> str:
        """The generated code."""
        return self._source.text

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the texts that `source` returns, the generated one first."""
        return tuple(self._source.texts)

    def source(self, name: str | None = None) -> str:
        """Return one of its texts; without a name, the generated one."""
        return chosen(self._source.texts, name, self._source.symbol).text

    @property
    def driver(self) -> Driver:
        """The driver of the device."""
        return self._driver_of()

    @property
    def options(self) -> Options:
        """Options of LLVM: refused, since a driver compiles the code."""
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
            f"read {self._source.symbol}", f"a program for a device has no {what}",
            hint="source() returns its code",
        )  # fmt: skip

    def entry(self, symbol: str, types: Sequence[Any]) -> Callable[..., object]:
        """Return a function of addresses of arrays, numbers, and the address of the status."""
        return lambda *operands: self.use(DeviceCall.launch, operands)

    def use(
        self,
        use: Callable[[DeviceCall], T],
        operands: Sequence[Any],
        resident: Mapping[int, Any] | None = None,
        poison: int | None = None,
    ) -> T:
        """Copy the arrays of a call to the device, apply a function to it, and copy results back.

        Parameters
        ----------
        use : callable
            What to do with the call: launch it, or launch it many times and measure.
        operands : sequence
            Addresses of arrays, numbers, and the address of the status, as of `entry`.
        resident : mapping, optional
            Address of an array that stands for one on the device -> its memory there.
        poison : int, optional
            Byte that temporaries and memory behind the arrays are filled with. A kernel that
            changes the latter is refused.

        Raises
        ------
        ProgramError
            The kernels have written behind the end of an array.
        """
        driver, operation = self.driver, f"call {self._source.symbol}"
        with driver.errors(operation):
            if self._module is None:
                self._module = self._loaded(driver, operation)
            guard_bytes = 0 if poison is None else GUARD_BYTES
            call = DeviceCall(self, self._module, operands, resident or {}, guard_bytes)
            call.check_limits(operation)
            if poison is not None:
                call.poison(poison)
            call.upload()
            result = use(call)
            driver.synchronise()
            if poison is not None:
                call.check_guards(poison, operation)
            call.download()
        return result

    def _loaded(self, driver: Driver, operation: str) -> Any:
        calls = list(self.launches.calls())
        for each in calls:
            check_threads(operation, driver, each.threads)
            check_shared_bytes(operation, driver, each.symbol, each.shared_bytes)
        image = self._image
        if image is None:
            image = driver.compile(self.text, operation)
        module = driver.load(image, operation)
        for each in calls:
            check_registers(operation, driver, module, each.symbol, each.threads)
        return module


@dataclass(frozen=True, slots=True)
class _Copied:
    """An array of the host with memory on the device."""

    name: str
    host: Array
    memory: Any
    is_written: bool
    """Whether the program writes it."""


class DeviceCall:
    """A call whose arrays have memory on the device; it may be launched several times."""

    def __init__(
        self,
        code: DeviceCode,
        module: Any,
        operands: Sequence[Any],
        resident: Mapping[int, Any],
        guard_bytes: int,
    ) -> None:
        called, driver = code.interface, code.driver
        self._driver, self._module, self._launches = driver, module, code.launches
        self._guard_bytes = guard_bytes
        params = [param for param in called.params if not param.is_number]
        addresses, numbers = operands[: len(params)], operands[len(params) :]
        names = [variable.name for variable in called.variables]
        self._values = dict(zip(names, numbers, strict=False))
        self._memory: list[Any] = []
        self._copied: list[_Copied] = []
        for param, address in zip(params, addresses, strict=True):
            memory = resident.get(address)
            if memory is None:
                shape = [compiled(extent)(self._values) for extent in param.shape]
                host = _array_at(address, shape, param.dtype)
                memory = driver.allocate(host.nbytes + guard_bytes)
                self._copied.append(_Copied(param.name, host, memory, param.is_output))
            self._memory.append(memory)
        self._temporaries = [
            compiled(each.elements)(self._values) * dtypes.bytes_of(each.dtype)
            for each in self._launches.temporaries
        ]
        self._memory += [driver.allocate(size) for size in self._temporaries]
        self._status: Any = None
        if called.messages:
            host = _array_at(operands[-1], (1 + MAX_VALUES,), "int64")
            self._status = driver.allocate(host.nbytes + guard_bytes)
            self._copied.append(_Copied("status", host, self._status, True))

    def upload(self) -> None:
        """Copy the arrays of the host to the device."""
        for each in self._copied:
            if each.host.nbytes:
                self._driver.write(each.memory, each.host)

    def download(self) -> None:
        """Copy what the program has written to the arrays of the host."""
        for each in self._copied:
            if each.is_written and each.host.nbytes:
                self._driver.read(each.host, each.memory)

    def poison(self, byte: int) -> None:
        """Fill the temporaries, and memory of the arrays with what is behind them, with a byte."""
        for each in self._copied:
            self._driver.fill(each.memory, byte, each.host.nbytes + self._guard_bytes)
        count = len(self._temporaries)
        temporaries = self._memory[len(self._memory) - count :]
        for memory, size in zip(temporaries, self._temporaries, strict=True):
            if size:
                self._driver.fill(memory, byte, size)

    def check_guards(self, byte: int, operation: str) -> None:
        """Refuse a program that has changed memory behind an array, which `poison` has filled.

        Raises
        ------
        ProgramError
            With the name of the array.
        """
        for each in self._copied:
            size = each.host.nbytes
            whole = np.empty(size + self._guard_bytes, np.uint8)
            self._driver.read(whole, each.memory)
            if not (whole[size:] == byte).all():
                raise ProgramError(
                    operation, f"memory behind the end of {each.name} was written",
                    kind="out_of_bounds", buffer=each.name,
                )  # fmt: skip

    def launch(self) -> None:
        """Start all kernels; they may still run when this returns."""
        self._launches.run(self._values, self._launch)

    def _launch(self, call: KernelCall, blocks: Sequence[int], known: Mapping[str, Any]) -> None:
        operands = [self._memory[place] for place in call.arrays]
        operands += [dtypes.to_numpy(dtype).type(known[name]) for name, dtype in call.numbers]
        operands += [self._status] if call.reports else []
        added = int(compiled(call.added_bytes)(known))
        if call.added_bytes:  # the kernel has a parameter for it
            added = max(added, LEAST_ADDED_BYTES)
        self._driver.launch(self._module, call.symbol, blocks, call.threads, operands, added)

    def check_limits(self, operation: str) -> None:
        """Refuse launches that need more than the device has, before the first one starts.

        Raises
        ------
        TargetError
            With the limit of the device.
        """
        if not any(call.added_bytes for call in self._launches.calls()):
            return  # known when the code was loaded
        self._launches.run(
            self._values,
            lambda call, _, known: check_shared_bytes(
                operation, self._driver, call.symbol, call.all_shared_bytes(known)
            ),
        )

    def clocked(self, run: Callable[[], object] | None = None) -> Clocked:
        """Return a call for `dlcompiler.runtime.timing`, which events of the device measure.

        Parameters
        ----------
        run : callable, optional
            What to measure: by default, the kernels; else `upload` or `download`.
        """
        once = run or self.launch

        def repeat(count: int) -> None:
            for _ in range(count):
                once()

        return Clocked(once, lambda count: self._driver.seconds(lambda: repeat(count)))


class DeviceFunction(Function):
    """A kernel that runs on a device; arrays of the host are copied there and back.

    Arrays that are in the memory of the device already (`DeviceArray`, or a tensor of another
    library through ``__dlpack__``) are used where they are.
    """

    module: DeviceCode

    def __call__(self, *arguments: object) -> None:
        """Run the kernel on arrays; see `Function.__call__`. It has ended when this returns.

        Raises
        ------
        DeviceUnavailable
            The device cannot be used.
        DeviceFault
            The device or its driver failed during the call.
        """
        self.use(DeviceCall.launch, *arguments)

    def call_poisoned(self, byte: int, *arguments: object) -> None:
        """Run the kernel like a call; temporaries are poisoned: see `DeviceCode.use`."""
        self.use(DeviceCall.launch, *arguments, poison=byte)

    def use(
        self, use: Callable[[DeviceCall], T], *arguments: object, poison: int | None = None
    ) -> T:
        """Apply a function to a call whose arrays are on the device; see `DeviceCode.use`."""
        resident: dict[int, Any] = {}
        plain = [self._plain(n, argument, resident) for n, argument in enumerate(arguments, 1)]
        results: list[T] = []

        def kernel(*operands: Any) -> None:
            results.append(self.module.use(use, operands, resident, poison))

        here = copy.copy(self)  # a copy, since other threads may call this object
        here._kernel = kernel
        here._call_checked(plain)
        return results[0]

    def _plain(self, number: int, argument: object, resident: dict[int, Any]) -> object:
        """Return an argument for the checks: of an array on the device, what stands for it."""
        if isinstance(argument, np.ndarray) or not hasattr(argument, "__dlpack_device__"):
            return argument
        operation = f"call {self.name}: argument {number}"
        driver = self.module.driver
        found: tuple[Any, Array] | None
        if isinstance(argument, DeviceArray):
            found = argument.on(driver, operation)
        else:
            found = driver.imported(argument, operation)
        if found is None:
            return argument
        memory, stand_in = found
        resident[stand_in.ctypes.data] = memory
        return stand_in


def _array_at(address: int, shape: Sequence[int], dtype: str) -> Array:
    """Return the array of this process at an address."""
    numpy_dtype = dtypes.to_numpy(dtype)
    count = math.prod(shape)
    if not count:
        return np.empty(0, numpy_dtype)
    memory = (ctypes.c_char * (count * numpy_dtype.itemsize)).from_address(address)
    return np.frombuffer(memoryview(memory), numpy_dtype)
