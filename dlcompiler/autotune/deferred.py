"""A tuner that is made by the thread that needs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dlcompiler.autotune.models.base import CostModel
from dlcompiler.autotune.proposal import Proposal, Tuner


class DeferredTuner:
    """A tuner that is made when it is first asked or told something.

    What it takes to describe a space or to read records would keep `dlcompiler.autotune.tune` from
    returning at once.

    Parameters
    ----------
    make : callable
        Returns the tuner, and what a user should know of how it was made.
    """

    def __init__(self, make: Callable[[], tuple[Tuner, str]]) -> None:
        self._make = make
        self._made: Tuner | None = None
        self._said = ""

    @property
    def _tuner(self) -> Tuner:
        if self._made is None:
            self._made, self._said = self._make()
        return self._made

    @property
    def note(self) -> str:
        """What a user should know about how it works now; may be empty."""
        own = "" if self._made is None else self._made.note
        return "; ".join(text for text in (self._said, own) if text)

    @property
    def model(self) -> CostModel | None:
        """The cost model, as it was last fitted; None: this tuner has none, or is not made yet."""
        return None if self._made is None else self._made.model

    @property
    def walkers(self) -> tuple[int, ...]:
        """Points where its searchers stand; none for a tuner without any."""
        return () if self._made is None else self._made.walkers

    def propose(self, count: int) -> Sequence[Proposal]:
        """Return up to `count` points that were not observed; none when there are no more."""
        return self._tuner.propose(count)

    def observe(self, point: int, rate: float | None) -> None:
        """Take in what came of a point: calls per second, None when it failed."""
        self._tuner.observe(point, rate)
