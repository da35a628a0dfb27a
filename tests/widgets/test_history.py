"""States with names and notes, and two of them compared, in the workbench."""

import json

import pytest

from tests.widgets.axe import violations
from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer, HistoryTree

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture
def explorer():
    schedule, args = matmul()
    C = args[2]
    i, j = C.op.axis
    schedule[C].vectorize(j)
    schedule.undo()
    schedule[C].parallel(i)
    widget = Explorer(schedule, args, name="matmul")
    yield widget
    widget.close()


def send(explorer, op, **args):
    explorer.intent = {"id": f"{op} {sorted(args.items())}", "op": op, "args": args}
    return explorer.view


def ids(explorer):
    return [row["id"] for row in explorer.view["history"]["rows"]]


def test_a_state_is_named_and_noted_on(explorer):
    _, _, here = ids(explorer)
    view = send(explorer, "describe", id=here, name="threads", note="one core per row")
    row = view["history"]["rows"][-1]
    assert (row["name"], row["note"]) == ("threads", "one core per row")
    assert view["bar"]["branch"] == "threads"
    assert explorer.schedule.node.name == "threads"
    explorer.schedule.undo()
    assert explorer.view["bar"]["branch"] == ""
    explorer.schedule.jump("threads")
    assert explorer.view["history"]["rows"][-1]["is_here"]


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ({"id": "nothing", "name": "x"}, "no such state"),
        ({"id": None}, "no such state"),
        ({"name": 3}, "not a text"),
        ({"name": "x" * 61}, "one short line"),
        ({"name": "a\x00b"}, "one short line"),
        ({"note": "x" * 2001}, "too long"),
        ({"name": "taken"}, "another state has this name"),
    ],
)
def test_a_description_that_cannot_be(explorer, args, text):
    first, _, here = ids(explorer)
    send(explorer, "describe", id=first, name="taken")
    view = send(explorer, "describe", **{"id": here, **args})
    assert text in view["status"]["text"]
    assert view["status"]["tone"] == "error"
    assert view["history"]["rows"][-1]["name"] == ""


def test_two_states_are_compared(explorer):
    _, vector, threads = ids(explorer)
    view = send(explorer, "compare", a=vector)
    assert view["status"]["text"] == "A is vectorize C j. Choose B next."
    assert (view["compare"], view["history"]["compared"]) == ({}, {"a": vector})
    view = send(explorer, "compare", b=threads)
    assert [step["status"] for step in view["compare"]["steps"]] == ["only in A", "only in B"]
    assert json.loads(json.dumps(view)) == view
    assert send(explorer, "compare")["compare"] == {}
    assert send(explorer, "compare", a="nothing")["status"]["tone"] == "error"


# -- in a browser ---------------------------------------------------------------------------------


@pytest.fixture
def page(contexts, explorer):
    context = contexts.open(viewport={"width": 1200, "height": 900})
    page = LivePage(context, explorer)
    yield page
    assert not page.errors
    context.close()


def row(page, number):
    return page.locate(".dlc-state").nth(number)


