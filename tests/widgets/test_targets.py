"""Another target in the workbench: what a switch keeps, and the way back."""

import random
from dataclasses import replace

import pytest

from dlcompiler import target, te
from dlcompiler.errors import UserError
from dlcompiler.runtime import discovery
from dlcompiler.schedule import create_schedule
from dlcompiler.target import resolve
from tests.thread_programs import tiled_matmul
from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import CodePanes, Explorer
from dlcompiler_widgets.explorer.pictures import PICTURES
from dlcompiler_widgets.explorer.session import Session
from dlcompiler_widgets.explorer.targets import CANNOT_BE_LOADED, retarget, targets_of
from dlcompiler_widgets.notebook import explore

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture
def explorer():
    schedule, args = matmul()
    schedule[args[2]].parallel(args[2].op.axis[0])
    widget = Explorer(schedule, args, name="matmul")
    yield widget
    widget.close()


def send(explorer, op, **args):
    explorer.intent = {"id": f"{op} {args} {explorer.reply['seq']}", "op": op, "args": args}
    return explorer.view


def names(items, group=None):
    return [item["name"] for item in items if group in (None, item["group"])]


def test_another_target(explorer):
    view = send(explorer, "target", target="cortex-a53")
    assert (view["bar"]["target"], view["bar"]["steps"]) == ("cortex-a53", 1)
    assert view["bar"]["not_measured"].startswith("Kernels are measured on this machine (")
    assert send(explorer, "measure")["status"]["tone"] == "error"
    assert send(explorer, "undo")["bar"]["steps"] == 0
    assert send(explorer, "target", target="cpu")["bar"]["not_measured"] == ""
    assert explorer.view["bar"]["steps"] == 0


def test_what_is_open_stays_open_for_another_target(explorer):
    send(explorer, "picture", tab="axes")
    send(explorer, "text", tab="final")
    send(explorer, "choose", key="C/k")
    view = send(explorer, "target", target="aarch64")
    assert (view["picture"]["tab"], view["text"]["tab"], view["chosen"]) == ("axes", "final", "C/k")


# -- the menu -------------------------------------------------------------------------------------


def test_all_targets_are_offered_in_groups(explorer):
    offered = explorer.view["bar"]["targets"]
    assert set(names(offered)) == set(target.names())
    groups = [item["group"] for item in offered]
    assert list(dict.fromkeys(groups)) == ["CPU", "GPU", "Accelerator"]
    assert groups == sorted(groups, key=["CPU", "GPU", "Accelerator"].index)
    assert {"cpu", "c", "wasm32"} <= set(names(offered, "CPU"))
    assert {"gpu", "v100"} <= set(names(offered, "GPU"))
    assert {"vta-pynq", "vdla-paper"} <= set(names(offered, "Accelerator"))


def _opened(way):
    """Open an Explorer in one of the ways that there are."""
    schedule, args = matmul()
    if way == "learn":
        return Explorer(schedule, args, level="learn")
    if way == "tensor":
        return Explorer(args[2])
    if way == "notation":
        return Explorer.write("C[i, j] += A[i, k] * B[k, j]\nB: [8, 4]", A=((2, 8), "float32"))
    if way == "magic":
        return explore("", "B[i] = A[i] + 1\nA: float32[64]")
    if way == "empty":
        return Explorer()
    first = Explorer(schedule, args)
    made = Explorer.from_link(first.to_link())
    first.close()
    return made


@pytest.mark.campaign
@pytest.mark.parametrize("way", ["learn", "tensor", "notation", "magic", "empty", "link"])
def test_every_explorer_offers_gpus_and_devices(way):
    explorer = _opened(way)
    offered = names(explorer.view["bar"]["targets"], "GPU")
    assert {"gpu", "v100", "h100", "cuda", "opencl"} <= set(offered)
    view = send(explorer, "target", target="v100")
    assert (view["bar"]["target"], view["status"]["tone"]) == ("v100", "info")
    binds = [move for move in explorer.schedule.moves(explorer.schedule.outputs[0], "v100")
             if move.primitive == "bind"]  # fmt: skip
    assert binds
    explorer.close()


def test_a_target_that_was_given_can_be_chosen_again(explorer):
    own = replace(resolve("gpu"), name=HOSTILE)
    schedule, args = matmul()
    widget = Explorer(schedule, args, target=own)
    assert HOSTILE in names(widget.view["bar"]["targets"], "GPU")
    view = send(widget, "target", target="cpu")
    assert HOSTILE in names(view["bar"]["targets"], "GPU")
    assert send(widget, "target", target=HOSTILE)["bar"]["target"] == HOSTILE
    assert widget._session.target is own
    widget.close()


