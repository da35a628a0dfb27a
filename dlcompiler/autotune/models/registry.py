"""Cost models by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from dlcompiler.autotune.models.base import FeatureSource
from dlcompiler.autotune.models.experience import Experience, Prior
from dlcompiler.autotune.models.learned import LearnedModel
from dlcompiler.autotune.models.learners import Learner
from dlcompiler.autotune.models.linear import RidgeLearner
from dlcompiler.autotune.models.roofline import RooflineModel
from dlcompiler.autotune.models.trees import TreeLearner
from dlcompiler.errors import TuningError

LEARNERS: dict[str, Callable[[int], Learner]] = {
    "xgb": TreeLearner,
    "xgb-rank": lambda seed: TreeLearner(seed, objective="rank"),
    "ridge": lambda seed: RidgeLearner(),
}
"""Name of a fitted model -> function that makes its learner from a seed."""


def make_model(
    name: str,
    features: FeatureSource,
    seed: int,
    experience: Experience | None = None,
    base: RooflineModel | None = None,
) -> LearnedModel:
    """Make a cost model that is fitted to measurements.

    Parameters
    ----------
    name : str
        A key of `LEARNERS`.
    features : FeatureSource
        The source of its features.
    seed : int
        Equal seeds and equal measurements give equal predictions.
    experience : Experience, optional
        Measurements of other shapes.
    base : RooflineModel, optional
        An analytic model; the learner is fitted to its residual.

    Raises
    ------
    TuningError
        If no model has this name, or a package that it needs is not installed.
    """
    make = LEARNERS.get(name)
    if make is None:
        close = difflib.get_close_matches(str(name), LEARNERS, n=1)
        raise TuningError(
            "make a cost model", "no model has this name", got=repr(name),
            expected=", ".join(map(repr, LEARNERS)),
            hint=f"did you mean {close[0]!r}?" if close else None,
        )  # fmt: skip
    prior = None
    if experience is not None and len(experience):
        prior = Prior(experience, lambda: make(seed))
    return LearnedModel(name, features, make(seed), prior, base)
