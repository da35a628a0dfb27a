"""Time contenders in alternation, on one thread or on several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dlcompiler.bench.placing import caller_apart, wait_until_quiet
from dlcompiler.runtime.timing import Call, Timing, alternate

_WITH_THREADS = {"warm_s": 0.02, "sample_s": 4e-3}


def alternated(
    calls: Mapping[str, Call], threads: int, limits: Mapping[str, Any]
) -> dict[str, Timing]:
    """Time calls in alternation.

    Parameters
    ----------
    calls : mapping
        Name of a contender -> its call.
    threads : int
        Number of threads of each. With several, the caller has a core of its own, and a call begins
        when no thread computes.
    limits : mapping
        Arguments of `dlcompiler.runtime.timing.alternate`.
    """
    chosen = dict(_WITH_THREADS if threads > 1 else {}, **limits)
    if "rounds" in chosen:
        chosen["rounds"] = tuple(chosen["rounds"])
    if threads == 1:
        return dict(zip(calls, alternate(list(calls.values()), **chosen), strict=True))
    with caller_apart():
        timings = alternate(list(calls.values()), settle=wait_until_quiet, **chosen)
    return dict(zip(calls, timings, strict=True))