class TestInBrowser:
    def test_the_line_to_a_second_child_does_not_pass_its_sibling(self, page):
        rows = page.locate(".dlc-state .dlc-lanes").all()
        assert len(rows) == 3
        dots = [row.locator("circle").get_attribute("cx") for row in rows]
        passing = (
            rows[1]
            .locator("line[y2='100%']")
            .evaluate_all("all => all.map(e => e.getAttribute('x1'))")
        )
        assert dots[1] == dots[0]
        assert passing == [dots[2]]

    def test_naming_by_keyboard(self, page):
        row(page, 2).focus()
        page.page.keyboard.press("n")
        page.page.keyboard.type("threads")
        page.page.keyboard.press("Tab")
        page.page.keyboard.type(HOSTILE)
        page.page.keyboard.press("Enter")
        page.settle()
        assert page.widget.schedule.node.name == "threads"
        assert row(page, 2).locator("i").inner_text() == HOSTILE
        page.widget.schedule.describe(note="two\nlines")
        send(page.widget, "choose", key="C/k")
        page.push()
        page.page.keyboard.press("n")
        page.page.keyboard.type("s")
        page.page.keyboard.press("Enter")
        page.settle()
        assert page.widget.schedule.node.note == "two\nlines"
        assert page.widget.schedule.node.name == "sthreads"
        assert page.page.evaluate("document.activeElement.dataset.key") == ids(page.widget)[2]

    def test_comparing_by_keyboard_and_closing(self, page):
        row(page, 1).focus()
        page.page.keyboard.press("a")
        page.settle()
        row(page, 2).focus()
        page.page.keyboard.press("b")
        page.settle()
        assert page.locate(".dlc-compare h3").all_inner_texts() == [
            "A: vectorize C j",
            "B: parallel C i",
        ]
        assert page.locate(".dlc-compare .dlc-removed").count() > 0
        assert page.page.evaluate("document.activeElement.dataset.key") == "close comparison"
        page.page.keyboard.press("Escape")
        page.settle()
        assert not page.locate(".dlc-compare").is_visible()
        assert page.page.evaluate("document.activeElement.dataset.key") == ids(page.widget)[2]

    def test_comparing_by_clicks(self, page):
        _, vector, threads = ids(page.widget)
        row(page, 1).hover()
        page.click(f"a {vector}")
        page.click(f"b {threads}")
        page.click("swap")
        assert page.widget.view["compare"]["a"]["id"] == threads
        page.click("go b")
        assert page.widget.schedule.node.id == vector

    def test_numbers_stand_right_with_one_unit(self, page):
        _, vector, threads = ids(page.widget)
        send(page.widget, "compare", a=vector, b=threads)
        page.push()
        head = page.locate(".dlc-compare table").nth(1).locator("th[scope=col]").all_inner_texts()
        assert head == ["metric", "unit", "A", "B", "B ÷ A"]
        cells = page.locate(".dlc-compare td.dlc-number")
        assert cells.count() >= 6
        assert {cell.evaluate("e => getComputedStyle(e).textAlign") for cell in cells.all()} == {
            "right"
        }

    def test_axe_finds_nothing_serious(self, page):
        _, vector, threads = ids(page.widget)
        assert violations(page.page, ".dlc-history") == []
        send(page.widget, "compare", a=vector, b=threads)
        page.push()
        page.locate(".dlc-compare:visible").wait_for()
        assert violations(page.page, ".dlc-compare") == []


# -- on a page -------------------------------------------------------------------------------------


@pytest.fixture
def timed(contexts):
    """A page with the product in six steps, whose states have times."""
    from tests.widgets.shots import climbed

    context = contexts.open(viewport={"width": 1416, "height": 900}, reduced_motion="reduce")
    page = LivePage(context, climbed())
    page.settle()
    yield page
    assert not page.errors
    context.close()
    page.widget.close()


def test_the_buttons_of_a_row_leave_its_time_where_it_is(timed):
    row = timed.locate(".dlc-state:not(.dlc-current)", has=timed.locate(".dlc-time")).last
    time = row.locator(".dlc-time")
    before, high = time.bounding_box(), row.bounding_box()["height"]
    row.hover()
    buttons = row.locator(".dlc-state-buttons").bounding_box()
    assert buttons["x"] + buttons["width"] <= time.bounding_box()["x"]
    assert time.bounding_box() == before
    assert row.bounding_box()["height"] == high


def test_the_current_state_is_seen_as_a_whole(timed):
    for key in ("undo", "redo"):
        timed.click(key)
        timed._next_frame()
        row = timed.locate(".dlc-current").bounding_box()
        states = timed.locate(".dlc-states").bounding_box()
        assert row["y"] >= states["y"] - 1, key
        assert row["y"] + row["height"] <= states["y"] + states["height"] + 1, key


def test_a_name_given_in_a_cell_or_in_another_widget_is_shown(explorer):
    explorer.schedule.describe("rows")
    assert explorer.view["bar"]["branch"] == "rows"
    assert explorer.view["status"]["text"] == "Changed in another cell or view: now at rows."
    other = HistoryTree(explorer.schedule)
    send(other, "describe", id=explorer.schedule.node.id, name="cores")
    assert explorer.view["bar"]["branch"] == "cores"
    other.close()
