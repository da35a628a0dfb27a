"""Looking at moves, taking several, rearranging rows, levels and presets; without a page."""

import json
import time

import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.primitives import REGISTRY
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.explorer.levels import FIRST, LEVELS, RARE
from dlcompiler_widgets.explorer.pictures import PICTURES

SPLIT = {"primitive": "split", "stage": "C", "args": {"axis": "j", "factor": 48}}
VECTORIZE = {"primitive": "vectorize", "stage": "C", "args": {"axis": "k"}}


@pytest.fixture
def explorer():
    schedule, args = matmul()
    widget = Explorer(schedule, args, name="matmul")
    yield widget
    widget.close()


def send(explorer, op, **args):
    explorer.intent = {"id": f"{op} {json.dumps(args, sort_keys=True)}", "op": op, "args": args}
    return explorer.view


def order(explorer):
    return [row["name"] for row in explorer.tree["rows"] if row["type"] == "loop"]


def primitives_of(explorer):
    groups = [*explorer.moves["loop"], *explorer.moves["stage"]]
    return {item["primitive"] for group in groups for item in group["items"]}


# -- applying --------------------------------------------------------------------------------------


def test_a_step_that_changes_nothing_is_refused(explorer):
    step = {**SPLIT, "args": {"axis": "j", "nparts": 1}}
    send(explorer, "apply", step=step)
    assert explorer.view["status"]["text"] == "apply split C j nparts=1: it would change nothing"
    assert len(explorer.schedule.history.history.nodes) == 1


def test_a_size_that_a_page_would_round_is_read_as_it_was_typed(explorer):
    send(explorer, "preview", step={**SPLIT, "args": {"axis": "j", "factor": "9007199254740993"}})
    assert explorer.preview["step"]["args"]["factor"] == 9007199254740993


# -- looking ---------------------------------------------------------------------------------------


def test_a_preview_changes_nothing_else(explorer):
    send(explorer, "choose", key="C/j")
    before = {name: value for name, value in explorer.view.items() if name != "reply"}
    send(explorer, "preview", step=SPLIT)
    assert explorer.preview["tail"].startswith("48 does not divide 64")
    caches = [level.name for level in explorer._session.target.caches]
    levels = [f"{a} ↔ {b}" for a, b in zip(caches, [*caches[1:], "memory"], strict=True)]
    assert [metric["name"] for metric in explorer.preview["metrics"]] == [
        "operations", "at once", *levels, "time of a call",
    ]  # fmt: skip
    after = {name: value for name, value in explorer.view.items() if name != "reply"}
    assert after == before
    assert len(explorer.schedule.history.history.nodes) == 1


def test_a_preview_ends_with_its_state(explorer):
    send(explorer, "preview", step=SPLIT)
    send(explorer, "apply", step=SPLIT)
    assert explorer.preview == {}


@pytest.mark.parametrize("args", [{}, {"step": 3}, {"key": "C/i"}, {"key": "C/i", "onto": "C"}])
def test_a_preview_of_nothing_says_so(explorer, args):
    status = explorer.status
    send(explorer, "preview", **args)
    assert explorer.preview["status"] == "illegal"
    assert explorer.preview["reason"]
    assert explorer.status == status


def test_a_preview_is_quick(explorer):
    """100 ms on six steps of a GEMM; a machine that is shared gets some more."""
    for step in (
        {"primitive": "cache_write", "stage": "C", "args": {"scope": "local"}},
        {"primitive": "tile", "stage": "C",
         "args": {"x": "i", "y": "j", "x_factor": 16, "y_factor": 16}},
        {"primitive": "compute_at", "stage": "C.local",
         "args": {"parent": "C", "axis": "j.outer"}},
        {"primitive": "split", "stage": "C.local", "args": {"axis": "k", "factor": 4}},
        {"primitive": "vectorize", "stage": "C.local", "args": {"axis": "j.c"}},
        {"primitive": "parallel", "stage": "C", "args": {"axis": "i.outer"}},
    ):  # fmt: skip
        send(explorer, "apply", step=step)
    times = []
    for factor in (2, 3, 4, 5, 6):
        args = {"axis": "k.outer", "factor": factor}
        start = time.perf_counter()
        send(explorer, "preview", step={"primitive": "split", "stage": "C.local", "args": args})
        times.append(time.perf_counter() - start)
        assert explorer.preview["status"] == "legal"
    assert min(times) < 0.1


# -- taking and moving -----------------------------------------------------------------------------


def test_the_nearest_change_is_taken(explorer):
    send(explorer, "preview", step=VECTORIZE)
    nearest = explorer.preview["nearest"]
    send(explorer, "take", steps=nearest["steps"], start=nearest["start"])
    assert explorer.schedule.node.title() == "vectorize C j"


def test_steps_that_begin_earlier(explorer):
    send(explorer, "apply", step={"primitive": "vectorize", "stage": "C", "args": {"axis": "j"}})
    send(explorer, "preview", step=SPLIT | {"args": {"axis": "j", "nparts": 4}})
    nearest = explorer.preview["nearest"]
    send(explorer, "take", steps=nearest["steps"], start=nearest["start"])
    assert "done" in explorer.status["text"]


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"steps": []},
        {"steps": "split"},
        {"steps": [SPLIT, VECTORIZE]},
        {"steps": [SPLIT], "start": "nothing"},
    ],
)
def test_steps_that_cannot_be_taken_leave_the_schedule_alone(explorer, args):
    node = explorer.schedule.node
    send(explorer, "take", **args)
    assert explorer.status["tone"] == "error"
    assert explorer.schedule.node is node


