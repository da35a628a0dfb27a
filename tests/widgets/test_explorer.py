"""The Explorer without a front end: every intent, and what then is shown."""

import json
import threading
import xml.etree.ElementTree as ET

import pytest

from dlcompiler import te
from dlcompiler.errors import MeasurementError, ScheduleError
from dlcompiler.schedule import create_schedule

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer
from dlcompiler_widgets.explorer.snapshot import PANES, Pane

HOSTILE = "<img src=x onerror=alert(1)>"


class Program:
    """A matmul in an Explorer, and a person who uses it."""

    def __init__(self, **options):
        n = 64
        self.A = te.placeholder((n, n), name="A")
        self.B = te.placeholder((n, n), name="B")
        k = te.reduce_axis((0, n), name="k")
        self.C = te.compute(
            (n, n), lambda i, j: te.sum(self.A[i, k] * self.B[k, j], axis=k), name="C"
        )
        self.s = create_schedule(self.C.op)
        self.args = [self.A, self.B, self.C]
        self.e = Explorer(self.s, self.args, name="matmul", **options)
        self.sent = 0

    def send(self, op, **args):
        self.sent += 1
        self.e.intent = {"id": f"test-{self.sent}", "op": op, "args": args}
        assert self.e.view["reply"]["id"] == f"test-{self.sent}"
        return self.e.view

    def apply(self, primitive, stage="C", **args):
        return self.send("apply", step={"primitive": primitive, "stage": stage, "args": args})

    def loops(self):
        return [row["key"] for row in self.e.view["tree"]["rows"] if row["type"] == "loop"]

    def status(self):
        return self.e.view["status"]


@pytest.fixture
def program():
    made = Program()
    yield made
    made.e.close()


def test_first_view(program):
    view = program.e.view
    assert json.loads(json.dumps(view)) == view
    assert program.loops() == ["C/i", "C/j", "C/k"]
    assert view["chosen"] == view["moves"]["chosen"] == "C/i"
    assert (view["bar"]["name"], view["bar"]["target"], view["bar"]["steps"]) == (
        "matmul",
        "cpu",
        0,
    )
    assert (view["bar"]["undo"], view["bar"]["redo"], view["reply"]["id"]) == (None, None, None)
    assert view["bar"]["measuring"] == {"state": "idle", "doing": ""}
    assert view["text"]["lines"][0]["text"].startswith("def matmul(")


def test_choose(program):
    view = program.send("choose", key="C/k")
    assert view["chosen"] == view["moves"]["chosen"] == "C/k"
    assert view["status"]["text"] == (
        "loop k of C, level 3, reduction, extent 64, serial, unit stride in A, stride 64 in B"
    )


@pytest.mark.parametrize("key", ["C/nothing", "C//body", None, 3, ["C/i"]])
def test_choose_what_is_not_there(program, key):
    view = program.send("choose", key=key)
    assert view["chosen"] == "C/i"
    assert view["status"]["text"] == "choose a loop: there is no such loop now"


def test_apply(program):
    view = program.apply("split", axis="j", factor=16)
    assert program.loops() == ["C/i", "C/j.outer", "C/j.inner", "C/k"]
    assert view["status"] == {"text": "split C j 16: done.", "tone": "info", "details": []}
    assert view["text"]["note"].startswith("split C j 16: +")
    assert view["bar"]["undo"] == "split C j 16"
    assert program.s.node.title() == "split C j 16"
    assert "s[C].split(j, factor=16)" in view["bar"]["python"]


def test_every_item_of_a_palette_can_be_sent_as_it_stands(program):
    """What the page sends back is the step of the view model, with the parameters added."""
    for group in program.e.view["moves"]["loop"]:
        for item in group["items"]:
            chosen = {p["name"]: p["default"] for p in item["parameters"]}
            step = {**item["step"], "args": {**item["step"]["args"], **chosen}}
            view = program.send("apply", step=step)
            assert (view["status"]["tone"] == "error") == (item["status"] == "illegal")
            while program.e.view["bar"]["undo"]:
                program.send("undo")


def test_the_choice_follows_what_becomes_of_a_loop(program):
    program.send("choose", key="C/j")
    assert program.apply("split", axis="j", factor=16)["chosen"] == "C/j.inner"
    assert program.apply("parallel", axis="i")["chosen"] == "C/j.inner"
    assert program.send("undo")["chosen"] == "C/j.inner"
    assert program.send("undo")["chosen"] == "C/j"


