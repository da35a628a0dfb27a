"""How a lowered schedule is judged: interpreted around the passes, built, and compared."""

from __future__ import annotations

import pytest

from dlcompiler.pipeline import lower
from tests.fuzz.checks import Case, check
from tests.fuzz.expressions import Expression


@pytest.fixture
def computes():
    """Check that a schedule's program has the values of its expression, without a stray access."""

    def judge(schedule) -> None:
        expression = Expression("exact", schedule.outputs)
        assert check(Case(expression, schedule.trace.steps)) == "built"

    return judge


@pytest.fixture
def nest():
    """Return the loop nests of a schedule as text."""

    def text(schedule) -> str:
        args = Expression("", schedule.outputs).args
        return str(lower(schedule, args, simple_mode=True))

    return text
