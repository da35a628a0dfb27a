"""Trials: candidates with their results."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from dlcompiler.autotune.candidate import StoredCandidate, config_text
from dlcompiler.autotune.proposal import Origin
from dlcompiler.runtime.provenance import MEASURED, Provenance
from dlcompiler.runtime.timing import format_rate, half_quartile_range
from dlcompiler.space import Config

OutcomeName: TypeAlias = Literal[
    "ok",
    "refused",
    "build error",
    "build timeout",
    "run timeout",
    "crashed",
    "out of memory",
    "wrong answer",
]
OUTCOMES: tuple[OutcomeName, ...] = get_args(OutcomeName)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of building, checking and timing a candidate."""

    outcome: OutcomeName
    """``ok``; ``refused``: the schedule forbids it; ``build error``: it could not be compiled;
    ``build timeout``, ``run timeout``: it took longer than it may to compile, or to run;
    ``crashed``: its process ended, `message` names the signal; ``out of memory``: it asked for more
    than it may have; ``wrong answer``: it was not timed."""
    samples_s: tuple[float, ...] = ()
    """Seconds per call, in the order measured; none unless ``ok`` [s]."""
    message: str = ""
    """Why there is no time; empty when there is one."""
    build_s: float = 0.0
    """Time of scheduling, generating and compiling [s]."""
    run_s: float = 0.0
    """Time of checking and timing [s]."""
    is_noisy: bool = False
    """Whether the machine was too busy for the time to be reliable."""
    provenance: Provenance | None = None
    """Whether the samples are measured or simulated, and on what; the pool sets it. None: it is not
    stated, and the samples count as measured on the machine of the trial."""

    @property
    def seconds(self) -> float | None:
        """Median time of a call [s]."""
        return statistics.median(self.samples_s) if self.samples_s else None

    @property
    def spread_s(self) -> float | None:
        """Half of the range between the quartiles of the samples [s]."""
        return half_quartile_range(self.samples_s) if self.samples_s else None


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate and its result: a config of a template, or another source of a schedule."""

    index: int
    """Number of the trial in its run, from 0."""
    point: int
    """Index of the config in the space, or of the candidate in the list that was measured."""
    config: Config
    """The config; without values if `candidate` is given."""
    result: Result
    """Its result."""
    elapsed_s: float
    """Time from the start of the run to the end of the trial [s]."""
    flops: float
    """Floating-point operations of one call, as the workload asks for them."""
    round: int = 0
    """Number of the batch that it was proposed in."""
    origin: Origin = "random"
    """Why it was tried."""
    predicted_s: float | None = None
    """Seconds per call that the model expected [s]; None: there was no prediction."""
    spread: float | None = None
    """Standard deviation of the prediction among the models of an ensemble [log2]."""
    candidate: StoredCandidate | None = None
    """What was tried, if it is no config of a template."""

    def describe(self) -> str:
        """Return a one-line description of the config or candidate."""
        return self.candidate.text if self.candidate else config_text(self.config.values)

    @property
    def outcome(self) -> OutcomeName:
        """Outcome of the trial, such as ``ok`` or ``wrong answer``."""
        return self.result.outcome

    @property
    def seconds(self) -> float | None:
        """Median seconds of a call; None unless the trial succeeded [s]."""
        return self.result.seconds

    @property
    def provenance(self) -> Provenance:
        """Whether its time is measured or simulated, and on what."""
        return self.result.provenance or MEASURED

    @property
    def gflops(self) -> float | None:
        """Rate at the median time [GFLOP/s]; None unless the trial succeeded."""
        seconds = self.result.seconds
        return None if seconds is None else self.flops / seconds / 1e9

    def __repr__(self) -> str:
        rate: str = self.outcome
        if self.gflops is not None:
            rate = f"{format_rate(self.gflops)} GFLOP/s {self.provenance}"
        tried = self.config if self.candidate is None else self.candidate.text
        return f"Trial({self.index}: {rate}, {tried})"