def test_a_step_to_a_known_state_keeps_the_chosen_loop(program):
    program.send("choose", key="C/j")
    program.apply("parallel", axis="i")
    program.send("choose", key="C/k")
    assert program.send("undo")["chosen"] == "C/j"
    program.send("choose", key="C/i")
    assert program.apply("parallel", axis="i")["chosen"] == "C/i"
    program.send("choose", key="C/k")
    program.send("undo")
    assert program.send("redo")["chosen"] == "C/k"


def test_a_new_loop_is_chosen_when_the_old_one_is_gone(program):
    program.send("choose", key="C/j")
    assert program.apply("fuse", axes=["i", "j"])["chosen"] == "C/i.j.fused"


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"axis": "i", "factor": 0}, "factor must be at least 1"),
        ({"axis": "i", "factor": "many"}, "factor must be an integer"),
        ({"axis": "i", "factor": 2.5}, "factor must be an integer"),
        ({"axis": "i", "factor": True}, "factor must be an integer"),
        ({"axis": "i", "factor": None}, "exactly one of factor and nparts"),
        ({"axis": HOSTILE, "factor": 2}, "stage C has no axis"),
        ({"axis": "i", "factor": 2, "x": 1}, "unknown argument 'x'"),
        ({"factor": 2}, "axis"),
    ],
)
def test_a_wrong_argument_is_explained_and_nothing_is_lost(program, args, text):
    before = {**program.e.view}
    view = program.apply("split", **args)
    assert view["status"]["tone"] == "error"
    assert text in view["status"]["text"]
    for part in ("tree", "text", "history", "moves", "chosen"):
        assert view[part] == before[part]


@pytest.mark.parametrize(
    "step",
    [
        None, 3, {}, {"primitive": "split"}, {"primitive": 1, "stage": "C", "args": {}},
        {"primitive": "__init__", "stage": "C", "args": {}},
        {"primitive": "split", "stage": "X", "args": {}},
        {"primitive": "split", "stage": "C", "args": []},
    ],
)  # fmt: skip
def test_a_malformed_step_is_refused(program, step):
    view = program.send("apply", step=step)
    assert view["status"]["tone"] == "error"
    assert view["bar"]["steps"] == 0


def test_an_illegal_step_says_why_in_parts(program):
    status = program.apply("vectorize", axis="k")["status"]
    assert status["text"] == "vectorize C.k: a reduction axis cannot be vectorized"
    assert [label for label, _ in status["details"]] == ["got", "because", "hint"]


@pytest.mark.parametrize("intent", [{}, {"op": "destroy"}, {"op": None, "args": None}, {"args": 1}])
def test_an_unknown_request_is_refused(program, intent):
    program.e.intent = {"id": "x", **intent}
    assert program.status()["tone"] == "error"
    assert program.e.view["bar"]["steps"] == 0


def test_a_bug_is_said_and_the_page_does_not_wait_for_ever(program, monkeypatch):
    def broken(key):
        raise KeyError("lost")

    monkeypatch.setattr(program.s, "jump", broken)
    with pytest.raises(KeyError):
        program.send("jump", id="x")
    assert program.e.view["reply"]["id"] == "test-1"
    assert program.status()["text"] == "jump: KeyError: 'lost'"
    assert program.apply("parallel", axis="i")["bar"]["steps"] == 1


def test_undo_redo_and_jump(program):
    program.apply("parallel", axis="i")
    view = program.send("undo")
    assert (view["bar"]["undo"], view["bar"]["redo"]) == (None, "parallel C i")
    assert view["status"]["text"] == "Undone: parallel C i."
    assert program.send("redo")["bar"]["steps"] == 1
    root = view["history"]["rows"][0]["id"]
    assert program.send("jump", id=root)["bar"]["steps"] == 0
    assert program.send("jump", id="nothing")["status"]["tone"] == "error"
    assert program.send("undo")["status"]["text"] == "undo: there is no step to undo"


def test_the_program_after_all_passes(program):
    program.apply("vectorize", axis="j")
    view = program.send("text", tab="final")
    assert any("broadcast(" in line["text"] for line in view["text"]["lines"])
    assert view["text"]["tab"] == "final"
    assert program.send("text", tab="nothing")["status"]["tone"] == "error"
    assert program.e.view["text"]["tab"] == "final"


def test_a_step_made_elsewhere(program):
    seq = program.e.view["reply"]["seq"]
    program.s[program.C].parallel(program.C.op.axis[0])
    assert program.e.view["reply"]["seq"] > seq
    assert program.e.view["reply"]["id"] is None
    assert program.e.view["history"]["rows"][-1]["is_here"]
    assert program.status()["text"] == "Changed in another cell or view: now at parallel C i."


