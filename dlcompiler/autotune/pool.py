"""Pools: where candidates are measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from dlcompiler.autotune.trial import Result
from dlcompiler.space import Config

Report: TypeAlias = Callable[[int, Result], None]
"""Called with the number of a config in its batch, and what came of it."""


@dataclass(frozen=True, slots=True)
class Device:
    """What candidates run on."""

    kind: str
    """Name of its class, under which times belong together: `target_key` of a machine."""
    tags: tuple[str, ...] = ()
    """What else distinguishes it: a host's name, cores, "simulated"."""


class MeasurePool(Protocol):
    """Measures batches of configs; another one may stand for other machines."""

    @property
    def note(self) -> str:
        """What a user should know of the times: that the machine is too busy; may be empty."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """What it measures on."""

    def measure(self, configs: Sequence[Config], best_s: float | None, report: Report) -> None:
        """Measure a batch.

        Parameters
        ----------
        configs : sequence of Config
            What to measure.
        best_s : float, optional
            The shortest time so far: what is far slower need not be measured well [s].
        report : callable
            Called once for each config as soon as its result is known, in the caller's thread, in
            any order. When `interrupt` was called, the rest need not be reported.
        """

    def interrupt(self) -> None:
        """Let a batch that another thread waits for end soon."""

    def close(self) -> None:
        """Give back what it holds."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A config measured in turn with others."""

    config: Config
    """What was measured."""
    result: Result
    """Its times, or why there are none."""
    interval_s: tuple[float, float] | None = None
    """Where the median lies with a probability of 95 % [s]."""
    ratio: tuple[float, float] | None = None
    """Interval of its time divided by that of the fastest, round by round: one that contains 1 is
    of a config as fast as that, as far as can be told."""


@runtime_checkable
class ComparingPool(MeasurePool, Protocol):
    """A pool that can tell which of a few configs is the fastest."""

    def compare(
        self, configs: Sequence[Config], *, budget_s: float = 1.0, seed: int = 0
    ) -> Sequence[Compared]:
        """Measure configs again, in turn; returns what came of each, in their order.

        Parameters
        ----------
        configs : sequence of Config
            Those that were right; a pool may take the first few only.
        budget_s : float
            How long it may take, beside building [s].
        seed : int
            Of the order in each round.
        """
