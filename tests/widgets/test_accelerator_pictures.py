"""The pictures of a program on an accelerator in the workbench, without and in a browser."""

from __future__ import annotations

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule
from tests.accelerator_programs import scheduled_product
from tests.static_pictures import pictures_in

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import ChipMemories, Explorer, Timeline
from dlcompiler_widgets.explorer import background

TABS = {"timeline": "Timeline", "chip": "Memories of the accelerator"}


@pytest.fixture
def explore():
    """Open a widget, which is closed in the end."""
    made = []

    def explore_(*args, widget=Explorer, **options):
        made.append(widget(*args, **options))
        return made[-1]

    yield explore_
    for widget in made:
        widget.close()


@pytest.fixture
def patient(monkeypatch):
    monkeypatch.setattr(background, "PATIENCE_S", 60.0)


def ask(widget, op, **args):
    widget.intent = {"id": object().__hash__(), "op": op, "args": args}


def test_an_accelerator_has_the_tabs_and_no_threads(explore):
    widget = explore(*scheduled_product(), target="vta-pynq")
    names = [tab["name"] for tab in widget.picture["tabs"]]
    assert set(TABS) < set(names)
    assert "block" not in names
    assert {tab["group"] for tab in widget.picture["tabs"] if tab["name"] in TABS} == {
        "Accelerator"
    }
    groups = {item["name"]: item["group"] for item in widget.bar["targets"]}
    assert groups["vta-pynq"] == "Accelerator"
    names = [tab["name"] for tab in explore(*scheduled_product(1), target="cpu").picture["tabs"]]
    assert not set(TABS) & set(names)


@pytest.mark.parametrize("tab", TABS)
def test_a_tab_shows_the_program(explore, patient, tab):
    widget = explore(*scheduled_product(), target="vta-pynq", name="gemv")
    ask(widget, "picture", tab=tab)
    assert widget.picture["error"] is None
    model = widget.picture["model"]
    assert model["title"] == TABS[tab]
    assert model["summary"].startswith("gemv: ")
    assert "(simulated, profile B)" in model["summary"]
    keys = {key for mark in model["marks"] for key in mark.get("keys", [])}
    assert keys <= {row["key"] for row in widget.tree["rows"]}
    assert {"W.wgt", "A.inp", "acc"} <= keys


def test_the_picture_follows_the_schedule(explore, patient):
    schedule, args = scheduled_product()
    widget = explore(schedule, args, target="vta-pynq")
    ask(widget, "picture", tab="chip")
    assert "shifted" in str(widget.picture["model"]["marks"])
    ask(widget, "undo")  # the inner product is no intrinsic now
    assert widget.picture["error"]["text"].startswith("compute acc by alu: ")
    ask(widget, "redo")
    assert widget.picture["error"] is None


def test_a_program_that_uses_no_memory_of_it_says_so(explore, patient):
    A = te.placeholder((8, 8), name="A")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1.0, name="B")
    widget = explore(create_schedule(B.op), [A, B], target="vta-pynq")
    ask(widget, "picture", tab="timeline")
    error = widget.picture["error"]
    assert error["text"].endswith("it runs no part of this program")
    assert "vta-pynq.inp" in str(error["details"])


@pytest.mark.parametrize("widget", [Timeline, ChipMemories])
def test_a_pane_has_a_static_picture(explore, patient, widget):
    pane = explore(*scheduled_product(), target="vta-pynq", widget=widget)
    (html,) = pane.static_parts().values()
    assert len(pictures_in(html)) == 1


def test_instructions_are_linked_with_the_loop_nest(explore, patient):
    widget = explore(*scheduled_product(), target="vta-pynq")
    ask(widget, "text", tab="source")
    lines = widget.text["lines"]
    linked = next(line for line in lines if line["text"].startswith("load wgt"))
    assert linked["keys"] == ["W.wgt"]
    assert "acc/ko.outer" in linked["within"]


def test_a_click_on_a_bar_chooses_its_stage(open_live, patient):
    live = open_live(Explorer(*scheduled_product(), target="vta-pynq", name="gemv"), 1400)
    live.click("tabs Accelerator")
    assert live.widget.picture["tab"] == "timeline"
    live.wait(lambda: "is_pending" not in live.widget.picture["model"])
    live.page.locator(".dlc-picture svg rect", has_text="W.wgt").first.wait_for()
    live.page.locator(".dlc-picture svg rect", has_text="W.wgt").first.click()
    live.settle()
    assert live.widget.chosen == "W.wgt"
    live.click("tab chip")
    live.locate(".dlc-picture .dlc-summary", has_text="values;").wait_for()
    assert not live.errors


