"""Static pictures of tuning runs, which a notebook shows without widgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler.autotune import TuningRun
from dlcompiler.views.render.scene import Scene, scene_html
from dlcompiler.views.tuning import Watched
from dlcompiler.views.tuning import compare_tuners as compared
from dlcompiler.views.tuning.compare import RunLike
from dlcompiler.views.tuning.one_scene import run_scene
from dlcompiler_widgets.paper import PaperFigure
from dlcompiler_widgets.scene_figure import scene_figure


@dataclass(frozen=True)
class Picture:
    """A picture with its table; `figure` is the same for a paper."""

    scene: Scene

    def figure(self) -> PaperFigure:
        """Return the picture as a matplotlib figure."""
        return scene_figure(self.scene)

    def __repr__(self) -> str:
        return f"{self.scene['title']}: {self.scene['summary']}"

    def _repr_html_(self) -> str:
        return str(scene_html(self.scene))


def tuning_picture(run: TuningRun | Watched, what: str = "best", **options: Any) -> Picture:
    """Return one picture of a tuning run.

    Parameters
    ----------
    run : TuningRun or Watched
        The run, going on or ended.
    what : str
        ``best`` so far; ``predicted`` against actual times; ``importance`` of features; ``why``
        trial ``a=`` is predicted as it is, or faster than trial ``b=``; ``knobs`` as parallel
        coordinates; ``map`` of the space; ``time`` spent in each phase.
    **options
        Of the picture: ``against="seconds"`` for ``best``, ``across=`` and ``up=`` for ``map``.

    Raises
    ------
    TuningError
        If there is no such picture or trial, or the tuner has no cost model.
    """
    return Picture(run_scene(run, what, **options))


def compare_tuners(groups: Mapping[str, Sequence[RunLike]], **options: Any) -> Picture:
    """Compare several runs of several tuners, seeds or machines: the paper's Figure 12.

    Parameters
    ----------
    groups : mapping
        By name, runs, or for each run its best so far after each trial, as numbers.
    **options
        As for `dlcompiler.views.tuning.compare_tuners`: ``against="seconds"``, ``best=``,
        ``unit=``, ``title=``.

    Examples
    --------
    >>> found = compare_tuners({"a": [[1, 4, 9], [2, 6, 9]], "b": [[1, 2, 3]]})
    >>> found.scene["table"]["rows"]
    [['a', 2, 9.0, 9.0, 9.0, 3.0], ['b', 1, 3.0, 3.0, 3.0, 'not reached']]
    """
    return Picture(compared(groups, **options))
