"""How well a model ranked: what the rounds of a run say, and all of its trials together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dlcompiler.autotune.run.rounds import rank_correlation
from dlcompiler.views.tuning.watched import TrialRow


def correlation(rows: Sequence[TrialRow]) -> float | None:
    """Return the rank correlation of all trials that were predicted; None: they are too few.

    A trial that failed has no time: it counts as infinitely slow, as in `autotune.rounds`.
    """
    known = [row for row in rows if row.predicted_s is not None]
    predicted = [row.predicted_s or 0.0 for row in known]
    return rank_correlation(predicted, [row.seconds or math.inf for row in known])
