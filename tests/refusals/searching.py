"""Find semantic refusals on random schedules, force them, and collect the evidence."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from dlcompiler.schedule import Move, Schedule, create_schedule, has_bounds
from dlcompiler.schedule.inference.bounds import infer_bounds
from dlcompiler.schedule.moves.enumeration import moves_of
from dlcompiler.schedule.verdict import Illegal
from tests.fuzz import recurrences, symbolic
from tests.fuzz.checks import Case
from tests.fuzz.choices import Choices
from tests.fuzz.expressions import TEMPLATES, Expression, all_of
from tests.fuzz.templates import Sizes
from tests.fuzz.walks import Walk
from tests.refusals.evidence import evidence
from tests.refusals.forcing import NotForced, force

EXTENTS = (3, 4, 5, 7)
"""Of a loop that runs once or never, nothing can go wrong; splits make them all the same. A mask
of a reduction (`where=`) may take one iteration away, and leave one of two."""
OF_LOOPS = ("parallel", "vectorize", "reorder", "rfactor")
STEPS = 8
AT_EACH_STATE = 2


class Several(Sizes):
    """Sizes of at least three."""

    def one(self) -> int:
        return self.rng.choice(EXTENTS)

    def small(self) -> int:
        return self.rng.choice(EXTENTS[:3])


@dataclass(frozen=True)
class Refusal:
    """A forced refusal, and what it showed."""

    seed: int
    primitive: str
    targets: tuple[str, ...]
    reason: str
    evidence: str
    case: Case

    def __str__(self) -> str:
        return (
            f"seed {self.seed}: {self.primitive} {', '.join(self.targets)}\n"
            f"  refused   {self.reason}\n  evidence  {self.evidence or 'none'}\n{self.case}"
        )


def refusals_of(seed: int) -> Iterator[Refusal]:
    """Yield the refusals that the random schedules of a seed meet."""
    rng = random.Random(f"refusals {seed}")
    expression = _expression(rng)
    schedule = create_schedule([tensor.op for tensor in expression.outputs])
    walk = Walk(rng, schedule)
    for _ in range(rng.randint(1, STEPS)):
        walk.run(rng.randint(0, 2))
        yield from _at_this_state(seed, rng, expression, schedule)


def _expression(rng: random.Random) -> Expression:
    left_out = {"empty", *symbolic.TEMPLATES, *recurrences.TEMPLATES}
    template = rng.choice(sorted(set(TEMPLATES) - left_out))
    outputs = TEMPLATES[template](Several(Choices(rng)))
    return Expression(template, all_of(outputs))


def _at_this_state(
    seed: int, rng: random.Random, expression: Expression, schedule: Schedule
) -> Iterator[Refusal]:
    found = [
        move
        for stage in schedule.stages
        for move in moves_of(schedule, stage.name)
        if isinstance(move.verdict, Illegal) and move.verdict.kind == "semantic"
    ]
    case = Case(expression, schedule.trace.steps)
    for move in rng.sample(found, min(len(found), AT_EACH_STATE)):
        shown = _shown(case, schedule, move)
        if shown is not None:
            reason = move.verdict.reason
            yield Refusal(seed, move.primitive, move.targets, reason, shown, case)


def _shown(case: Case, schedule: Schedule, move: Move) -> str | None:
    """Return the evidence; None when the step cannot be applied for another reason, too.

    None as well for a loop that runs once: refused for what it is on other sizes.
    """
    if move.primitive in OF_LOOPS and _runs_once(schedule, move):
        return None
    sample = {domain.parameter: (domain.suggested or (2,))[0] for domain in move.domains}
    try:
        state = force(schedule, move.primitive, move.stage, {**move.args, **sample})
    except NotForced:
        return None
    return evidence(case, state)


def _runs_once(schedule: Schedule, move: Move) -> bool:
    axes = move.args["axes"] if "axes" in move.args else (move.args["axis"],)
    known = {}
    if has_bounds(schedule.state):
        known = infer_bounds(schedule.state).stages[move.stage].extents
    return any(known.get(axis, axis.extent) in (0, 1) for axis in axes)