def test_a_loop_is_moved(explorer):
    send(explorer, "choose", key="C/k")
    send(explorer, "move", key="C/k", by=-1)
    assert order(explorer) == ["i", "k", "j"]
    assert explorer.chosen == "C/k"
    send(explorer, "move", key="C/k", onto="C/i")
    assert order(explorer) == ["k", "i", "j"]
    send(explorer, "move", key="C/k", by=-1)
    assert "outermost loop of C already" in explorer.status["text"]


@pytest.mark.parametrize("args", [{}, {"key": "C/i", "by": 7}, {"key": 3, "by": 1}])
def test_a_move_of_nothing_is_refused(explorer, args):
    send(explorer, "move", **args)
    assert explorer.status["tone"] == "error"
    assert order(explorer) == ["i", "j", "k"]


def test_reset_leads_to_the_first_state_and_keeps_the_others(explorer):
    send(explorer, "apply", step=SPLIT)
    send(explorer, "reset")
    assert order(explorer) == ["i", "j", "k"]
    send(explorer, "redo")
    assert order(explorer) == ["i", "j.outer", "j.inner", "k"]


# -- levels ----------------------------------------------------------------------------------------


def test_the_first_level():
    schedule, args = matmul()
    explorer = Explorer(schedule, args, level="learn")
    assert explorer.layout_of_panes["visible"] == [
        "bar",
        "tree",
        "picture",
        "text",
        "ladder",
        "moves",
        "compare",
        "editor",
        "predict",
        "export",
    ]
    assert [tab["name"] for tab in explorer.text["tabs"]] == ["notation", "loops", "python"]
    assert [tab["name"] for tab in explorer.picture["tabs"]] == ["space", "off"]
    assert primitives_of(explorer) <= FIRST
    for key in ("C/i", "C"):
        send(explorer, "choose", key=key)
        assert primitives_of(explorer) <= FIRST
    assert {"split", "reorder", "parallel", "vectorize"} == FIRST
    explorer.close()


def test_levels_grow(explorer):
    send(explorer, "choose", key="C/j")
    sizes, seen = [], []
    for level in LEVELS:
        send(explorer, "level", level=level)
        seen.append(primitives_of(explorer))
        sizes.append(len(explorer.layout_of_panes["visible"]))
    assert seen[0] < seen[1] < seen[2]
    assert sizes == sorted(sizes)
    assert not seen[1] & RARE
    assert "storage_align" in seen[2]
    assert explorer.layout_of_panes["visible"] == [
        name for name in Explorer.shown_panes if name != "ladder"
    ]  # a picture there
    assert [tab["name"] for tab in explorer.picture["tabs"]] == [
        name for name, picture in PICTURES.items() if picture.applies(explorer._session)
    ]


def test_switching_loses_nothing(explorer):
    send(explorer, "apply", step=SPLIT)
    send(explorer, "choose", key="C/k")
    send(explorer, "picture", tab="nest")
    before = explorer.view
    node = explorer.schedule.node
    for op, name in (("level", "learn"), ("preset", "code"), ("preset", "all"), ("level", "work")):
        send(explorer, op, **{op: name})
        assert explorer.schedule.node is node
        assert explorer.chosen == "C/k"
    after = explorer.view
    for name in set(before) - {"reply", "status", "ladder"}:  # the ladder is seen by learners
        assert after[name] == before[name], name


def test_every_tab_and_primitive_of_a_level_exists():
    for level in LEVELS.values():
        assert level.primitives <= set(REGISTRY)
        assert (level.pictures or set()) <= set(PICTURES)


@pytest.mark.parametrize(("op", "value"), [("level", "none"), ("level", None), ("preset", ["x"])])
def test_an_unknown_level_is_refused(explorer, op, value):
    layout = explorer.layout_of_panes
    send(explorer, op, **{op: value})
    assert explorer.status["tone"] == "error"
    assert explorer.layout_of_panes == layout


def test_an_explorer_of_an_unknown_level():
    schedule, args = matmul()
    with pytest.raises(ScheduleError, match="there is no such level"):
        Explorer(schedule, args, level="expert")


# -- pending obligations ---------------------------------------------------------------------------


@pytest.fixture
def chain():
    A = te.placeholder((16, 16), name="A")
    P = te.compute((16, 16), lambda i, j: A[i, j] * 2.0, name="P")
    Q = te.compute((16, 16), lambda i, j: P[i, j] + 1.0, name="Q")
    R = te.compute((16, 16), lambda i, j: Q[i, j] + 1.0, name="R")
    return create_schedule(R.op), (A, P, Q, R)


def test_a_pending_obligation_stands_at_its_stage(chain):
    s, (A, P, _, R) = chain
    explorer = Explorer(s, [A, R])
    s[P].compute_at(s[R], R.op.axis[0])  # before its reader Q is there
    (row,) = [row for row in explorer.tree["rows"] if row["pending"]]
    assert row["key"] == "P"
    assert "its reader Q is not there yet" in row["pending"][0]
    assert "pending: P is computed at R.i" in row["label"]
    (item,) = explorer.tree["pending"]
    assert item["key"] == "P"
    assert item["step"] == "compute_at P R i"
    assert item["hint"].startswith("attach Q inside R.i")
    assert "is not there yet" in explorer.text["error"]["text"]
    explorer.close()


def test_what_lowering_settles_is_listed_and_not_marked(chain):
    s, (A, _, Q, R) = chain
    explorer = Explorer(s, [A, R])
    s[Q].compute_at(s[R], R.op.axis[0])
    s[R].split(R.op.axis[0], 4)
    assert not [row for row in explorer.tree["rows"] if row["pending"]]
    (item,) = explorer.tree["pending"]
    assert "it will be computed" in item["text"]
    assert not item["hint"]
    explorer.close()
