"""Rank correlation of the cost model's predictions over all trials of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dlcompiler.autotune.run.rounds import rank_correlation
from dlcompiler.views.tuning.watched import TrialRow


def correlation(rows: Sequence[TrialRow]) -> float | None:
    """Return the rank correlation over all trials with a prediction; None if there are too few.

    A trial that failed has no time: it counts as infinitely slow, as in `autotune.run.rounds`.
    """
    known = [row for row in rows if row.predicted_s is not None]
    predicted = [row.predicted_s or 0.0 for row in known]
    return rank_correlation(predicted, [row.seconds or math.inf for row in known])
