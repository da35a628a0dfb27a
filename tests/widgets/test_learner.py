"""Predict first: the question, the answer, the reveal, and that nothing of it is kept elsewhere."""

import json

import pytest

from tests.widgets.test_live_page import matmul
from tests.widgets.test_measured import Watch, explore, measured, run, send

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer


def step(explorer):
    """A legal step: the outermost loop becomes parallel."""
    items = [item for group in explorer.moves["loop"] for item in group["items"]]
    return next(item for item in items if item["primitive"] == "parallel")["step"]


@pytest.fixture
def explorer():
    made = explore(steps=False, predict=True)
    made.sent = []
    made.send = made.sent.append
    yield made
    made.close()


def asked(explorer):
    return explorer.view["predict"]["question"]


def revealed(explorer):
    return explorer.view["predict"]["reveal"]


def test_a_step_waits_for_a_prediction(explorer):
    view = send(explorer, "apply", step=step(explorer))
    assert explorer.schedule.node.parent is None
    question = asked(explorer)
    assert question["title"] in view["status"]["text"]
    assert question["speeds"] == ["faster", "about the same", "slower"]
    assert [level["name"] for level in question["levels"]][-1] == "none"
    assert len(explorer.schedule.history.history.nodes) == 1  # the history does not learn of it yet


def test_the_preview_of_a_step_does_not_give_the_answer_away(explorer):
    wanted = step(explorer)
    send(explorer, "preview", step=wanted)
    assert explorer.preview["rows"]
    assert explorer.preview["metrics"] == []
    send(explorer, "predicting", on=False)
    send(explorer, "preview", step=wanted)
    assert explorer.preview["metrics"] != []


def test_an_answer_applies_it_and_reveals(explorer):
    send(explorer, "apply", step=step(explorer))
    send(explorer, "answer", speed="faster", factor="3× to 10×", level="none")
    assert explorer.schedule.node.parent is not None
    assert asked(explorer) is None
    lines = revealed(explorer)["lines"]
    assert [line["said"] for line in lines] == ["faster", "3× to 10×", "none"]
    assert [line["verdict"] for line in lines][:2] == ["open", "open"]
    assert revealed(explorer)["why"]
    assert revealed(explorer)["hint"] == "Neither state is measured yet."


def test_when_both_states_are_measured_the_time_is_revealed(explorer):
    explorer.schedule.node.notes["measured"] = measured(0.008)
    send(explorer, "apply", step=step(explorer))
    send(explorer, "answer", speed="faster", factor="3× to 10×")
    run(explorer)
    first, second, *_ = revealed(explorer)["lines"]
    assert (first["was"], first["verdict"]) == ("4.0× faster: 8 ms → 2 ms", "right")
    assert second["verdict"] == "right"
    assert revealed(explorer)["hint"] == ""


def test_times_of_code_for_two_targets_decide_nothing(explorer):
    explorer.schedule.node.notes["measured"] = measured(0.008, target="x86-64-sse2")
    send(explorer, "apply", step=step(explorer))
    send(explorer, "answer", speed="faster", factor="3× to 10×")
    run(explorer)
    assert [line["verdict"] for line in revealed(explorer)["lines"]][:2] == ["open", "open"]
    assert "create, is not measured yet" in revealed(explorer)["hint"]
    assert len(revealed(explorer)["states"]) == 2


def test_the_reveal_belongs_to_its_state(explorer):
    send(explorer, "apply", step=step(explorer))
    send(explorer, "answer", speed="slower")
    send(explorer, "undo")
    assert revealed(explorer) is None
    send(explorer, "redo")
    assert revealed(explorer)["lines"][0]["said"] == "slower"
    send(explorer, "withdraw")
    assert revealed(explorer) is None


def test_it_can_be_skipped_or_cancelled(explorer):
    wanted = step(explorer)
    send(explorer, "apply", step=wanted)
    view = send(explorer, "withdraw")
    assert view["status"]["text"] == "The step was not applied."
    assert explorer.schedule.node.parent is None
    send(explorer, "apply", step=wanted)
    send(explorer, "skip")
    assert explorer.schedule.node.parent is not None
    assert revealed(explorer) is None


def test_an_empty_answer_is_no_prediction(explorer):
    send(explorer, "apply", step=step(explorer))
    view = send(explorer, "answer")
    assert view["status"]["text"] == "Choose an answer first, or press Skip."
    assert asked(explorer) is not None
    assert explorer.schedule.node.parent is None


