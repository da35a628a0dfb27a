"""What a step leaves as it is keeps its elements, and looking asks Python for nothing."""

import pytest

from tests.widgets.live_page import LivePage
from tests.widgets.test_live_page import matmul

pytest.importorskip("dlcompiler_widgets")
from dlcompiler_widgets import Explorer

TEXTS = """() => [...document.querySelectorAll(".dlc-line, .dlc-row, .dlc-mark")].map((node) =>
  [node.getAttribute("class"), node.textContent, node.getAttribute("style"), node.getAttribute("x"),
   node.getAttribute("y"), node.getAttribute("aria-level")])"""


@pytest.fixture
def open_live(contexts):
    """Show an Explorer on a page of its own; nothing may go wrong there."""
    opened = []

    def open_(explorer):
        context = contexts.open(viewport={"width": 1200, "height": 900})
        page = LivePage(context, explorer)
        opened.append((page, context))
        return page

    yield open_
    for page, context in opened:
        assert not page.errors
        context.close()
        page.widget.close()


def test_what_is_kept_looks_like_what_is_drawn_anew(open_live):
    schedule, args = matmul()
    page = open_live(Explorer(schedule, args))
    i, j = schedule.outputs[0].op.axis
    stage = schedule[schedule.outputs[0]]
    stage.parallel(i)
    _, inner = stage.split(j, factor=16)
    stage.vectorize(inner)
    schedule.undo()
    page.push()
    page.settle()
    fresh = open_live(Explorer(schedule, args))
    assert page.page.evaluate(TEXTS) == fresh.page.evaluate(TEXTS)


def test_a_step_redraws_only_what_it_changes(open_live):
    schedule, args = matmul()
    page = open_live(Explorer(schedule, args))
    page.page.evaluate("document.querySelectorAll('.dlc-row').forEach(e => { e.isOld = true; })")
    page.click("parallel C C.i")
    kept = page.locate(".dlc-row").evaluate_all("all => all.map(e => Boolean(e.isOld))")
    assert kept == [True, False, True, True, True, True][: len(kept)]
    assert page.page.evaluate("document.activeElement.isConnected")


def test_the_table_of_a_picture_is_made_when_it_is_opened_and_stays_open(open_live):
    schedule, args = matmul()
    page = open_live(Explorer(schedule, args))
    twin = page.locate(".dlc-picture .dlc-twin")
    assert twin.locator("table").count() == 0
    twin.locator("summary").click()
    twin.locator("table").wait_for()
    page.key("split C C.i factor").fill("8")
    page.click("split C C.i")
    twin.locator("td", has_text="i.inner").first.wait_for()
    assert twin.locator("table").count() == 1


@pytest.mark.campaign
def test_looking_asks_python_for_nothing(open_live):
    schedule, args = matmul(8)
    page = open_live(Explorer(schedule, args))
    for tab in [tab["name"] for tab in page.widget.picture["tabs"]]:
        page.open_tab(tab)
        page.wait(lambda: not (page.widget.picture["model"] or {}).get("is_pending"))
        seq, intent = page.widget.reply["seq"], dict(page.widget.intent)
        for css in (".dlc-row", ".dlc-picture .dlc-mark", ".dlc-line", ".dlc-state"):
            for node in page.locate(css).all()[:4]:
                node.dispatch_event("mouseenter")
                node.dispatch_event("mouseover")
        for key in ("space on", "space reuse", "space play"):
            for control in page.locate(f'[data-key="{key}"]').all():
                control.click()
        page.page.wait_for_timeout(120)
        assert (page.widget.reply["seq"], dict(page.widget.intent)) == (seq, intent)


def test_an_answer_is_not_lost_when_a_thread_pushes_right_behind_it(open_live):
    schedule, args = matmul(8)
    page = open_live(Explorer(schedule, args))
    page.widget.observe(lambda change: page.widget._push(None), names="intent")
    page.loop("C/j").click()
    page.settle()
    assert page.loop("C/j").get_attribute("aria-selected") == "true"
    assert float(page.locate(".dlc-explorer").get_attribute("data-latency-ms")) > 0
