"""Measure works and peers: each row is built here, then verified and timed in a worker."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dlcompiler.bench.implementations import (
    Implementation,
    NotThere,
    implementation_of,
    remote_kernel,
    target_of,
)
from dlcompiler.bench.intervals import paired_ratio
from dlcompiler.bench.memory import ALONE, BOUND, EXPECTED, INPUT, PLAIN
from dlcompiler.bench.peers import check_names, missing
from dlcompiler.bench.results import Contest, PeerResult, Result
from dlcompiler.bench.works import Row, Work
from dlcompiler.errors import DLCompilerError
from dlcompiler.ops import Reference
from dlcompiler.runtime.timing import Timing, measured_here
from dlcompiler.runtime.workers import Worker
from dlcompiler.schedule import Schedule
from dlcompiler.te import Tensor

COMMAND = (sys.executable, "-P", "-m", "dlcompiler.bench.worker")
CONTEST_LIMIT_S = 300.0


@dataclass(frozen=True)
class Settings:
    """Settings of the measurement of works."""

    peers: tuple[str, ...] = ("numpy", "torch", "onnxruntime")
    """Names of peers; those that are not installed are reported as absent."""
    threads: int = 1
    """Number of threads of our kernels and of every peer."""
    is_tuned: bool = True
    """Whether configs that ship are used; else the analytic ones only."""
    judged_only: bool = False
    """Whether to measure only the row of each work that targets read."""
    has_baselines: bool = True
    """Whether works that only move memory are also compared with memcpy and streams."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of `dlcompiler.runtime.timing.alternate`."""


@dataclass(frozen=True)
class _Kernels:
    """Kernels of one implementation, loaded in the worker."""

    main: int
    """Handle of the kernel that computes."""
    packing: int | None
    """Handle of one that packs the weights before, in each call."""
    config: str
    """The choices of the schedule."""

    @property
    def handles(self) -> dict[str, int | None]:
        return {"main": self.main, "packing": self.packing}


class _ProcessLost(Exception):  # noqa: N818  not an error yet: it is tried again without peers
    """The worker process crashed, or did not answer in time."""


class Bench:
    """Measures works and peers in alternation, in a worker process of its own.

    Parameters
    ----------
    settings : Settings
        How they are measured.
    worker : Worker, optional
        The worker process; ``with`` ends it.

    Raises
    ------
    UserError
        A peer is unknown.
    """

    def __init__(self, settings: Settings, worker: Worker | None = None) -> None:
        self.settings = settings
        self._names = check_names(settings.peers)
        self._absent = {name: why for name in self._names if (why := missing(name))}
        # Large libraries map more addresses than they use, so there is no limit of memory.
        self._worker = worker or Worker(COMMAND, memory_limit_bytes=None)

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def measure(self, work: Work) -> Iterator[Result]:
        """Measure the rows of a work, one after the other."""
        rows: Sequence[Row] = (work.judged,) if self.settings.judged_only else work.rows
        for row in rows:
            yield self.measure_row(work, row)

    def measure_row(self, work: Work, row: Row) -> Result:
        """Measure one row; a failure is also a result, so that the other rows are measured.

        This includes errors of dlcompiler itself: a benchmark of hours must not end at one of them.
        """
        threads = self.settings.threads
        try:
            contest, absent = self._measured(work, row)
        except NotThere as reason:
            return Result(work, row, threads, None, str(reason))
        except (DLCompilerError, _ProcessLost) as error:
            return Result(work, row, threads, False, str(error))
        except Exception as error:
            return Result(work, row, threads, False, f"{type(error).__name__}: {error}")
        return Result(work, row, threads, True, "", contest, {**self._absent, **absent})

    def _measured(self, work: Work, row: Row) -> tuple[Contest, dict[str, str]]:
        """Return the measurements, and for peers that did not take part the reasons."""
        implementation = self._implementation(work, row, self.settings.threads)
        present = tuple(name for name in self._names if name not in self._absent)
        try:
            return self._contest(work, row, implementation, present)
        except _ProcessLost as lost:
            # Our kernel or a peer crashed: try again without peers to find out which.
            contest, _ = self._contest(work, row, implementation, ())
            return contest, dict.fromkeys(present, f"in a process that was lost: {lost}")

    def _implementation(self, work: Work, row: Row, threads: int) -> Implementation:
        return implementation_of(work, row, threads=threads, is_tuned=self.settings.is_tuned)

    def _contest(
        self, work: Work, row: Row, implementation: Implementation, names: Sequence[str]
    ) -> tuple[Contest, dict[str, str]]:
        threads = self.settings.threads
        kernels = self._kernels(implementation, threads)
        arrays, roles = _arrays(implementation, implementation.reference())
        alone = None
        if threads > 1:
            single = self._implementation(work, row, 1)
            alone = self._kernels(single, 1)
            if single.workload != implementation.workload:
                others, _ = _arrays(single, single.reference())
                arrays |= {ALONE + name: array for name, array in others.items()}
        params = {
            "ours": kernels.handles,
            "alone": None if alone is None else alone.handles,
            "peers": names,
            "baselines": self.settings.has_baselines,
            "job": job_fields(work, row),
            "roles": roles,
            "threads": threads,
            "limits": dict(self.settings.limits),
        }
        outcome = self._worker.call("contest", params, arrays=arrays, timeout_s=CONTEST_LIMIT_S)
        if outcome.kind in ("crashed", "timeout"):
            raise _ProcessLost(outcome.message)
        value = outcome.unwrap(f"measure {work.text}")
        handles = {*kernels.handles.values(), *(alone.handles.values() if alone else ())}
        for handle in handles - {None}:
            self._worker.call("unload", {"handle": handle}, timeout_s=CONTEST_LIMIT_S)
        contest = _evaluated(work, value)
        name = implementation.operator.name
        return replace(contest, operator=name, config=kernels.config), value["absent"]

    def _kernels(self, implementation: Implementation, threads: int) -> _Kernels:
        """Return the kernels for some threads, loaded in the worker."""
        target = target_of(threads)
        config = implementation.config(target, is_tuned=self.settings.is_tuned)
        template = implementation.operator.template(implementation.workload, target, config)
        packing = None
        make = implementation.operator.schedule_for(target).packing
        if implementation.packs and make is not None:
            packing = self._loaded("packing", make(implementation.workload, target))
        return _Kernels(self._loaded(implementation.workload.op, template), packing, str(config))

    def _loaded(self, name: str, template: tuple[Schedule, Sequence[Tensor]]) -> int:
        """Return the handle of a kernel in the worker."""
        threads = self.settings.threads
        kernel = remote_kernel(template, name, threads=threads, worker=self._worker)
        if failure := kernel.load():
            failure.unwrap(f"load {kernel.name}")
        return kernel.handle


