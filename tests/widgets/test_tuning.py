"""The tuning dashboard without a front end: what is sent while a run goes on, and what is asked."""

import json
import threading
import time
import xml.etree.ElementTree as ET

import pytest

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import TuningDashboard, TuningView
from dlcompiler_widgets.tuning import throttle
from dlcompiler_widgets.tuning.session import ACTIONS, TABS
from dlcompiler_widgets.tuning.shipping import Shipment, unpacked

from dlcompiler.autotune.proposal import Proposal
from dlcompiler.errors import TuningError
from dlcompiler.space import Config
from tests import watched_runs
from tests.watched_runs import HOSTILE, ended, space, start

LISTS = ("progress", "picture", "trials")


def eventually(condition, limit_s=60.0):
    end = time.perf_counter() + limit_s
    while not condition():
        assert time.perf_counter() < end, "it never came"
        time.sleep(0.005)


def shown(dashboard, condition):
    """Wait until a dashboard shows something; a push sets its traits one by one, under its lock."""

    def is_shown():
        with dashboard._lock:
            return condition(dashboard)

    eventually(is_shown)


def ask(dashboard, op, **args):
    """Ask as a page does, and return what the status line says."""
    dashboard.intent = {"id": f"{op} {args} {time.perf_counter()}", "op": op, "args": args}
    assert dashboard.reply["last"] == dashboard.intent["id"]
    return dashboard.status["text"]


def items(dashboard, name):
    """What a page would make of a base and its parts."""
    return unpacked(getattr(dashboard, f"{name}_base"), getattr(dashboard, name))


def keys(dashboard, name):
    return {key for mark in items(dashboard, name) for key in mark.get("keys", ())}


@pytest.fixture
def going():
    """A run that waits for permits, and its dashboard."""
    run = start(24, permits=0)
    dashboard = TuningDashboard(run)
    yield run, dashboard
    run.stop()
    run.wait(60)
    dashboard.close()


@pytest.fixture(scope="module")
def over():
    """A dashboard of a run that has ended."""
    dashboard = TuningDashboard(ended(40))
    yield dashboard
    dashboard.close()


# -- what is sent ---------------------------------------------------------------------------------


def test_trials_arrive_while_the_run_goes_on(going):
    run, dashboard = going
    assert dashboard.head["state"] == "running"
    assert keys(dashboard, "progress") == set()
    run.pool.permits = 5
    shown(dashboard, lambda it: len(keys(it, "progress")) == 5)
    assert not dashboard.head["is_over"]
    run.pool.permits = 24
    shown(dashboard, lambda it: it.head["state"] == "finished")
    assert keys(dashboard, "progress") == {f"trial {n}" for n in range(24)}
    assert len(items(dashboard, "trials")) == 24
    assert (dashboard.head["can_pause"], dashboard.head["can_stop"]) == (False, False)


def test_pushes_are_few_small_and_in_no_thread_of_the_run():
    run = start(400, permits=0, batch=16)
    dashboard = TuningDashboard(run)
    pushes, threads = [], set()

    def note(change):
        threads.add(threading.current_thread())
        pushes.append(sum(len(json.dumps(getattr(dashboard, name))) for name in LISTS))

    dashboard.observe(note, names="reply")
    begun = time.perf_counter()
    for permits in range(0, 401, 10):
        run.pool.permits = permits
        time.sleep(0.02)
    run.wait(60)
    seconds = time.perf_counter() - begun
    shown(dashboard, lambda it: it.head["state"] == "finished")
    assert len(pushes) <= seconds / 0.15 + 3
    assert len(pushes) >= 2
    assert max(pushes) < 40_000
    assert not any(thread.name.startswith("tune") for thread in threads)
    dashboard.close()


@pytest.mark.campaign
def test_no_trait_is_over_a_megabyte_at_ten_thousand_trials():
    run = ended(10_000, batch=500, has_model=True)
    dashboard = TuningDashboard(run)
    for tab in TABS:
        ask(dashboard, "tab", name=tab)
        sizes = {n: len(json.dumps(v)) for n, v in dashboard.view.items()}
        sizes |= {n: len(json.dumps(getattr(dashboard, f"{n}_base"))) for n in LISTS}
        assert max(sizes.values()) < 400_000, (tab, sizes)
    begun = time.perf_counter()
    ask(dashboard, "tab", name="predicted")
    assert time.perf_counter() - begun < 30
    dashboard.close()


