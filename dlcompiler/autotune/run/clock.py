"""Clocks of tuning runs, which measure the time spent on each activity."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dlcompiler.autotune.trial import Result

Activity: TypeAlias = Literal["searching", "measuring", "paused", "ended"]


@dataclass(frozen=True, slots=True)
class Phases:
    """The time that a run has spent on each activity; without pauses, the run's duration."""

    searching_s: float
    """The tuner's own work: choosing points, features, training, recording trials [s]."""
    building_s: float
    """Building candidates while none was running [s]."""
    running_s: float
    """Checking and timing candidates [s]."""
    waiting_s: float
    """The rest: starting workers, candidates that were interrupted [s]."""
    paused_s: float
    """Pauses, which do not count as time of the run [s]."""

    @property
    def total_s(self) -> float:
        """Duration of the run, without pauses [s]."""
        return self.searching_s + self.building_s + self.running_s + self.waiting_s

    @property
    def own_share(self) -> float:
        """Share of the duration that the tuner's own work takes, from 0 to 1."""
        return self.searching_s / self.total_s if self.total_s else 0.0


class Clock:
    """Adds up the time of a run by activity; one thread changes it, others may read.

    Parameters
    ----------
    now : callable
        Returns the time [s].

    Notes
    -----
    Building that overlaps with running takes no time of the run. Therefore building counts only for
    the time in which no candidate ran.
    """

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._spent: dict[Activity, float] = {"searching": 0.0, "measuring": 0.0, "paused": 0.0}
        self._activity: Activity = "searching"
        self._since = now()
        self._before_s = self._built_s = self._ran_s = 0.0

    def go_on_from(self, seconds: float) -> None:
        """Add `seconds`, the duration of the earlier run that this one continues [s]."""
        with self._lock:
            self._before_s = seconds

    def begin(self, activity: Activity) -> None:
        """Start an activity, which ends the current one; after ``ended``, no time is added."""
        with self._lock:
            self._close()
            if self._activity != "ended":
                self._activity = activity

    @contextmanager
    def during(self, activity: Activity) -> Iterator[None]:
        """Set the activity within a ``with`` block, and restore the previous one."""
        before = self._activity
        self.begin(activity)
        try:
            yield
        finally:
            self.begin(before)

    def add(self, result: Result) -> None:
        """Add the times of a candidate."""
        with self._lock:
            self._built_s += result.build_s
            self._ran_s += result.run_s

    def _close(self) -> None:
        now = self._now()
        if self._activity != "ended":
            self._spent[self._activity] += now - self._since
        self._since = now

    @property
    def elapsed_s(self) -> float:
        """Duration of the run so far, without pauses [s]."""
        with self._lock:
            self._close()
            return self._before_s + self._spent["searching"] + self._spent["measuring"]

    def phases(self) -> Phases:
        """Return the times so far by activity, without those of an earlier process."""
        with self._lock:
            self._close()
            measuring = self._spent["measuring"]
            running = min(self._ran_s, measuring)
            building = min(self._built_s, measuring - running)
            return Phases(
                searching_s=self._spent["searching"],
                building_s=building,
                running_s=running,
                waiting_s=measuring - running - building,
                paused_s=self._spent["paused"],
            )
