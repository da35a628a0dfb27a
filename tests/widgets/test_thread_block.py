"""The picture of a block of threads in the workbench, without a browser; panes and thread loops."""

import json
import threading
from unittest.mock import ANY

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule
from tests.static_pictures import pictures_in
from tests.thread_programs import convolution, softmax, tiled_matmul
from tests.widgets.test_panes import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer, ThreadBlock
from dlcompiler_widgets.explorer import background, blocks
from dlcompiler_widgets.explorer.pictures import PICTURES
from dlcompiler_widgets.explorer.snapshot import PANES, snapshot
from dlcompiler_widgets.explorer.texts import tabs_of

PROGRAMS = {
    "matmul": tiled_matmul,
    "matmul with virtual threads": lambda: tiled_matmul(64, vthreads=2),
    "convolution with virtual threads": lambda: convolution(2),
    "softmax": softmax,
}


@pytest.fixture
def explore(monkeypatch):
    """Open an Explorer on the picture; recordings are waited for."""
    monkeypatch.setattr(background, "PATIENCE_S", 60.0)
    made = []

    def explore_(schedule, args, **options):
        made.append(Explorer(schedule, args, **options))
        ask(made[-1], "picture", tab="block")
        return made[-1]

    yield explore_
    for widget in made:
        widget.close()


def ask(widget, op, **args):
    widget.intent = {"id": object().__hash__(), "op": op, "args": args}


def model(widget):
    assert widget.picture["error"] is None
    return widget.picture["model"]


def test_counters_of_several_accesses_are_told_apart(explore):
    costs = model(explore(*softmax(), target="opencl"))["costs"]
    names = [row[0] for row in costs["table"]["rows"]]
    assert names == ["load M.parts, 1 of 2: 4 B in M", "load M.parts, 2 of 2: 4 B in M"]
    assert costs["title"].startswith("Simulated on a GPU with warps of 32 threads: ")
    assert "the others wait" in costs["note"]