def test_a_page_that_comes_later_has_everything(going):
    run, dashboard = going
    run.pool.permits = 24
    run.wait(60)
    shown(dashboard, lambda it: it.head["state"] == "finished")
    copy = {name: json.loads(json.dumps(getattr(dashboard, name))) for name in
            (*LISTS, *(f"{name}_base" for name in LISTS))}  # fmt: skip
    for name in LISTS:
        assert copy[name]["version"] == copy[f"{name}_base"]["version"]
        assert unpacked(copy[f"{name}_base"], copy[name]) == items(dashboard, name)


def test_a_shipment_is_what_was_packed():
    shipment = Shipment()
    old = [{"n": n, "text": "x" * 100} for n in range(200)]
    packed = shipment.pack(old)
    assert packed["parts"] == [[0, 200]]
    new = [*old[:50], {"n": -1}, *old[60:], {"n": -2}]
    packed = shipment.pack(new)
    assert packed["parts"] == [[0, 50], {"n": -1}, [60, 200], {"n": -2}]
    assert unpacked(shipment.base, packed) == new
    turned = shipment.pack(new[::-1])
    assert unpacked(shipment.base, turned) == new[::-1]
    assert unpacked(shipment.base, shipment.pack([])) == []


# -- what is asked --------------------------------------------------------------------------------


def test_every_picture_opens(over):
    for tab in TABS:
        ask(over, "tab", name=tab)
        assert over.picture["tab"] == tab
        assert over.picture["scene"] or over.picture["message"]


def test_two_trials_are_compared(over):
    ask(over, "choose", key="trial 20")
    assert over.detail["title"] == "Trial 20"
    assert ask(over, "compare", side="a") == "Trial 20 is A. Choose another, and make it B."
    assert over.picture["scene"]["title"] == "Why trial 20"
    assert ask(over, "compare", side="b", key="trial 30") == (
        "Compared: A, trial 20, with B, trial 30."
    )
    assert over.picture["scene"]["title"] == "Why trial 20 before trial 30"
    assert (over.trials["a"], over.trials["b"]) == ("trial 20", "trial 30")
    ask(over, "compare")
    assert over.trials["a"] is None


def test_the_model_is_asked_once_a_round_and_only_when_somebody_looks():
    run = ended(40)
    model = run.tuner.model
    model.calls.clear()
    dashboard = TuningDashboard(run)
    assert model.calls == []
    for _ in range(3):
        ask(dashboard, "tab", name="importance")
        ask(dashboard, "choose", key="trial 9")
        ask(dashboard, "tab", name="why")
    importance, asked = model.calls
    assert importance == "importance"
    assert asked[0] == run.trials[9].point
    dashboard.close()


def test_before_the_first_trial_nothing_is_said_of_a_model():
    run = start(8, permits=0, has_model=False)
    dashboard = TuningDashboard(run)
    assert dashboard.picture["message"]["text"] == "No trial is done yet."
    run.stop()
    run.wait(60)
    dashboard.close()


def test_what_is_said_of_a_run_that_goes_on_ends_with_it(going):
    run, dashboard = going
    ask(dashboard, "pause")
    assert ask(dashboard, "resume") == "The run continues."
    run.pool.permits = 24
    shown(dashboard, lambda it: it.head["state"] == "finished")
    said = dashboard.status["text"]
    assert said.startswith("The run is finished, 24 of 24 trials; best ")
    assert ask(dashboard, "choose", key="trial 3") == "Trial 3 is chosen."


def test_a_tuner_without_a_model_says_so():
    dashboard = TuningDashboard(ended(16, has_model=False))
    for tab in ("predicted", "importance", "why"):
        ask(dashboard, "tab", name=tab)
        assert "no cost model" in dashboard.picture["message"]["text"]
    dashboard.close()


def test_a_model_that_has_learned_nothing_says_so(going):
    _, dashboard = going
    ask(dashboard, "tab", name="importance")
    assert "has learned nothing yet" in dashboard.picture["message"]["text"]


def test_the_code_is_made_when_it_is_asked_for(over):
    ask(over, "choose", key="trial 20")
    assert over.detail["code"] is None
    ask(over, "code")
    assert any("for" in line["text"] for line in over.detail["code"]["lines"])
    ask(over, "choose", key="trial 21")
    assert over.detail["code"] is None


