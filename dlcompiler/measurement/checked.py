"""The worker's side of `dlcompiler.measurement.candidates`: compile, check, and only then time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from dlcompiler import dtypes
from dlcompiler.errors import DLCompilerError, MeasurementError
from dlcompiler.runtime import llvm, threads
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.function import Function
from dlcompiler.runtime.serve import Handler, Request
from dlcompiler.runtime.symbols import Check, Variable
from dlcompiler.runtime.timing import time_call

Array = npt.NDArray[Any]

#: Prefixes of the arrays that `CheckedKernels.prepare` gets.
INPUT, EXPECTED, BOUND = "input:", "expected:", "bound:"

_POISON = 0xFF  # in every byte; of a float, a NaN


def load_function(request: Request) -> Function:
    """Compile the kernel of a request.

    ``data`` is LLVM IR text. Parameters: ``symbol``; ``params``, a list of the fields of `Param`;
    ``options``, the fields of `dlcompiler.runtime.llvm.Options`; optionally ``name``,
    ``variables`` and ``checks``, lists of the fields of `Variable` and `Check`, ``messages``, and
    ``threads``, the number for parallel loops.
    """
    given = request.params
    options = llvm.Options(**{**given["options"], "features": tuple(given["options"]["features"])})
    params = [Param(**{**fields, "shape": tuple(fields["shape"])}) for fields in given["params"]]
    threads.set_num_threads(given.get("threads"))
    module = llvm.compile_ir(request.data.decode(), options)
    variables = [Variable(**fields) for fields in given.get("variables", ())]
    checks = [Check(**fields) for fields in given.get("checks", ())]
    return Function(
        module,
        given["symbol"],
        params,
        given.get("name"),
        variables=variables,
        checks=checks,
        messages=given.get("messages", ()),
    )


class CheckedKernels:
    """Measures kernels of one problem, each if its results are right."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}

    def entries(self) -> dict[str, Handler]:
        """Return the entry points by name."""
        return {"prepare": self.prepare, "candidate": self.candidate}

    def prepare(self, request: Request) -> dict[str, Any]:
        """Keep copies of inputs, expected outputs and bounds, for all candidates to come."""
        self._arrays = {name: array.copy() for name, array in request.arrays.items()}
        return {}

    def candidate(self, request: Request) -> dict[str, Any]:
        """Compile a kernel, check its results, and time it.

        Parameters as of `load_function`, and: ``limits``, arguments of `time_call`; ``enough_s``,
        the time of a call above which one sample is enough (or null). Returns ``outcome`` (``ok``,
        ``build error`` or ``wrong answer``), ``message`` and ``samples_s``.
        """
        if not self._arrays:
            raise MeasurementError("measure a candidate", "the worker was not prepared")
        try:
            function = load_function(request)
        except DLCompilerError as error:
            return _answer("build error", str(error))
        arrays = [self._argument(param) for param in function.params]
        outputs = {
            param.name: array
            for param, array in zip(function.params, arrays, strict=True)
            if param.is_output
        }
        start = time.perf_counter()
        function(*arrays)
        seconds = time.perf_counter() - start
        if difference := self._difference(outputs):
            return _answer("wrong answer", difference)
        limits, enough_s = dict(request.params["limits"]), request.params["enough_s"]
        if enough_s is not None and seconds > enough_s:
            limits = {"warmup": 0, "min_repeats": 1, "max_repeats": 1}
        timing = time_call(lambda: function(*arrays), **limits)
        if difference := self._difference(outputs):
            return _answer("wrong answer", f"after repeated calls: {difference}")
        return {**_answer("ok"), "samples_s": timing.samples_s}

    def _argument(self, param: Param) -> Array:
        """Return an input, or a poisoned output."""
        if not param.is_output:
            return self._arrays[INPUT + param.name]
        array = np.empty(param.static_shape, dtypes.to_numpy(param.dtype))
        array.reshape(-1).view(np.uint8)[:] = _POISON
        return array

    def _difference(self, outputs: dict[str, Array]) -> str:
        """Return where an output is wrong, or nothing; NaN is right only where it is expected."""
        for name, got in outputs.items():
            expected, bound = self._arrays[EXPECTED + name], self._arrays[BOUND + name]
            wide = got.astype(np.float64)
            with np.errstate(invalid="ignore"):
                near = np.abs(wide - expected) <= bound
            wrong = ~(near | (wide == expected) | (np.isnan(wide) & np.isnan(expected)))
            if wrong.any():
                index = tuple(int(n) for n in np.unravel_index(np.argmax(wrong), wrong.shape))
                return (
                    f"{name}{list(index)} is {wide[index]:.9g}, expected {expected[index]:.9g}"
                    f" within {bound[index]:.3g}; {np.count_nonzero(wrong)} of {wrong.size}"
                    " elements are wrong"
                )
        return ""


def _answer(outcome: str, message: str = "") -> dict[str, Any]:
    return {"outcome": outcome, "message": message, "samples_s": []}
