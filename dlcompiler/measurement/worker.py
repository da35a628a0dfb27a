"""The worker process that compiles, runs and times kernels.

`dlcompiler.runtime.workers.Worker` starts it as ``python -m dlcompiler.measurement.worker``. What
it can do is the list of entry points below; each takes a `Request` and returns JSON values. A
kernel arrives as LLVM IR text, never as Python.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import threadpoolctl

from dlcompiler import dtypes
from dlcompiler.errors import MeasurementError
from dlcompiler.measurement.baselines import BASELINES, EINSUM
from dlcompiler.measurement.ceilings import ceilings_entry
from dlcompiler.measurement.checked import CheckedKernels
from dlcompiler.measurement.loading import load_function, with_call
from dlcompiler.runtime import llvm, object_cache, threads
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.device_code import DeviceCall, DeviceFunction
from dlcompiler.runtime.fork_server import serve_in_children
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.serve import Handler, Request
from dlcompiler.runtime.timing import Call, Paired, Timing, paired, time_call

Array = npt.NDArray[Any]


class Kernels:
    """The kernels that this process has loaded, by handle."""

    def __init__(self) -> None:
        self._functions: dict[int, Function] = {}
        self._next = 1

    def entries(self) -> dict[str, Handler]:
        """Return the entry points by name."""
        return {
            "ping": self.ping,
            "counts": self.counts,
            "load": self.load,
            "run": self.run,
            "time": self.time,
            "pair": self.pair,
            "unload": self.unload,
            "ceilings": ceilings_entry,
        }

    def ping(self, request: Request) -> dict[str, Any]:
        """Return the parameters of the request unchanged."""
        return dict(request.params)

    def counts(self, request: Request) -> dict[str, Any]:
        """Return how many modules were compiled and how many came from the cache, as `Counts`."""
        del request
        return dataclasses.asdict(object_cache.counts())

    def load(self, request: Request) -> dict[str, Any]:
        """Compile a kernel, given as `load_function` takes it. Returns ``handle``."""
        function = load_function(request)
        handle, self._next = self._next, self._next + 1
        self._functions[handle] = function
        return {"handle": handle}

    def run(self, request: Request) -> dict[str, Any]:
        """Run a kernel once on shared arrays, which are named like its parameters: ``handle``."""
        function = self._function(request)
        arrays = _arrays_of(function, request.arrays)
        if isinstance(function, DeviceFunction):
            function.call_poisoned(_POISON, *arrays)
        else:
            function(*arrays)
        return {}

    def time(self, request: Request) -> dict[str, Any]:
        """Time a kernel.

        Parameters: ``handle``; ``limits``, arguments of `time_call`; and, for arrays that the
        request does not bring, ``random``: ``seed`` and ``kind``, as in `random_array`. Returns
        ``samples_s`` and ``batch``; of a kernel of a device, also ``copies``: for each direction,
        its name, and those of the copies.
        """
        function = self._function(request)
        arrays = _arrays_of(function, _with_random(function, request))
        # In memory of this process, which may have large pages, as in a user's program.
        own = [array.copy() for array in arrays]
        limits = request.params.get("limits", {})
        if isinstance(function, DeviceFunction):
            return function.use(partial(_times_on_device, limits), *own)
        return _samples(time_call(lambda: function(*own), **limits))

    def pair(self, request: Request) -> dict[str, Any]:
        """Time a kernel and another one, or a baseline, in alternation on the same values.

        Parameters: ``handle``; ``other``, a handle or a name of `BASELINES`; ``limits``,
        arguments of `paired`; ``random`` and ``threads`` as above, the latter for the baseline's
        library too. Returns ``own`` and ``other`` (``samples_s``, ``batch``), and ``ratios``,
        other to own.
        """
        function, other = self._function(request), request.params["other"]
        second = _baseline(other, function, request) if isinstance(other, str) else None

        def measure(own: Call, second: Call) -> Paired:
            with threadpoolctl.threadpool_limits(request.params.get("threads")):
                return paired(second, own, **request.params["limits"])

        def beside(own: Call) -> Paired:
            if second is not None:
                return measure(own, second)
            another = self.by_handle(other)
            return with_call(another, _own_arrays(another, request), partial(measure, own))

        pair = with_call(function, _own_arrays(function, request), beside)
        return {"own": _samples(pair.b), "other": _samples(pair.a), "ratios": pair.ratios}

    def unload(self, request: Request) -> dict[str, Any]:
        """Unload a kernel: ``handle``."""
        self._function(request)
        del self._functions[request.params["handle"]]
        return {}

    def _function(self, request: Request) -> Function:
        """Return the kernel of a request, and set the number of threads that it requires."""
        threads.set_num_threads(request.params.get("threads"))
        return self.by_handle(request.params["handle"])

    def by_handle(self, handle: int) -> Function:
        """Return a loaded kernel by its handle."""
        if handle not in self._functions:
            raise MeasurementError(
                "find a kernel in the worker",
                "no kernel has this handle",
                got=handle,
                because="it was unloaded, or the process that held it has ended",
                hint="load it again",
            )
        return self._functions[handle]


def _samples(timing: Timing) -> dict[str, Any]:
    return {"samples_s": timing.samples_s, "batch": timing.batch}


def _times_on_device(limits: Mapping[str, Any], call: DeviceCall) -> dict[str, Any]:
    """Time the kernels of a call by the device's events, and by themselves its copies."""
    copies = {
        TO_DEVICE: time_call(call.clocked(call.upload), **_COPIES),
        TO_HOST: time_call(call.clocked(call.download), **_COPIES),
    }
    call.upload()
    kernels = time_call(call.clocked(), **limits)
    return {**_samples(kernels), "copies": {name: _samples(of) for name, of in copies.items()}}


