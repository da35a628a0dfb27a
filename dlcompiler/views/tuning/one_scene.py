"""One picture of a run, by its name."""

from __future__ import annotations

from typing import Any

from dlcompiler.autotune import TuningRun
from dlcompiler.autotune.explain import importances
from dlcompiler.autotune.projection import Projection
from dlcompiler.errors import TuningError
from dlcompiler.views.scene import Scene
from dlcompiler.views.tuning.best_so_far import best_so_far
from dlcompiler.views.tuning.coordinates import coordinates
from dlcompiler.views.tuning.explained import importance
from dlcompiler.views.tuning.knob_map import knob_map
from dlcompiler.views.tuning.plane_map import plane_map
from dlcompiler.views.tuning.predicted import predicted_measured
from dlcompiler.views.tuning.space_points import ground
from dlcompiler.views.tuning.time_spent import time_spent
from dlcompiler.views.tuning.watched import Watched, watched

PICTURES = ("best", "predicted", "importance", "knobs", "map", "time")
"""The names of the pictures of one run."""


def run_scene(run: TuningRun | Watched, what: str = "best", **options: Any) -> Scene:
    """Return a picture of a run by its name.

    Parameters
    ----------
    run
        The run, or what was watched of it.
    what
        One of `PICTURES`.
    **options
        Of the picture.

    Raises
    ------
    TuningError
        If there is no such picture, or the tuner has no model to ask.
    """
    seen = run if isinstance(run, Watched) else watched(run)
    match what:
        case "best":
            return best_so_far(seen, **options)
        case "predicted":
            return predicted_measured(seen, **options)
        case "importance":
            return _importance(run, **options)
        case "knobs":
            return coordinates(seen, ground(seen.space), **options)
        case "map" if "across" in options:
            return knob_map(seen, ground(seen.space), **options)
        case "map":
            known = ground(seen.space)
            return plane_map(seen, known, Projection(seen.space, known.legal), **options)
        case "time":
            return time_spent(seen, **options)
    raise TuningError(
        "draw a tuning run", "there is no such picture", got=repr(what),
        expected=", ".join(PICTURES),
    )  # fmt: skip


def _importance(run: TuningRun | Watched, **options: Any) -> Scene:
    model = run.model if isinstance(run, TuningRun) else None
    if model is None:
        raise TuningError(
            "draw what a model looks at", "there is no cost model",
            got=repr(run)[:80], expected="a run of a tuner that predicts",
        )  # fmt: skip
    return importance(importances(model), model=model.name, **options)