def test_an_entry_that_cannot_be_loaded_does_no_harm(explorer, monkeypatch):
    monkeypatch.setitem(target.REGISTRY, "broken", "no.such.module:TARGET")
    view = send(explorer, "undo")
    assert names(view["bar"]["targets"], CANNOT_BE_LOADED) == ["broken"]
    view = send(explorer, "target", target="broken")
    assert (view["bar"]["target"], view["status"]["tone"]) == ("cpu", "error")
    assert "cannot be imported" in view["status"]["text"]


@pytest.mark.parametrize(
    "wanted",
    ["abacus", None, 3, [], {}, "", "__proto__", HOSTILE, "\x00", "x" * 1_000_000, "GPU", "gpu "],
    ids=lambda wanted: repr(wanted)[:12],
)
def test_what_is_no_target_is_refused(explorer, wanted):
    before = explorer.schedule.node
    view = send(explorer, "target", target=wanted)
    assert (view["bar"]["target"], view["status"]["tone"]) == ("cpu", "error")
    assert explorer.schedule.node is before
    assert len(str(view["status"])) < 3_000


# -- other kinds ----------------------------------------------------------------------------------


def tiled(explorer):
    """Split j, and vectorize its inner loop."""
    schedule, C = explorer.schedule, explorer.schedule.outputs[0]
    _, inner = schedule[C].split(C.op.axis[1], factor=8)
    schedule[C].vectorize(inner)


def test_a_gpu_keeps_the_legal_steps_and_says_which_not_and_why(explorer):
    tiled(explorer)
    explorer.schedule.node.notes["measured"] = "2 ms"
    here = explorer.schedule.node
    view = send(explorer, "target", target="v100")
    assert [str(step) for step in explorer.schedule.trace.steps] == ["split C j 8"]
    assert view["status"]["text"] == ("Texts and pictures are now for v100. Steps kept: 1 of 3.")
    assert view["status"]["details"] == [
        ["left out", "parallel C i: v100 has no parallel loops"],
        ["left out", "vectorize C j.inner: v100 stores at most 16 bytes at once"],
        ["hint", "choose cpu again to return to the state with all steps"],
    ]
    assert view["bar"]["known"] == []
    view = send(explorer, "target", target="cpu")
    assert explorer.schedule.node is here
    assert view["bar"]["known"] == ["measured 2 ms"]
    assert "left out" not in str(view["status"])


def test_steps_on_the_other_kind_are_there_after_the_way_back_and_forth(explorer):
    here = explorer.schedule.node
    send(explorer, "target", target="gpu")
    C = explorer.schedule.outputs[0]
    explorer.schedule[C].bind(C.op.axis[0], te.thread_axis("blockIdx.x"))
    there = explorer.schedule.node
    view = send(explorer, "target", target="x86-64-avx2")
    assert explorer.schedule.node is here
    assert view["status"]["details"] == [
        ["hint", "the steps that were made for gpu stay in the history"]
    ]
    send(explorer, "target", target="a100")
    assert explorer.schedule.node is there


def test_new_steps_are_taken_along(explorer):
    send(explorer, "target", target="gpu")
    send(explorer, "target", target="cpu")
    tiled(explorer)
    send(explorer, "target", target="gpu")
    assert [str(step) for step in explorer.schedule.trace.steps] == ["split C j 8"]


def test_many_steps_that_are_left_out_are_counted():
    schedule, args = matmul()
    C, axis = args[2], args[2].op.axis[0]
    for _ in range(9):
        outer, axis = schedule[C].split(axis, nparts=1)
        schedule[C].bind(outer, te.thread_axis("vthread"))
    session = Session(schedule, args, resolve("gpu"), "main")
    made = retarget(session, {"target": "x86-64-avx2"})
    assert made.status.text.endswith("Steps kept: 9 of 18.")
    assert [text for _, text in made.status.details][6:] == [
        "3 more", "choose gpu again to return to the state with all steps",
    ]  # fmt: skip