def _own_arrays(function: Function, request: Request) -> list[Array]:
    """Return copies in memory of this process."""
    return [a.copy() for a in _arrays_of(function, _with_random(function, request))]


TO_DEVICE, TO_HOST = "copies to the device", "copies to the host"
_COPIES: Mapping[str, Any] = {"min_seconds": 0.01, "batch": 1}
_POISON = 0xFF


def _baseline(name: str, function: Function, request: Request) -> Callable[[], object]:
    """Return a call of a baseline on a kernel's random inputs."""
    subscripts = name.removeprefix(EINSUM)
    is_einsum = name.startswith(EINSUM) and re.fullmatch(r"[a-z]*(,[a-z]*)*->[a-z]*", subscripts)
    if name not in BASELINES and not is_einsum:
        raise MeasurementError(
            "find a baseline", "no such baseline", got=name, expected=", ".join(BASELINES)
        )
    arrays = _with_random(function, request)
    inputs = [arrays[param.name] for param in function.params if not param.is_output]
    (output,) = [arrays[param.name] for param in function.params if param.is_output]
    if is_einsum:
        return lambda: np.einsum(subscripts, *inputs, out=output, optimize=True)
    call = BASELINES[name]
    return lambda: call(*inputs, out=output)


def random_array(param: Param, seed: int, kind: str) -> Array:
    """Return reproducible values for an array.

    Parameters
    ----------
    param : Param
        Shape and dtype.
    seed : int
        Equal seeds give equal values.
    kind : str
        ``"uniform"``: floats in [-1, 1), integers of the whole range of 7 bits. ``"exact"``: whole
        numbers in [-4, 4], whose sums of products do not depend on the order of summation.
    """
    generator = np.random.default_rng(seed)
    dtype = dtypes.to_numpy(param.dtype)
    if dtypes.is_bool(param.dtype):
        return generator.integers(0, 2, param.static_shape).astype(dtype)
    if kind == "uniform" and dtypes.is_float(param.dtype):
        return generator.uniform(-1, 1, param.static_shape).astype(dtype)
    low, high = {"uniform": (-64, 64), "exact": (-4, 5)}[kind]
    if dtypes.is_unsigned(param.dtype):
        low = 0
    return generator.integers(low, high, param.static_shape).astype(dtype)


def _with_random(function: Function, request: Request) -> dict[str, Array]:
    arrays = dict(request.arrays)
    spec = request.params.get("random")
    if spec is None:
        return arrays
    for number, param in enumerate(function.params):
        if param.name not in arrays:
            arrays[param.name] = random_array(param, spec["seed"] + number, spec["kind"])
    return arrays


def _arrays_of(function: Function, arrays: Mapping[str, Array]) -> list[Array]:
    missing = [param.name for param in function.params if param.name not in arrays]
    if missing:
        raise MeasurementError(
            f"call {function.name} in the worker", "arrays are missing", got=", ".join(missing)
        )
    return [arrays[param.name] for param in function.params]


def main() -> None:
    """Answer requests until the pipe closes."""
    llvm.version()  # import LLVM now: starting a process is not part of any measurement
    serve_in_children({**Kernels().entries(), **CheckedKernels().entries()})


if __name__ == "__main__":
    main()
