"""Measure pool of this machine: generates code here; builds, checks and times it in workers."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from dlcompiler.autotune.candidate import TemplateCandidate, Tried, bound, stored_form
from dlcompiler.autotune.pools.correctness import correctness_test
from dlcompiler.autotune.pools.measure_pool import Compared, Device, Report
from dlcompiler.autotune.records.record import target_key
from dlcompiler.autotune.trial import Result
from dlcompiler.errors import InternalError, UserError
from dlcompiler.measurement.bench import CandidateBench
from dlcompiler.measurement.candidates import Candidate as Generated
from dlcompiler.measurement.candidates import Ceiling, Job, Measured
from dlcompiler.measurement.provenance import check_measured
from dlcompiler.ops import Operator
from dlcompiler.pipeline import emit_source
from dlcompiler.runtime.sampling import Effort, median_interval, ratio_interval
from dlcompiler.space import Config, Workload
from dlcompiler.target import Target

MOST_COMPARED = 8
"""The most candidates that `LocalPool.compare` measures: all are in memory at once."""

_Key: TypeAlias = tuple[Hashable, Config]


class LocalPool:
    """Measures candidates of a workload on this machine: configs of its template, or other sources.

    Parameters
    ----------
    operator : Operator
        The operator whose template makes schedules of configs.
    workload : Workload
        What is tuned.
    target : Target
        This machine.
    threads : int, optional
        Number of threads of parallel loops; by default, the target's cores.
    ceiling : Ceiling
        Limits of a candidate: time to build, time to run, memory.
    effort : Effort
        How precisely it is timed.
    flush_caches : bool
        Empty the caches before each sample.
    overlap : bool, optional
        Build while candidates run; by default, if a test shows that this does not disturb them.
    seed : int
        Seed of the data that candidates are checked with.

    Raises
    ------
    MeasurementError
        If programs for the target are simulated, or have no times.
    """

    def __init__(
        self,
        operator: Operator,
        workload: Workload,
        target: Target,
        *,
        threads: int | None = None,
        ceiling: Ceiling | None = None,
        effort: Effort | None = None,
        flush_caches: bool = False,
        overlap: bool | None = None,
        seed: int = 0,
    ) -> None:
        self._operator = operator
        self._workload = workload
        self._target = target
        count = threads or target.cores
        self._provenance = check_measured(target, f"tune {workload}")
        self._devices = (Device(target_key(target, count), provenance=self._provenance),)
        self._bench = CandidateBench(
            partial(correctness_test, operator, workload, seed),
            target,
            threads=count,
            ceiling=ceiling,
            effort=effort,
            flush_caches=flush_caches,
            overlap=overlap,
        )
        self._fastest: list[tuple[float, _Key, Generated]] = []
        """The fastest candidates with their texts, which `compare` then need not generate again."""
        self._codes: dict[_Key, tuple[str, Tried]] = {}
        """Digest of the code of each candidate, and the candidate: it keeps its operator alive."""

    @property
    def note(self) -> str:
        """A warning that the machine is too busy; empty if it is not."""
        return self._bench.note

    @property
    def overlaps(self) -> bool | None:
        """Whether candidates are built while others run; None: not tested yet."""
        return self._bench.overlaps

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that it measures on: this machine."""
        return self._devices

    def measure(self, configs: Sequence[Tried], best_s: float | None, report: Report) -> None:
        """Measure a batch; see `dlcompiler.autotune.pools.measure_pool.MeasurePool`."""
        made: dict[int, Generated | Measured] = {}

        def generate(number: int) -> Generated | Measured:
            made[number] = self._candidate(configs[number])
            return made[number]

        def take(number: int, found: Measured) -> None:
            kernel = made.pop(number, None)
            if found.outcome == "ok" and isinstance(kernel, Generated):
                self._fastest.append((found.median_s, self._key(configs[number]), kernel))
                self._fastest.sort(key=lambda item: item[0])
                del self._fastest[MOST_COMPARED:]
            report(number, self._result(found))

        self._bench.measure([partial(generate, n) for n in range(len(configs))], best_s, take)

    def compare(
        self, configs: Sequence[Tried], *, budget_s: float = 1.0, seed: int = 0
    ) -> tuple[Compared, ...]:
        """Measure the best few configs again, in turn, to choose between near ties.

        Parameters
        ----------
        configs : sequence of Config or Candidate
            Those that were right; of more than `MOST_COMPARED`, the first ones.
        budget_s : float
            Time limit, without building [s].
        seed : int
            Seed of the order in each round.

        Returns
        -------
        tuple of Compared
            In the order of `configs`.

        Raises
        ------
        MeasurementError
            If no worker can be started, or one of them crashes now.
        """
        chosen = configs[:MOST_COMPARED]
        known = {key: kernel for _, key, kernel in self._fastest}
        jobs: list[Job] = [partial(self._known_or_made, known, tried) for tried in chosen]
        results = [self._result(m) for m in self._bench.compare(jobs, budget_s=budget_s, seed=seed)]
        right = [result for result in results if result.samples_s]
        fastest = min(right, key=lambda result: result.seconds or 0.0, default=None)
        return tuple(
            Compared(config, result)
            if fastest is None or not result.samples_s
            else Compared(
                config,
                result,
                median_interval(result.samples_s),
                ratio_interval(result.samples_s, fastest.samples_s),
            )
            for config, result in zip(chosen, results, strict=False)
        )

    def interrupt(self) -> None:
        """Interrupt the batch that another thread waits for."""
        self._bench.interrupt()

    def close(self) -> None:
        """End the workers."""
        self._bench.close()

    def _result(self, found: Measured) -> Result:
        return Result(
            found.outcome, found.samples_s, found.message, found.build_s, found.run_s,
            found.is_noisy, self._provenance,
        )  # fmt: skip

    def _known_or_made(self, known: Mapping[_Key, Generated], tried: Tried) -> Generated | Measured:
        """Return the code of a candidate; a bare config may stand for one that was measured."""
        kernel = known.get(self._key(tried)) if isinstance(tried, Config) else None
        return kernel or self._candidate(tried)

    def _candidate(self, tried: Tried) -> Generated | Measured:
        """Generate the code of a candidate; refuse code that differs from what its key stands for.

        Records and comparisons find a candidate by its key, and would mix two of them up.
        """
        made = candidate_of(self._operator, self._workload, self._target, tried)
        if isinstance(made, Measured):
            return made
        digest = hashlib.sha256(made.source.text.encode()).hexdigest()
        known, _ = self._codes.setdefault(self._key(tried), (digest, tried))
        if known == digest:
            return made
        return Measured(
            "refused",
            message="another candidate with the same to_json has other code: "
            "equal values must mean equal schedules",
        )

    def _key(self, tried: Tried) -> _Key:
        """Return what is equal for equal candidates only; a bare config is one of the template."""
        owner = None
        if isinstance(tried, TemplateCandidate) and (
            tried.operator is not self._operator or tried.workload != self._workload
        ):
            owner = (id(tried.operator), tried.workload)
        return owner, stored_form(tried)[0]


def candidate_of(
    operator: Operator, workload: Workload, target: Target, tried: Tried
) -> Generated | Measured:
    """Schedule a candidate and generate its code; if it is refused, return that as a result."""
    try:
        stored_form(tried)  # what no record can hold is refused by itself, and the others measured
        schedule, args = bound(tried, operator, workload).schedule(target)
        name = f"{workload.op}_kernel"
        source, _ = emit_source(schedule, args, target, name, verify_passes=False)
    except UserError as error:
        return Measured("refused", message=str(error))
    except InternalError as error:
        return Measured("build error", message=str(error))
    return Generated(source)
