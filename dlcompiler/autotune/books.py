"""The books of a run: what has been tried, what came of it, what a user should know."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from dlcompiler.autotune.rounds import Round
from dlcompiler.autotune.trial import OUTCOMES, OutcomeName, Trial


@dataclass(slots=True)
class Books:
    """What a run knows; its thread writes, all may read. What is read costs little."""

    prior: tuple[Trial, ...] = ()
    """Trials of earlier runs."""
    rounds: tuple[Round, ...] = ()
    """The rounds so far; the last one may be going on."""
    best: Trial | None = None
    """The fastest trial."""
    last_better: int = 0
    """How many trials were done when a faster one was last found."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    _trials: list[Trial] = field(default_factory=list)
    _shown: tuple[Trial, ...] = ()
    _counts: Counter[OutcomeName] = field(default_factory=Counter)
    _notes: dict[str, str] = field(default_factory=dict)

    def learn(self, trials: tuple[Trial, ...]) -> None:
        """Take in the trials of earlier runs."""
        with self.lock:
            self.prior = trials
            for trial in trials:
                self._compare(trial)

    def add(self, trial: Trial) -> None:
        """Take in a trial of this run."""
        with self.lock:
            self._trials.append(trial)
            self._counts[trial.outcome] += 1
            if self._compare(trial):
                self.last_better = len(self._trials)

    def _compare(self, trial: Trial) -> bool:
        """Tell whether a trial is the fastest so far, and remember it."""
        if trial.seconds is None:
            return False
        if self.best is not None and trial.seconds >= (self.best.seconds or 0.0):
            return False
        self.best = trial
        return True

    def settle(self, best: Trial) -> None:
        """Say which of the trials that are nearly as fast as the best is it."""
        with self.lock:
            self.best = best

    def begin_round(self, found: Round) -> None:
        """Add a round."""
        with self.lock:
            self.rounds = (*self.rounds, found)

    def complete_round(self) -> Round:
        """Return the last round, which is complete now."""
        with self.lock:
            last = self.rounds[-1]
            done = last.completed(self._trials[last.first :])
            self.rounds = (*self.rounds[:-1], done)
            return done

    def note(self, source: str, text: str) -> bool:
        """Keep what a user should know, one text of each source; tells whether it is news."""
        with self.lock:
            if self._notes.get(source, "") == text:
                return False
            self._notes[source] = text
            return True

    # -- reading -----------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many trials of this run are done."""
        return len(self._trials)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials of this run."""
        with self.lock:
            if len(self._shown) != len(self._trials):
                self._shown = tuple(self._trials)
            return self._shown

    @property
    def counts(self) -> Mapping[OutcomeName, int]:
        """How many trials ended in which way."""
        with self.lock:
            return {name: self._counts[name] for name in OUTCOMES if self._counts[name]}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know."""
        with self.lock:
            return tuple(text for text in self._notes.values() if text)