def test_a_target_that_cannot_be_shown_leaves_all_as_it_was(explorer, monkeypatch):
    """A device without passes: every pane says so, and the way back is open."""
    monkeypatch.setitem(
        target.REGISTRY, "odd", replace(resolve("c"), name="odd", device=HOSTILE, language="odd")
    )
    here = explorer.schedule.node
    view = send(explorer, "target", target="odd")
    assert view["bar"]["target"] == "odd"
    assert HOSTILE in [item["group"] for item in view["bar"]["targets"]]
    assert view["text"]["error"]["tone"] == "error"
    assert send(explorer, "target", target="cpu")["text"]["error"] is None
    assert explorer.schedule.node is here


@pytest.mark.parametrize("seed", range(4))
def test_after_any_steps_and_switches_the_first_kind_is_where_it_was_left(seed):
    """Twenty switches at random, with steps, undo and jumps between."""
    chance = random.Random(seed)
    schedule, args = matmul()
    session = Session(schedule, args, resolve("x86-64-avx2"), "main")
    left = {"cpu": schedule.node}
    for _ in range(20):
        for _ in range(chance.randrange(3)):
            step_somewhere(schedule, session.target, chance)
        left[session.target.device] = schedule.node
        session.close()
        session = retarget(session, {"target": chance.choice(["aarch64", "c", "gpu", "v100"])})
        assert session.target.device == "gpu" or schedule.node is left["cpu"], f"seed {seed}"
    text = str(session.lowered(left["cpu"], "loops"))
    session = retarget(session, {"target": "x86-64-avx2"})
    assert schedule.node is left["cpu"], f"seed {seed}"
    assert str(session.lowered(schedule.node, "loops")) == text
    session.close()


def step_somewhere(schedule, machine, chance):
    kind = chance.random()
    if kind < 0.15 and schedule.node.parent:
        schedule.undo()
    elif kind < 0.25:
        schedule.jump(chance.choice(list(schedule.history.history.nodes)))
    else:
        move = chance.choice(schedule.legal_moves(schedule.outputs[0], machine))
        values = {domain.parameter: (domain.suggested or (2,))[0] for domain in move.domains}
        if schedule.attempt(move.primitive, move.stage, {**move.args, **values}).verdict:
            schedule.apply(move.primitive, move.stage, {**move.args, **values})


# -- texts ----------------------------------------------------------------------------------------


def tabs(explorer):
    return [tab["name"] for tab in explorer.view["text"]["tabs"]]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("x86-64-avx2", ["llvm", "assembly"]),
        ("c", ["source"]),
        ("gpu", ["kernels", "cuda", "ptx", "opencl"]),
        ("opencl", ["source", "cuda", "ptx"]),
    ],
)
def test_the_tabs_of_code_follow_the_target(explorer, name, code):
    send(explorer, "target", target=name)
    assert tabs(explorer) == ["notation", "loops", "passes", "final", *code, "python"]


def test_an_open_tab_that_the_target_lacks_says_why_and_is_open_again_after(explorer):
    send(explorer, "text", tab="llvm")
    text = send(explorer, "target", target="c")["text"]
    assert (text["tab"], text["error"]) == ("source", None)
    assert text["note"] == "LLVM IR: there is none for c, programs for c are generated as C"
    assert any("for (" in line["text"] and "C/i" in line["keys"] for line in text["lines"])
    text = send(explorer, "target", target="gpu")["text"]
    assert text["tab"] == "kernels"
    assert "generated as loop IR, which is simulated" in text["note"]
    assert "is computed outside any thread" in text["error"]["text"]
    assert send(explorer, "target", target="cpu")["text"]["tab"] == "llvm"


@pytest.mark.parametrize(
    ("tab", "first", "other", "why"),
    [
        ("cache", "cpu", "gpu", "only the caches of a CPU are simulated, without threads of a GPU"),
        ("block", "gpu", "cpu", "it has no threads that loops could be bound to"),
    ],
)
def test_an_open_picture_that_the_target_lacks_is_named(explorer, tab, first, other, why):
    send(explorer, "target", target=first)
    title = PICTURES[tab].title
    assert send(explorer, "picture", tab=tab)["picture"]["tab"] == tab
    view = send(explorer, "target", target=other)
    assert view["picture"]["tab"] == "nest"
    assert ["not shown", f"{title}: {why}"] in view["status"]["details"]
    status = send(explorer, "picture", tab=tab)["status"]
    assert status["text"] == f"show {title}: there is none for {other}"
    assert status["details"] == [["because", why]]
    view = send(explorer, "target", target=first)
    assert view["picture"]["tab"] == tab
    assert "not shown" not in str(view["status"])


