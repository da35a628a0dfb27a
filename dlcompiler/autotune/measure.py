"""From a config to a result: schedule and generate here, compile, check and time in a worker."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

from dlcompiler.autotune.trial import OutcomeName, Result
from dlcompiler.errors import InternalError, UserError
from dlcompiler.measurement.candidates import CandidateBench, Problem
from dlcompiler.ops import Operator
from dlcompiler.pipeline import emit_source
from dlcompiler.pipeline.build import parameters
from dlcompiler.space import Config, Workload
from dlcompiler.target import Target

_SEED = 0
_ENOUGH = 4.0
"""How many times slower than the best a candidate must be for one sample to be enough."""


class Measurer(Protocol):
    """What tells the time of a config; another one may stand for other machines."""

    def measure(self, config: Config, best_s: float | None) -> Result:
        """Measure a config; `best_s` is the shortest time so far [s]."""

    def interrupt(self) -> None:
        """Let a measurement that another thread waits for end soon, whatever its result."""

    def close(self) -> None:
        """Give back what it holds."""


class TemplateMeasurer:
    """Measures configs of an operator's template in a worker process.

    Parameters
    ----------
    operator : Operator
        Whose template.
    workload : Workload
        For which shapes.
    target : Target
        This machine.
    threads : int, optional
        Of parallel loops; by default, the target's cores.
    timeout_s : float
        Limit of one candidate, from text to times [s].
    """

    def __init__(
        self,
        operator: Operator,
        workload: Workload,
        target: Target,
        *,
        threads: int | None = None,
        timeout_s: float = 10.0,
    ) -> None:
        self._operator = operator
        self._workload = workload
        self._target = target
        self._threads = threads or target.cores
        self._timeout_s = timeout_s

    @cached_property
    def _bench(self) -> CandidateBench:
        """The worker with the reference; made by the first measurement, in its thread."""
        reference = self._operator.reference(self._workload, _SEED)
        return CandidateBench(
            Problem(reference.inputs, reference.expected, reference.bound),
            self._target,
            threads=self._threads,
            timeout_s=self._timeout_s,
        )

    def measure(self, config: Config, best_s: float | None) -> Result:
        """Measure a config: a refusal of the schedule or of the compiler is a result too."""
        try:
            schedule, args = self._operator.template(self._workload, self._target, config)
            source, func = emit_source(schedule, args, self._target, f"{self._workload.op}_kernel")
        except UserError as error:
            return Result("refused", message=str(error))
        except InternalError as error:
            return Result("build error", message=str(error))
        enough_s = None if best_s is None else _ENOUGH * best_s
        measured = self._bench.measure(source, parameters(func), enough_s=enough_s)
        outcome: OutcomeName = "run timeout" if measured.outcome == "timeout" else measured.outcome
        return Result(outcome, measured.samples_s, measured.message)

    def interrupt(self) -> None:
        """End the worker's process."""
        if "_bench" in self.__dict__:
            self._bench.interrupt()

    def close(self) -> None:
        """End the worker."""
        if "_bench" in self.__dict__:
            self._bench.close()