def test_two_explorers_of_one_schedule_agree(program):
    other = Explorer(program.s, program.args)
    program.apply("parallel", axis="i")
    assert other.view["bar"]["steps"] == 1
    other.close()


def test_a_closed_explorer_follows_no_more(program):
    other = Explorer(program.s, program.args)
    other.close()
    program.apply("parallel", axis="i")
    assert other.view["bar"]["steps"] == 0


def test_steps_and_requests_from_two_threads_do_not_block_each_other(program):
    axis = program.C.op.axis[0]

    def elsewhere():
        for _ in range(30):
            program.s[program.C].parallel(axis)
            program.s.undo()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    for key in ("C/j", "C/k") * 15:
        program.e.intent = {"id": key, "op": "choose", "args": {"key": key}}
    thread.join(60)
    assert not thread.is_alive()
    assert program.loops() == ["C/i", "C/j", "C/k"]


def test_an_obligation_is_said_and_the_program_gives_the_reason(program):
    program.apply("cache_write", scope="local")
    program.apply("compute_at", stage="C.local", parent="C", axis="i")
    view = program.apply("fuse", axes=["i", "j"])
    assert view["status"]["details"][0][0] == "pending"
    assert view["text"]["lines"] == []
    assert "no longer a loop" in view["text"]["error"]["text"]
    view = program.send("undo")
    assert view["text"]["error"] is None


# -- without a front end --------------------------------------------------------------------------


def test_repr_is_the_same_everywhere(program):
    assert repr(program.e) == "Explorer(matmul on cpu: 1 stage, 3 loops; 0 steps)"


def test_static_fallback(program):
    program.apply("split", axis="j", factor=16)
    data, _ = program.e._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "j.inner" in data["text/plain"]
    assert len(data["text/html"].encode()) < 60_000
    root = ET.fromstring(data["text/html"])
    assert not list(root.iter("script"))
    assert "for j.inner in range(16):" in "".join(root.itertext())


def test_static_fallback_of_a_huge_program_is_small():
    A = te.placeholder((512,), name="A")
    B = te.compute((512,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    s[B].unroll(s[B].op.axis[0])
    e = Explorer(s, [A, B])
    e.intent = {"id": "x", "op": "text", "args": {"tab": "final"}}
    assert len(e._repr_mimebundle_()[0]["text/html"].encode()) < 60_000
    e.close()


def test_cancel_has_a_way_of_its_own():
    """While a cell is busy, only a comm that answered, and that no thread pushes to, is served."""
    began, ended = threading.Event(), threading.Event()

    class Slow:
        def verify(self, *args):
            began.set()
            assert ended.wait(60)
            raise MeasurementError("verify", "it was ended")

        def cancel(self):
            ended.set()

    program = Program(stopwatch=Slow())
    control = program.e._control
    assert program.e.control == control.model_id
    control.hello = 3
    assert control.answer == 3
    program.send("measure")
    assert began.wait(60)
    control.asked += 1
    assert ended.wait(60)
    program.e._measuring.wait(60)
    assert program.status()["text"] == "The run was cancelled."
    program.e.close()


def test_a_loop_whose_extent_is_a_symbol_is_shown_everywhere():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    e = Explorer(create_schedule(B.op))
    assert ">n<" in e.static_html()
    assert "n" in e.static_text()
    e.close()


def test_a_bug_in_one_pane_is_said_and_the_others_are_drawn(program, monkeypatch, caplog):
    def broken(session):
        raise KeyError("lost")

    before = program.e.view["history"]
    monkeypatch.setitem(PANES, "history", Pane(broken))
    view = program.apply("parallel", axis="i")
    assert view["status"]["text"] == "draw history: KeyError: 'lost'"
    assert view["status"]["details"][0][1].endswith("in broken")
    assert "Traceback" in caplog.text
    assert view["history"] == before
    assert view["bar"]["steps"] == 1
    monkeypatch.undo()
    assert len(program.send("choose", key="C/j")["history"]["rows"]) == 2


def test_an_expression_without_a_schedule_gets_one():
    A = te.placeholder((8,), name="A")
    B = te.compute((8,), lambda i: A[i] + 1.0, name="B")
    for given in (B, [B]):
        e = Explorer(given)
        assert [row["key"] for row in e.tree["rows"] if row["type"] == "loop"] == ["B/i"]
        assert len(e.schedule.trace) == 0
        e.close()


@pytest.mark.parametrize("given", [5, "C[i] = A[i]", [], [None]])
def test_what_cannot_be_explored_is_refused(given):
    with pytest.raises(ScheduleError, match=r"this is not a schedule[\s\S]*hint"):
        Explorer(given)
