"""Which panes and tabs there are follows from the target and the program."""

from dataclasses import replace
from typing import ClassVar

import pytest

from dlcompiler import pipeline, target, te
from dlcompiler.passes import Pass, simplify
from dlcompiler.pipeline import Pipeline
from dlcompiler.schedule import create_schedule
from dlcompiler.target.presets import C99
from tests.thread_programs import tiled_matmul
from tests.widgets.live_page import LivePage

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Advice, CodePanes, Explorer, MemoryScopes, ScheduleGraph, ThreadBlock
from dlcompiler_widgets.explorer.exports import replay_of
from dlcompiler_widgets.explorer.panes import PicturePane
from dlcompiler_widgets.explorer.pictures import PICTURES
from dlcompiler_widgets.explorer.recording import Limits, record
from dlcompiler_widgets.explorer.snapshot import PANES

pytestmark = pytest.mark.campaign(whole_file=True)

BARE = replace(
    C99, name="bare", device="bare machine", language="bare", runs_on="bare",
    caches=(), scopes=C99.scopes[:1], thread_axes=(), emits=frozenset(),
)  # fmt: skip
"""A machine of one memory: no cache, no threads, no code generator of ours."""
EVERYWHERE = ["nest", "space", "dependences", "ladder", "roofline", "stages", "axes", "off"]


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    passes = (Pass("simplify", simplify, establishes=frozenset({"affine indices"})),)
    monkeypatch.setitem(target.REGISTRY, "bare", BARE)
    monkeypatch.setitem(pipeline.PIPELINES, "bare machine", Pipeline(passes))


@pytest.fixture
def make():
    made = []

    def make_(widget, *args, **options):
        made.append(widget(*args, **options))
        return made[-1]

    yield make_
    for widget in made:
        widget.close()


def transposed():
    A = te.placeholder((16, 16), name="A")
    B = te.compute((16, 16), lambda i, j: A[j, i] + 1.0, name="B")
    return create_schedule(B.op), [A, B]


def tabs(widget, pane="picture"):
    return [tab["name"] for tab in getattr(widget, pane)["tabs"]]


def ask(widget, op, **args):
    widget.intent = {"id": f"a-{widget.reply['seq']}", "op": op, "args": args}


@pytest.mark.parametrize(
    ("name", "pictures"),
    [
        ("bare", EVERYWHERE),
        ("c", ["nest", "memory", "cache", *EVERYWHERE[1:]]),
        ("cpu", ["nest", "memory", "cache", *EVERYWHERE[1:]]),
        ("gpu", [name for name in PICTURES if name not in ("cache", "timeline", "chip")]),
        ("vta-pynq", ["nest", "memory", *EVERYWHERE[1:3], "timeline", "chip", *EVERYWHERE[3:]]),
    ],
)
def test_what_an_explorer_shows_follows_from_its_target(make, name, pictures):
    explorer = make(Explorer, *transposed(), target=name)
    assert tabs(explorer) == pictures
    assert "advice" in explorer.layout_of_panes["visible"]


def test_nothing_is_empty_for_a_machine_of_one_memory(make):
    explorer = make(Explorer, *transposed(), target="bare", level="all")
    for name in tabs(explorer):
        ask(explorer, "picture", tab=name)
        assert explorer.picture["tab"] == name
        assert explorer.picture["error"] is None
        assert bool(explorer.picture["model"]) == (name != "off")
    assert tabs(explorer, "text") == ["notation", "loops", "passes", "final", "python"]
    for name in tabs(explorer, "text"):
        ask(explorer, "text", tab=name)
        assert explorer.text["error"] is None
        assert explorer.text["lines"], name
    assert explorer.moves["loop"]
    assert explorer.bar["not_measured"] == (
        "Programs for bare run on a device without a clock (bare)."
    )


@pytest.mark.parametrize(
    ("tab", "title", "why"),
    [
        ("memory", "Memory scopes", "it has one memory and no caches"),
        ("block", "Thread block", "it has no threads that loops could be bound to"),
    ],
)
def test_a_tab_that_is_not_offered_cannot_be_opened(make, tab, title, why):
    explorer = make(Explorer, *transposed(), target="bare")
    ask(explorer, "picture", tab=tab)
    assert explorer.picture["tab"] == "nest"
    assert explorer.status["text"] == f"show {title}: there is none for bare"
    assert explorer.status["details"] == [["because", why]]