def test_a_failed_trial_says_why(over):
    ask(over, "choose", key="trial 6")
    assert over.detail["message"] == HOSTILE
    assert ("outcome", "wrong answer") in over.detail["facts"]


def test_rows_are_sorted_filtered_and_turned(over):
    ask(over, "sort", by="gflops")
    assert items(over, "trials")[0]["key"] == f"trial {over.run.best.index}"
    ask(over, "sort", by="gflops")
    assert items(over, "trials")[0]["key"] != f"trial {over.run.best.index}"
    ask(over, "filter", outcome="crashed")
    assert {row["outcome"] for row in items(over, "trials")} == {"crashed"}
    ask(over, "filter", outcome="")
    ask(over, "sort", by="index")


def test_the_map_has_two_knobs_or_none(over):
    ask(over, "tab", name="map")
    ask(over, "map", across="tile_m")
    assert over.picture["across"] == "tile_m"
    assert over.picture["up"] not in ("", "tile_m")
    assert over.picture["scene"]["title"].startswith("The space by tile_m and")
    ask(over, "map", up="")
    assert (over.picture["across"], over.picture["up"]) == ("", "")


def test_the_axes_change(over):
    ask(over, "axis", shown="time")
    assert "shortest time" in over.progress["scene"]["how_to_read"]
    ask(over, "axis", shown="rate", against="seconds")
    assert over.progress["against"] == "seconds"
    ask(over, "axis", against="trials")


def test_a_page_says_how_wide_it_is(over):
    ask(over, "size", progress=500, picture=10**9)
    assert over.progress["scene"]["width"] == 500
    assert over.picture["scene"]["width"] == 1200
    ask(over, "size", progress="wide", picture=None)
    assert over.progress["scene"]["width"] == 500


