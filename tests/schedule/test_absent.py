"""Primitives that are not here say so by name, and ``hasattr`` says the same."""

import copy

import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.schedule import create_schedule


@pytest.fixture
def s():
    A = te.placeholder((4,), name="A")
    return create_schedule(te.compute((4,), lambda i: A[i] + 1, name="B").op)


def test_primitives_of_stages(s):
    (stage,) = [stage for stage in s.stages if stage.name == "B"]
    assert not hasattr(stage, "nothing_of_the_kind")
    with pytest.raises(ScheduleError, match=r"there is no vectorise\n  hint      did you mean ve"):
        stage.vectorise(stage.op.axis[0])


def test_primitives_of_schedules(s):
    with pytest.raises(ScheduleError, match=r"there is no create_grup\n  hint      did you mean c"):
        s.create_grup(outputs=[], inputs=[])
    assert not hasattr(s, "nothing_of_the_kind")


def test_python_may_look_for_its_own_names(s):
    assert copy.copy(s.stages[0]).name == s.stages[0].name
