"""Measurer of an accelerator: cycles from the timed simulator, values from the functional one.

Both simulators run in this process: no generated code runs. Cycles do not depend on this machine.
"""

from __future__ import annotations

import math
import threading
import time
from typing import Any

import numpy as np

from dlcompiler.autotune.candidate import Tried, bound
from dlcompiler.autotune.trial import Result
from dlcompiler.errors import InternalError, UserError
from dlcompiler.ops import Operator
from dlcompiler.pipeline import build
from dlcompiler.pipeline.accelerator_kernel import AcceleratorKernel
from dlcompiler.space import Workload
from dlcompiler.target import Target


class CyclesMeasurer:
    """Simulates candidates of a workload.

    Parameters
    ----------
    operator : Operator
        The operator whose template makes schedules of configs.
    workload : Workload
        What is tuned.
    target : Target
        The accelerator.
    seed : int
        Seed of the data with which values are checked.
    """

    def __init__(
        self, operator: Operator, workload: Workload, target: Target, seed: int = 0
    ) -> None:
        self._operator, self._workload, self._target = operator, workload, target
        self._seed = seed
        self._lock = threading.Lock()

    def measure(self, config: Tried, best_s: float | None) -> Result:
        """Simulate a candidate.

        Values are checked if it takes fewer cycles than all before: the result of a search always
        was. Checking takes longer than all else.
        """
        start = time.perf_counter()
        try:
            with self._lock:
                item = bound(config, self._operator, self._workload)
                schedule, args = item.schedule(self._target)
                kernel = build(schedule, args, self._target)
                assert isinstance(kernel, AcceleratorKernel)
                seconds = kernel.report().seconds
        except UserError as error:
            return Result("refused", message=str(error), build_s=time.perf_counter() - start)
        except InternalError as error:
            return Result("build error", message=str(error), build_s=time.perf_counter() - start)
        built = time.perf_counter()
        problem = None
        if seconds < (math.inf if best_s is None else best_s):
            problem = self._problem(kernel)
        build_s, run_s = built - start, time.perf_counter() - built
        if problem is not None:
            return Result("wrong answer", message=problem, build_s=build_s, run_s=run_s)
        return Result("ok", (seconds,), build_s=build_s, run_s=run_s)

    def _problem(self, kernel: AcceleratorKernel) -> str | None:
        """Return what is wrong with the values of a candidate, or None."""
        reference = self._operator.reference(self._workload, self._seed)
        outputs: dict[str, Any] = {
            name: np.zeros(array.shape, next(t.dtype for t in kernel.args if t.name == name))
            for name, array in reference.expected.items()
        }
        try:
            kernel(*reference.inputs.values(), *outputs.values())
        except UserError as error:
            return str(error)
        for name, expected in reference.expected.items():
            wrong = np.abs(outputs[name] - expected) > reference.bound[name]
            if wrong.any():
                return f"{wrong.sum()} of {wrong.size} elements of {name} are wrong"
        return None

    def interrupt(self) -> None:
        """Return at once: a simulation takes less than a second or two."""

    def close(self) -> None:
        """Return at once: there is nothing to release."""