def test_the_states_before_and_after_are_measured_together(explorer):
    before = explorer.schedule.node
    send(explorer, "apply", step=step(explorer))
    send(explorer, "answer", speed="about the same")
    states = revealed(explorer)["states"]
    assert states == [before.id, explorer.schedule.node.id]
    send(explorer, "measure", states=states)
    explorer._measuring.wait(30)
    assert revealed(explorer)["states"] == []
    assert revealed(explorer)["lines"][0]["verdict"] == "right"  # the stopwatch says 2 ms of each


def test_a_refused_step_says_why_at_once(explorer):
    bad = {"primitive": "split", "stage": "C", "args": {"parent": "nothing", "factor": 4}}
    view = send(explorer, "apply", step=bad)
    assert view["status"]["tone"] == "error"
    assert asked(explorer) is None


@pytest.mark.parametrize(
    ("op", "args"),
    [("move", {"key": "C/k", "by": -1}), ("move", {"key": "C/k", "onto": "C/i"}), ("take", None)],
)
def test_rearranging_and_taking_steps_ask_too(explorer, op, args):
    args = args or {"steps": [step(explorer)]}
    send(explorer, op, **args)
    assert asked(explorer) is not None
    send(explorer, "skip")
    assert explorer.schedule.node.parent is not None


def test_going_elsewhere_withdraws_the_question(explorer):
    send(explorer, "apply", step=step(explorer))
    send(explorer, "skip")
    send(explorer, "move", key="C/k", by=-1)
    assert asked(explorer) is not None
    send(explorer, "undo")
    assert asked(explorer) is None
    view = send(explorer, "answer", speed="faster")
    assert "no step waits" in view["status"]["text"]


@pytest.mark.parametrize(
    "said", [{"speed": "best"}, {"factor": 3}, {"level": ["L2"]}, {"speed": {"a": 1}}]
)
def test_a_malformed_answer_is_refused_and_the_question_stays(explorer, said):
    send(explorer, "apply", step=step(explorer))
    view = send(explorer, "answer", **said)
    assert view["status"]["tone"] == "error"
    assert asked(explorer) is not None
    assert explorer.schedule.node.parent is None


def test_it_is_switched_on_and_off():
    explorer = explore(steps=False)
    assert explorer.bar["predicting"] is False
    assert send(explorer, "predicting", on=True)["bar"]["predicting"] is True
    send(explorer, "apply", step=step(explorer))
    send(explorer, "predicting", on=False)
    assert asked(explorer) is None
    send(explorer, "apply", step=step(explorer))
    assert explorer.schedule.node.parent is not None
    explorer.close()


def test_a_target_that_is_not_measured_asks_about_traffic_only():
    explorer = Explorer(*matmul(), target="aarch64", stopwatch=Watch(), predict=True)
    send(explorer, "apply", step=step(explorer))
    assert (asked(explorer)["speeds"], asked(explorer)["factors"]) == ([], [])
    send(explorer, "answer", level="none")
    assert [line["question"] for line in revealed(explorer)["lines"]] == ["Traffic changes"]
    explorer.close()


def test_where_nothing_can_be_revealed_it_stays_off():
    explorer = Explorer(*matmul(), target="v100", stopwatch=Watch())
    assert "v100" in explorer.bar["not_predicting"]
    view = send(explorer, "predicting", on=True)
    assert "nothing can be revealed" in view["status"]["text"]
    assert explorer.bar["predicting"] is False
    explorer.close()


SAID = "more than 10×"
"""No other text of the page holds this answer once the question is closed."""


def test_the_answers_are_kept_nowhere_else(explorer):
    send(explorer, "apply", step=step(explorer))
    send(explorer, "answer", speed="about the same", factor=SAID, level="none")
    assert SAID in json.dumps(explorer.view["predict"], ensure_ascii=False)
    state = {k: v for k, v in explorer.get_state().items() if isinstance(v, dict | str | list)}
    everything = [
        json.dumps(state),
        explorer.to_json(),
        explorer.to_python(),
        explorer.to_notebook(),
        explorer.to_link(),
        str(explorer._repr_mimebundle_()),
    ]
    for kind in ("json", "notebook", "html"):
        everything.append(json.dumps(send(explorer, "export", kind=kind)["export"]))
    notes = [str(node.notes) for node in explorer.schedule.node.path()]
    words = [json.dumps(SAID)[1:-1], SAID, "about the same"]
    for text in [*everything, *notes]:
        script_free = text.replace(json.dumps(explorer._esm)[1:-1], "")
        assert not [word for word in words if word in script_free]


def test_the_page_gets_them_as_messages(explorer):
    send(explorer, "apply", step=step(explorer))
    assert explorer.sent[-1]["pane"] == "predict"
    explorer._on_message(explorer, {"ask": "private"}, [])
    assert explorer.sent[-1]["value"]["question"] == asked(explorer)
