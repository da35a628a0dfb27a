"""One picture of a run, by its name."""

from __future__ import annotations

from typing import Any

from dlcompiler.autotune import TuningRun
from dlcompiler.autotune.explain import explain, importances
from dlcompiler.autotune.models.base import CostModel
from dlcompiler.autotune.projection import Projection
from dlcompiler.errors import TuningError
from dlcompiler.views.render.scene import Scene
from dlcompiler.views.tuning.best_so_far import best_so_far
from dlcompiler.views.tuning.coordinates import coordinates
from dlcompiler.views.tuning.explained import contributions, importance, why_before
from dlcompiler.views.tuning.knob_map import knob_map
from dlcompiler.views.tuning.plane_map import plane_map
from dlcompiler.views.tuning.predicted import predicted_measured
from dlcompiler.views.tuning.series import key_of
from dlcompiler.views.tuning.space_points import ground
from dlcompiler.views.tuning.time_spent import time_spent
from dlcompiler.views.tuning.watched import TrialRow, Watched, reference_of, watched

PICTURES = ("best", "predicted", "importance", "why", "knobs", "map", "time")
"""The names of the pictures of one run."""


def run_scene(run: TuningRun | Watched, what: str = "best", **options: Any) -> Scene:
    """Return a picture of a run by its name.

    Parameters
    ----------
    run
        The run, or a snapshot of it.
    what
        One of `PICTURES`.
    **options
        Of the picture.

    Raises
    ------
    TuningError
        If there is no such picture, or the tuner has no cost model.
    """
    seen = run if isinstance(run, Watched) else watched(run)
    match what:
        case "best":
            return best_so_far(seen, **options)
        case "predicted":
            return predicted_measured(seen, **options)
        case "importance":
            return _importance(run, **options)
        case "why":
            return _why(run, seen, **options)
        case "knobs":
            return coordinates(seen, ground(seen.space), **options)
        case "map" if {"across", "up"} <= options.keys():
            return knob_map(seen, ground(seen.space), **options)
        case "map" if not {"across", "up"} & options.keys():
            known = ground(seen.space)
            return plane_map(seen, known, Projection(seen.space, known.legal), **options)
        case "time":
            return time_spent(seen, **options)
    raise TuningError(
        "draw a tuning run", "there is no such picture", got=repr(what),
        expected=", ".join(PICTURES), hint="a map takes across= and up=, or neither",
    )  # fmt: skip


def _importance(run: TuningRun | Watched, **options: Any) -> Scene:
    model = _model(run)
    return importance(importances(model), model=model.name, **options)


def _why(
    run: TuningRun | Watched, seen: Watched, a: int | None = None, b: int | None = None,
    **options: Any,
) -> Scene:  # fmt: skip
    """Explain the prediction of trial `a` (by default the best), or its lead over trial `b`."""
    model = _model(run)
    best = seen.best
    first = a if a is not None or best is None else best.index
    rows = [_row(seen, index) for index in (first, b) if index is not None]
    found = explain(model, [row.point for row in rows], reference_of(seen))
    values = [seen.space.at(row.point).values for row in rows]
    if len(rows) == 1:
        return contributions(
            found[0], key_of(rows[0].index), values=values[0], trial_s=rows[0].seconds, **options
        )
    return why_before(
        found[0], found[1], (key_of(rows[0].index), key_of(rows[1].index)),
        values=(values[0], values[1]), trial_s=(rows[0].seconds, rows[1].seconds), **options,
    )  # fmt: skip


def _row(seen: Watched, index: int | None) -> TrialRow:
    row = None if index is None else seen.row(index)
    if row is None:
        raise TuningError(
            "explain a trial", "there is no such trial", got=repr(index),
            expected=f"0 to {len(seen.rows) - 1}",
        )  # fmt: skip
    return row


def _model(run: TuningRun | Watched) -> CostModel:
    model = run.model if isinstance(run, TuningRun) else None
    if model is None:
        raise TuningError(
            "explain a run by its cost model", "there is none",
            got=repr(run)[:80], expected="a run of a tuner that predicts",
        )  # fmt: skip
    return model
