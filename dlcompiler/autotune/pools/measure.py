"""What measures one config at a time; `dlcompiler.autotune.pools.serial` makes a pool of it."""

from __future__ import annotations

from typing import Protocol

from dlcompiler.autotune.candidate import Tried
from dlcompiler.autotune.trial import Result


class Measurer(Protocol):
    """What tells the time of a config; another one may stand for other machines."""

    def measure(self, config: Tried, best_s: float | None) -> Result:
        """Measure a config; `best_s` is the shortest time so far [s]."""

    def interrupt(self) -> None:
        """Let a measurement that another thread waits for end soon, whatever its result."""

    def close(self) -> None:
        """Give back what it holds."""
