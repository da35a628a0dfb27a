"""Measure pool of a simulated GPU: candidates are checked on this CPU, their times predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from dlcompiler.autotune.candidate import Tried, bound, stored_form
from dlcompiler.autotune.pools.correctness import correctness_test
from dlcompiler.autotune.pools.measure_pool import Device, Report
from dlcompiler.autotune.records.record import target_key
from dlcompiler.autotune.trial import Result
from dlcompiler.errors import InternalError, UserError
from dlcompiler.measurement.bench import CandidateBench
from dlcompiler.measurement.candidates import Candidate as Generated
from dlcompiler.measurement.candidates import Ceiling, Job, Measured
from dlcompiler.measurement.provenance import provenance_of_times
from dlcompiler.ops import Operator
from dlcompiler.pipeline import lower_program
from dlcompiler.pipeline.executables import source_for_host
from dlcompiler.pipeline.gpu_report import predicted_s
from dlcompiler.runtime.sampling import Effort
from dlcompiler.space import Workload
from dlcompiler.target import Target, resolve

ONE_CALL = Effort(least=1, most=1, floor_s=0.0, budget_s=0.0)
"""The time of the simulation itself is not used."""


@dataclass(frozen=True, slots=True)
class _Made:
    """A candidate: its code for this CPU, and its time on the GPU."""

    code: Generated
    seconds: float


class SimulatedPool:
    """Checks candidates of a workload by simulation on this CPU, and predicts their times.

    Parameters
    ----------
    operator : Operator
        The operator whose template makes schedules of configs.
    workload : Workload
        What is tuned.
    target : Target
        The simulated GPU.
    ceiling : Ceiling
        Limits of a candidate: time to build, time to run, memory.
    seed : int
        Seed of the data that candidates are checked with.

    Raises
    ------
    MeasurementError
        Programs for the target have no times.
    """

    def __init__(
        self, operator: Operator, workload: Workload, target: Target, *,
        ceiling: Ceiling | None = None, seed: int = 0,
    ) -> None:  # fmt: skip
        self.note = ""
        """A note for the user about the times; empty."""
        self._operator, self._workload, self._target = operator, workload, target
        self._provenance = provenance_of_times(target, f"tune {workload}")
        self._devices = (Device(target_key(target, target.cores), provenance=self._provenance),)
        self._bench = CandidateBench(
            partial(correctness_test, operator, workload, seed), resolve("cpu"), ceiling=ceiling,
            effort=ONE_CALL, overlap=False,
        )  # fmt: skip

    @property
    def devices(self) -> tuple[Device, ...]:
        """The simulated GPU."""
        return self._devices

    def measure(self, configs: Sequence[Tried], best_s: float | None, report: Report) -> None:
        """Measure a batch; see `dlcompiler.autotune.pools.measure_pool.MeasurePool`."""
        del best_s  # predictions are equally fast for all
        seconds: dict[int, float] = {}

        def generate(number: int) -> Generated | Measured:
            made = self._made(configs[number])
            if isinstance(made, Measured):
                return made
            seconds[number] = made.seconds
            return made.code

        def take(number: int, found: Measured) -> None:
            samples = (seconds[number],) if found.outcome == "ok" else ()
            found = replace(found, samples_s=samples)
            report(number, Result(found.outcome, found.samples_s, found.message, found.build_s,
                                  found.run_s, False, self._provenance))  # fmt: skip

        jobs: list[Job] = [partial(generate, number) for number in range(len(configs))]
        self._bench.measure(jobs, None, take)

    def interrupt(self) -> None:
        """Interrupt the batch that another thread waits for."""
        self._bench.interrupt()

    def close(self) -> None:
        """End the workers."""
        self._bench.close()

    def _made(self, tried: Tried) -> _Made | Measured:
        """Schedule a candidate and predict its time; if it is refused, return that as a result."""
        try:
            stored_form(tried)
            schedule, args = bound(tried, self._operator, self._workload).schedule(self._target)
            name = f"{self._workload.op}_kernel"
            program = lower_program(schedule, args, self._target, name, verify_passes=False)
            seconds = predicted_s(program, self._target)
            if seconds is None:
                return Measured("refused", message="no block of it fits on a multiprocessor")
            return _Made(Generated(source_for_host(program)), seconds)
        except UserError as error:
            return Measured("refused", message=str(error))
        except InternalError as error:
            return Measured("build error", message=str(error))
