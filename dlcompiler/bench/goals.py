"""Goals of tables of measured works, and whether they are reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dlcompiler.bench.intervals import geometric_mean
from dlcompiler.bench.results import Result


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a goal is reached."""

    text: str
    """The goal in words."""
    got: float | None
    """The measured value; None if it, or a part of it, is missing."""
    holds: bool
    note: str = ""
    """Which row decided it, or what is missing."""


Rows = Mapping[str, Result]
"""The judged row of each work, by its label."""


class Goal(Protocol):
    """A goal of a table."""

    def judge(self, rows: Rows) -> Verdict:
        """Compare the measured results with the goal."""


@dataclass(frozen=True, slots=True)
class MeanRatio:
    """The geometric mean of the ratios to the best peer."""

    at_least: float
    labels: tuple[str, ...] = ()
    """Labels of the works that count."""

    def judge(self, rows: Rows) -> Verdict:
        """Compare the measured results with the goal."""
        of = f" of {', '.join(self.labels)}" if self.labels else ""
        text = f"geometric mean{of} ≥ {self.at_least:g}"
        ratios = _ratios({label: rows[label] for label in self.labels or rows})
        if (lost := _lost(ratios)) or not ratios:
            return Verdict(text, None, False, lost)
        mean = geometric_mean([ratio for ratio in ratios.values() if ratio is not None])
        return Verdict(text, mean, mean >= self.at_least)


@dataclass(frozen=True, slots=True)
class WorstRatio:
    """The smallest ratio to the best peer."""

    at_least: float
    peers: tuple[str, ...] | None = None
    """The peers that count; by default all."""

    def judge(self, rows: Rows) -> Verdict:
        """Compare the measured results with the goal."""
        text = f"none < {self.at_least:g}"
        if self.peers is not None:
            text += f" of the best of {', '.join(self.peers)}"
        return _worst(text, self.at_least, _ratios(rows, self.peers))


@dataclass(frozen=True, slots=True)
class PeakFraction:
    """The goal that one work reaches a fraction of the FMA peak, or the rate of the best peer."""

    at_least: float
    label: str

    def judge(self, rows: Rows) -> Verdict:
        """Compare the measured results with the goal."""
        text = f"{self.label}: ≥ {self.at_least:g} of the FMA peak, or as much as the best peer"
        contest = rows[self.label].contest
        ratio = rows[self.label].ratio
        if contest is None or ratio is None:
            return Verdict(text, None, False, "not measured")
        got = contest.of_peak.median
        return Verdict(text, got, got >= min(self.at_least, got / ratio.median))


@dataclass(frozen=True, slots=True)
class Speedup:
    """The geometric mean of speed-ups over one thread, relative to the FMA peak's speed-up."""

    at_least: float

    def judge(self, rows: Rows) -> Verdict:
        """Compare the measured results with the goal."""
        text = f"speed-up over one thread ≥ {self.at_least:g} of the FMA peak's, geometric mean"
        fractions = {label: _fraction(result) for label, result in rows.items()}
        if lost := _lost(fractions):
            return Verdict(text, None, False, lost)
        found = [fraction for fraction in fractions.values() if fraction is not None]
        mean = geometric_mean(found)
        least = min(fractions, key=lambda label: fractions[label] or 0.0)
        return Verdict(text, mean, mean >= self.at_least, f"least: {least}, {min(found):.2f}")


def _fraction(result: Result) -> float | None:
    contest = result.contest
    if contest is None or contest.speedup is None or contest.peak_speedup is None:
        return None
    return contest.speedup.median / contest.peak_speedup


def _ratios(rows: Rows, peers: tuple[str, ...] | None = None) -> dict[str, float | None]:
    ratios = {label: result.ratio_to(peers) for label, result in rows.items()}
    return {label: None if r is None else r.median for label, r in ratios.items()}


def _worst(text: str, at_least: float, ratios: Mapping[str, float | None]) -> Verdict:
    if (lost := _lost(ratios)) or not ratios:
        return Verdict(text, None, False, lost)
    found = {label: ratio for label, ratio in ratios.items() if ratio is not None}
    label = min(found, key=lambda name: found[name])
    missed = sum(ratio < at_least for ratio in found.values())
    note = label if missed <= 1 else f"{label}; {missed} of {len(found)} are below"
    return Verdict(text, found[label], missed == 0, note)


def _lost(values: Mapping[str, float | None]) -> str:
    """Return which rows have no number; a mean of the other rows would not be comparable."""
    lost = [label for label, value in values.items() if value is None]
    if not lost:
        return ""
    shown = ", ".join(lost[:4]) + (", …" if len(lost) > 4 else "")
    return f"{len(lost)} of {len(values)} have no ratio: {shown}"


def judge(goals: Iterable[Goal], rows: Rows) -> Sequence[Verdict]:
    """Compare a table with its goals."""
    return tuple(goal.judge(rows) for goal in goals)
