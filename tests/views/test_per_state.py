"""Results of views that are remembered for each state."""

import gc
import re
import weakref
from dataclasses import replace
from pathlib import Path

import pytest

from dlcompiler import te, views
from dlcompiler.errors import ScheduleError
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from dlcompiler.views import loop_tree
from dlcompiler.views.loops.strides import stride_words, with_strides
from dlcompiler.views.memory.metrics import metrics
from dlcompiler.views.moves.advice import advice
from dlcompiler.views.per_state import per_state


def scaled(n=64):
    A = te.placeholder((n, n), name="A")
    B = te.compute((n, n), lambda i, j: A[j, i] * 2.0, name="B")
    return create_schedule(B.op), [A, B]


def test_a_result_belongs_to_one_state_and_one_set_of_arguments():
    calls = []

    @per_state
    def count(state, factor):
        calls.append(factor)
        return len(state.stages) * factor

    s, (_, B) = scaled()
    assert [count(s.state, 2), count(s.state, 2), count(s.state, 3)] == [4, 4, 6]
    assert calls == [2, 3]
    s[B].parallel(B.op.axis[0])
    assert count(s.state, 2) == 4
    assert calls == [2, 3, 2]


def test_a_schedule_and_its_state_share_a_result():
    calls = []

    @per_state
    def count(program):
        calls.append(program)
        return 1

    s, _ = scaled()
    count(s)
    count(s.state)
    assert len(calls) == 1


def test_an_error_is_remembered_without_its_traceback():
    calls = []

    @per_state
    def refuse(state):
        calls.append(state.id)
        raise ScheduleError("look", "there is nothing", got="0", hint="look elsewhere")

    s, _ = scaled()
    texts, seen = [], []
    for _ in range(3):
        with pytest.raises(ScheduleError) as caught:
            refuse(s.state)
        texts.append(str(caught.value))
        seen.append(caught.value)
    assert texts == ["look: there is nothing\n  got       0\n  hint      look elsewhere"] * 3
    assert len(calls) == 1
    assert len({id(error) for error in seen}) == 3  # a traceback grows with each raise


def test_a_bug_is_not_remembered():
    outcomes = iter([ValueError("first"), None])

    @per_state
    def fragile(state):
        error = next(outcomes)
        if error:
            raise error
        return "done"

    s, _ = scaled()
    with pytest.raises(ValueError, match="first"):
        fragile(s.state)
    assert fragile(s.state) == "done"


@pytest.mark.campaign
@pytest.mark.parametrize("extent", [64, "symbolic"])
@pytest.mark.parametrize("name", ["cpu", "gpu"])
def test_results_do_not_keep_a_state_alive(extent, name):
    """Sizes known only at a call make the views raise, so errors are covered as well."""
    target = resolve(name)
    s, args = scaled(te.var("n") if extent == "symbolic" else extent)
    with_strides(loop_tree(s), s, args, target)
    metrics(s, args, target)
    advice(s, args, target)
    state = weakref.ref(s.state)
    del s, args
    gc.collect()
    assert state() is None


def test_targets_that_differ_only_in_a_limit_have_results_of_their_own():
    """Limits are no part of a target's hash."""
    s, args = scaled()
    one = resolve("x86-64-avx2")
    other = replace(one, limits={"max_lanes": 1})
    assert hash(one) == hash(other)
    first, second = (stride_words(s, args, target) for target in (one, other))
    assert first == second
    assert first is not second


def test_no_view_writes_into_the_cache_of_a_state():
    """Only `dlcompiler.schedule` does: its analyses copy some entries from state to state."""
    folder = Path(views.__file__).parent
    uses = re.compile(r"(?<!dlcompiler\.simulate)\.cache\b")  # that one is a module
    assert [path.name for path in folder.rglob("*.py") if uses.search(path.read_text())] == []
