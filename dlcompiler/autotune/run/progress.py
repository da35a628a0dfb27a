"""Progress of a tuning run: its trials, rounds, best trial and notes for the user."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from dlcompiler.autotune.run.rounds import Round
from dlcompiler.autotune.trial import OUTCOMES, OutcomeName, Trial


@dataclass(slots=True)
class RunProgress:
    """The trials, rounds, best trial and notes of a run so far.

    Only the run's thread adds trials and rounds; any thread may read. Reading is cheap.
    """

    prior: tuple[Trial, ...] = ()
    """Trials of earlier runs."""
    rounds: tuple[Round, ...] = ()
    """The rounds so far; the last one may be unfinished."""
    best: Trial | None = None
    """The fastest trial."""
    last_better: int = 0
    """The number of trials that were done when the best one was last improved."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    _trials: list[Trial] = field(default_factory=list)
    _shown: tuple[Trial, ...] = ()
    _counts: Counter[OutcomeName] = field(default_factory=Counter)
    _notes: dict[str, str] = field(default_factory=dict)

    def learn(self, trials: tuple[Trial, ...]) -> None:
        """Set the trials of earlier runs, and compare them with the best."""
        with self.lock:
            self.prior = trials
            for trial in trials:
                self._compare(trial)

    def add(self, trial: Trial) -> None:
        """Append a trial of this run."""
        with self.lock:
            self._trials.append(trial)
            self._counts[trial.outcome] += 1
            if self._compare(trial):
                self.last_better = len(self._trials)

    def _compare(self, trial: Trial) -> bool:
        """Tell whether a trial is the fastest so far; if so, it becomes the best."""
        if trial.seconds is None:
            return False
        if self.best is not None and trial.seconds >= (self.best.seconds or 0.0):
            return False
        self.best = trial
        return True

    def settle(self, best: Trial) -> None:
        """Replace the best trial, after near ties were measured again."""
        with self.lock:
            self.best = best

    def begin_round(self, found: Round) -> None:
        """Append a round."""
        with self.lock:
            self.rounds = (*self.rounds, found)

    def complete_round(self) -> Round:
        """Add the trials' results to the last round, and return the round."""
        with self.lock:
            last = self.rounds[-1]
            done = last.completed(self._trials[last.first :])
            self.rounds = (*self.rounds[:-1], done)
            return done

    def note(self, source: str, text: str) -> bool:
        """Set the note of a source; return whether its text changed."""
        with self.lock:
            if self._notes.get(source, "") == text:
                return False
            self._notes[source] = text
            return True

    # -- reading -----------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """The number of trials of this run that are done."""
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
        """The number of trials with each outcome."""
        with self.lock:
            return {name: self._counts[name] for name in OUTCOMES if self._counts[name]}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user, one for each source that has any."""
        with self.lock:
            return tuple(text for text in self._notes.values() if text)