def test_threads_of_the_program_count_on_any_target(make):
    s, args = tiled_matmul()
    explorer = make(Explorer, s, args)
    assert "block" in tabs(explorer)
    ask(explorer, "picture", tab="block")
    assert explorer.picture["tab"] == "block"
    while s.node.parent:
        s.undo()
    assert "block" not in tabs(explorer)
    assert explorer.picture["tab"] == "nest"
    while s.next_node:
        s.redo()
    assert explorer.picture["tab"] == "block"


def test_another_target_brings_and_takes_panes(make):
    explorer = make(Explorer, *transposed())
    ask(explorer, "picture", tab="memory")
    ask(explorer, "target", target="gpu")
    assert "block" in tabs(explorer)
    assert explorer.advice.get("is_pending") or "outside any thread" in explorer.advice["summary"]
    assert explorer.picture["tab"] == "memory"
    ask(explorer, "target", target="cpu")
    assert "block" not in tabs(explorer)
    assert "outside any thread" not in explorer.advice["summary"]


def test_a_widget_of_one_pane_says_why_it_is_empty(make):
    block = make(ThreadBlock, *transposed())
    assert (tabs(block), block.picture["tab"]) == (["block"], "block")
    assert "none of its loops is bound to the threads of a block" in block.picture["error"]["text"]
    memory = make(MemoryScopes, transposed()[0], target="bare")
    assert memory.picture["model"]["summary"].endswith("B and A in memory.")
    said = make(Advice, *transposed(), target="gpu")
    assert said.layout_of_panes["visible"] == ["advice"]
    assert said.advice["summary"].startswith("No advice:")


def test_a_widget_of_some_tabs_opens_no_others(make):
    graph = make(ScheduleGraph, *transposed())
    ask(graph, "picture", tab="nest")
    assert graph.picture["tab"] == "stages"
    assert graph.status["tone"] == "error"
    code = make(CodePanes, *transposed(), target="gpu")
    wanted = ["notation", "loops", "final", "kernels", "cuda", "ptx", "opencl", "python"]
    assert tabs(code, "text") == wanted


@pytest.fixture
def no_advice(monkeypatch):
    """A pane that does not apply to targets with threads."""
    pane = replace(PANES["advice"], applies=lambda target: not target.thread_axes)
    monkeypatch.setitem(PANES, "advice", pane)


@pytest.mark.parametrize("name", ["bare", "gpu"])
def test_a_recording_has_the_same_tabs(make, no_advice, name):
    explorer = make(Explorer, *transposed(), target=name)
    data = record(explorer._session, explorer.layout_of_panes["visible"], [])
    shown = data["values"][data["states"][data["here"]]["shown"]["picture"]["nest"]["B/i"]]
    assert [tab["name"] for tab in shown["tabs"]] == tabs(explorer)
    page = replay_of(explorer._session, Limits()).html
    assert ('"advice"' in page.partition('"panes":{')[2].partition("}")[0]) == (name != "gpu")


@pytest.mark.parametrize("width", [800, 1400])
def test_without_advice_the_history_has_its_place(make, no_advice, contexts, width):
    schedule, args = tiled_matmul()
    explorer = make(Explorer, schedule, args, "gpu")
    shown = LivePage(contexts.open(viewport={"width": width, "height": 1000}), explorer)
    grid, history = (shown.locate(f".dlc-{name}").bounding_box() for name in ("grid", "history"))
    ends = [box["y"] + box["height"] for box in (grid, history)]
    assert abs(ends[0] - ends[1]) < 2
    assert abs(history["x"] + history["width"] - grid["x"] - grid["width"]) < 3
    shown.context.close()


class SpaceAndMemory(PicturePane):
    """A widget with a tab that the level learn shows, and one that it does not."""

    shown_tabs: ClassVar = {"picture": ("space", "memory")}


def test_the_tabs_of_a_single_pane_are_there_at_every_level(make):
    widget = make(SpaceAndMemory, *transposed(), level="learn")
    assert tabs(widget) == ["memory", "space"]
    code = make(CodePanes, *transposed(), target="c", level="learn")
    assert tabs(code, "text") == ["notation", "loops", "final", "source", "python"]
