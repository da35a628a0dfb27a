"""The interface of measurers, which measure one candidate at a time for `SerialPool`."""

from __future__ import annotations

from typing import Protocol

from dlcompiler.autotune.candidate import Tried
from dlcompiler.autotune.trial import Result


class Measurer(Protocol):
    """Measures one candidate at a time, on this machine or on another one."""

    def measure(self, config: Tried, best_s: float | None) -> Result:
        """Measure a candidate; `best_s` is the shortest time so far [s]."""

    def interrupt(self) -> None:
        """Interrupt the measurement that another thread waits for; its result is discarded."""

    def close(self) -> None:
        """Release its resources."""
