"""Advice on a schedule: what makes a loop slow, and which step to try.

Each rule is a function from a `Subject` to its findings; `RULES` lists them with their sources.
To add one, write the function into the module of its family, and enter it in that module's table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlcompiler.analysis.advice import computation, locality, parallelism, peak, vectors
from dlcompiler.analysis.advice import kernels as of_kernels
from dlcompiler.analysis.advice.subject import Finding, Rule, Severity, Speed, Subject
from dlcompiler.analysis.footprint import ProgramFootprint
from dlcompiler.schedule import Schedule
from dlcompiler.simulate.gpu.kernel import KernelFacts
from dlcompiler.target import Target

RULES: tuple[Rule, ...] = (
    *locality.RULES,
    *vectors.RULES,
    *parallelism.RULES,
    *computation.RULES,
    *peak.RULES,
)
GPU_RULES: tuple[Rule, ...] = of_kernels.RULES
"""The rules for kernels of a GPU; the others are about caches, vectors and cores of a CPU."""
_ORDER: tuple[Severity, ...] = ("high", "medium", "low")


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding of a rule at a loop."""

    rule: str
    source: str
    finding: Finding


def advise(
    schedule: Schedule,
    footprint: ProgramFootprint,
    target: Target,
    speed: Speed | None = None,
    kernels: Sequence[KernelFacts] = (),
) -> list[Advice]:
    """Return the findings of all rules for the machine, the most serious first.

    Parameters
    ----------
    schedule
        The schedule, at the state to analyse; suggested steps are legal in this state.
    footprint
        The footprint of the program that this state is lowered to.
    target
        The machine.
    speed
        How fast the program ran, for the rules about that; None if it was not measured.
    kernels
        What is known of the program's kernels on a GPU: then the rules are `GPU_RULES`.
    """
    subject = Subject(schedule, footprint, target, speed, kernels)
    rules = GPU_RULES if kernels else RULES
    found = [
        Advice(rule.name, rule.source, finding) for rule in rules for finding in rule.find(subject)
    ]
    # The first and the other updates of a reduction have loops of the same names: say it once.
    once = {(each.rule, each.finding.stage, each.finding.text): each for each in reversed(found)}
    kept = reversed(once.values())
    return sorted(kept, key=lambda advice: _ORDER.index(advice.finding.severity))


__all__ = ["GPU_RULES", "RULES", "Advice", "Finding", "Rule", "Severity", "Speed", "advise"]