def test_counters_of_the_chosen_kernel(explore):
    """Two kernels read A: the first one with each thread once, the second one with each twice."""
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    C = te.compute((128,), lambda i: A[i // 2] + B[i // 2], name="C")
    s = create_schedule(C.op)
    for stage in (B, C):
        s[stage].bind(stage.op.axis[0], te.thread_axis("threadIdx.x"))
    widget = explore(s, [A, C], target="v100")
    for stage, requests in (("C", 4), ("B", 2)):
        ask(widget, "choose", key=stage)
        ask(widget, "block", buffer="A r")
        assert model(widget)["costs"]["table"]["rows"] == [["load A", requests, *[ANY] * 4]]


def test_without_counters_the_reason_is_said(explore):
    costs = model(explore(*tiled_matmul()))["costs"]
    assert costs["table"]["rows"] == []
    assert costs["note"] == (
        "The counters are not known: they are counted for GPUs, and cpu is none."
    )


def test_a_phase_and_a_buffer_are_asked_for(explore):
    widget = explore(*tiled_matmul(), target="v100")
    assert (model(widget)["phase"], model(widget)["buffer"]) == (2, "A.shared r")
    ask(widget, "block", buffer="B.shared r")
    assert model(widget)["buffer"] == "B.shared r"
    assert "of B.shared (32 B)" in model(widget)["scene"]["summary"]
    ask(widget, "block", phase=1)
    assert (model(widget)["phase"], model(widget)["buffer"]) == (1, "A.shared w")
    assert widget.status["text"] == "Shown: the elements that the threads of a block touch."
    assert json.loads(json.dumps(widget.picture)) == widget.picture


def test_the_kernels_are_a_text_and_machine_code_is_none(explore):
    widget = explore(*tiled_matmul(), target="v100")
    names = [tab["name"] for tab in widget.text["tabs"]]
    code = ["kernels", "cuda", "ptx", "opencl"]
    assert names == ["notation", "loops", "passes", "final", *code, "python"]
    ask(widget, "text", tab="kernels")
    first, second = widget.text["lines"][:2]
    assert first["text"].startswith("# launch: blockIdx.x ")
    assert second["text"].startswith("def main_kernel0(")
    ask(widget, "text", tab="llvm")
    assert widget.status["text"].startswith("show LLVM IR: there is none for v100")


def test_the_launch_of_the_chosen_loop(explore):
    A = te.placeholder((8,), name="A")
    P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
    Q = te.compute((8,), lambda i: P[7 - i] + 1.0, name="Q")
    s = create_schedule(Q.op)
    for stage, threads in ((P, 4), (Q, 2)):
        s[stage].bind(s[stage].split(stage.op.axis[0], threads)[1], te.thread_axis("threadIdx.x"))
    widget = explore(s, [A, Q])
    for key, text in (("P/i.inner", "4 × 1 threads"), ("Q/i.inner", "2 × 1 threads")):
        ask(widget, "choose", key=key)
        assert f"Simulated: {text}" in model(widget)["scene"]["summary"]


def test_another_block(explore):
    widget = explore(*tiled_matmul(), target="v100")
    assert model(widget)["blocks"] == [
        {"tag": "blockIdx.y", "count": 2, "at": 0},
        {"tag": "blockIdx.x", "count": 2, "at": 0},
    ]
    ask(widget, "block", block={"tag": "blockIdx.x", "at": 1})
    assert "of the block blockIdx.y = 0, blockIdx.x = 1" in model(widget)["scene"]["summary"]


@pytest.mark.parametrize(
    "args", [{}, {"phase": "1"}, {"buffer": 3}, {"block": {"tag": "blockIdx.x"}}, {"block": 1}]
)
def test_a_malformed_request_is_refused(explore, args):
    widget = explore(*tiled_matmul())
    before = widget.picture
    ask(widget, "block", **args)
    assert widget.status["text"] == "show a block: the request is malformed"
    assert widget.picture == before


@pytest.mark.parametrize(
    "args", [{"phase": 99}, {"buffer": "Z r"}, {"block": {"tag": "blockIdx.x", "at": 99}}]
)
def test_what_there_is_not_shows_what_there_is(explore, args):
    widget = explore(*tiled_matmul())
    before = widget.picture
    ask(widget, "block", **args)
    assert widget.picture == before


def test_a_program_without_threads_says_so(explore):
    widget = explore(*matmul(), target="gpu")
    assert widget.picture["model"] is None
    assert "none of its loops is bound to the threads of a block" in widget.picture["error"]["text"]


def test_a_step_elsewhere_is_recorded_anew(explore):
    s, args = tiled_matmul()
    widget = explore(s, args)
    assert len(model(widget)["phases"]) == 9
    stage = next(stage for stage in s.state.stages if stage.name == "C.local")
    s[stage.tensor].unroll(stage.leaves[1])
    assert len(model(widget)["phases"]) == 9
    s.undo()
    assert widget.picture["model"]["phase"] == 2


def test_a_long_recording_is_shown_when_it_is_ready(monkeypatch):
    monkeypatch.setattr(background, "PATIENCE_S", 0.0)
    may_go, record = threading.Event(), blocks.record_block

    def slow(*args):
        may_go.wait(60)
        return record(*args)

    monkeypatch.setattr(blocks, "record_block", slow)
    s, args = tiled_matmul()
    widget = Explorer(s, args)
    ask(widget, "picture", tab="block")
    assert widget.picture["model"] == {"is_pending": True}
    drawn = threading.Event()
    widget.observe(lambda change: change["new"]["model"].get("scene") and drawn.set(), "picture")
    may_go.set()
    assert drawn.wait(60)
    assert model(widget)["phase"] == 2
    widget.close()


def test_the_pane_stands_still_when_recorded():
    pane = ThreadBlock(*tiled_matmul(64), target="v100")
    assert "Simulated: 16 × 16 threads" in pane.static_text()
    (picture,) = pictures_in(pane.static_html())
    assert picture.find("title").text == "Threads of a block"
    pane.close()


def test_a_replay_page_has_the_block_and_the_code(tmp_path, monkeypatch):
    monkeypatch.setattr(background, "PATIENCE_S", 0.0)
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] + 1.0, name="B")
    s = create_schedule(B.op)
    s[B].bind(s[B].split(B.op.axis[0], 32)[1], te.thread_axis("threadIdx.x"))
    widget = Explorer(s, [A, B], target="v100")
    page = widget.save_html(tmp_path / "page.html")
    assert '"is_pending": true' not in page.html
    assert "each reads 1 element of A" in page.html
    assert ".target sm_70" in page.html
    widget.close()


@pytest.mark.campaign(longest=True)
@pytest.mark.parametrize("target", ["cpu", "v100"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_pane_survives_loops_of_threads(explore, program, target):
    s, args = PROGRAMS[program]()
    widget = explore(s, args, target=target, level="all")
    session = widget._session
    keys = [row["key"] for row in session.tree["rows"] if row["type"] in ("loop", "stage")]
    for key in (keys[1], keys[len(keys) // 2]):
        session.handle("choose", {"key": key})
        snapshot(session, PANES)
        assert session.status.tone != "error", session.status
        for tab in PICTURES:
            session.handle("picture", {"tab": tab})
            assert snapshot(session, ["picture"])["picture"]["error"] is None, tab
    for tab in tabs_of(session.target):
        session.handle("text", {"tab": tab})
        snapshot(session, ["text"])
        session.code.compiling.wait()
        shown = snapshot(session, ["text"])
        assert shown["status"]["tone"] != "error"
        # There is no code for a device yet, and none for its threads on a CPU.
        assert bool(shown["text"]["error"]) == (tab in ("llvm", "assembly")), tab


def test_the_summary_says_what_the_chosen_access_costs(explore):
    widget = explore(*tiled_matmul(), target="v100")
    cost = "A load from A.shared by a warp has no bank conflicts."
    assert model(widget)["scene"]["summary"].endswith(cost)
    ask(widget, "block", phase=1)
    ask(widget, "block", buffer="A r")
    assert model(widget)["scene"]["summary"].endswith(
        "A load from A by a warp moves 4 sectors of 32 bytes; 100% of these bytes are used."
    )
