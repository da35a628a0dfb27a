"""The fusion view without a browser: requests and their answers, wishes, passes, measurements."""

import itertools
import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from dlcompiler import graph
from dlcompiler.bench.graphs import lstm_cell
from dlcompiler.errors import GraphError
from dlcompiler.graph import builders, op
from tests.fusion_networks import residual

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import GraphView
from dlcompiler_widgets.graphs import measuring

NUMBERS = itertools.count()
HOSTILE = '"><img src=x onerror=alert(1)>\n' + "y" * 10_000


@pytest.fixture
def made():
    """Make views that are closed at the end."""
    views = []

    def make(module, *args, **options):
        views.append(GraphView(module, *args, **options))
        return views[-1]

    yield make
    for view in views:
        view.close()


@pytest.fixture
def view(made):
    return made(builders.lenet().bound)


def ask(view, op, **args):
    """Send a request as the page does, and return what the status line says."""
    view.panel.intent = {"id": f"t-{next(NUMBERS)}", "op": op, "args": args}
    assert view.panel.reply["last"] == view.panel.intent["id"]
    return view.panel.status["text"]


def number_of(view, a, b):
    rows = view.panel.verdicts["table"]["rows"]
    return next(n for n, row in enumerate(rows) if row[:2] == [a, b])


def facts(view):
    return {name: (now, before) for name, now, before in view.panel.head["facts"]}


def test_it_says_what_it_shows(view):
    assert repr(view) == "GraphView(18 calls in 9 kernels; fused edges between calls: 9 of 17.)"
    assert facts(view)["kernels"] == ("9", "")
    assert facts(view)["time of a call"] == ("not measured: press Measure", "")
    json.dumps(view.panel.view)


def test_a_wish_shows_old_and_new(view):
    number = number_of(view, "conv1", "conv1_add")
    assert ask(view, "wish", verdict=number, kind="keep apart") == (
        "conv1 and conv1_add stay apart, as you asked."
    )
    assert facts(view)["kernels"] == ("10", "9")
    now, before = facts(view)["arena"]
    assert now != before != ""
    row = view.panel.verdicts["table"]["rows"][number_of(view, "conv1", "conv1_add")]
    assert row[2:4] == ["not fused (asked: keep apart)", "kept apart"]
    plan = graph.plan_memory(view.module)
    assert len(plan.kernels) == 9  # one only reshapes
    ask(view, "wish", verdict=number, kind="")
    assert facts(view)["kernels"] == ("9", "10")
    assert view.panel.head["wishes"] == []


def test_a_wish_that_cannot_be_honoured_changes_nothing(view):
    number = number_of(view, "pool1", "conv2")
    before = view.panel.picture
    text = ask(view, "wish", verdict=number, kind="fuse")
    assert "cannot be one kernel" in text
    assert dict(view.panel.status["details"])["because"]
    assert view.panel.picture == before
    assert view.panel.head["wishes"] == []


@pytest.mark.campaign
def test_wishes_are_taken_back_at_once(view):
    for a, b in (("conv1", "conv1_add"), ("conv2", "conv2_add")):
        ask(view, "wish", verdict=number_of(view, a, b), kind="keep apart")
    assert len(view.panel.head["wishes"]) == 2
    ask(view, "reset")
    assert facts(view)["kernels"] == ("9", "11")


def test_wishes_of_the_module_hold(made):
    view = made(graph.keep_apart(builders.lenet().bound, "conv1", "conv1_add"))
    assert facts(view)["kernels"][0] == "10"
    ask(view, "wish", verdict=number_of(view, "conv1", "conv1_add"), kind="")
    assert facts(view)["kernels"][0] == "9"


def test_the_passes_are_scrubbed(view):
    steps = view.panel.passes["steps"]
    assert steps[-1]["name"] == "fuse_ops"
    assert ask(view, "pass", number=0) == "The graph as it was given."
    assert view.panel.picture["summary"].endswith("calls, each by itself.")
    assert "earlier pass" in ask(view, "wish", verdict=0, kind="fuse")
    assert "made by the last pass" in ask(view, "schedule", kernel=0)
    ask(view, "pass", number=len(steps))
    assert view.panel.picture["after"] is None
    assert ("conv1 → conv1_add: fused" in dict(view.panel.passes["facts"])) is True


