"""The two outputs of a displayed widget: its live view, and a static picture that follows it."""

import re
import threading
import xml.etree.ElementTree as ET

import pytest

from dlcompiler import te
from dlcompiler.runtime.timing import Timing
from dlcompiler.schedule import create_schedule
from tests import watched_runs
from tests.fusion_networks import chain
from tests.static_pictures import pictures_in
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import (
    Explorer,
    GraphView,
    LoopTree,
    MemoryScopes,
    TuningView,
    static_output,
)
from dlcompiler_widgets.explorer import pictures
from dlcompiler_widgets.explorer.measuring import Measured
from dlcompiler_widgets.static_output import LARGEST_BYTES, StaticOutput, static_page
from dlcompiler_widgets.tuning.dashboard import TuningDashboard
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from dlcompiler.views.render.markup import tag

VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def shell():
    """An IPython that takes itself for the kernel of a notebook."""
    shell = InteractiveShell.instance()
    shell.kernel = object()
    static_output._REFRESHER.follow_cells()
    yield shell
    static_output._REFRESHER.after_cell()
    shell.events.unregister("post_run_cell", static_output._REFRESHER.after_cell)
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


@pytest.fixture
def made(shell):
    """Widgets by name, closed in the end; the shell knows them, too."""
    schedule, args = matmul()
    made = {"s": schedule, "i": args[2].op.axis[0], "C": args[2], "e": Explorer(schedule, args)}
    made["LoopTree"] = LoopTree
    shell.push(made)
    yield made
    for value in made.values():
        if isinstance(value, StaticOutput):
            value.close()


def outputs_of(shell, code):
    """Run a cell; return its outputs as they are published."""
    with capture_output() as captured:
        shell.run_cell(code).raise_error()
    return captured.outputs


def updated(shell, code):
    """The pictures that a cell has updated."""
    return [each.data["text/html"] for each in outputs_of(shell, code) if each.update]


@pytest.mark.parametrize("code", ["e", "display(e)"])
def test_a_widget_has_a_view_and_a_picture(shell, made, code):
    live, still = outputs_of(shell, f"from IPython.display import display\n{code}")
    assert live.data[VIEW]["model_id"] == made["e"].model_id
    assert live.data["text/plain"] == repr(made["e"])
    assert "".join(ET.fromstring(live.data["text/html"]).itertext()) == ""
    assert VIEW not in still.data
    assert still.transient["display_id"]
    assert "dlc-static" in still.data["text/html"]
    assert pictures_in(still.data["text/html"])
    assert still.data["text/plain"].splitlines()[0] != repr(made["e"])


@pytest.mark.parametrize(
    "make",
    [
        lambda: LoopTree(matmul()[0]),
        lambda: MemoryScopes(matmul()[0]),
        lambda: TuningDashboard(watched_runs.ended(24)),
        lambda: TuningView(watched_runs.ended(24)),
        lambda: GraphView(chain(3)),
    ],
    ids=["loop tree", "memory scopes", "dashboard", "tuning view", "graph view"],
)
def test_every_widget_does(shell, made, make):
    made["w"] = make()
    shell.push(made)
    published = outputs_of(shell, "w")  # a dashboard may have drawn itself anew meanwhile
    live, still = (each for each in published if not each.update)
    assert VIEW in live.data
    assert pictures_in(still.data["text/html"])
    assert len(still.data["text/html"].encode()) < LARGEST_BYTES + 1000


def test_a_schedule_that_the_extension_displays_does(shell, made):
    shell.extension_manager.load_extension("dlcompiler_widgets")
    live, still = outputs_of(shell, "s")
    assert live.data[VIEW]["model_id"] == made["e"].model_id
    assert pictures_in(still.data["text/html"])
    shell.extension_manager.unload_extension("dlcompiler_widgets")


def test_a_cell_that_changes_the_schedule_updates_the_pictures(shell, made):
    made["tree"] = LoopTree(made["s"])
    shell.push(made)
    assert not updated(shell, "s[C].unroll(C.op.reduce_axis[0])"), "nothing is displayed yet"
    outputs_of(shell, "e")
    outputs_of(shell, "tree")
    found = updated(shell, "s[C].parallel(i)")
    assert len(found) == 2
    assert all("1 parallel" in html for html in found)
    assert not updated(shell, "1"), "nothing has changed"
    made["tree"].close()
    assert len(updated(shell, "s.undo()")) == 1, "a closed widget keeps its last picture"


