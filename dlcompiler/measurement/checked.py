"""Build, check and then time candidates, inside the worker process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.errors import (
    DeviceFault,
    DeviceUnavailable,
    DLCompilerError,
    MeasurementError,
    OutOfMemory,
    TargetError,
)
from dlcompiler.measurement.correctness import Case, CorrectnessTest
from dlcompiler.measurement.guarded import Place, guarded, guarded_copy
from dlcompiler.measurement.interference import PULSE_BYTES
from dlcompiler.measurement.loading import compile_code, loaded_function, options_of, with_call
from dlcompiler.runtime import llvm
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.device_code import DeviceCall, DeviceFunction
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.sampling import Effort, Sampled, sampled, tells_enough
from dlcompiler.runtime.serve import Answer, Handler, Request
from dlcompiler.runtime.timing import Call, alternate, time_call

Array = npt.NDArray[Any]
T = TypeVar("T")

_POISON: Mapping[Place, int] = {"end": 0xFF, "begin": 0x7F, "aligned": 0xFF}
"""Poison: every byte of outputs and temporaries before a call, as a float a NaN or very large.

Consecutive cases use different poison: an element that is never written is wrong in one of them."""
_PLACES: tuple[Place, Place] = ("end", "begin")
"""Ends of guarded memory at which the arrays of the cases are placed, in turn. An access behind the
end kills the process in the first case, an access before the begin in the second."""


class _WrongAnswerError(Exception):
    """A result of a candidate is outside its limits."""


class CheckedKernels:
    """Builds kernels of one workload, and measures those that pass its correctness test."""

    def __init__(self) -> None:
        self._memory: list[_Memory] = []
        self._evictor = np.zeros(0)

    def entries(self) -> dict[str, Handler]:
        """Return the entry points by name."""
        return {
            "compile": self.compile,
            "pulse": self.pulse,
            "prepare": self.prepare,
            "candidate": self.candidate,
            "alternate": self.alternate,
        }

    def compile(self, request: Request) -> Answer:
        """Compile a text, which is ``data``, as `compile_code` does, on ``cores``.

        Returns ``symbols`` and ``imports``, and the object as ``data``; ``message`` alone when the
        text cannot be compiled.
        """
        _pin(request.params["cores"])
        try:
            made = compile_code(request.data.decode(), request.params)
        except DLCompilerError as error:
            return Answer({"message": str(error)})
        return Answer({"symbols": made.symbols, "imports": made.imports}, made.image)

    def pulse(self, request: Request) -> dict[str, Any]:
        """Time the kernel of `dlcompiler.measurement.interference.PULSE`, which is ``data``.

        Parameters: ``options``, ``cores``, ``seconds``. Returns ``median_s``.
        """
        _pin(request.params["cores"])
        module = llvm.compile_ir(request.data.decode(), options_of(request.params))
        params = [Param("A", (PULSE_BYTES // 4,), "float32"), Param("C", (8,), "float32", True)]
        function = Function(module, "pulse", params)
        arrays = [np.zeros(param.static_shape, np.float32) for param in params]
        seconds = request.params["seconds"]
        timing = time_call(lambda: function(*arrays), min_seconds=seconds, max_repeats=10_000)
        return {"median_s": timing.median_s}

    def prepare(self, request: Request) -> dict[str, Any]:
        """Store the test of all later candidates, given as `CorrectnessTest.arrays`.

        Parameters: ``flush_bytes``, the size of what is written before each sample to empty the
        caches, or 0.
        """
        test = CorrectnessTest.from_arrays(request.arrays)
        self._memory = [_Memory(*pair) for pair in zip(test.cases, cycle(_PLACES), strict=False)]
        self._memory.append(_Memory(test.cases[0], "aligned"))
        self._evictor = np.zeros(request.params["flush_bytes"], np.uint8)
        return {}

    def candidate(self, request: Request) -> dict[str, Any]:
        """Load an object, check its results, and time it.

        ``data`` is what `compile` made. Parameters as of `loaded_function`, and: ``cores``, those
        to run on; ``effort``, the fields of `Effort`; ``best_s``, the
        shortest time so far, or null. Returns ``outcome`` (``ok``, ``build error``, ``out of
        memory`` or ``wrong answer``), ``message``, ``samples_s`` and ``is_noisy``.
        """
        self._check_prepared()
        _pin(request.params["cores"])
        try:
            function = loaded_function(request.data, request.params)
        except DLCompilerError as error:
            return _answer("build error", str(error))
        given = request.params
        try:
            seen_s = [self._verified(function, memory) for memory in self._memory[:-1]]
            if tells_enough(seen_s, given["best_s"]):
                return {**_answer("ok"), "samples_s": seen_s}
            timed = self._timed(function, given, seen_s)
        except _WrongAnswerError as error:
            return _answer("wrong answer", str(error))
        except (OutOfMemory, MemoryError) as error:
            return _answer("out of memory", str(error) or "no memory")
        except (
            TargetError,
            DeviceUnavailable,
        ) as error:  # a device compiles and loads at the first call
            return _answer("build error", str(error))
        except DeviceFault:
            raise
        except DLCompilerError as error:  # an assertion in the kernel
            return _answer("wrong answer", str(error))
        samples_s = timed.timing.samples_s
        return {**_answer("ok"), "samples_s": samples_s, "is_noisy": timed.is_noisy}

    def alternate(self, request: Request) -> dict[str, Any]:
        """Time several candidates in turn.

        ``data`` is their objects, one after the other. Parameters: ``candidates``, for each those
        of `candidate` and ``size``, of its object [byte]; ``budget_s`` and ``seed``. Returns
        ``samples_s``, for each candidate those of the same rounds.
        """
        self._check_prepared()
        _pin(request.params["candidates"][0]["cores"])
        functions, start = [], 0
        for given in request.params["candidates"]:
            image = request.data[start : start + given["size"]]
            functions.append(loaded_function(image, given))
            start += given["size"]
        measure = partial(
            alternate,
            budget_s=request.params["budget_s"],
            before=self._before(),
            seed=request.params["seed"],
        )
        timings = _with_calls(functions, self._memory[-1], measure)
        return {"samples_s": [timing.samples_s for timing in timings]}

    def _check_prepared(self) -> None:
        if not self._memory:
            raise MeasurementError("measure a candidate", "the worker was not prepared")

    def _verified(self, function: Function, memory: _Memory) -> float:
        """Run a kernel once and check its results; return the duration [s]."""
        arrays = memory.arguments(function)
        if isinstance(function, DeviceFunction):
            seconds = function.use(_launch_time, *arrays, poison=memory.poison)
        else:
            start = time.perf_counter()
            function.call_poisoned(memory.poison, *arrays)
            seconds = time.perf_counter() - start
        memory.check(function)
        return seconds

    def _timed(self, function: Function, given: dict[str, Any], seen_s: list[float]) -> Sampled:
        """Time a kernel whose results were right, and check them again afterwards."""
        own = self._memory[-1]
        arrays = own.arguments(function)
        measure = partial(
            sampled,
            effort=Effort(**given["effort"]),
            best_s=given["best_s"],
            seen_s=seen_s,
            before=self._before(),
        )
        timed = with_call(function, arrays, measure)
        own.check(function, "after repeated calls: ")
        return timed

    def _before(self) -> Callable[[], object] | None:
        """Return a function that evicts the caches before a sample; None if it is not required."""
        evictor = self._evictor
        return (lambda: np.add(evictor, 1, out=evictor)) if evictor.size else None


class _Memory:
    """The arrays of a case in guarded memory; the inputs are read-only."""

    def __init__(self, case: Case, place: Place) -> None:
        self._case = case
        self._place = place
        self.poison = _POISON[place]
        """The byte of `_POISON`."""
        self._inputs = {name: guarded_copy(array, place) for name, array in case.inputs.items()}
        self._outputs: dict[str, Array] = {}

    def arguments(self, function: Function) -> list[Array]:
        """Return the arguments of a call: the inputs, and outputs filled with poison."""
        return [
            self._poisoned(param) if param.is_output else self._inputs[param.name]
            for param in function.params
        ]

    def check(self, function: Function, when: str = "") -> None:
        """Check the outputs of a call; NaN is right only where it is expected.

        Raises
        ------
        _WrongAnswerError
            With the first element that is wrong.
        """
        for param in function.params:
            if param.is_output:
                limits = self._case.outputs[param.name]
                difference = limits.difference(param.name, self._outputs[param.name])
                if difference:
                    raise _WrongAnswerError(when + difference)

    def _poisoned(self, param: Param) -> Array:
        array = self._outputs.get(param.name)
        if array is None:
            dtype = dtypes.to_numpy(param.dtype)
            array = self._outputs[param.name] = guarded(param.static_shape, dtype, self._place)
        array.reshape(-1).view(np.uint8)[:] = self.poison
        return array


def _launch_time(call: DeviceCall) -> float:
    return call.clocked().seconds(1)


def _with_calls(
    functions: Sequence[Function], memory: _Memory, measure: Callable[[list[Call]], T]
) -> T:
    """Apply a function to the calls of several kernels, each with the arguments of a memory."""

    def take(calls: list[Call]) -> T:
        if len(calls) == len(functions):
            return measure(calls)
        function = functions[len(calls)]
        return with_call(function, memory.arguments(function), lambda call: take([*calls, call]))

    return take([])


def _pin(cores: list[int]) -> None:
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)


def _answer(outcome: str, message: str = "") -> dict[str, Any]:
    return {"outcome": outcome, "message": message, "samples_s": [], "is_noisy": False}