@pytest.mark.parametrize(
    ("op", "args", "text"),
    [
        ("level", {"level": "<b>"}, "this is not a level"),
        ("turn", {"key": "node 1"}, "it holds nothing"),
        ("turn", {"key": f"kernel {'9' * 5000}"}, "it holds nothing"),
        ("pass", {"number": 99}, "there is no such pass"),
        ("pass", {"number": True}, "there is no such pass"),
        ("wish", {"verdict": -1, "kind": "fuse"}, "there is no such edge"),
        ("wish", {"verdict": 0, "kind": "x"}, "this is not a decision"),
        ("wish", {"verdict": 0, "kind": ""}, "it was asked about other calls"),
        ("schedule", {"kernel": None}, "there is no such kernel"),
        ("schedule", {"kernel": 999}, "there is no such kernel"),
        ("x" * 500, {}, "there is no such action"),
    ],
)
def test_requests_that_make_no_sense_are_refused(view, op, args, text):
    assert text in ask(view, op, **args)
    assert view.panel.status["tone"] == "error"


def test_a_request_that_comes_twice_is_done_once(view):
    view.panel._on_request({"id": "a", "op": "turn", "args": {"key": "kernel 0"}})
    once = view.panel.picture
    view.panel._on_request({"id": "a", "op": "turn", "args": {"key": "kernel 0"}})
    assert view.panel.picture is once
    assert all(node["key"] != "frame" for node in once["nodes"])


def test_levels_and_boxes(view):
    ask(view, "level", level="kernels")
    closed = [node["key"] for node in view.panel.picture["nodes"] if node["is_closed"]]
    assert len(closed) == 5
    ask(view, "turn", key=closed[0])
    assert [frame["key"] for frame in view.panel.picture["frames"]] == [closed[0]]


@pytest.mark.campaign
def test_times_are_measured_on_request_and_say_where(made):
    view = made(lstm_cell(width=16).bound)
    assert view.panel.times["scene"] is None
    ask(view, "measure")
    view.wait()
    scene = view.panel.times["scene"]
    assert len(scene["table"]["rows"]) == 5
    assert "measured on" in scene["summary"]
    now, _ = facts(view)["time of a call"]
    assert "±" in now
    assert "measured on" in now
    rows = view.panel.verdicts["table"]["rows"]
    number = next(n for n, row in enumerate(rows) if row[2] == "fused")
    ask(view, "wish", verdict=number, kind="keep apart")
    assert facts(view)["time of a call"][0] == "not measured: press Measure"
    assert facts(view)["time of a call"][1] != ""
    assert view.panel.times["scene"] is None
    ask(view, "measure")
    view.wait()
    said = dict(view.panel.verdicts["each"][number]["facts"])
    assert "fused" in said["time"]
    assert "apart" in said["time"]
    assert "measured on" in said["time"]


@pytest.mark.campaign
@pytest.mark.parametrize("where", ["load", "profile", "time"])
def test_a_measurement_is_stopped(made, monkeypatch, where):
    view = made(lstm_cell(width=16).bound)
    call = measuring.Worker.call

    def stopped(worker, entry, *args, **options):
        if entry == where:
            view.panel._handle("cancel", {})
        return call(worker, entry, *args, **options)

    monkeypatch.setattr(measuring.Worker, "call", stopped)
    ask(view, "measure")
    view.wait()
    assert view.panel.status["text"] == "The measurement was stopped."
    assert view.panel.times["scene"] is None
    assert view.panel.head["doing"] == ""
    monkeypatch.undo()
    ask(view, "measure")
    view.wait()
    assert "measured on" in facts(view)["time of a call"][0]


@pytest.mark.campaign
def test_times_of_a_simulated_gpu_are_predicted(made):
    view = made(graph.Module.from_expr(op.exp(graph.var("x", (8, 8)))), "v100")
    ask(view, "measure")
    view.wait()
    assert "predicted by the time model of v100" in view.panel.times["scene"]["summary"]
    assert "(the sum of the kernels), predicted" in facts(view)["time of a call"][0]
    assert "measured" not in view.panel.status["text"]
    assert "arena, as for a CPU" in facts(view)


@pytest.mark.campaign
def test_what_cannot_be_built_is_a_reason(made):
    x = graph.var("x", (2,))
    test = op.greater(op.sum(x), 0.0)
    view = made(graph.Module.from_expr(graph.If(test, op.exp(x), op.sqrt(x))))
    assert "branch" in view.panel.arena["message"]
    ask(view, "measure")
    view.wait()
    assert view.panel.status["tone"] == "error"
    assert "kernels only" in view.panel.status["text"]