def test_a_click_updates_the_picture_soon(shell, made, monkeypatch):
    monkeypatch.setattr(static_output, "REFRESH_AFTER_S", 0.05)
    found, came = [], threading.Event()

    def publish(bundle, **options):
        found.append((bundle["text/html"], options["display_id"]))
        came.set()

    _, still = outputs_of(shell, "e")
    monkeypatch.setattr(static_output, "_publish", publish)
    explorer = made["e"]
    explorer.intent = {"id": "a-1", "op": "picture", "args": {"tab": "stages"}}
    assert came.wait(60)
    html, display_id = found[-1]
    assert display_id == still.transient["display_id"]
    assert "Stages" in pictures_in(html)[0].find("title").text


def test_an_update_between_two_cells_is_repeated_after_the_next(shell, made, monkeypatch):
    """A program that runs a notebook drops what is published while no cell runs."""
    monkeypatch.setattr(static_output, "REFRESH_AFTER_S", 0.05)
    outputs_of(shell, "e")
    between = threading.Event()
    monkeypatch.setattr(static_output, "_publish", lambda *_, **__: between.set())
    made["s"][made["C"]].parallel(made["i"])
    assert between.wait(60)
    monkeypatch.undo()
    static_output._REFRESHER._refreshing.acquire()  # until the timer's thread is done
    static_output._REFRESHER._refreshing.release()
    (html,) = updated(shell, "1")
    assert "1 parallel" in html
    assert not updated(shell, "1")


def test_a_preview_updates_nothing(shell, made, monkeypatch):
    noted = []
    outputs_of(shell, "e")
    monkeypatch.setattr(static_output._REFRESHER, "note", noted.append)
    args = {"step": {"primitive": "parallel", "stage": "C", "args": {"axis": "i"}}}
    made["e"].intent = {"id": "a-1", "op": "preview", "args": args}
    assert not noted
    made["e"].intent = {"id": "a-2", "op": "apply", "args": args}
    assert noted == [made["e"]]


def test_a_picture_that_fails_disturbs_neither_cell_nor_the_others(shell, made, caplog):
    made["tree"] = LoopTree(made["s"])
    shell.push(made)
    outputs_of(shell, "e")
    outputs_of(shell, "tree")
    made["tree"].static_parts = lambda: 1 / 0
    assert len(updated(shell, "s[C].parallel(i)")) == 1
    assert "the static picture of" in caplog.text


def test_a_cell_that_runs_again_replaces_its_pictures(shell, made):
    """Former Explorers of a cell that was run often do not slow down each step."""

    def run(code, cell, request):
        parent = {"metadata": {"cellId": cell}, "header": {"msg_id": request}}
        shell.get_parent = lambda: parent
        return outputs_of(shell, code)

    for number in range(3):
        run("tree = LoopTree(s); tree", "one", f"run {number}")
    made["s"][made["C"]].unroll(made["C"].op.reduce_axis[0])  # all pictures wait for an update
    run("e", "one", "run 3")
    run("e", "two", "run 4")
    shell.get_parent = dict
    assert len(updated(shell, "s[C].parallel(i)")) == 1, "only the last widget of the cell"
    run("mine = LoopTree(s); mine", "one", "run 5")
    assert len(updated(shell, "s.undo()")) == 2, "another cell still holds the picture"
    run("other = LoopTree(s); display(mine); other", "two", "run 6")
    assert len(updated(shell, "s.redo()")) == 2
    made.update({name: shell.user_ns[name] for name in ("mine", "other", "tree")})


def test_in_a_terminal_it_is_one_text(shell, made):
    del shell.kernel
    data, _ = shell.display_formatter.format(made["e"])
    assert data["text/plain"] == made["e"].static_text()
    outputs_of(shell, "e")
    assert not updated(shell, "s[C].parallel(i)")


def test_the_picture_of_a_run_follows_it(shell, made):
    made["view"] = TuningView(watched_runs.ended(24))
    shell.push(made)
    outputs_of(shell, "view")
    (html,) = updated(shell, "view.explore(view.run.best); None")
    assert "History" in html or "Left out" in html


def test_the_picture_of_a_run_does_not_wait_for_the_dashboard(shell, made, monkeypatch):
    """A cell that waits for the run ends before the dashboard draws the last trials."""
    monkeypatch.setattr("dlcompiler_widgets.tuning.throttle.Throttle.poke", lambda throttle: None)
    run = watched_runs.start(6, permits=0)
    made["view"] = TuningView(run)
    shell.push({**made, "run": run})
    outputs_of(shell, "view")
    html = updated(shell, "run.pool.permits = 6\nrun.wait(60);")[-1]
    assert "finished, 6 of 6 trials" in html


# -- what an Explorer's picture holds -------------------------------------------------------------


