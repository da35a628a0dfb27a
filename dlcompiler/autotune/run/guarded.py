"""Guard a tuner with a lock, so that other threads may use its cost model."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from dlcompiler.autotune.models.base import CostModel, Indices, Vector
from dlcompiler.autotune.proposal import Proposal, Tuner


class GuardedModel:
    """A cost model that other threads may use while its tuner is idle.

    A model is inconsistent while it learns, and it caches the rows of its last call. Calls of other
    threads must not change what the search computes.

    Parameters
    ----------
    model : CostModel
        The model of the tuner.
    lock : Lock
        Held by the tuner while it works.
    """

    def __init__(self, model: CostModel, lock: threading.Lock) -> None:
        self.name = model.name
        """Its name in the registry of models."""
        self.columns = model.columns
        """Names of its features."""
        self._model = model
        self._lock = lock

    def fit(self, points: Sequence[int], rates: Sequence[float | None]) -> None:
        """Learn from measured points: calls per second [1/s], None for one that failed."""
        with self._lock:
            self._model.fit(points, rates)

    def predict(self, points: Indices) -> Vector:
        """Predict log2 of the calls per second of each point."""
        with self._lock:
            return self._model.predict(points)

    def spread(self, points: Indices) -> Vector:
        """Return the standard deviation of each prediction among its models [log2]."""
        with self._lock:
            return self._model.spread(points)

    def importance(self) -> Mapping[str, float]:
        """Return the importance of each feature; they add up to 1."""
        with self._lock:
            return self._model.importance()

    def contributions(self, points: Indices) -> Vector:
        """Return what each feature adds to each prediction [log2], and the constant part."""
        with self._lock:
            return self._model.contributions(points)


class GuardedTuner:
    """A tuner that one thread uses, while others may use its model.

    Parameters
    ----------
    tuner : Tuner
        The tuner to guard.
    """

    def __init__(self, tuner: Tuner) -> None:
        self._tuner = tuner
        self._lock = threading.Lock()

    @property
    def note(self) -> str:
        """A note for the user about how the tuner works at present; may be empty."""
        return self._tuner.note

    @note.setter
    def note(self, text: str) -> None:
        self._tuner.note = text

    @property
    def model(self) -> CostModel | None:
        """The cost model after its last fit; None: this tuner has none."""
        model = self._tuner.model
        return None if model is None else GuardedModel(model, self._lock)

    @property
    def walkers(self) -> tuple[int, ...]:
        """The current points of the walkers; empty for a tuner without walkers."""
        return self._tuner.walkers

    def propose(self, count: int) -> Sequence[Proposal]:
        """Return up to `count` points that were not observed; an empty result when all were."""
        with self._lock:
            return self._tuner.propose(count)

    def observe(self, point: int, rate: float | None) -> None:
        """Record the result of a point: calls per second, None if it failed."""
        with self._lock:
            self._tuner.observe(point, rate)
