"""Measure many kernels that should compute the same: each is checked first, and may crash or hang.

The kernels come as generated text. A worker process of their own compiles, checks and times them;
what goes wrong there is an outcome, and costs the next candidate nothing but a new process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, TypeAlias

import numpy.typing as npt

from dlcompiler.codegen import Source
from dlcompiler.measurement.checked import BOUND, EXPECTED, INPUT
from dlcompiler.runtime.arguments import Param
from dlcompiler.runtime.llvm import Options
from dlcompiler.runtime.workers import Outcome, Worker
from dlcompiler.target import Target

Array = npt.NDArray[Any]
CandidateOutcome: TypeAlias = Literal["ok", "build error", "timeout", "crashed", "wrong answer"]

_ANSWERED: dict[str, CandidateOutcome] = {
    "ok": "ok",
    "build error": "build error",
    "wrong answer": "wrong answer",
}
_PREPARE_LIMIT_S = 60.0
_MOST_LOST = 3


@dataclass(frozen=True, slots=True)
class Problem:
    """What the candidates compute."""

    inputs: Mapping[str, Array]
    """Arrays by the names of the parameters."""
    expected: Mapping[str, Array]
    """The right outputs, in float64."""
    bound: Mapping[str, Array]
    """Largest difference allowed for each element; 0 asks for equality."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of a candidate."""

    outcome: CandidateOutcome
    """Whether there is a time, and if not, why."""
    samples_s: tuple[float, ...] = ()
    """Seconds per call, in the order measured [s]."""
    message: str = ""
    """What went wrong."""


class CandidateBench:
    """Measures candidates of one problem, one at a time.

    Parameters
    ----------
    problem : Problem
        What they compute.
    target : Target
        What their text was generated for.
    threads : int, optional
        Of parallel loops; by default, the cores allowed.
    timeout_s : float
        Limit of one candidate, from text to times [s].
    limits : mapping, optional
        Arguments of `dlcompiler.runtime.timing.time_call`.
    worker : Worker, optional
        By default, one of its own.
    """

    def __init__(
        self,
        problem: Problem,
        target: Target,
        *,
        threads: int | None = None,
        timeout_s: float = 10.0,
        limits: Mapping[str, float] | None = None,
        worker: Worker | None = None,
    ) -> None:
        self.timeout_s = timeout_s
        self._problem = problem
        self._options = dataclasses.asdict(Options.for_target(target))
        self._threads = threads
        self._limits = dict(limits or {"warmup": 1, "min_seconds": 0.1})
        self._worker = worker or Worker()
        self._prepared: int | None = None
        self._lost = 0

    def measure(
        self, source: Source, params: Sequence[Param], *, enough_s: float | None = None
    ) -> Measured:
        """Measure one candidate.

        Parameters
        ----------
        source : Source
            Its generated text.
        params : sequence of Param
            Its parameters.
        enough_s : float, optional
            Above this time of a call, one sample is enough [s].

        Raises
        ------
        MeasurementError
            If no worker can be started, or one after the other is lost without a word.
        """
        reply = self._call(source, params, enough_s)
        if reply.kind != "lost":
            self._lost = 0
        match reply.kind:
            case "ok":
                value = reply.value
                outcome = _ANSWERED[value["outcome"]]
                return Measured(outcome, tuple(value["samples_s"]), value["message"])
            case "timeout":
                return Measured("timeout", message=reply.message)
            case "lost":
                self._lost += 1
                if self._lost >= _MOST_LOST:
                    reply.unwrap("measure candidates")
        return Measured("crashed", message=reply.message)

    def _call(self, source: Source, params: Sequence[Param], enough_s: float | None) -> Outcome:
        request = {
            "symbol": source.symbol,
            "params": [dataclasses.asdict(param) for param in params],
            "options": self._options,
            "messages": list(source.messages),
            "threads": self._threads,
            "limits": self._limits,
            "enough_s": enough_s,
        }
        while True:
            self._prepare()
            outcome = self._worker.call(
                "candidate", request, data=source.text.encode(), timeout_s=self.timeout_s
            )
            if outcome.kind != "error" or self._worker.generation == self._prepared:
                return outcome
            # A new process, after a crash or a death while idle, was not prepared: once more.

    def _prepare(self) -> None:
        """Give the worker the arrays, unless its process has them."""
        if self._worker.generation == self._prepared:
            return
        problem = self._problem
        arrays = {
            **{INPUT + name: array for name, array in problem.inputs.items()},
            **{EXPECTED + name: array for name, array in problem.expected.items()},
            **{BOUND + name: array for name, array in problem.bound.items()},
        }
        outcome = self._worker.call("prepare", arrays=arrays, timeout_s=_PREPARE_LIMIT_S)
        outcome.unwrap("prepare the worker")
        self._prepared = self._worker.generation

    def interrupt(self) -> None:
        """End the measurement that another thread waits for; it counts as crashed."""
        self._worker.interrupt()

    def close(self) -> None:
        """End the worker."""
        self._worker.close()

    def __enter__(self) -> CandidateBench:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
