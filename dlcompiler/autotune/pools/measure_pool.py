"""The interface of measure pools, which measure batches of candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, runtime_checkable

from dlcompiler.autotune.candidate import Tried
from dlcompiler.autotune.trial import Result
from dlcompiler.errors import TuningError
from dlcompiler.runtime.provenance import Kind, Provenance

Report: TypeAlias = Callable[[int, Result], None]
"""Called with the index of a candidate in its batch, and its result."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device that candidates run on."""

    kind: str
    """Name of its class: times of one class can be compared. `target_key` of a machine."""
    tags: tuple[str, ...] = ()
    """Further properties, such as the name of the host."""
    provenance: Provenance | None = None
    """What its times are; None: measured, on the machine that `kind` names."""

    @property
    def times(self) -> Provenance:
        """Whether its times are measured or simulated, and on what."""
        return self.provenance or Provenance("measured", self.kind)

    def labelled(self, result: Result) -> Result:
        """Add the provenance of the device's times to a result that has none."""
        return result if result.provenance else replace(result, provenance=self.times)


def kind_of_pool(pool: MeasurePool) -> Kind:
    """Return the kind of a pool's times: measured or simulated.

    Raises
    ------
    TuningError
        If the times of its devices cannot be compared: some are measured, others simulated.
    """
    times = [device.times for device in pool.devices]
    kinds = dict.fromkeys(each.kind for each in times)
    if len(kinds) != 1:
        raise TuningError(
            "tune", "the devices of the pool do not give times of one kind",
            got=", ".join(map(str, times)) or "no device",
            expected="all measured, or all simulated",
        )  # fmt: skip
    return next(iter(kinds))


class MeasurePool(Protocol):
    """Measures batches of candidates, on this machine or on others."""

    @property
    def note(self) -> str:
        """A note for the user about the times, such as that the machine is too busy, or ''."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that candidates run on."""

    def measure(self, configs: Sequence[Tried], best_s: float | None, report: Report) -> None:
        """Measure a batch.

        Parameters
        ----------
        configs : sequence of Config or Candidate
            What to measure; a bare config belongs to the template that the pool was made for.
        best_s : float, optional
            The shortest time so far [s]; a candidate that is far slower may be measured roughly.
        report : callable
            Called once for each candidate as soon as its result is known, in the caller's thread,
            in any order. When `interrupt` was called, the rest need not be reported.
        """

    def interrupt(self) -> None:
        """Interrupt the batch that another thread waits for."""

    def close(self) -> None:
        """Release all resources, such as worker processes."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A config measured in turn with others."""

    config: Tried
    """The measured config or candidate."""
    result: Result
    """Its times, or the reason why it has none."""
    interval_s: tuple[float, float] | None = None
    """The 95 % interval of the median [s]."""
    ratio: tuple[float, float] | None = None
    """Interval of its time divided by that of the fastest, round by round. If it contains 1, the
    two configs cannot be told apart."""


@runtime_checkable
class ComparingPool(MeasurePool, Protocol):
    """A measure pool that can find the fastest of a few configs."""

    def compare(
        self, configs: Sequence[Tried], *, budget_s: float = 1.0, seed: int = 0
    ) -> Sequence[Compared]:
        """Measure configs again, in turn; return their results in the same order.

        Parameters
        ----------
        configs : sequence of Config or Candidate
            Those whose results were right; a pool may measure only the first few.
        budget_s : float
            Time limit, without building [s].
        seed : int
            Seed of the order in each round.
        """