@pytest.mark.parametrize(
    ("op", "args", "said"),
    [
        ("choose", {"key": "trial 999"}, "choose a trial: there is no such trial"),
        ("choose", {"key": HOSTILE}, "choose a trial: there is no such trial"),
        ("tab", {"name": "x"}, "use the dashboard: this is not a picture"),
        ("map", {"across": "__class__"}, "use the dashboard: this is not a knob"),
        ("sort", {"by": "config"}, "use the dashboard: this is not a column"),
        ("filter", {"outcome": "late"}, "use the dashboard: this is not an outcome"),
        ("axis", {"against": 3}, "use the dashboard: this is not an axis"),
        ("sort", {"by": ["seconds"]}, "use the dashboard: this is not a column"),
        ("filter", {"outcome": {"ok": 1}}, "use the dashboard: this is not an outcome"),
        ("page", {"page": -1}, "turn a page: there is no such page"),
        ("__init__", {}, "use the dashboard: there is no such action"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(over, op, args, said):
    assert ask(over, op, **args) == said
    assert over.status["tone"] == "error"


def test_requests_that_are_no_requests_are_answered(over):
    for args in (None, [], "x", {"key": None}):
        over.intent = {"id": f"odd {args}", "op": "choose", "args": args}
        assert over.reply["last"] == f"odd {args}"
    assert set(ACTIONS) >= {"stop", "pause", "resume"}


# -- the buttons ----------------------------------------------------------------------------------


def test_the_run_is_paused_goes_on_and_stops(going):
    run, dashboard = going
    run.pool.permits = 3
    eventually(lambda: len(run.trials) == 3)
    ask(dashboard, "pause")
    shown(dashboard, lambda it: it.head["state"] == "paused")
    assert dashboard.head["can_resume"]
    run.pool.permits = 24
    time.sleep(0.1)
    assert len(run.trials) <= 4
    ask(dashboard, "resume")
    eventually(lambda: len(run.trials) > 6)
    ask(dashboard, "stop")
    run.wait(60)
    shown(dashboard, lambda it: it.head["state"] in ("stopped", "finished"))


def test_the_other_way_answers_each_request(going):
    run, dashboard = going
    control = dashboard._control
    control.hello = 1
    assert control.answer == "hello 1"
    control.intent = {"id": "7", "op": "stop", "args": {}}
    assert control.answer == "7"
    assert dashboard.reply["last"] == "7"
    run.wait(60)
    assert run.state == "stopped"


def test_a_request_that_comes_both_ways_is_followed_once(going):
    run, dashboard = going
    ask(dashboard, "pause")
    control = dashboard._control
    control.intent = {"id": "7", "op": "resume", "args": {}}
    ask(dashboard, "pause")
    dashboard.intent = {"id": "7", "op": "resume", "args": {}}  # held back until now
    assert dashboard.reply["last"] == "7"
    shown(dashboard, lambda it: it.head["can_resume"])
    run.stop()


def test_a_comm_remembers_no_shell(going):
    """What ipykernel remembers would send a page's messages to the shell of a page that is gone."""
    _, dashboard = going
    for widget in (dashboard, dashboard._control):
        widget.comm._reply_subshell_id = "gone"
        widget.send_state()
        assert not hasattr(widget.comm, "_reply_subshell_id")


def test_closing_leaves_the_run_alone(going):
    run, dashboard = going
    dashboard.close()
    assert run.listeners == []
    run.pool.permits = 24
    run.wait(60)
    assert len(run.trials) == 24


# -- the user's own, and the Explorer -------------------------------------------------------------


def test_the_users_own_config_is_on_the_map():
    own = space().at(next(space().allowed()))
    dashboard = TuningDashboard(ended(16), own=own)
    for tab in ("knobs", "map"):
        ask(dashboard, "tab", name=tab)
        assert "your own" in json.dumps(items(dashboard, "picture"))
    dashboard.close()


def test_a_config_that_the_user_had_tried_is_their_own():
    point = next(space().allowed())
    run = ended(16, first=(Proposal(point, "user"),))
    dashboard = TuningDashboard(run)
    assert dashboard._knowledge.ground.own == point
    dashboard.close()


def test_a_config_of_another_space_is_refused():
    with pytest.raises(TuningError, match="not a value for each knob"):
        TuningDashboard(ended(8), own=Config({"x": 1}, "another"))


def test_a_trial_opens_below_and_the_next_one_is_a_branch_of_it():
    view = TuningView(ended(40))
    ask(view.dashboard, "choose", key="trial 1")
    assert "open in the Explorer below" in ask(view.dashboard, "open")
    explorer = view.explorer
    assert view.children == (view.dashboard, explorer)
    assert explorer.schedule.node.name == "trial 1"
    found = {n for n in range(2, 8) if view.explore(n) is explorer}
    names = {node.name for node in explorer.schedule.history.history.walk()}
    assert found
    assert {f"trial {n}" for n in found} <= names
    view.close()


def test_without_a_place_nothing_opens(over):
    assert ask(over, "open") == "There is no place to open it."
    assert over.detail["can_open"] is False


# -- without a front end --------------------------------------------------------------------------


@pytest.mark.parametrize("shown", [TuningView, TuningDashboard])
def test_without_a_front_end_there_is_a_picture_and_a_text(shown):
    view = shown(watched_runs.ended(24))
    bundle = view._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert data["text/plain"].startswith(f"{shown.__name__}(TuningRun(matmul(m=64")
    ET.fromstring(data["text/html"])
    assert "<script" not in data["text/html"]
    assert HOSTILE not in data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in data
    view.close()


# -- the throttle ---------------------------------------------------------------------------------


def test_a_throttle_calls_soon_and_once_more_at_the_end():
    calls = []
    made = throttle.Throttle(lambda: calls.append(threading.current_thread()), 0.05)
    for _ in range(20):
        made.poke()
    eventually(lambda: len(calls) == 1)
    made.poke()
    made.poke()
    eventually(lambda: len(calls) == 2)
    time.sleep(0.1)
    assert len(calls) == 2
    assert threading.current_thread() not in calls


def test_a_throttle_forgets_what_it_was_asked_for():
    calls = []
    made = throttle.Throttle(lambda: calls.append(None), 0.2)
    made.poke()
    eventually(lambda: calls)
    made.poke()
    made.cancel()
    time.sleep(0.3)
    assert len(calls) == 1


def test_a_throttle_never_does_two_at_once():
    running, most = [], []

    def slow():
        running.append(None)
        most.append(len(running))
        time.sleep(0.03)
        running.pop()

    made = throttle.Throttle(slow, 0.001)
    for _ in range(40):
        made.poke()
        time.sleep(0.003)
    eventually(lambda: not running)
    assert max(most) == 1
