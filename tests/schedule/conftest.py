"""Small expressions with their schedules, and the two texts that tests compare: nests, refusals."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from tests.fuzz.checks import Case, check
from tests.fuzz.expressions import Expression


@pytest.fixture
def matmul():
    """C = A·B of 4×8 and 8×6, its schedule and axes."""
    A = te.placeholder((4, 8), name="A")
    B = te.placeholder((8, 6), name="B")
    k = te.reduce_axis((0, 8), name="k")
    C = te.compute((4, 6), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    i, j = C.op.axis
    return SimpleNamespace(s=create_schedule(C.op), A=A, B=B, C=C, i=i, j=j, k=k, args=[A, B, C])


@pytest.fixture
def chain():
    """P doubles, Q adds two elements of P, D adds one: each reads the one before."""
    A = te.placeholder((18,), name="A")
    P = te.compute((18,), lambda i: A[i] * 2.0, name="P")
    Q = te.compute((16,), lambda i: P[i] + P[i + 2], name="Q")
    D = te.compute((16,), lambda i: Q[i] + 1.0, name="D")
    return SimpleNamespace(s=create_schedule(D.op), A=A, P=P, Q=Q, D=D, args=[A, D])


@pytest.fixture
def nest():
    """Return the loop nests of a schedule as text."""

    def text(case, *, args=None):
        return str(lower(case.s, args or case.args, simple_mode=True))

    return text


@pytest.fixture
def refusal():
    """Return the whole text of the refusal of a call; the schedule must stay as it was."""

    def text(call, *args, **kwargs):
        schedule = getattr(getattr(call, "__self__", None), "schedule", None)
        before = schedule and schedule.state
        with pytest.raises(ScheduleError) as error:
            call(*args, **kwargs)
        assert schedule is None or schedule.state is before
        return str(error.value)

    return text


@pytest.fixture
def computes():
    """Check that a schedule's program has the values of its expression, and its trace replays."""

    def judge(schedule) -> None:
        expression = Expression("exact", schedule.outputs)
        assert check(Case(expression, schedule.trace.steps)) == "built"

    return judge
