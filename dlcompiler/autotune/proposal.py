"""The interface of tuners: proposals, and observations of their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from dlcompiler.autotune.models.base import CostModel

Origin: TypeAlias = Literal[
    "default", "grid", "random", "model", "mutation", "crossover", "neighbour", "history", "user"
]
"""Why a point is tried: ``default``, the analytic config; ``grid``, the next in order; ``random``;
``model``, ranked high by a cost model; ``mutation`` and ``crossover`` of good points;
``neighbour``, one step of a descent; ``history``, good for another shape; ``user``, asked for."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A point to try next."""

    point: int
    """Index in the space."""
    origin: Origin = "random"
    """Why it is tried."""
    predicted_s: float | None = None
    """Seconds per call that the model expects [s]; None: there was no prediction."""
    spread: float | None = None
    """Standard deviation of the prediction among the models of an ensemble [log2]."""


class Tuner(Protocol):
    """Proposes points, and observes their results.

    Equal seeds and equal observations give equal proposals.
    """

    note: str
    """A note for the user about how it works at present; may be empty."""

    @property
    def model(self) -> CostModel | None:
        """The cost model after its last fit; None: this tuner has none."""

    @property
    def walkers(self) -> tuple[int, ...]:
        """The current points of the walkers; empty for a tuner without walkers."""

    def propose(self, count: int) -> Sequence[Proposal]:
        """Return up to `count` points that were not observed; an empty result when all were."""

    def observe(self, point: int, rate: float | None) -> None:
        """Record the result of a point: calls per second, None if it failed."""
