"""Results of the cost model for the dashboard, computed on demand and cached for each round.

The run's own thread never computes them.
"""

from __future__ import annotations

from dlcompiler.autotune import TuningRun
from dlcompiler.autotune.explain import Explanation, explain, importances
from dlcompiler.autotune.projection import Projection
from dlcompiler.space import Config
from dlcompiler.views.tuning import Ground, ground, watched
from dlcompiler.views.tuning.watched import reference_of

_REMEMBERED = 64


class Knowledge:
    """Importance, explanations and maps of a run, cached until the model is fitted again.

    Parameters
    ----------
    run : TuningRun
        The run.
    own : Config, optional
        The user's own config; by default, the first one given to ``tune(first=…)``.

    Raises
    ------
    TuningError
        If the config belongs to another space.
    """

    def __init__(self, run: TuningRun, own: Config | None = None) -> None:
        self._run = run
        space = run.plan.space
        given = (space.at(p.point) for p in run.plan.first if p.origin == "user")
        self._own = next(given, None) if own is None else space.adopt(own, remap=True)
        self._ground: Ground | None = None
        self._projection: Projection | None = None
        self._version: object = None
        self._importance: tuple[tuple[str, float], ...] | None = None
        self._explained: dict[int, Explanation] = {}
        self._reference: list[int] = []

    @property
    def ground(self) -> Ground:
        """The sample of the space's legal configs."""
        if self._ground is None:
            self._ground = ground(self._run.plan.space, self._own)
        return self._ground

    @property
    def projection(self) -> Projection:
        """The projection of the map."""
        if self._projection is None:
            self._projection = Projection(self._run.plan.space, self.ground.legal)
        return self._projection

    @property
    def model_name(self) -> str | None:
        """The model's name; None: the tuner has none."""
        model = self._run.model
        return None if model is None else model.name

    def importance(self) -> tuple[tuple[str, float], ...]:
        """Return the importance of the model's features; empty before it is fitted."""
        model = self._run.model
        if model is None or not self._has_learned():
            return ()
        if self._importance is None:
            self._importance = importances(model)
        return self._importance

    def explanation(self, point: int) -> Explanation | None:
        """Return the explanations of predictions; None before the model is fitted."""
        model = self._run.model
        if model is None or not self._has_learned():
            return None
        if not self._reference:
            self._reference = reference_of(watched(self._run))
        if point not in self._explained:
            if len(self._explained) >= _REMEMBERED:
                self._explained.clear()
            (self._explained[point],) = explain(model, (point,), self._reference)
        return self._explained[point]

    def _has_learned(self) -> bool:
        """Return whether the model is fitted, and clear the results of an earlier fit."""
        trained = next((r.trained_on for r in reversed(self._run.rounds) if r.trained_on), 0)
        if trained != self._version:
            self._version = trained
            self._importance = None
            self._explained = {}
            self._reference = []
        return trained > 0
