"""Every element that takes the focus keeps the notebook's letters away, in every pane and tab."""

import pytest

from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer

UNMARKED = """
() => [...document.querySelectorAll(".dlc-explorer *")]
  .filter((e) => e.tabIndex >= 0 || e.hasAttribute("tabindex"))
  .filter((e) => !["INPUT", "SVG", "svg"].includes(e.tagName))
  .filter((e) => e.dataset.lmSuppressShortcuts !== "true")
  .map((e) => e.outerHTML.slice(0, 120))
"""


@pytest.fixture
def live(contexts):
    schedule, args = matmul(8)
    schedule[schedule.outputs[0]].parallel(schedule.outputs[0].op.axis[0])
    widget = Explorer(schedule, args, name="matmul")
    context = contexts.open(viewport={"width": 1200, "height": 900})
    page = LivePage(context, widget)
    yield page
    assert not page.errors
    context.close()
    widget.close()


@pytest.mark.campaign
def test_no_pane_leaves_letters_to_the_notebook(live):
    for pane in ("picture", "text"):
        for tab in getattr(live.widget, pane)["tabs"]:
            live.open_tab(tab["name"])
            assert live.page.evaluate(UNMARKED) == [], tab
    live.loop("C/j").click()
    live.settle()
    live.click("split C C.j")
    for key in ("export", "copy", "help"):
        if live.key(key).count():
            live.key(key).click()
            live.settle()
            assert live.page.evaluate(UNMARKED) == [], key
    first, second = (row["id"] for row in live.widget.history["rows"][:2])
    live.key(f"name {first}").dispatch_event("click")
    assert live.page.evaluate(UNMARKED) == []
    live.key(f"a {first}").dispatch_event("click")
    live.settle()
    live.key(f"b {second}").dispatch_event("click")
    live.settle()
    live.locate(".dlc-compare:not([hidden])").wait_for()
    assert live.page.evaluate(UNMARKED) == []


def test_looking_at_an_element_finds_the_missing_mark(live):
    live.page.evaluate(
        "document.querySelector('.dlc-row[tabindex]').removeAttribute('data-lm-suppress-shortcuts')"
    )
    assert len(live.page.evaluate(UNMARKED)) == 1
