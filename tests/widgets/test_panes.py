"""Each pane as a widget of its own: what it shows, and what of it stands still."""

import json
import re
import xml.etree.ElementTree as ET

import pytest

from dlcompiler import te
from dlcompiler.errors import CallError, ScheduleError
from dlcompiler.schedule import create_schedule
from tests.static_pictures import pictures_in
from tests.thread_programs import tiled_matmul

pytest.importorskip("dlcompiler_widgets")
import dlcompiler_widgets
from dlcompiler_widgets import (
    Explorer,
    HistoryTree,
    IterationSpace,
    LoopTree,
    MemoryScopes,
    ScheduleGraph,
    ThreadBlock,
)
from dlcompiler_widgets.explorer.panes import AcceleratorPicture, KernelPicture
from dlcompiler_widgets.explorer.pictures import PICTURES, pictures_of
from dlcompiler_widgets.explorer.widget import Workbench

from tests.accelerator_programs import scheduled_product
from tests.recurrences import two_stages

HOSTILE = "<img src=x onerror=alert(1)>"
PANES = [
    value
    for value in vars(dlcompiler_widgets).values()
    if isinstance(value, type) and issubclass(value, Workbench) and value is not Explorer
]
IN_WORDS = ("Advice", "CodePanes", "PassDiff")


def matmul(n=64):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = create_schedule(C.op)
    s[C].tile(*C.op.axis, 16, 16)
    return s, [A, B, C]


def shown_in(pane, n=64):
    """What a pane has something to say about."""
    if issubclass(pane, AcceleratorPicture):
        return scheduled_product()
    is_for_threads = pane is ThreadBlock or issubclass(pane, KernelPicture)
    return tiled_matmul() if is_for_threads else matmul(n)


@pytest.fixture
def make():
    """Make widgets that are closed in the end."""
    made = []

    def make_(pane, *args, **options):
        made.append(pane(*args, **options))
        return made[-1]

    yield make_
    for widget in made:
        widget.close()


def test_every_pane_is_exported():
    names = {pane.__name__ for pane in PANES}
    assert names >= {"LoopTree", "IterationSpace", "HistoryTree", "ScheduleGraph"}


@pytest.mark.campaign
@pytest.mark.parametrize("pane", PANES)
def test_it_says_what_it_is_the_same_each_time(pane, make):
    first, second = (make(pane, matmul()[0]) for _ in range(2))
    assert repr(first) == repr(second)
    assert repr(first).startswith(f"{pane.__name__}(")
    assert "0x" not in repr(first)
    assert first.static_text() == second.static_text()
    assert first.static_html() == second.static_html()
    assert json.loads(json.dumps(first.view)) == first.view


@pytest.mark.campaign
@pytest.mark.parametrize("pane", PANES)
def test_it_stands_still_without_script(pane, make):
    widget = make(pane, shown_in(pane, 1024)[0])
    bundle, _ = widget._repr_mimebundle_()
    assert len(bundle["text/plain"].splitlines()) > 2
    html = bundle["text/html"]
    assert len(html.encode()) < 60_000
    root = ET.fromstring(html)
    tags = {node.tag for node in root.iter()}
    assert "script" not in tags
    assert "table" in tags or "pre" in tags
    assert not any("id" in node.attrib or "onclick" in node.attrib for node in root.iter())


@pytest.mark.parametrize("pane", [p for p in PANES if p.__name__ not in IN_WORDS])
def test_its_picture_is_an_svg_with_words(pane, make):
    html = make(pane, shown_in(pane)[0]).static_html()
    pictures = pictures_in(html)
    assert pictures
    for picture in pictures:
        assert picture.get("role") == "img"
        assert picture.get("aria-label")
    assert all(image.get("alt") for image in ET.fromstring(html).iter("img"))


@pytest.mark.parametrize("pane", PANES)
def test_names_are_text_everywhere(pane, make):
    s, _ = matmul()
    s.history.history.describe(s.node, name=HOSTILE, note=f"</svg>{HOSTILE}")
    html = make(pane, s, name=HOSTILE).static_html()
    for root in (ET.fromstring(html), *pictures_in(html)):
        assert not [node for node in root.iter("img") if node.get("onerror")]
    assert "<img" in "".join(ET.fromstring(html).itertext())


@pytest.mark.parametrize("pane", PANES)
def test_it_follows_steps_made_elsewhere(pane, make):
    s, (_, _, C) = matmul()
    widget = make(pane, s)
    seq = widget.reply["seq"]
    s[C].parallel(s[C].leaf_iter_vars[0])
    assert widget.reply["seq"] == seq + 1
    assert "1 parallel" in repr(widget)


def test_panes_and_the_explorer_show_one_schedule(make):
    s, _ = matmul()
    explorer, tree = make(Explorer, s), make(LoopTree, s)
    step = {"primitive": "parallel", "stage": "C", "args": {"axis": "i.outer"}}
    explorer.intent = {"id": "a-1", "op": "apply", "args": {"step": step}}
    assert tree.tree == explorer.tree
    tree.intent = {"id": "b-1", "op": "undo", "args": {}}
    assert len(explorer.schedule.trace) == 1
    assert explorer.tree == tree.tree


