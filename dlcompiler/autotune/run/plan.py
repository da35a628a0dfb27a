"""The plan of a tuning run: workload, space, method and limits."""

from __future__ import annotations

import json
from dataclasses import dataclass

from dlcompiler.autotune.proposal import Proposal
from dlcompiler.autotune.records.record import target_key
from dlcompiler.ops import Operator
from dlcompiler.runtime.provenance import Kind
from dlcompiler.space import Space, Workload
from dlcompiler.target import Target


@dataclass(frozen=True, slots=True)
class Plan:
    """The workload, space, method and limits of a tuning run."""

    operator: Operator
    workload: Workload
    target: Target
    space: Space
    threads: int
    """Number of threads of parallel loops."""
    trials: int | None
    """Most trials; None: as many as there is time for."""
    seconds: float | None
    """No trial begins later than this, pauses not counted [s]."""
    batch: int
    """Points that a tuner proposes at once."""
    flops: float
    """Floating-point operations of one call."""
    tuner: str = "random"
    """Name of the tuner."""
    seed: int = 0
    """Seed of the search, its model and the data that candidates are checked with."""
    early_stopping: int | None = None
    """The run ends after so many trials without a faster one; None: it does not."""
    first: tuple[Proposal, ...] = ()
    """What is tried before the search."""
    kind: Kind = "measured"
    """Whether the pool measures times or simulates them."""

    @property
    def machine(self) -> str:
        """The name under which records of the target and this number of threads are kept."""
        return target_key(self.target, self.threads)

    def identity(self) -> str:
        """Return JSON that is equal for runs that propose the same points.

        It does not contain the limits of time and of trials.
        """
        # Without the kind where it is measured, as in runs that older versions began.
        kind = {} if self.kind == "measured" else {"kind": self.kind}
        return json.dumps(
            {
                "workload": self.workload.to_json(),
                "target": self.machine,
                "space": self.space.fingerprint,
                "tuner": self.tuner,
                "seed": self.seed,
                "batch": self.batch,
                "first": [proposal.point for proposal in self.first],
                **kind,
            },
            sort_keys=True,
        )