def test_a_text_that_the_target_lacks_is_refused_with_the_reason(explorer):
    send(explorer, "target", target="gpu")
    status = send(explorer, "text", tab="llvm")["status"]
    assert status["text"] == "show LLVM IR: there is none for gpu"
    assert status["details"] == [
        ["because", "programs for gpu are generated as loop IR, which is simulated"],
        ["hint", "the tab 'kernels' shows them"],
    ]
    assert send(explorer, "text", tab="novel")["status"]["text"] == (
        "show a text: there is no such tab"
    )


def test_a_widget_of_code_has_the_code_of_each_target():
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[j, i] + 1.0, name="B")
    for name, last in (("c", "source"), ("gpu", "kernels")):
        widget = CodePanes(create_schedule(B.op), [A, B], target=name)
        assert last in [tab["name"] for tab in widget.text["tabs"]]
        widget.close()


@pytest.mark.parametrize(
    ("target", "tab", "loop"),
    [
        ("v100", "cuda", "for (int k_inner = 0; k_inner < 8; ++k_inner) {"),
        ("v100", "ptx", "bar.sync"),
        ("v100", "opencl", "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"),
        ("opencl", "source", "__kernel __attribute__((reqd_work_group_size(16, 16, 1)))"),
    ],
)
def test_code_for_a_gpu_has_tabs_whose_lines_know_their_loops(target, tab, loop):
    schedule, args = tiled_matmul()
    widget = Explorer(schedule, args, target=target)
    text = send(widget, "text", tab=tab)["text"]
    assert text["error"] is None
    language = {"cuda": "CUDA C", "ptx": "PTX"}.get(tab, "OpenCL C")
    assert text["note"].startswith(f"{language}, as")
    line = next(each for each in text["lines"] if each["text"].strip().startswith(loop))
    if tab == "cuda":
        assert "C.local/k.inner" in line["keys"]
    if tab == "ptx":
        stores = [each for each in text["lines"] if "st.global" in each["text"]]
        assert [each["keys"][0] for each in stores] == ["C"]
        assert not any(".loc" in each["text"] for each in text["lines"])
    widget.close()


def test_an_explorer_of_an_unknown_target_is_refused():
    schedule, args = matmul()
    with pytest.raises(UserError, match="no target has this name"):
        Explorer(schedule, args, target="abacus")


# -- in a browser ---------------------------------------------------------------------------------


def test_choosing_a_gpu_and_the_way_back(contexts, explorer):
    context = contexts.open(viewport={"width": 1200, "height": 900})
    page = LivePage(context, explorer)
    groups = page.locate('select[data-key="target"] optgroup')
    assert [group.get_attribute("label") for group in groups.all()] == ["CPU", "GPU", "Accelerator"]
    page.key("target").select_option("gpu")
    page.settle()
    assert page.key("target").input_value() == "gpu"
    assert "parallel C i: gpu has no parallel loops" in page.locate(".dlc-status").inner_text()
    page.key("target").select_option("cpu")
    page.settle()
    assert explorer.view["bar"]["steps"] == 1
    page.key("target").select_option("aarch64")
    page.settle()
    page.key("measure").focus()
    page.page.keyboard.press("Enter")
    assert "Kernels are measured on this machine" in page.locate(".dlc-status").inner_text()
    assert not page.errors
    context.close()


def test_a_refused_target_is_not_shown_as_chosen(contexts, explorer, monkeypatch):
    monkeypatch.setitem(target.REGISTRY, "broken", "no.such.module:TARGET")
    send(explorer, "undo")
    context = contexts.open(viewport={"width": 1200, "height": 900})
    page = LivePage(context, explorer)
    page.key("target").select_option("broken")
    page.settle()
    assert page.key("target").input_value() == "cpu"
    context.close()


def test_targets_of_a_session_begin_with_its_own():
    schedule, args = matmul()
    session = Session(schedule, args, replace(resolve("cpu"), name="mine"), "main")
    assert targets_of(session)[0]["name"] == "mine"


def test_a_device_that_is_not_here_is_offered_with_the_reason(monkeypatch):
    missing = discovery.Devices(reason="no NVIDIA driver is installed here")
    monkeypatch.setattr(discovery, "devices", lambda language: missing)
    schedule, args = matmul()
    items = {
        item["name"]: item for item in targets_of(Session(schedule, args, resolve("cpu"), "main"))
    }
    assert items["cuda"] == {
        "name": "cuda", "text": "cuda (not here)", "group": "GPU",
        "about": "no NVIDIA driver is installed here",
    }  # fmt: skip
    assert items["v100"] == {"name": "v100", "text": "v100", "group": "GPU"}
