"""What a worker can compile and load: machine code of this CPU, and code of devices."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from dlcompiler.codegen import Source
from dlcompiler.errors import MeasurementError
from dlcompiler.runtime import cuda, llvm, opencl, threads
from dlcompiler.runtime.device_code import DeviceCode, DeviceFunction
from dlcompiler.runtime.driver import Driver
from dlcompiler.runtime.function import Function, described_by
from dlcompiler.runtime.launches import Launches
from dlcompiler.runtime.object_cache import CompiledObject
from dlcompiler.runtime.options import Options
from dlcompiler.runtime.serve import Request, lift_memory_limit
from dlcompiler.runtime.source import Interface, Text
from dlcompiler.runtime.timing import Call
from dlcompiler.target import Target

T = TypeVar("T")

DRIVERS: Mapping[str, Callable[[int], Driver]] = MappingProxyType(
    {"opencl": opencl.driver, "cuda": cuda.driver}
)
"""Language of code for a device, which also is the device's name -> its driver, by number."""
_RUNS_ON = MappingProxyType({"llvm": "host", **{name: name for name in DRIVERS}})
"""Language -> the device (`Target.runs_on`) on which a worker runs it."""


def runs_in_worker(target: Target) -> bool:
    """Tell whether a worker can load code for a target."""
    return _is_for(target.language, target.runs_on)


def _is_for(language: str, device: str) -> bool:
    """Tell whether a device runs code of a language: ``opencl:1`` is the second one of OpenCL."""
    return _RUNS_ON.get(language) == device.partition(":")[0]


def _driver_of(device: str) -> Driver:
    """Return the driver of a device by its name, ``opencl:1``."""
    name, _, number = device.partition(":")
    return DRIVERS[name](int(number or 0))


def check_loadable(target: Target) -> None:
    """Refuse a target whose code no worker of this machine can load.

    Raises
    ------
    TargetError
        The code is neither code of a device nor LLVM IR, or this processor cannot run it.
    """
    if target.language not in DRIVERS:
        Options.for_target(target).check()


def described(source: Source, target: Target) -> dict[str, Any]:
    """Return what a worker needs besides the text of a program, as JSON values.

    Raises
    ------
    TargetError
        The code is neither LLVM IR nor code of a device.
    """
    options = None if source.language in DRIVERS else Options.for_target(target)
    return described_code(source, options, target.runs_on)


def described_code(source: Source, options: Options | None, device: str) -> dict[str, Any]:
    """Return what `described` does, by the options and the device instead of the target."""
    return {
        "language": source.language,
        "device": device,
        "interface": source.interface.to_json(),
        "launches": None if source.launches is None else source.launches.to_json(),
        "options": {} if options is None else dataclasses.asdict(options),
    }


def load_function(request: Request) -> Function:
    """Compile the kernel of a request.

    ``data`` is its text. Parameters: those that `described` returns, and optionally ``threads``,
    the number for parallel loops.

    Raises
    ------
    MeasurementError
        A worker cannot run such code.
    """
    given = {key: request.params[key] for key in ("language", "device")}
    if not _is_for(given["language"], given["device"]):
        raise MeasurementError(
            "load a kernel in a worker",
            "workers run machine code of LLVM, and code of CUDA and OpenCL devices",
            got=", ".join(f"{key} {value!r}" for key, value in given.items()),
        )  # fmt: skip
    if given["language"] in DRIVERS:
        lift_memory_limit()
        return _device_function(request.params, request.data.decode(), None)
    module = llvm.compile_ir(request.data.decode(), options_of(request.params))
    return _function(module, request.params)


def compile_code(text: str, params: Mapping[str, Any]) -> CompiledObject:
    """Compile a text: to an object file, or to what the driver of a device loads.

    Parameters: ``language``, ``device`` and ``options``.
    """
    if params["language"] in DRIVERS:
        lift_memory_limit()
        driver = _driver_of(params["device"])
        with driver.errors("compile a candidate"):
            return CompiledObject(driver.compile(text, "compile a candidate"), (), ())
    return llvm.compile_object(text, options_of(params))


def loaded_function(image: bytes, params: Mapping[str, Any]) -> Function:
    """Load what `compile_code` made.

    Parameters: those that `described_code` returns, ``symbols`` and ``imports`` of an object, and
    optionally ``threads``.
    """
    if params["language"] in DRIVERS:
        lift_memory_limit()
        return _device_function(params, "", image)
    made = CompiledObject(image, tuple(params["symbols"]), tuple(params["imports"]))
    return _function(llvm.load_object(made, options_of(params)), params)


def options_of(params: Mapping[str, Any]) -> Options:
    """Read the ``options`` of a request."""
    return Options(**{**params["options"], "features": tuple(params["options"]["features"])})


def with_call(function: Function, arrays: list[Any], use: Callable[[Call], T]) -> T:
    """Apply a function to a call of a kernel; on a device, to one whose arrays are there already.

    The latter is timed by events of the device: see `dlcompiler.runtime.timing.Clocked`.
    """
    if isinstance(function, DeviceFunction):
        return function.use(lambda call: use(call.clocked()), *arrays)
    return use(lambda: function(*arrays))


def _device_function(params: Mapping[str, Any], text: str, image: bytes | None) -> Function:
    language, interface = params["language"], Interface.from_json(params["interface"])
    launches = Launches.from_json(params["launches"])
    source = Source(language, {language: Text(text)}, interface, None, launches)
    code = DeviceCode(source, partial(_driver_of, params["device"]), image)
    return DeviceFunction(code, **described_by(interface))


def _function(module: llvm.LoadedModule, params: Mapping[str, Any]) -> Function:
    threads.set_num_threads(params.get("threads"))
    return Function.of(module, Interface.from_json(params["interface"]))