def test_some_cycles_are_shown_in_both_pictures_until_the_schedule_changes(explore, patient):
    widget = explore(*scheduled_product(), target="vta-pynq", name="gemv")
    ask(widget, "picture", tab="timeline")
    cycles = widget.picture["model"]["window"]["cycles"]
    assert f"gemv: {cycles:,} cycles" in widget.picture["model"]["summary"]
    ask(widget, "cycles", first=200, last=900)
    assert widget.status["text"] == "Shown: cycles 200 to 900."
    for tab in TABS:
        ask(widget, "picture", tab=tab)
        assert widget.picture["model"]["summary"].endswith("Shown: cycles 200 to 900.")
        window = widget.picture["model"]["window"]
        assert (window["first"], window["last"], window["cycles"]) == (200, 900, cycles)
    ask(widget, "cycles", first=cycles - 9, last=10**9)
    assert widget.picture["model"]["window"]["last"] == cycles
    ask(widget, "cycles", first=10**8, last=10**9)  # behind the end: the last cycle
    assert widget.picture["model"]["window"]["first"] == cycles - 1
    ask(widget, "cycles")
    assert "Shown" not in widget.picture["model"]["summary"]
    for wrong in ({"first": 5, "last": 5}, {"first": -1, "last": 5}, {"first": "a"}, {"last": 1.5}):
        ask(widget, "cycles", **wrong)
        assert widget.status["tone"] == "error"
    ask(widget, "cycles", first=1, last=100)
    ask(widget, "picture", tab="timeline")
    ask(widget, "undo")
    ask(widget, "apply", step={"primitive": "unroll", "stage": "C", "args": {}})
    ask(widget, "redo")  # the same state: the same cycles
    assert widget.picture["model"]["window"]["last"] == 100


def test_cycles_are_chosen_by_dragging_and_by_buttons(open_live, patient):
    live = open_live(Explorer(*scheduled_product(), target="vta-pynq", name="gemv"), 1400)
    live.click("tabs Accelerator")
    live.wait(lambda: "is_pending" not in live.widget.picture["model"])
    cycles = live.widget.picture["model"]["window"]["cycles"]
    picture = live.page.locator(".dlc-picture svg.dlc-scene")
    box = picture.bounding_box()
    y, scale = box["y"] + 20, box["width"] / 760
    at = [box["x"] + scale * x for x in (74 + 664 * 0.25, 74 + 664 * 0.5)]
    live.page.mouse.move(at[0], y)
    live.page.mouse.down()
    live.page.mouse.move(at[1], y, steps=4)
    assert live.page.locator(".dlc-range").count() == 1
    live.page.mouse.up()
    live.wait(lambda: live.widget.picture["model"]["window"]["first"] > 0)
    window = live.widget.picture["model"]["window"]
    assert window["first"] == pytest.approx(cycles / 4, abs=cycles / 50)
    assert window["last"] == pytest.approx(cycles / 2, abs=cycles / 50)
    live.wait(lambda: "is_pending" not in live.widget.picture["model"])
    live.click("tab chip")
    live.locate(".dlc-picture .dlc-summary", has_text="Shown: cycles").wait_for()
    live.click("fewer cycles")
    live.wait(lambda: live.widget.picture["model"]["window"]["first"] > window["first"])
    live.click("cycles behind")
    live.click("all cycles")
    live.locate(".dlc-picture .dlc-controls", has_text=f"all {cycles:,} cycles").wait_for()
    assert not live.errors


def test_marks_know_their_line_and_the_loops_around(explore, patient):
    widget = explore(*scheduled_product(), target="vta-pynq", name="gemv")
    ask(widget, "text", tab="source")
    lines = {line["number"]: line["text"] for line in widget.text["lines"]}
    for tab in TABS:
        ask(widget, "picture", tab=tab)
        marks = [m for m in widget.picture["model"]["marks"] if "line" in m]
        assert len(marks) > 20
        for mark in marks:
            if tab == "timeline":
                number, _, text = mark["title"].partition("\n")[0].partition(": ")
                assert lines[mark["line"]] == text
                assert mark["line"] == int(number) + 2
    weights = next(m for m in marks if m["keys"][:1] == ["W.wgt"])
    assert {"acc/ko.outer", "C/i1.outer.inner"} <= {*weights["keys"]}
    assert lines[weights["line"]].startswith("load wgt")


@pytest.mark.campaign
def test_an_instruction_is_chosen_in_the_timeline_the_text_and_the_memories(open_live, patient):
    live = open_live(Explorer(*scheduled_product(), target="vta-pynq", name="gemv"), 1400)
    live.click("tabs Accelerator")
    live.click("tab source")
    live.wait(lambda: "is_pending" not in live.widget.picture["model"])
    pointed = live.page.locator(".dlc-program .dlc-pointed")
    bar = live.page.locator(".dlc-picture svg rect", has_text="5: load wgt")
    bar.first.wait_for()
    bar.first.click()
    live.settle()
    assert live.widget.chosen == "W.wgt"
    assert pointed.inner_text().split()[1:3] == ["load", "wgt"]
    assert "dlc-pointed" in bar.first.get_attribute("class")
    live.click("tab chip")
    live.locate(".dlc-picture .dlc-summary", has_text="values;").wait_for()
    boxes = live.page.locator(".dlc-picture rect.dlc-pointed")
    assert boxes.count() in (2, 3)  # it is written, waits, is used
    line = live.page.locator(".dlc-program .dlc-line", has_text="load inp").nth(1)
    line.click()
    live.settle()
    assert live.page.locator(".dlc-picture rect.dlc-pointed", has_text="A.inp").count() >= 2
    live.page.locator('[data-key="acc/ko.outer"]').first.click()
    live.settle()
    assert live.page.locator(".dlc-picture rect.dlc-own").count() > 10
    live.click("undo")
    assert pointed.count() == 0
    assert not live.errors
