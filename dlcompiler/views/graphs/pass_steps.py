"""What each pass on a graph changed: calls that it made or removed, and what it decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dlcompiler.graph.decisions import Decision
from dlcompiler.graph.passes.base import GraphChange
from dlcompiler.runtime.timing import format_seconds
from dlcompiler.views.graphs.module_card import shortened
from dlcompiler.views.render.boxes import count
from dlcompiler.views.render.scene import Cell, Table

MOST_NAMES = 12
"""Most names of calls that are listed of a pass; [1]."""
MOST_REASONS = 40
"""Most decisions of a pass that are listed; [1]."""


@dataclass(frozen=True, slots=True)
class PassStep:
    """A pass that has run."""

    name: str
    made: tuple[str, ...]
    """Names of calls that are there after it only."""
    gone: tuple[str, ...]
    """Names of calls that are there before it only."""
    decisions: tuple[Decision, ...]
    seconds: float
    """Time that it took [s]."""
    is_unchanged: bool

    @property
    def effect(self) -> str:
        """What it did, in a few words.

        Examples
        --------
        >>> PassStep("fold_constants", (), ("a", "b"), (), 0.1, False).effect
        'removed 2 calls'
        """
        if self.is_unchanged:
            return "changed nothing"
        parts = []
        if self.made:
            parts.append(f"made {count(len(self.made), 'call')}")
        if self.gone:
            parts.append(f"removed {count(len(self.gone), 'call')}")
        if self.decisions:
            verdicts = Counter(d.verdict for d in self.decisions)
            parts.append(", ".join(f"{n} {verdict}" for verdict, n in verdicts.items()))
        return "; ".join(parts) or "changed no names of calls"


def pass_steps(changes: Sequence[GraphChange]) -> list[PassStep]:
    """Return what passes changed.

    Parameters
    ----------
    changes : sequence of GraphChange
        What an observer of `optimize` got, in order.
    """
    found = []
    for change in changes:
        before, after = change.before.calls(), change.after.calls()
        found.append(
            PassStep(
                change.name,
                tuple(name for name in after if name not in before),
                tuple(name for name in before if name not in after),
                change.after.log[len(change.before.log) :],
                change.seconds, change.is_unchanged,
            )
        )  # fmt: skip
    return found


def steps_table(steps: Sequence[PassStep]) -> Table:
    """Return passes as a table, with the measured time of each.

    Parameters
    ----------
    steps : sequence of PassStep
        The passes in their order.
    """
    rows: list[list[Cell]] = [
        [n, step.name, step.effect, format_seconds(step.seconds)] for n, step in enumerate(steps, 1)
    ]
    return {"columns": ["", "pass", "what it did", "time of the pass"], "rows": rows}


def step_facts(step: PassStep) -> list[tuple[str, str]]:
    """Return what a pass did, line by line.

    Parameters
    ----------
    step : PassStep
        The pass.
    """
    facts = [("made", _listed(step.made)), ("removed", _listed(step.gone))]
    for decision in step.decisions[:MOST_REASONS]:
        about = shortened(" → ".join(decision.subject), 80)
        facts.append((f"{about}: {decision.verdict}", shortened(decision.reason, 600)))
    if len(step.decisions) > MOST_REASONS:
        facts.append(("…", f"{len(step.decisions) - MOST_REASONS:,} more decisions"))
    return [(label, value) for label, value in facts if value]


def _listed(names: Sequence[str]) -> str:
    shown = [shortened(name, 40) for name in names[:MOST_NAMES]]
    more = len(names) - len(shown)
    return ", ".join([*shown, *([f"{more} more"] if more > 0 else [])])
