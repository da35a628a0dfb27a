"""Tuners compared, as a picture that a notebook shows: the paper's Figure 12 in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dlcompiler.views.scene import Scene, scene_html
from dlcompiler.views.tuning import compare_tuners as compared
from dlcompiler.views.tuning.compare import RunLike
from dlcompiler_widgets.paper import PaperFigure
from dlcompiler_widgets.scene_figure import scene_figure


@dataclass(frozen=True)
class Comparison:
    """A picture with its table; `figure` is the same for a paper."""

    scene: Scene

    def figure(self) -> PaperFigure:
        """Return it as a figure of matplotlib's, to be saved."""
        return scene_figure(self.scene)

    def __repr__(self) -> str:
        return f"{self.scene['title']}: {self.scene['summary']}"

    def _repr_html_(self) -> str:
        return str(scene_html(self.scene))


def compare_tuners(groups: Mapping[str, Sequence[RunLike]], **options: Any) -> Comparison:
    """Compare several runs of several tuners, seeds or machines.

    Parameters
    ----------
    groups : mapping
        By name, runs, or the best so far after each trial as numbers.
    **options
        As for `dlcompiler.views.tuning.compare_tuners`: ``against="seconds"``, ``best=``,
        ``unit=``, ``title=``.

    Examples
    --------
    >>> found = compare_tuners({"a": [[1, 4, 9], [2, 6, 9]], "b": [[1, 2, 3]]})
    >>> found.scene["table"]["rows"]
    [['a', 2, 9.0, 9.0, 9.0, 3.0], ['b', 1, 3.0, 3.0, 3.0, 'not reached']]
    """
    return Comparison(compared(groups, **options))
