"""Smaller cases that fail alike: fewer steps, then simpler expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dlcompiler.errors import DLCompilerError
from dlcompiler.schedule import Step, open_obligations
from tests.fuzz.checks import Case
from tests.fuzz.expressions import Expression

Fails = Callable[[Case], bool]
Remade = Callable[[Sequence[int]], Expression]
MAX_TRIES = 400


def shrink(case: Case, fails: Fails, remade: Remade | None = None) -> Case:
    """Return a smaller case that still fails.

    Parameters
    ----------
    case
        A case that fails.
    fails
        Tells whether another case fails alike.
    remade
        Makes an expression from choices; without it, only the steps get fewer.
    """
    budget = _Budget(fails)
    while True:
        before = (case.steps, case.expression)
        case = _with_fewer_steps(case, budget)
        if remade is not None:
            case = _with_smaller_choices(case, budget, remade)
        if before == (case.steps, case.expression) or budget.is_spent:
            return case


class _Budget:
    """Counts the tries."""

    def __init__(self, fails: Fails) -> None:
        self.fails = fails
        self.tries = 0

    @property
    def is_spent(self) -> bool:
        return self.tries >= MAX_TRIES

    def still_fails(self, case: Case) -> bool:
        if self.is_spent:
            return False
        self.tries += 1
        try:
            schedule = case.schedule()
        except DLCompilerError:
            return False  # without that step, another cannot be made
        if open_obligations(schedule.state):
            return False  # a walk leaves none
        return self.fails(case)


def _with_fewer_steps(case: Case, budget: _Budget) -> Case:
    steps: list[Step] = list(case.steps)
    for n in reversed(range(len(steps))):
        fewer = replace(case, steps=tuple(steps[:n] + steps[n + 1 :]))
        if budget.still_fails(fewer):
            steps = list(fewer.steps)
    return replace(case, steps=tuple(steps))


def _with_smaller_choices(case: Case, budget: _Budget, remade: Remade) -> Case:
    n = 0
    while n < len(case.expression.choices) and not budget.is_spent:
        choices = case.expression.choices
        for value in dict.fromkeys((0, choices[n] // 2, choices[n] - 1)):
            if value >= choices[n] or value < 0:
                continue
            smaller = (*choices[:n], value, *choices[n + 1 :])
            try:
                fewer = replace(case, expression=remade(smaller))
            except DLCompilerError:
                continue
            if budget.still_fails(fewer):
                case = fewer
                break
        n += 1
    return case