def job_fields(work: Work, row: Row) -> dict[str, Any]:
    """Return the fields of a work's `Job` without its arrays, as values that JSON can hold."""
    return {
        "family": work.family,
        "function": work.function,
        "sizes": {**work.sizes, **work.options},
        "epilogue": work.epilogue,
        "row": row,
        "out": work.shapes["out"],
        "dtype": work.dtypes["out"],
        "results": work.results,
    }


def _arrays(
    implementation: Implementation, reference: Reference
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the arrays of a contest by name, and the name of the array for each role."""
    arrays = {
        **{INPUT + name: array for name, array in reference.inputs.items()},
        **{EXPECTED + name: array for name, array in reference.expected.items()},
        **{BOUND + name: array for name, array in reference.bound.items()},
        **{PLAIN + name: array for name, array in reference.plain.items()},
    }
    roles = {
        role: (PLAIN if name in reference.plain else INPUT) + name
        for role, name in implementation.roles.items()
    }
    return arrays, roles


def _evaluated(work: Work, value: Mapping[str, Any]) -> Contest:
    """Return the measurements of the worker, with ratios of samples of the same round."""
    samples = {name: tuple(seconds) for name, seconds in value["samples_s"].items()}
    ours, peak = samples["ours"], samples["peak"]
    rate = value["flops"] / work.flops if work.flops else 1.0
    of_peak = paired_ratio([seconds / rate for seconds in peak], ours)
    alone = samples.get("ours alone")
    peak_speedup = None
    if alone is not None:
        times_the_flops = value["flops"] / value["flops_alone"]
        peak_speedup = times_the_flops * paired_ratio(samples["peak alone"], peak).median
    return Contest(
        ours=_timing(ours),
        peers={
            name: PeerResult(_timing(samples[name]), way, paired_ratio(samples[name], ours))
            for name, way in value["ways"].items()
        },
        of_peak=of_peak,
        peak_gflops=value["flops"] / Timing(peak).median_s / 1e9,
        worst=value["worst"],
        alone=None if alone is None else _timing(alone),
        peak_speedup=peak_speedup,
    )


def _timing(samples_s: tuple[float, ...]) -> Timing:
    """Return samples of a worker, which runs on this machine."""
    return Timing(samples_s, provenance=measured_here())
