"""Tuners by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dlcompiler.autotune.models.base import FeatureSource
from dlcompiler.autotune.models.cache import CachedFeatures
from dlcompiler.autotune.models.experience import Experience
from dlcompiler.autotune.models.knobs import KnobFeatures
from dlcompiler.autotune.models.learned import LearnedModel
from dlcompiler.autotune.models.registry import make_model
from dlcompiler.autotune.models.roofline import RooflineModel, roofline_of
from dlcompiler.autotune.proposal import Tuner
from dlcompiler.autotune.tuners.base import GridTuner, RandomTuner
from dlcompiler.autotune.tuners.candidates import Candidates
from dlcompiler.autotune.tuners.descent import DescentTuner
from dlcompiler.autotune.tuners.genetic import GeneticTuner
from dlcompiler.autotune.tuners.guided import ModelTuner, Strategy
from dlcompiler.errors import TuningError
from dlcompiler.space import Space


@dataclass(frozen=True, slots=True)
class Ingredients:
    """The parts that a tuner is made of."""

    candidates: Candidates
    """The points that it may propose."""
    seed: int
    features: FeatureSource
    """The features of its model; the rows of listed points are cached."""
    experience: Experience | None = None
    """Measurements of other shapes."""

    def model(self, name: str) -> LearnedModel:
        """Make a cost model that is fitted to measurements."""
        return make_model(name, self.features, self.seed, self.experience, self.roofline)

    @property
    def roofline(self) -> RooflineModel | None:
        """The roofline model of the features; None if they contain no time limits."""
        return roofline_of(self.features)


def _guided(name: str, *, walks: bool = False) -> Callable[[Ingredients], Tuner]:
    def make(parts: Ingredients) -> Tuner:
        note = ""
        try:
            model = parts.model(name)
        except TuningError as error:
            if name == "ridge":
                raise
            note = f"a ridge model is used: {error.problem}"
            model = parts.model("ridge")
        knows = model.knows
        made = ModelTuner(parts.candidates, parts.seed, model, Strategy(walks=walks), knows=knows)
        made.note = note
        return made

    return make


def _roofline(parts: Ingredients) -> Tuner:
    model = parts.roofline
    if model is None:
        made = RandomTuner(parts.candidates, parts.seed)
        made.note = "points are drawn at random: the features tell no limits of a roofline"
        return made
    strategy = Strategy(first=0, acquisition="mean", epsilon=0.0)
    return ModelTuner(parts.candidates, parts.seed, model, strategy, knows=True)


TUNERS: dict[str, Callable[[Ingredients], Tuner]] = {
    "random": lambda parts: RandomTuner(parts.candidates, parts.seed),
    "grid": lambda parts: GridTuner(parts.candidates, parts.seed),
    "genetic": lambda parts: GeneticTuner(parts.candidates, parts.seed),
    "descent": lambda parts: DescentTuner(parts.candidates, parts.seed),
    "xgb": _guided("xgb"),
    "xgb-rank": _guided("xgb-rank"),
    "annealing": _guided("xgb", walks=True),
    "ridge": _guided("ridge"),
    "roofline": _roofline,
}
"""Name of a tuner -> what makes it."""


def tuner(
    name: str,
    space: Space,
    seed: int,
    *,
    points: Sequence[int] | None = None,
    features: FeatureSource | None = None,
    experience: Experience | None = None,
) -> Tuner:
    """Make a tuner by its name.

    Parameters
    ----------
    name : str
        A key of `TUNERS`.
    space : Space
        What it searches.
    seed : int
        Equal seeds and equal observations give equal proposals.
    points : sequence of int, optional
        Keep to these points of the space: those of a replay table.
    features : FeatureSource, optional
        The features of its model; by default, the knobs.
    experience : Experience, optional
        What is known of other shapes, described by features of the same names.

    Raises
    ------
    TuningError
        If there is none of this name.
    """
    make = check_name(name)
    candidates = Candidates(space, points)
    looked_at = KnobFeatures(space) if features is None else features
    kept = CachedFeatures(looked_at, lambda: candidates.points)
    return make(Ingredients(candidates, seed, kept, experience))


def check_name(name: str) -> Callable[[Ingredients], Tuner]:
    """Return the function that makes tuners of a name.

    Raises
    ------
    TuningError
        If there are none.
    """
    make = TUNERS.get(name)
    if make is None:
        close = difflib.get_close_matches(str(name), TUNERS, n=1)
        raise TuningError(
            "tune", "no tuner has this name", got=repr(name),
            expected=", ".join(map(repr, TUNERS)),
            hint=f"did you mean {close[0]!r}?" if close else None,
        )  # fmt: skip
    return make
