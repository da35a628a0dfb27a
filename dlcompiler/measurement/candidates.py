"""Candidates: kernels of one workload as generated text, which may crash, hang or be wrong.

One worker builds them, another one checks and times them. A failure there is an outcome of the
candidate; the next candidate gets a new process.
"""

from __future__ import annotations

import dataclasses
import math
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from dlcompiler.errors import DeviceFault
from dlcompiler.measurement.correctness import CorrectnessTest
from dlcompiler.measurement.loading import described_code
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.object_cache import CompiledObject
from dlcompiler.runtime.options import Options
from dlcompiler.runtime.sampling import Effort
from dlcompiler.runtime.source import Source
from dlcompiler.runtime.workers import Outcome, Worker

CandidateOutcome: TypeAlias = Literal[
    "ok",
    "refused",
    "build error",
    "build timeout",
    "run timeout",
    "crashed",
    "out of memory",
    "wrong answer",
]

_ANSWERED: dict[str, CandidateOutcome] = {
    "ok": "ok",
    "build error": "build error",
    "out of memory": "out of memory",
    "wrong answer": "wrong answer",
}
_PREPARE_LIMIT_S = 60.0
_NO_MEMORY = re.compile(r"bad_alloc|out of memory|Cannot allocate memory", re.IGNORECASE)
_MEMORY_ERRORS = ("MemoryError", "_ArrayMemoryError", "OutOfMemory")


@dataclass(frozen=True, slots=True)
class Ceiling:
    """Limits of the time and the memory of a candidate."""

    build_s: float = 10.0
    """Limit of compiling [s]."""
    run_s: float = 10.0
    """Limit of checking and timing [s]."""
    memory_bytes: int | None = 4 << 30
    """Address space of each worker, without the test's arrays [byte]; None: no limit."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A kernel as text."""

    source: Source
    """Its generated text."""

    @property
    def params(self) -> tuple[Param, ...]:
        """Its parameters."""
        return self.source.interface.params


@dataclass(frozen=True, slots=True)
class Built:
    """A candidate that was compiled."""

    candidate: Candidate
    made: CompiledObject
    """Its machine code."""
    build_s: float = 0.0
    """Time of compiling [s]."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The result of building, checking and timing a candidate."""

    outcome: CandidateOutcome
    """Whether there is a time, and if not, why."""
    samples_s: tuple[float, ...] = ()
    """Seconds per call, in the order measured [s]."""
    message: str = ""
    """Why there is no time; empty if there is one."""
    build_s: float = 0.0
    """Time of generating and compiling [s]."""
    run_s: float = 0.0
    """Time of checking and timing [s]."""
    is_noisy: bool = False
    """Whether the machine was too busy for the time to be reliable."""

    @property
    def median_s(self) -> float:
        """Median of the samples; infinite if there are none [s]."""
        return statistics.median(self.samples_s) if self.samples_s else math.inf


class Builder:
    """Compiles candidates in a worker.

    Parameters
    ----------
    worker : Worker
        The worker that compiles.
    options : Options, optional
        Options of LLVM; None for code of a device.
    limit_s : float
        Time limit of one candidate [s].
    cores : sequence of int
        Cores on which the worker runs; empty: any.
    device : str
        Name of the device: see `Target.runs_on`.
    """

    def __init__(
        self,
        worker: Worker,
        options: Options | None,
        limit_s: float,
        cores: Sequence[int] = (),
        device: str = "host",
    ) -> None:
        self._worker = worker
        self._params = {
            "options": options and dataclasses.asdict(options), "cores": list(cores),
            "device": device,
        }  # fmt: skip
        self._limit_s = limit_s

    def build(self, candidate: Candidate) -> Built | Measured:
        """Compile a candidate, or return why it cannot be compiled.

        Raises
        ------
        MeasurementError
            If no worker can be started.
        """
        outcome = self._worker.call(
            "compile",
            {**self._params, "language": candidate.source.language},
            data=candidate.source.text.encode(),
            timeout_s=self._limit_s,
        )
        if not outcome.ok:
            return failure(outcome, "build", self._limit_s)
        value = outcome.value
        if "message" in value:
            return Measured("build error", message=value["message"], build_s=outcome.seconds)
        made = CompiledObject(outcome.data, tuple(value["symbols"]), tuple(value["imports"]))
        return Built(candidate, made, outcome.seconds)


