"""Near ties: trials that are as fast as the best, as far as one measurement each can tell."""

from __future__ import annotations

from collections.abc import Sequence

from dlcompiler.autotune.pool import Compared
from dlcompiler.autotune.trial import Trial

NEAR = 1.03
"""How much slower than the best a trial may be to be measured again beside it."""
MOST = 8
"""How many are measured again."""


def near_ties(trials: Sequence[Trial], best: Trial) -> list[Trial]:
    """Return the trials that are nearly as fast as the best, the fastest first; it is one of them.

    Notes
    -----
    The shortest of many medians is the luckiest, too: of equal candidates, chance chooses.
    """
    limit = (best.seconds or 0.0) * NEAR
    near = [trial for trial in trials if trial.seconds is not None and trial.seconds <= limit]
    return sorted(near, key=lambda trial: trial.seconds or 0.0)[:MOST]


def faster_one(trials: Sequence[Trial], compared: Sequence[Compared]) -> Trial:
    """Return the fastest of trials that were measured in turn.

    The first one, the best so far, stays the best where nothing is faster for certain.
    """
    times = {id(t): c.result.seconds for t, c in zip(trials, compared, strict=False)}
    timed = [trial for trial in trials if times.get(id(trial)) is not None]
    if not timed:
        return trials[0]
    fastest = min(timed, key=lambda trial: times[id(trial)] or 0.0)
    ratio = compared[0].ratio
    is_equal = times[id(trials[0])] is not None and (ratio is None or ratio[0] <= 1.0)
    return trials[0] if is_equal else fastest
