"""Near ties: trials whose measured times are within 3 % of the best.

One measurement each cannot tell which of them is the fastest, so they are measured again in turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.autotune.pools.measure_pool import Compared
from dlcompiler.autotune.trial import Trial

NEAR_RATIO = 1.03
"""Time of a near tie divided by the time of the best, at most."""
MOST_NEAR_TIES = 8
"""The number of trials that are measured again, at most."""


def near_ties(trials: Sequence[Trial], best: Trial) -> list[Trial]:
    """Return the fastest trials within 3 % of the best, including the best itself, in order.

    Notes
    -----
    The shortest of many noisy medians is too short: among candidates that are equally fast, chance
    decides which one is the best.
    """
    limit = (best.seconds or 0.0) * NEAR_RATIO
    near = [trial for trial in trials if trial.seconds is not None and trial.seconds <= limit]
    return sorted(near, key=lambda trial: trial.seconds or 0.0)[:MOST_NEAR_TIES]


def fastest_of(trials: Sequence[Trial], compared: Sequence[Compared]) -> Trial:
    """Return the fastest of near ties that were measured in turn.

    `trials[0]`, the best so far, stays the best unless another one is significantly faster.
    """
    times = {id(t): c.result.seconds for t, c in zip(trials, compared, strict=False)}
    timed = [trial for trial in trials if times.get(id(trial)) is not None]
    if not timed:
        return trials[0]
    fastest = min(timed, key=lambda trial: times[id(trial)] or 0.0)
    ratio = compared[0].ratio
    is_equal = times[id(trials[0])] is not None and (ratio is None or ratio[0] <= 1.0)
    return trials[0] if is_equal else fastest