def test_an_iteration_space_takes_an_axis_or_a_key(make):
    s, (_, _, C) = matmul()
    inner = s[C].leaf_iter_vars[2]
    by_axis, by_key = make(IterationSpace, s, inner), make(IterationSpace, s, "C/i.inner")
    assert by_axis.chosen == by_key.chosen == "C/i.inner"
    assert by_axis.picture == by_key.picture
    assert by_axis.picture["model"]["chosen"] == "C/i.inner"
    assert repr(by_axis).startswith("IterationSpace(C/i.inner of main on cpu: ")


def test_a_map_of_memory_takes_one_too(make):
    s, (_, _, C) = matmul()
    widget = make(MemoryScopes, s, s[C].leaf_iter_vars[2])
    assert widget.chosen == "C/i.inner"
    assert widget.picture["model"]["summary"].startswith("One iteration of i.inner of C touches")


def test_a_level_leaves_a_single_pane_as_it_is(make):
    widget = make(MemoryScopes, matmul()[0], level="learn")
    assert widget.picture["tab"] == "memory"
    assert widget.picture["model"]["title"] == "Memory scopes"


def test_an_axis_that_is_no_loop_is_refused():
    s, (_, _, C) = matmul()
    with pytest.raises(ScheduleError, match="no such loop now") as caught:
        IterationSpace(s, C.op.axis[0])
    assert "key of the loop tree" in str(caught.value)
    assert not s.listeners


def test_a_key_that_is_not_there_is_refused():
    s, _ = matmul()
    with pytest.raises(ScheduleError, match="no such loop"):
        IterationSpace(s, "C/nothing")
    assert not s.listeners


def test_what_is_no_axis_is_refused():
    s, args = matmul()
    with pytest.raises(ScheduleError) as caught:
        IterationSpace(s, args)  # the parameters are the third argument of this widget
    text = str(caught.value)
    assert text.startswith("show a loop: there is no such loop now\n  got       [Tensor(")
    assert text.endswith("; tensors are a later argument: args=[…]")


def test_what_has_no_picture_says_why(make):
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
    widget = make(IterationSpace, create_schedule(B.op))
    assert "known only at a call" in widget.picture["error"]["text"]
    assert "known only at a call" in widget.static_text()
    html = widget.static_html()
    assert "<p>got: n</p><p>hint: declare the tensors with numbers instead of symbols</p>" in html


def _doubled(tensor):
    return lambda i, j: tensor[i, j] * 2.0


def test_what_is_too_large_to_be_stored_becomes_text(make):
    A = te.placeholder((64, 64), name="A")
    previous = A
    for n in range(150):
        previous = te.compute((64, 64), _doubled(previous), name=f"T{n}")
    html = make(ScheduleGraph, create_schedule(previous.op)).static_html()
    assert len(html.encode()) < 60_000
    ET.fromstring(html)
    assert "T149" in html or "T0" in html


def test_only_its_own_tabs(make):
    graph = make(ScheduleGraph, matmul()[0])
    assert [tab["name"] for tab in graph.picture["tabs"]] == ["stages", "axes"]
    graph.intent = {"id": "a-1", "op": "picture", "args": {"tab": "axes"}}
    assert graph.picture["tab"] == "axes"
    assert graph.picture["model"]["title"] == "Axes of C"


def test_pictures_can_be_switched_off_and_stay_off(make):
    explorer = make(Explorer, matmul()[0])
    assert list(PICTURES)[-1] == "off"
    explorer.intent = {"id": "a-1", "op": "picture", "args": {"tab": "off"}}
    assert (explorer.picture["kind"], explorer.picture["model"]) == ("off", {})
    explorer.intent = {"id": "a-2", "op": "choose", "args": {"key": "C/k"}}
    assert explorer.picture["tab"] == "off"
    explorer.schedule.undo()
    assert explorer.picture["tab"] == "off"


def test_a_history_is_compared_in_its_pane(make):
    s, _ = matmul()
    pane = make(HistoryTree, s)
    root, here = s.history.history.root.id, s.node.id
    pane.intent = {"id": "a-1", "op": "compare", "args": {"a": root, "b": here}}
    assert (pane.compare["a"]["id"], pane.compare["b"]["id"]) == (root, here)
    assert re.search(r"tile C i j 16 16", pane.static_text())


def test_all_pictures_of_a_recurrence():
    r = two_stages(6, 5)
    s = create_schedule(r.S.op)
    s[r.s1].compute_at(s[r.s2], s[r.s2].split(r.s2.op.axis[1], 4)[0])
    explorer = Explorer(s, r.args)
    session = explorer._session
    rows = [row for row in session.tree["rows"] if row["type"] != "statement"]
    for row in rows:
        session.choose({"key": row["key"]})
        offered = {**pictures_of(session), "block": PICTURES["block"]}
        for tab, picture in offered.items():
            if row["stage"] == "S" and tab in (
                "space",
                "dependences",
            ):  # its steps are other stages'
                with pytest.raises(ScheduleError, match="no statement stores into this stage"):
                    picture.draw(session)
            elif tab == "block":
                with pytest.raises(CallError, match="none of its loops is bound to the threads"):
                    picture.draw(session)
            else:
                assert picture.still(picture.draw(session)) or tab == "off"
