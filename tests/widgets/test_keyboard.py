"""A whole task by keyboard alone: tile, reorder, vectorize, run, export. No pointer is used."""

import pytest

from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul
from tests.widgets.test_run import FakeStopwatch

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer

MOST_TABS = 150


class Hands:
    """Ten fingers on a keyboard."""

    def __init__(self, live):
        self.live = live
        self.press = live.page.keyboard.press

    def focused(self):
        return self.live.page.evaluate("document.activeElement.dataset.key ?? null")

    def tab_to(self, key):
        for _ in range(MOST_TABS):
            if self.focused() == key:
                return
            self.press("Tab")
        raise AssertionError(f"Tab does not come to {key!r}")

    def enter(self):
        self.press("Enter")
        self.live.settle()

    def loops(self):
        rows = self.live.widget.tree["rows"]
        return [row["name"] for row in rows if row["type"] == "loop"]


@pytest.fixture
def hands(contexts):
    schedule, args = matmul()
    stopwatch = FakeStopwatch()
    stopwatch.go.set()
    widget = Explorer(schedule, args, name="matmul", stopwatch=stopwatch)
    context = contexts.open(viewport={"width": 1200, "height": 900})
    live = LivePage(context, widget)
    yield Hands(live)
    assert not live.errors
    context.close()
    widget.close()


def test_tile_reorder_vectorize_run_and_export(hands):
    live = hands.live
    hands.tab_to("C/i")
    hands.enter()
    hands.tab_to("tile C C.i C.j")
    hands.enter()
    assert hands.loops() == ["i.outer", "j.outer", "i.inner", "j.inner", "k"]

    hands.press("Escape")
    hands.press("k")
    for _ in range(2):
        hands.press("Alt+ArrowUp")
        live.settle()
    assert hands.loops() == ["i.outer", "j.outer", "k", "i.inner", "j.inner"]

    hands.press("End")
    live.settle()
    assert live.widget.chosen == "C/j.inner"
    hands.enter()
    hands.tab_to("vectorize C C.j.inner")
    hands.enter()
    assert live.widget.schedule.node.title() == "vectorize C j.inner"

    hands.tab_to("measure")
    hands.enter()
    live.widget._measuring.wait(60)
    live.push()
    assert "measured" in live.widget.schedule.node.notes

    hands.tab_to("export")
    hands.enter()
    assert "s[C].vectorize(" in live.locate(".dlc-export textarea").input_value()
    hands.press("Escape")
    live.settle()
    assert not live.locate(".dlc-export textarea").count()
