"""Two compared states are verified and measured, one after the other."""

import pytest

from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul
from tests.widgets.test_run import FakeStopwatch, send

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer

from dlcompiler.errors import VerificationError


def compared(watch, target="cpu"):
    """An Explorer that stands at the first state and compares two branches."""
    schedule, args = matmul()
    C = args[2]
    schedule[C].vectorize(C.op.axis[1])
    a = schedule.node.id
    schedule.undo()
    schedule[C].parallel(C.op.axis[0])
    b = schedule.node.id
    schedule.undo()
    explorer = Explorer(schedule, args, target, name="matmul", stopwatch=watch)
    send(explorer, "compare", a=a, b=b)
    return explorer, [a, b]


def test_both_are_measured_in_turn():
    watch = FakeStopwatch()
    explorer, states = compared(watch)
    view = send(explorer, "measure", states=states)
    assert view["compare"]["measuring"]["state"] == "running"
    watch.go.set()
    explorer._measuring.wait(30)
    assert watch.measured == ["vectorize C j", "parallel C i"]
    assert watch.verified == ["create", "vectorize C j", "parallel C i"]
    times = explorer.view["compare"]["metrics"][-1]
    assert (times["kind"], times["unit"], times["a"], times["b"]) == ("measured", "ms", "2", "2")
    assert explorer.view["compare"]["measuring"]["state"] == "idle"
    assert explorer.schedule.node.title() == "create"
    explorer.close()


def test_a_failure_ends_the_run_before_the_second():
    error = VerificationError("verify C", "3 of 4096 elements differ")
    watch = FakeStopwatch(verdicts={"vectorize C j": error})
    explorer, states = compared(watch)
    send(explorer, "measure", states=states)
    watch.go.set()
    explorer._measuring.wait(30)
    assert watch.measured == []
    assert explorer.view["status"]["tone"] == "error"
    explorer.close()


def test_it_is_cancelled_as_a_whole():
    watch = FakeStopwatch()
    explorer, states = compared(watch)
    send(explorer, "measure", states=states)
    send(explorer, "cancel")
    explorer._measuring.wait(30)
    assert watch.measured == []
    assert explorer.view["status"]["text"] == "The run was cancelled."
    explorer.close()


@pytest.mark.parametrize("states", [[], ["nothing"], "abc", [None], [{}], 3, ["x"] * 3, None])
def test_what_is_no_state_is_not_measured(states):
    watch = FakeStopwatch()
    explorer, _ = compared(watch)
    view = send(explorer, "measure", states=states)
    assert view["status"]["tone"] == "error"
    assert view["bar"]["measuring"]["state"] == "idle"
    explorer.close()


def test_by_the_button(contexts):
    watch = FakeStopwatch()
    explorer, _ = compared(watch)
    context = contexts.open(viewport={"width": 1200, "height": 900})
    page = LivePage(context, explorer)
    page.click("measure both")
    assert page.key("measure both").inner_text() == "◌ Cancel"
    watch.go.set()
    page.wait(lambda: page.key("measure both").inner_text() == "▶ Measure both")
    assert "time of a call" in page.locate(".dlc-compare").inner_text()
    explorer.intent = {"id": "t", "op": "target", "args": {"target": "gpu"}}
    page.push()
    button = page.key("measure both")
    assert button.get_attribute("aria-disabled") == "true"
    assert "programs for gpu run on the simulator" in button.get_attribute("title")
    assert not page.errors
    explorer.close()
    context.close()