@pytest.mark.parametrize(("tab", "title"), [("nest", "Loop nest"), ("memory", "Memory scopes")])
def test_an_explorer_shows_its_open_picture_the_program_and_the_history(made, tab, title):
    explorer = made["e"]
    explorer.intent = {"id": "a-1", "op": "picture", "args": {"tab": tab}}
    html = explorer.static_html()
    (picture,) = pictures_in(html)
    assert picture.find("title").text == title
    words = "".join(ET.fromstring(html).itertext())
    assert "for i in range" in words
    assert "the current state" in words
    assert "Left out" not in words


def test_a_picture_behind_a_preset_is_that_of_the_current_state(made):
    explorer = made["e"]
    explorer.intent = {"id": "a-1", "op": "preset", "args": {"preset": "code"}}
    made["s"][made["C"]].parallel(made["i"])
    (picture,) = pictures_in(explorer.static_html())
    assert "parallel" in "".join(picture.itertext())


def test_a_picture_that_is_switched_off_stays_off(made):
    made["e"].intent = {"id": "a-1", "op": "picture", "args": {"tab": "off"}}
    html = made["e"].static_html()
    assert not pictures_in(html)
    assert "dlc-nest" in html


def test_a_picture_that_cannot_be_drawn_says_why():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    explorer = Explorer(create_schedule(B.op))
    explorer.intent = {"id": "a-1", "op": "picture", "args": {"tab": "space"}}
    assert "known only at a call" in explorer.static_html()
    explorer.close()


def titles(explorer):
    return [picture.find("title").text for picture in pictures_in(explorer.static_html())]


def test_the_ladder_stands_below_the_open_picture_once_a_state_is_measured(made):
    explorer = made["e"]
    assert titles(explorer) == ["Loop nest"]
    made["s"].node.notes["measured"] = Measured(Timing((0.002,), flops=2.0 * 64**3), threads=1)
    assert titles(explorer) == ["Loop nest", "Ladder"]
    made["s"][made["C"]].parallel(made["i"])
    assert titles(explorer) == ["Loop nest", "Ladder"], "the time of a state before counts, too"
    explorer.intent = {"id": "a-1", "op": "picture", "args": {"tab": "ladder"}}
    assert titles(explorer) == ["Ladder"]
    explorer.intent = {"id": "a-2", "op": "picture", "args": {"tab": "off"}}
    assert titles(explorer) == ["Ladder"], "measured times are no part of what is switched off"


def test_a_ladder_without_a_measured_state_is_shown_only_if_its_tab_is_open(made):
    made["e"].intent = {"id": "a-1", "op": "picture", "args": {"tab": "ladder"}}
    assert titles(made["e"]) == ["Ladder"]
    assert "No state of this branch is measured." in made["e"].static_html()
    made["e"].intent = {"id": "a-2", "op": "picture", "args": {"tab": "nest"}}
    assert titles(made["e"]) == ["Loop nest"]


# -- what is too large ----------------------------------------------------------------------------


def test_what_does_not_fit_is_named_and_smaller_parts_stay():
    parts = {
        "the first": tag("p", None, "small"),
        "the second": tag("p", None, "x" * LARGEST_BYTES),
        "the third": tag("p", None, "also small"),
    }
    html = static_page("a widget", parts, lambda: "words")
    assert len(html.encode()) < LARGEST_BYTES
    words = "".join(ET.fromstring(html).itertext())
    assert words.startswith("a widget — run the cell to use the widget.smallalso small")
    assert words.endswith("too large to be stored in a notebook: the second.")
    assert "words" not in words


def test_text_stands_for_parts_that_are_all_too_large():
    parts = {"the only one": tag("p", None, "x" * LARGEST_BYTES)}
    html = static_page("a widget", parts, lambda: "line <of> text\n" * 10_000)
    assert len(html.encode()) < LARGEST_BYTES
    text = ET.fromstring(html).find("pre").text
    assert text.startswith("line <of> text")
    assert text.endswith("\n…")


def _next(tensor):
    return lambda i, j: tensor[i, j] + 1.0


@pytest.mark.campaign
def test_the_picture_of_a_huge_program_is_bounded():
    A = te.placeholder((64, 64), name="A")
    tensor = A
    for n in range(60):
        tensor = te.compute((64, 64), _next(tensor), name=f"T{n}")
    explorer = Explorer(create_schedule(tensor.op))
    for tab in pictures.PICTURES:
        explorer.intent = {"id": tab, "op": "picture", "args": {"tab": tab}}
        html = explorer.static_html()
        assert len(html.encode()) < LARGEST_BYTES, tab
        ET.fromstring(html)
    assert re.search(r"Left out, .*: ", html) or "T59" in html
    explorer.close()
