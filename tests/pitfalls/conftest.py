"""What the tests of known pitfalls share: the two good ends, a refusal and a right result."""

from __future__ import annotations

import pytest

from dlcompiler.errors import UserError
from tests.fuzz.checks import Case, check
from tests.fuzz.expressions import Expression


@pytest.fixture
def refused():
    """Return the text with which a call is refused."""

    def text(call, *args, **kwargs) -> str:
        with pytest.raises(UserError) as error:
            call(*args, **kwargs)
        return str(error.value)

    return text


@pytest.fixture
def computes():
    """Check that a schedule computes its expression: interpreted, lowered and in machine code."""

    def judge(schedule) -> None:
        expression = Expression("exact", schedule.outputs)
        assert check(Case(expression, schedule.trace.steps)) == "built"

    return judge