@dataclass
class Runner:
    """Checks and times candidates of one workload in a worker."""

    worker: Worker
    """The worker that runs them."""
    test: CorrectnessTest
    """The test that each candidate must pass."""
    options: Options | None
    """Options of LLVM with which they were compiled; None for code of a device."""
    limit_s: float
    """Time limit of one candidate [s]."""
    cores: Sequence[int] = ()
    """Cores on which the worker runs; empty: any."""
    threads: int | None = None
    """Number of threads of parallel loops; None: the number of cores."""
    effort: Effort = field(default_factory=Effort)
    """How precisely a candidate is timed."""
    flush_bytes: int = 0
    """Number of bytes written before each sample, to empty the caches [byte]."""
    device: str = "host"
    """Name of the device: see `Target.runs_on`."""
    _prepared: int | None = None

    def run(self, built: Built, best_s: float | None = None) -> Measured:
        """Check a candidate, and time it if its results are right.

        Parameters
        ----------
        built : Built
            The candidate.
        best_s : float, optional
            The shortest time so far [s]; a far slower candidate is not timed precisely.

        Raises
        ------
        MeasurementError
            If no worker can be started.
        """
        params = {
            **self._described(built),
            "effort": dataclasses.asdict(self.effort),
            "best_s": best_s,
        }
        outcome = self._call("candidate", params, built.made.image, self.limit_s)
        if not outcome.ok:
            return failure(outcome, "run", self.limit_s)
        value = outcome.value
        return Measured(
            _ANSWERED[value["outcome"]],
            tuple(value["samples_s"]),
            value["message"],
            run_s=outcome.seconds,
            is_noisy=value["is_noisy"],
        )

    def alternate(
        self, several: Sequence[Built], budget_s: float, seed: int
    ) -> list[tuple[float, ...]]:
        """Time correct candidates in turn; return the samples of each one, by round [s].

        Raises
        ------
        MeasurementError
            If the worker does not answer.
        """
        params = {
            "candidates": [
                {**self._described(built), "size": len(built.made.image)} for built in several
            ],
            "budget_s": budget_s,
            "seed": seed,
        }
        images = b"".join(built.made.image for built in several)
        outcome = self._call("alternate", params, images, self.limit_s + 3 * budget_s)
        value = outcome.unwrap("measure candidates in turn")
        return [tuple(samples) for samples in value["samples_s"]]

    def _described(self, built: Built) -> dict[str, Any]:
        source = built.candidate.source
        return {
            **described_code(source, self.options, self.device),
            "symbol": source.symbol,
            "threads": self.threads,
            "cores": list(self.cores),
            "symbols": built.made.symbols,
            "imports": built.made.imports,
        }

    def _call(self, entry: str, params: dict[str, Any], data: bytes, limit_s: float) -> Outcome:
        while True:
            self.prepare()
            outcome = self.worker.call(entry, params, data=data, timeout_s=limit_s)
            if outcome.kind != "error" or self.worker.generation == self._prepared:
                return outcome
            # A new process, after a crash, does not have the test yet: prepare it, and call again.

    def prepare(self) -> None:
        """Send the correctness test to the worker, unless its process already has it.

        Raises
        ------
        MeasurementError
            If no worker can be started, or it has no room for the test.
        """
        if self.worker.generation == self._prepared:
            return
        params = {"flush_bytes": self.flush_bytes}
        outcome = self.worker.call(
            "prepare", params, arrays=self.test.arrays(), timeout_s=_PREPARE_LIMIT_S
        )
        outcome.unwrap("prepare the worker")
        self._prepared = self.worker.generation


def failure(outcome: Outcome, what: Literal["build", "run"], limit_s: float) -> Measured:
    """Return the result of a candidate whose worker failed.

    Parameters
    ----------
    outcome : Outcome
        What the worker's call ended with.
    what : str
        Whether it was to ``build`` or to ``run`` the candidate.
    limit_s : float
        The time limit of the call [s].

    Raises
    ------
    MeasurementError
        No worker could be started.
    """
    if not outcome.has_started:
        outcome.unwrap("measure candidates")
    where = "while it was compiled: " if what == "build" else ""
    message = where + outcome.message
    last = outcome.stderr.strip().rpartition("\n")[2]
    has_memory = outcome.error not in _MEMORY_ERRORS and not _NO_MEMORY.search(outcome.stderr)
    kind: CandidateOutcome = "crashed"
    match outcome.kind:
        case "timeout" if what == "build":
            kind, message = "build timeout", f"not compiled within {limit_s:g} s"
        case "timeout":
            kind, message = "run timeout", f"not checked and timed within {limit_s:g} s"
        case _ if not has_memory:
            kind = "out of memory"
        case "error" if outcome.error != DeviceFault.__name__:
            kind = "build error"
        case _ if last:
            message += f"; it wrote: {last[:200]}"
    if what == "build":
        return Measured(kind, message=message, build_s=outcome.seconds)
    return Measured(kind, message=message, run_s=outcome.seconds)


Job: TypeAlias = Callable[[], "Candidate | Measured"]
"""Generates the text of a candidate, or returns why there is none."""