@pytest.mark.campaign
def test_given_arrays_are_measured_with(made):
    view = made(lstm_cell(width=16).bound, inputs=[np.zeros((1, 3), np.float32)] * 3)
    ask(view, "measure")
    view.wait()
    assert view.panel.status["tone"] == "error"
    assert "shape" in json.dumps(view.panel.status)


def test_a_schedule_opens_and_closes(view):
    ask(view, "schedule", kernel=0)
    assert view.children[0] is view.panel
    assert view.children[2] is view.explorer
    assert view.panel.opened == "kernel 0"
    assert "conv" in repr(view.explorer)
    first = view.explorer
    ask(view, "schedule", kernel=1)
    assert first.comm is None
    view._back.click()
    assert view.children == (view.panel,)
    assert view.panel.opened == ""
    assert view.explorer is None


@pytest.mark.campaign
def test_kernels_of_every_kind_open(made):
    view = made(lstm_cell(width=16).bound)
    for number in range(len(view.panel._session.graph.kernels)):
        ask(view, "schedule", kernel=number)
        assert view.panel.status["tone"] == "info", view.panel.status


@pytest.mark.campaign
def test_every_kernel_of_a_model_opens(view):
    for number in (0, 4, 5, 8):
        ask(view, "schedule", kernel=number)
        assert view.panel.status["tone"] == "info", view.panel.status


def test_a_module_that_is_fused_shows_its_decisions_and_takes_none(made):
    view = made(graph.optimize(builders.lenet().bound))
    assert repr(view) == "GraphView(18 calls in 9 kernels; fused edges between calls: 9 of 17.)"
    assert "was fused before" in view.panel.head["why_not_decided"]
    assert "was fused before" in ask(view, "wish", verdict=0, kind="keep apart")
    assert view.panel.passes["steps"] == []


def test_a_module_that_a_pass_refuses_is_shown_as_it_is(made):
    x, w = graph.var("x", (4, 4)), graph.var("w", (3, 5))
    view = made(graph.Module.from_expr(op.nn.dense(x, w, units=3)))
    assert "data has 4 elements" in view.panel.passes["failure"]
    assert "The passes stopped" in view.panel.status["text"]
    assert len(view.panel.picture["nodes"]) == 2


@pytest.mark.parametrize("value", [3, None, graph.Module({})])
def test_what_is_no_module_is_refused(value):
    with pytest.raises(GraphError, match="show a graph: "):
        GraphView(value)


@pytest.mark.campaign
def test_another_function(made):
    x, y = graph.var("x", (2,)), graph.var("y", (2,))
    functions = {"other": graph.Function((y,), op.exp(op.sqrt(y)))}
    module = graph.Module.from_expr(op.tanh(x), functions)
    assert repr(made(module)) == "GraphView(1 call, each by itself.)"
    assert "2 calls in 1 kernel" in repr(made(module, function="other"))
    with pytest.raises(GraphError, match="no function has this name"):
        GraphView(module, function="third")


def test_small_and_odd_modules(made):
    x = graph.var("x", (2,))
    identity = graph.Module.from_expr(graph.Function((x,), x))
    bound = graph.Let(graph.var("t", (2,)), op.exp(x), op.sqrt(x))
    for module in (
        identity,
        graph.Module.from_expr(op.exp(x)),
        graph.Module.from_expr(graph.Function((x,), bound)),
        graph.Module.from_expr(graph.Tuple((op.exp(x), x))),
    ):
        view = made(module)
        for level in ("blocks", "kernels", "calls"):
            ask(view, "level", level=level)
            assert view.panel.status["tone"] == "info"
        ET.fromstring(view.static_html())


@pytest.mark.campaign
def test_hostile_names(made):
    x = graph.var(HOSTILE, (2,))
    view = made(
        graph.Module.from_expr(op.sqrt(op.sum(op.exp(x, name=HOSTILE)), name=f"b{HOSTILE}"))
    )
    assert len(json.dumps(view.panel.view)) < 40_000
    html = view.static_html()
    ET.fromstring(html)
    assert "<img src=x" not in html
    ask(view, "wish", verdict=0, kind="keep apart")
    assert len(view.panel.status["text"]) < 300


@pytest.mark.campaign
def test_the_static_page_fits_into_a_notebook(made):
    view = made(residual())
    html = view.static_html()
    ET.fromstring(html)
    assert len(html) < 60_000
    assert "118 calls in 53 kernels" in html
    assert "two anchors" in html
    assert 'id="' not in html
    assert "<script" not in html
